//! Metadata of score events and of players.

use std::str::FromStr;

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use crate::{
    Error, Result,
    model::{
        json::{DEPTH_MAX, Object, is_deeper},
        text::checked_text,
    },
};

/// Maximum bytes of the metadata of an event.
pub const METADATA_MAX_BYTES: usize = 1_024;

/// Maximum levels of objects and arrays in them. A response adds some, and parsers limit them.
pub const METADATA_MAX_DEPTH: usize = 32;

/// Maximum bytes of the metadata of a player.
const PLAYER_METADATA_MAX_BYTES: usize = 8_192;

/// Metadata of the game about a score event, such as a replay or a character: any JSON object of up to
/// 1,024 bytes and 32 levels. Or those about a player, of up to 8,192 bytes.
///
/// A new text has no spaces between tokens and its members in order, so equal objects have equal
/// texts. Numbers with a fraction or beyond 64 bits are doubles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata(Box<str>);

checked_text!(Metadata);

impl Metadata {
    /// Creates metadata from an object that PostgreSQL has stored. Every stored object can be read,
    /// because it is not parsed.
    pub(crate) fn stored(text: String) -> Self {
        Self(text.into())
    }

    /// Checks the metadata of a player.
    pub(crate) fn of_player(object: &Object) -> Result<Self> {
        Self::within(object, PLAYER_METADATA_MAX_BYTES, DEPTH_MAX)
    }

    fn within(object: &Object, max_bytes: usize, max_depth: usize) -> Result<Self> {
        let text = object.to_string();
        if is_deeper(&text, max_depth) {
            return Err(Error::invalid("metadata", format!("has more than {max_depth} levels")));
        }
        if text.len() > max_bytes {
            let message = format!("has {} bytes of JSON; at most {max_bytes} are allowed", text.len());
            return Err(Error::invalid("metadata", message));
        }
        // PostgreSQL cannot read U+0000, which JSON writes as `\u0000`. A literal backslash is written
        // as two.
        if text.replace("\\\\", "").contains("\\u0000") {
            return Err(Error::invalid("metadata", "must not contain U+0000"));
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<Object> for Metadata {
    type Error = Error;

    /// Checks the metadata of an event.
    fn try_from(object: Object) -> Result<Self> {
        Self::within(&object, METADATA_MAX_BYTES, METADATA_MAX_DEPTH)
    }
}

impl FromStr for Metadata {
    type Err = Error;

    /// Parses the metadata of an event.
    fn from_str(text: &str) -> Result<Self> {
        let object: Object =
            text.parse().map_err(|error| Error::invalid("metadata", format!("must be a JSON object: {error}")))?;
        object.try_into()
    }
}

impl Serialize for Metadata {
    /// Writes the object, if the format is JSON.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_limited() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(nested(METADATA_MAX_DEPTH).parse::<Metadata>().is_ok());
        assert!(nested(METADATA_MAX_DEPTH + 1).parse::<Metadata>().is_err());
    }

    #[test]
    fn equal_objects_have_equal_texts() {
        for (text, stored) in [
            (r#"{"b":1,"a":[1,{"d":null,"c":true}]}"#, r#"{"a":[1,{"c":true,"d":null}],"b":1}"#),
            (r#" { "a" : 1 , "a" : 2 } "#, r#"{"a":2}"#),
            ("{}", "{}"),
            (r#"{"a":1e300}"#, r#"{"a":1e+300}"#),
            (r#"{"a":1.50}"#, r#"{"a":1.5}"#),
            (r#"{"\u00e9":"\u0022\\u0000\n"}"#, r#"{"é":"\"\\u0000\n"}"#),
        ] {
            let metadata = text.parse::<Metadata>();
            assert_eq!(metadata.as_ref().ok().map(Metadata::as_str), Some(stored), "{metadata:?}");
            let again = serde_json::to_string(&metadata.ok());
            assert_eq!(again.ok().as_deref(), Some(stored));
        }
    }

    #[test]
    fn metadata_are_an_object_of_at_most_1024_bytes() {
        let of_size = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        assert!(of_size(1_024).parse::<Metadata>().is_ok_and(|metadata| metadata.as_str().len() == 1_024));
        // Spaces do not count, but every byte of a character does.
        assert!(format!("{:2000}", of_size(1_024)).parse::<Metadata>().is_ok());
        let refused = [
            of_size(1_025),
            format!(r#"{{"a":"é{}"}}"#, "x".repeat(1_015)),
            "[]".to_owned(),
            "null".to_owned(),
            "1".to_owned(),
            r#""{}""#.to_owned(),
            r#"{"a":1"#.to_owned(),
            r#"{"a":1e400}"#.to_owned(),
            r#"{"a":"\u0000"}"#.to_owned(),
            r#"{"\\\u0000":1}"#.to_owned(),
            r#"{"a":"\ud800"}"#.to_owned(),
            String::new(),
        ];
        for text in refused {
            let refused = text.parse::<Metadata>();
            assert!(
                matches!(&refused, Err(Error::Invalid { field, .. }) if field == "metadata"),
                "{text}: {refused:?}"
            );
        }
    }
}
