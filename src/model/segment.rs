//! Segments: the players of a board who have the same value of an attribute.

use std::{collections::BTreeMap, fmt, str::FromStr};

use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{json::as_text, key::short_digest, text::checked_text},
};

/// Maximum characters of a value.
const VALUE_MAX: usize = 64;

/// The name of an attribute of users: 1 to 32 lower-case letters, digits and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(example = "country", min_length = 1, max_length = 32, pattern = "^[a-z0-9_]+$")]
pub struct Attribute(String);

checked_text!(Attribute);
as_text!(Attribute);

impl FromStr for Attribute {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if (1..=32).contains(&text.len()) && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(
                "segments",
                format!("{text:?} is not the name of an attribute: 1 to 32 lower-case letters, digits and '_'"),
            ))
        }
    }
}

/// Changes to the attributes of a user: the new value, or `None` to remove the attribute.
pub type AttributesChange = BTreeMap<Attribute, Option<String>>;

/// Checks the value of an attribute: 1 to 64 characters, no control characters.
pub(crate) fn check_value(field: &str, value: &str) -> Result<()> {
    if (1..=VALUE_MAX).contains(&value.chars().count()) && !value.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(Error::invalid(field, format!("must have 1 to {VALUE_MAX} characters without control characters")))
    }
}

/// An attribute and its value. Text form: `country:DE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    pub attribute: Attribute,
    pub value: String,
}

impl Segment {
    /// Returns a digest for entity tags and other texts in ASCII.
    pub(crate) fn digest(&self) -> String {
        format!("-{}", short_digest(&self.to_string()))
    }
}

impl FromStr for Segment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((attribute, value)) = text.split_once(':') else {
            return Err(Error::invalid("segment", format!("{text:?} is not a segment, such as country:DE")));
        };
        check_value("segment", value)?;
        let attribute = attribute.parse().map_err(|error: Error| error.in_field("segment"))?;
        Ok(Self { attribute, value: value.to_owned() })
    }
}

as_text!(Segment);

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.attribute, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_an_attribute_and_any_printable_value() {
        let longest = format!("country:{}", "é".repeat(64));
        for good in ["country:DE", "c_1:a:b@c|d \"e\"", "class:%20", &longest] {
            assert_eq!(good.parse::<Segment>().map(|segment| segment.to_string()).ok(), Some(good.to_owned()));
        }
        let long_name = format!("{}:x", "a".repeat(33));
        let too_long = format!("{longest}é");
        for bad in ["", "country", "country:", ":DE", "Country:DE", "a-b:c", "country:a\nb", &long_name, &too_long] {
            assert!(bad.parse::<Segment>().is_err(), "{bad:?}");
        }
    }
}
