//! Formats of imported and exported files.

use std::path::Path;

use strum::{EnumString, IntoStaticStr, VariantNames};

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum FileFormat {
    /// Comma-separated values (RFC 4180) in UTF-8, with a header line.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl FileFormat {
    /// Returns the format that a file's extension names.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }
}
