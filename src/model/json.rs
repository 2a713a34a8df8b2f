//! JSON of callers.
//!
//! sqlx enables the feature `raw_value` of `serde_json`. With it, `Value` parses the text of a member
//! `$serde_json::private::RawValue` once more, with a new limit of depth, so that a short text can
//! overflow the stack. So JSON of callers becomes an [`Object`], and what PostgreSQL has stored of it
//! stays text.

use std::{fmt, str::FromStr};

/// Writes types in JSON as the text that they display, and reads them from it.
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|error: $crate::Error| serde::de::Error::custom(error.without_field()))
            }
        }
    )+};
}
pub(crate) use as_text;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Maximum levels of objects and arrays: the limit of `serde_json`.
pub(crate) const DEPTH_MAX: usize = 127;

/// A JSON object, in which no key has a special meaning. If a key repeats, the last value counts.
#[derive(Debug)]
pub(crate) struct Object(Map<String, Value>);

impl fmt::Display for Object {
    /// Writes no spaces between tokens, and the members in order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Object {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Plain::deserialize(deserializer)? {
            Plain(Value::Object(members)) => Ok(Self(members)),
            Plain(_) => Err(D::Error::custom("must be a JSON object")),
        }
    }
}

/// A JSON value, parsed without the special key.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Plain;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E: Error>(self) -> Result<Plain, E> {
                Ok(Plain(Value::Null))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Plain, A::Error> {
                let mut values = Vec::new();
                while let Some(Plain(value)) = items.next_element()? {
                    values.push(value);
                }
                Ok(Plain(values.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Plain, A::Error> {
                let mut values = Map::new();
                while let Some((key, Plain(value))) = members.next_entry()? {
                    values.insert(key, value);
                }
                Ok(Plain(values.into()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Returns whether arrays and objects nest more than `depth` deep. The answer means nothing if
/// `text` is not JSON.
pub(crate) fn is_deeper(text: &str, depth: usize) -> bool {
    let (mut open, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => open += 1,
            b']' | b'}' if !is_string => open = open.saturating_sub(1),
            _ => {}
        }
        if open > depth {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_brackets_open_at_once() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("[]", 1),
            ("[[],[],{}]", 2),
            (r#"{"a":[{"b":1}]}"#, 3),
            (r#"["[[[", "\"[[[", "\\", [1]]"#, 2),
            ("]]][[", 2),
        ] {
            assert!(!is_deeper(text, depth), "{text}");
            assert!(depth == 0 || is_deeper(text, depth - 1), "{text}");
        }
    }

    #[test]
    fn no_key_has_a_special_meaning() {
        for text in [
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            r#"{"x":[{"$serde_json::private::RawValue":"[[[["}]}"#,
            r#"{"x":{"$serde_json::private::RawValue":1}}"#,
        ] {
            assert_eq!(text.parse::<Object>().ok().map(|object| object.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(nested(DEPTH_MAX).parse::<Object>().is_ok());
        assert!(nested(DEPTH_MAX + 1).parse::<Object>().is_err());
    }
}
