//! Acts by an administrator's right: who does them, and why.

use std::{fmt, str::FromStr};

use crate::{
    Error, Result,
    model::{key::Key, user::check_text},
};

/// Longest reason, in bytes.
const REASON_MAX_BYTES: usize = 256;

/// Who acts, as the audit log names them: 1 to 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Actor {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        check_text("by", name, 128).map(|()| Self(name.to_owned()))
    }
}

impl From<&Key> for Actor {
    /// Whoever holds a key; `centile.api_keys` tells whom it was made for.
    fn from(key: &Key) -> Self {
        Self(format!("key {}", key.id))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses a reason that is empty, too long or holds control characters.
pub fn check_reason(reason: &str) -> Result<()> {
    check_text("reason", reason, REASON_MAX_BYTES)
}

/// An act, as ledger and audit log keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Who does it.
    pub by: Actor,
    /// Why, in 1 to 256 bytes.
    reason: Option<String>,
}

impl Act {
    /// An act by `by`. [`Error::Invalid`] when the reason is empty, too long or holds control characters.
    pub fn new(by: Actor, reason: Option<String>) -> Result<Self> {
        reason.as_deref().map_or(Ok(()), check_reason)?;
        Ok(Self { by, reason })
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
