//! Acts of administrators, for the ledger and the audit log.

use std::str::FromStr;

use crate::{
    Error, Result,
    model::{key::Key, text::checked_text, user::check_text},
};

const REASON_MAX_BYTES: usize = 256;

/// Name of the acting person or key in the audit log: 1 to 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

checked_text!(Actor);

impl FromStr for Actor {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        check_text("by", name, 128).map(|()| Self(name.to_owned()))
    }
}

impl From<&Key> for Actor {
    /// Names the holder of a key. `centile.api_keys` has the client's name.
    fn from(key: &Key) -> Self {
        Self(format!("key {}", key.id))
    }
}

/// Checks a reason. [`Error::Invalid`] if it is empty, too long or contains control characters.
pub fn check_reason(reason: &str) -> Result<()> {
    check_text("reason", reason, REASON_MAX_BYTES)
}

/// Author and reason of an act, as ledger and audit log record them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub by: Actor,
    /// Reason, 1 to 256 bytes.
    reason: Option<String>,
}

impl Act {
    /// Creates an act. [`Error::Invalid`] if the reason is empty, too long or contains control
    /// characters.
    pub fn new(by: Actor, reason: Option<String>) -> Result<Self> {
        reason.as_deref().map_or(Ok(()), check_reason)?;
        Ok(Self { by, reason })
    }

    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
