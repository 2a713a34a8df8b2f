//! Users: the players that boards share.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    model::{json, metadata::Metadata, rule::Reading, segment::AttributesChange, text::checked_text},
};

/// The caller's own id of a player: 1 to 128 bytes of UTF-8 without control characters. Not `.` or
/// `..`, because clients remove these from paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(String);

checked_text!(UserId);

impl Serialize for UserId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::id(deserializer)?.parse().map_err(|error: Error| D::Error::custom(error.without_field()))
    }
}

impl FromStr for UserId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        check_text("user_id", text, 128)?;
        if [".", ".."].contains(&text) {
            return Err(Error::invalid("user_id", "must not be . or .., which no URL can address"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Returns the number from which the lane of a player follows, as `centile.lane_hash` does: the first
/// two bytes of the SHA-256 of the id.
pub(crate) fn lane_hash(user_id: &str) -> u16 {
    let digest = Sha256::digest(user_id.as_bytes());
    u16::from_be_bytes([digest[0], digest[1]])
}

/// Checks a text. [`Error::Invalid`] if it is empty, longer than `max_bytes`, or contains control
/// characters. U+0000 is one of them, which PostgreSQL cannot store.
pub(crate) fn check_text(field: &str, text: &str, max_bytes: usize) -> Result<()> {
    if text.is_empty() {
        Err(Error::invalid(field, "must not be empty"))
    } else if text.len() > max_bytes {
        Err(Error::invalid(field, format!("has {} bytes; at most {max_bytes} are allowed", text.len())))
    } else if text.chars().any(char::is_control) {
        Err(Error::invalid(field, "must not contain control characters"))
    } else {
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "ids have the same names everywhere")]
pub struct User {
    /// The caller's own id of the player.
    pub user_id: String,
    pub name: String,
    /// URL of the player's picture; `None` without one.
    pub avatar: Option<String>,
    /// The game's own data about the player.
    pub metadata: Metadata,
    /// Values of the attributes by which boards have segments, by their names.
    pub attributes: BTreeMap<String, String>,
    /// Readers of the profile; `None` for the default of the service.
    pub reading: Option<Reading>,
    pub banned: bool,
}

/// Changes by `PUT /v1/users/{user_id}`. An absent value does not change; a new user gets its
/// default.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Name shown in lists, 1 to 128 bytes.
    pub name: Option<String>,
    /// URL of a picture, up to 1,024 bytes. An empty text removes it.
    pub avatar: Option<String>,
    /// The game's own data about the player.
    pub metadata: Option<Metadata>,
    pub attributes: AttributesChange,
    /// Readers of the profile; `Some(None)` for the default of the service.
    pub reading: Option<Option<Reading>>,
}
