//! API keys and their permissions.

use std::{collections::HashSet, fmt::Write as _};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::{
    Error, Result,
    model::rule::{BoardPattern, BoardSlug},
};

/// Permissions of a key.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Reads boards that require a key.
    Reader,
    /// Writes scores and player profiles, and reads.
    Server,
    /// May do everything.
    Admin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum KeyState {
    Active,
    Expired,
    Revoked,
}

/// A stored key. Only its holder knows the secret.
#[derive(Debug, Clone)]
pub struct Key {
    /// Public part of the key's text.
    pub id: String,
    /// Name of the client. A client has at most two valid keys, so that one can replace the other
    /// without a gap.
    pub name: String,
    pub role: Role,
    /// Boards that the key may access, or patterns of templates; empty for all boards.
    pub boards: Vec<BoardPattern>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    /// Time of the last use, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

impl Key {
    /// Returns the key's state by this machine's clock.
    pub fn state(&self) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|at| at <= Utc::now()) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// Checks that the key may read `board`. [`Error::Forbidden`] otherwise.
    pub fn may_read(&self, board: &BoardSlug) -> Result<()> {
        if self.is_for(board) {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} may not read board {board}", self.id)))
        }
    }

    /// Checks that the key may write scores on `board`. [`Error::Forbidden`] otherwise.
    pub fn may_write(&self, board: &BoardSlug) -> Result<()> {
        self.may_serve()?;
        if self.is_for(board) {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} may not write to board {board}", self.id)))
        }
    }

    /// Checks that the key is a server or admin key. [`Error::Forbidden`] otherwise.
    pub fn may_serve(&self) -> Result<()> {
        if self.role == Role::Reader {
            Err(Error::Forbidden(format!("key {} is a reader key; this needs a server key", self.id)))
        } else {
            Ok(())
        }
    }

    fn is_for(&self, board: &BoardSlug) -> bool {
        self.boards.is_empty() || self.boards.iter().any(|pattern| pattern.matches(board))
    }

    /// Checks that the key is an admin key. [`Error::Forbidden`] otherwise.
    pub fn may_administer(&self) -> Result<()> {
        if self.role == Role::Admin {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} is a {} key; this needs an admin key", self.id, self.role)))
        }
    }
}

#[derive(Debug, Clone)]
pub struct NewKey {
    /// Name of the client, 1 to 128 bytes.
    pub name: String,
    pub role: Role,
    /// Boards that the key may access, or patterns of templates; empty for all boards, as for an admin
    /// key.
    pub boards: Vec<BoardPattern>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl NewKey {
    /// Returns the boards of a new key; empty for all boards.
    ///
    /// A key is for all boards only on request, or as an admin key. [`Error::Invalid`] if boards
    /// are missing or repeated, or given together with `all_boards` or the admin role.
    pub fn boards(role: Role, boards: Option<Vec<BoardPattern>>, all_boards: bool) -> Result<Vec<BoardPattern>> {
        let invalid = |message: &str| Err(Error::invalid("boards", message));
        match boards {
            Some(_) if role == Role::Admin => invalid("must be absent: an admin key is for all boards"),
            Some(_) if all_boards => invalid("must be absent if the key is for all boards"),
            Some(boards) if boards.is_empty() => invalid("must name a board; `all_boards` makes a key for all boards"),
            Some(boards) => {
                let mut seen = HashSet::new();
                match boards.iter().find(|&board| !seen.insert(board)) {
                    Some(board) => invalid(&format!("repeats {board}")),
                    None => Ok(boards),
                }
            }
            None if all_boards || role == Role::Admin => Ok(Vec::new()),
            None => invalid("must name the boards of the key; `all_boards` makes a key for all boards"),
        }
    }
}

/// Returns a short digest of a text, for entity tags.
pub(crate) fn short_digest(text: &str) -> String {
    hex(&Sha256::digest(text)[..4])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
