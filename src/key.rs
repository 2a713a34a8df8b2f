//! API keys: who may write.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use chrono::{DateTime, Utc};
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

use crate::{Error, Result, act::Actor, board::BoardSlug, service::Service, signing::SigningSecret, user::check_text};

/// Hexadecimal digits of a key's id.
pub(crate) const ID_DIGITS: usize = 16;
/// Random bytes of a key's secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// What a key is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads boards that ask for a key.
    Reader,
    /// Writes scores and names players, and reads.
    Server,
    /// Everything.
    Admin,
}

impl Role {
    /// The role's name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
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
        [Self::Reader, Self::Server, Self::Admin]
            .into_iter()
            .find(|role| role.name() == name)
            .ok_or_else(|| Error::invalid("role", format!("{name:?} is not a role: reader, server, admin")))
    }
}

/// Whether a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It works.
    Active,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl KeyState {
    /// Its name in JSON and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A key as stored; the secret is known to its holder only.
#[derive(Debug, Clone)]
pub struct Key {
    /// Public part, in clear inside the key's text.
    pub id: String,
    /// Whom it was made for: a client has two keys at most that work, so that each can be replaced while the other does.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Boards that it is for; all when empty.
    pub boards: Vec<BoardSlug>,
    /// Whether its requests have to be signed.
    pub signed: bool,
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
    /// Whether it works, by this machine's clock.
    #[must_use]
    pub fn state(&self) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|at| at <= Utc::now()) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// Refuses a key that may not read `board`.
    pub fn may_read(&self, board: &BoardSlug) -> Result<()> {
        if self.is_for(board) {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} may not read board {board}", self.id)))
        }
    }

    /// Refuses a key that may not write scores on `board`.
    pub fn may_write(&self, board: &BoardSlug) -> Result<()> {
        self.may_serve()?;
        if self.is_for(board) {
            Ok(())
        } else {
            Err(Error::Forbidden(format!("key {} may not write to board {board}", self.id)))
        }
    }

    /// Refuses a key that only reads.
    pub fn may_serve(&self) -> Result<()> {
        if self.role == Role::Reader {
            Err(Error::Forbidden(format!("key {} is a reader key; this needs a server key", self.id)))
        } else {
            Ok(())
        }
    }

    fn is_for(&self, board: &BoardSlug) -> bool {
        self.boards.is_empty() || self.boards.contains(board)
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

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Whom it is made for, in 1 to 128 bytes.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Boards that it is for, none for all; an admin key is for all.
    pub boards: Vec<BoardSlug>,
    /// Whether its requests have to be signed.
    pub signed: bool,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What the holder of a new key is told, once.
pub struct NewSecrets {
    /// The key's text; stored nowhere.
    pub key: String,
    /// What its requests are signed with, if they have to be.
    pub signing_secret: Option<SigningSecret>,
}

/// Makes a key. [`Error::Conflict`] when two of the same name work already; [`Error::Invalid`] when it is to sign and there is no master
/// key to keep its secret under.
pub async fn create(service: &Service, new: NewKey, by: &Actor) -> Result<(Key, NewSecrets)> {
    check_text("name", &new.name, 128)?;
    let id = random_hex(ID_DIGITS / 2)?;
    let secret = random_hex(SECRET_BYTES)?;
    let (signing_secret, sealed) = if new.signed {
        let keys = service.master_keys.as_deref().ok_or_else(|| {
            Error::invalid("signed", "needs a master key to keep the signing secret under: set CENTILE_MASTER_KEY")
        })?;
        let signing_secret = SigningSecret::random()?;
        let sealed = signing_secret.seal(keys, &id)?;
        (Some(signing_secret), Some(sealed))
    } else {
        (None, None)
    };
    let digest = Sha256::digest(secret.as_bytes());
    let created_at = service.store.create_key(&id, &new, &digest, sealed.as_deref(), by).await?;
    let secrets = NewSecrets { key: format!("ctl_{id}_{secret}"), signing_secret };
    let NewKey { name, role, boards, signed, expires_at } = new;
    let key = Key { id, name, role, boards, signed, created_at, expires_at, revoked_at: None, last_used_at: None };
    Ok((key, secrets))
}

/// Random bytes from the operating system, as hexadecimal digits.
fn random_hex(bytes: usize) -> Result<String> {
    let mut random = vec![0; bytes];
    rand::rngs::SysRng
        .try_fill_bytes(&mut random)
        .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
    Ok(hex(&random))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Refuses to go on while a key works whose secret is one of those that are written down as examples, in documentation or in a test:
/// [`Error::Conflict`]. Only digests are known, so that only these can be told.
pub(crate) async fn refuse_examples(service: &Service) -> Result<()> {
    let digests: Vec<Vec<u8>> = examples().map(|secret| Sha256::digest(secret).to_vec()).collect();
    match service.store.keys_of_digests(&digests).await?.first() {
        None => Ok(()),
        Some(id) => {
            Err(Error::Conflict(format!("the secret of key {id} is an example: revoke it, and make another key")))
        }
    }
}

/// Secrets that nobody is to use: one digit again and again, digits in their order, what `centile.create_key` shows as an example.
fn examples() -> impl Iterator<Item = String> {
    let repeated = "0123456789abcdef".chars().map(|digit| digit.to_string().repeat(SECRET_BYTES * 2));
    let counted = ["0123456789abcdef", "deadbeef", "1234567890"]
        .map(|digits| digits.chars().cycle().take(SECRET_BYTES * 2).collect());
    let bytes = hex(&(0..).take(SECRET_BYTES).collect::<Vec<u8>>());
    repeated.chain(counted).chain([bytes, "64 random hexadecimal digits".to_owned()])
}

/// All keys, newest first.
pub async fn list(service: &Service) -> Result<Vec<Key>> {
    service.store.keys().await
}

/// Revokes a key: this instance takes it no more, others notice within 5 s. [`Error::NotFound`] when there is none of this id.
pub async fn revoke(service: &Service, id: &str, by: &Actor) -> Result<()> {
    let revoked = service.store.revoke_key(id, by).await;
    // Also after a failure: it may be revoked all the same.
    service.keys.forget(id);
    revoked
}
