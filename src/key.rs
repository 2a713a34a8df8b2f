//! API keys: who may write.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{
    Error, Result,
    board::{self, BoardSlug},
    service::Service,
    user::check_text,
};

/// Hexadecimal digits of a key's id.
const ID_DIGITS: usize = 16;
/// Random bytes of a key's secret.
const SECRET_BYTES: usize = 32;

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
    let refused = || Error::Unauthorized("the key is unknown, revoked or over".to_owned());
    let text = authorization
        .ok_or_else(|| Error::Unauthorized("this needs a key: Authorization: Bearer ctl_…".to_owned()))?
        .split_once(' ')
        // The scheme's case does not matter (RFC 9110, section 11.1).
        .and_then(|(scheme, key)| scheme.eq_ignore_ascii_case("bearer").then_some(key.trim_start()))
        .ok_or_else(|| Error::Unauthorized("the key is sent as Authorization: Bearer ctl_…".to_owned()))?;
    let (id, secret) = parse(text).ok_or_else(refused)?;
    let known = if let Some(known) = service.keys.0.get(id) {
        known
    } else {
        let stored = service.store.key(id).await?.ok_or_else(refused)?;
        let known = Arc::new(KnownKey { key: Arc::new(stored.key), secret_sha256: stored.secret_sha256 });
        service.keys.0.insert(id.to_owned(), Arc::clone(&known));
        service.store.touch_key(id).await?;
        known
    };
    let matches = bool::from(Sha256::digest(secret.as_bytes()).as_slice().ct_eq(&known.secret_sha256));
    let is_over = known.key.expires_at.is_some_and(|at| at <= Utc::now());
    if matches && !is_over && known.key.revoked_at.is_none() { Ok(Arc::clone(&known.key)) } else { Err(refused()) }
}

/// Id and secret of a key's text.
fn parse(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix("ctl_")?.split_once('_')?;
    (id.len() == ID_DIGITS && secret.len() == SECRET_BYTES * 2 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        .then_some((id, secret))
}

/// Makes a key; the text returned beside it is shown once and stored nowhere.
pub async fn create(
    service: &Service,
    name: &str,
    role: Role,
    boards: &[BoardSlug],
    expires_at: Option<DateTime<Utc>>,
) -> Result<(Key, String)> {
    check_text("name", name, 128)?;
    if expires_at.is_some_and(|at| at <= Utc::now()) {
        return Err(Error::invalid("expires_at", "lies in the past"));
    }
    if role == Role::Admin && !boards.is_empty() {
        return Err(Error::invalid("boards", "an admin key is for all boards; name boards for a server key only"));
    }
    for board in boards {
        board::find(service, board).await?;
    }
    let id = random_hex(ID_DIGITS / 2)?;
    let secret = random_hex(SECRET_BYTES)?;
    let digest = Sha256::digest(secret.as_bytes());
    let created_at = service.store.create_key(&id, name, role, boards, expires_at, digest.as_slice()).await?;
    let text = format!("ctl_{id}_{secret}");
    let key = Key {
        id,
        name: name.to_owned(),
        role,
        boards: boards.to_vec(),
        created_at,
        expires_at,
        revoked_at: None,
        last_used_at: None,
    };
    Ok((key, text))
}

/// Random bytes from the operating system, as hexadecimal digits.
fn random_hex(bytes: usize) -> Result<String> {
    let mut random = vec![0; bytes];
    rand::rngs::SysRng
        .try_fill_bytes(&mut random)
        .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// All keys, newest first.
pub async fn list(service: &Service) -> Result<Vec<Key>> {
    service.store.keys().await
}

/// Revokes a key; other instances notice within 5 s. [`Error::NotFound`] when there is none of this id.
pub async fn revoke(service: &Service, id: &str) -> Result<()> {
    let found = service.store.revoke_key(id).await?;
    service.keys.0.invalidate(id);
    if found { Ok(()) } else { Err(Error::not_found("key", id)) }
}

/// A key and what its secret is compared with.
#[derive(Debug)]
struct KnownKey {
    key: Arc<Key>,
    secret_sha256: Vec<u8>,
}

/// Keys that were used lately; a revocation made elsewhere is noticed when they are looked up again.
#[derive(Debug)]
pub(crate) struct KeyCache(moka::sync::Cache<String, Arc<KnownKey>>);

impl Default for KeyCache {
    fn default() -> Self {
        Self(moka::sync::Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(4)).build())
    }
}
