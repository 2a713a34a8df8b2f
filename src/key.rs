//! API keys: who may write.

use std::{fmt, str::FromStr, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{Error, Result, board::BoardSlug, service::Service};

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes scores.
    Server,
    /// Everything.
    Admin,
}

impl Role {
    /// The role's name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::Server, Self::Admin]
            .into_iter()
            .find(|role| role.name() == name)
            .ok_or_else(|| Error::invalid("role", format!("{name:?} is not a role: server, admin")))
    }
}

/// A key as stored; the secret is known to its holder only.
#[derive(Debug, Clone)]
pub struct Key {
    /// Public part, in clear inside the key's text.
    pub id: String,
    /// Name given by whoever made it.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Boards it may write; all when empty.
    pub boards: Vec<BoardSlug>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Last use, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

impl Key {
    /// Refuses a key that may not write scores on `board`.
    pub fn may_write(&self, board: &BoardSlug) -> Result<()> {
        if self.role == Role::Admin || self.boards.is_empty() || self.boards.contains(board) {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} may not write to board {board}", self.id)))
        }
    }

    /// Refuses a key that is not an admin's.
    pub fn may_administer(&self) -> Result<()> {
        if self.role == Role::Admin {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} is a {} key; this needs an admin key", self.id, self.role)))
        }
    }
}

/// Checks the text of an `Authorization` header. [`Error::Unauthorized`] when it holds no valid key.
pub async fn authenticate(service: &Service, authorization: Option<&str>) -> Result<Arc<Key>> {
    let _ = (service, authorization);
    Err(Error::Internal("unwritten".into()))
}

/// Makes a key; the text returned beside it is shown once and stored nowhere.
pub async fn create(
    service: &Service,
    name: &str,
    role: Role,
    boards: &[BoardSlug],
    expires_at: Option<DateTime<Utc>>,
) -> Result<(Key, String)> {
    let _ = (service, name, role, boards, expires_at);
    Err(Error::Internal("unwritten".into()))
}

/// All keys, newest first.
pub async fn list(service: &Service) -> Result<Vec<Key>> {
    let _ = service;
    Err(Error::Internal("unwritten".into()))
}

/// Revokes a key; other instances notice within 5 s. [`Error::NotFound`] when there is none of this id.
pub async fn revoke(service: &Service, id: &str) -> Result<()> {
    let _ = (service, id);
    Err(Error::Internal("unwritten".into()))
}
