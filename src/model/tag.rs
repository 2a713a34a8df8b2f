//! Tags, which group boards.

use std::str::FromStr;

use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{json::as_text, text::checked_text},
};

/// A name that groups boards: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
/// or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(example = "moba", min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9_-]*$")]
pub struct Tag(String);

checked_text!(Tag);
as_text!(Tag);

impl FromStr for Tag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let begins_well = text.bytes().next().is_some_and(is_plain);
        if begins_well && text.len() <= 40 && text.bytes().all(|b| is_plain(b) || b == b'-' || b == b'_') {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(
                "tag",
                "a tag must have 1 to 40 lower-case letters, digits, '-' and '_', and start with a letter or a digit",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_like_slugs() {
        let (longest, too_long) = ("a".repeat(40), "a".repeat(41));
        for good in ["moba", "5v5", "a", "2026_pre-season", &longest] {
            assert_eq!(good.parse::<Tag>().map(|tag| tag.to_string()).ok(), Some(good.to_owned()));
        }
        for bad in ["", "-a", "_a", "Moba", "a b", "a,b", "é", "a\n", &too_long] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
    }
}
