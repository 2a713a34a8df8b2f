//! Checked texts: a type around a text that its `FromStr` accepts.

/// Gives types around a text `as_str` and `Display`.
macro_rules! checked_text {
    ($type:ident) => {
        impl $type {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use checked_text;
