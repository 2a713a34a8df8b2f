//! Keys as requests bring them: looked up, known for seconds, compared in constant time.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{
    Error, Result,
    access::{
        ApiKeys,
        key::{ID_DIGITS, SECRET_BYTES},
    },
    model::{
        key::{Key, KeyState},
        signing::SigningSecret,
    },
    single_flight::SingleFlight,
    store::Store,
};

/// A key, what its secret is compared with, and what its requests are signed with.
#[derive(Debug)]
pub(crate) struct CachedKey {
    pub(crate) key: Arc<Key>,
    secret_sha256: Vec<u8>,
    pub(crate) signing_secret: Option<SigningSecret>,
    /// When PostgreSQL was asked for it.
    asked_at: Instant,
    /// Whether it has been noted that it was used, since then.
    is_noted: AtomicBool,
}

impl CachedKey {
    /// Whether it works, with this secret. Takes the same time whatever the secret is.
    fn works_with(&self, secret: &str) -> bool {
        let matches = bool::from(Sha256::digest(secret.as_bytes()).as_slice().ct_eq(&self.secret_sha256));
        matches && self.key.state() == KeyState::Active
    }

    /// Notes that a request has proved to be its holder's.
    pub(crate) async fn note_use(&self, store: &Store) {
        if self.is_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let id = &self.key.id;
        // Reading goes on while nothing can be written.
        if let Err(error) = store.touch_key(id).await {
            tracing::warn!(key = id, %error, "that a key was used could not be noted");
        }
    }
}

/// Checks the text of an `Authorization` header. [`Error::Unauthorized`] when it holds no valid key. A key that signs its requests is
/// half of the proof only: the signature is the caller's to check. That the key was used is the caller's to note ([`CachedKey::note_use`]).
pub(crate) async fn find(keys: &ApiKeys, authorization: Option<&str>) -> Result<Arc<CachedKey>> {
    let text =
        authorization.ok_or_else(|| Error::Unauthorized("this needs a key: Authorization: Bearer ctl_…".to_owned()))?;
    let text =
        bearer(text).ok_or_else(|| Error::Unauthorized("the key is sent as Authorization: Bearer ctl_…".to_owned()))?;
    let refused = || Error::Unauthorized("the key is unknown, revoked or over".to_owned());
    let (id, secret) = parse(text).ok_or_else(refused)?;
    look_up(keys, id).await?.filter(|known| known.works_with(secret)).ok_or_else(refused)
}

/// What this instance knows of the key in the text of an `Authorization` header without asking PostgreSQL.
#[derive(Debug)]
pub(crate) enum Known {
    /// The key works; the signature, if it has to have one, is not looked at.
    Works(Arc<CachedKey>),
    /// There is no key, or one that does not work.
    WorksNot,
    /// It would have to be looked for.
    Unknown,
}

/// What is known of the key in the text of an `Authorization` header.
pub(crate) fn known(keys: &ApiKeys, authorization: Option<&str>) -> Known {
    let Some((id, secret)) = authorization.and_then(bearer).and_then(parse) else { return Known::WorksNot };
    match keys.cache.get(id) {
        None => Known::Unknown,
        Some(known) if known.works_with(secret) => Known::Works(known),
        Some(_) => Known::WorksNot,
    }
}

/// The key in the text of an `Authorization` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, key) = authorization.split_once(' ')?;
    // The scheme's case does not matter (RFC 9110, section 11.1).
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim_start())
}

/// The key of this id, if there is one, as it is now or was [`KEPT`] ago at most. However many ask at once, PostgreSQL is asked for all of them.
async fn look_up(keys: &ApiKeys, id: &str) -> Result<Option<Arc<CachedKey>>> {
    let cache = &keys.cache;
    if let Some(known) = cache.get(id) {
        return Ok(Some(known));
    }
    let read = async || {
        // Whoever waited for others need not ask again.
        if let Some(known) = cache.get(id) {
            return Ok(Some(known));
        }
        let asked = cache.ask();
        let Some(stored) = keys.store.key(id).await? else { return Ok(None) };
        let open = |sealed: Vec<u8>| SigningSecret::open(keys.master_keys.as_deref(), id, &sealed);
        let known = Arc::new(CachedKey {
            key: Arc::new(stored.key),
            secret_sha256: stored.secret_sha256,
            signing_secret: stored.signing_secret.map(open).transpose()?,
            asked_at: asked.at,
            is_noted: AtomicBool::new(false),
        });
        cache.keep(&known, &asked);
        Ok(Some(known))
    };
    cache.lookups.read(id.to_owned(), read).await
}

/// Id and secret of a key's text.
pub(crate) fn parse(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix("ctl_")?.split_once('_')?;
    (id.len() == ID_DIGITS && secret.len() == SECRET_BYTES * 2 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        .then_some((id, secret))
}

/// How long a key is taken for what PostgreSQL said of it. A revocation made elsewhere is noticed after that.
const KEPT: Duration = Duration::from_secs(4);

/// Keys that were used lately.
#[derive(Debug)]
pub(crate) struct KeyCache {
    known: moka::sync::Cache<String, Arc<CachedKey>>,
    lookups: SingleFlight<String, Option<Arc<CachedKey>>>,
    /// Keys that were revoked by this instance. Held while a key is put in or taken out.
    revoked: Mutex<u64>,
}

/// That PostgreSQL is about to be asked for a key.
struct Asked {
    at: Instant,
    /// Keys that had been revoked by then.
    revoked: u64,
}

impl KeyCache {
    /// Knows no keys; who asks for one at the same moment as others waits so long for the answer.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            known: moka::sync::Cache::builder().max_capacity(10_000).time_to_live(KEPT).build(),
            lookups: SingleFlight::new(patience),
            revoked: Mutex::default(),
        }
    }

    fn get(&self, id: &str) -> Option<Arc<CachedKey>> {
        self.known.get(id).filter(|known| known.asked_at.elapsed() < KEPT)
    }

    fn revoked(&self) -> MutexGuard<'_, u64> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Asked {
        Asked { at: Instant::now(), revoked: *self.revoked() }
    }

    /// Keeps a key, unless one was revoked since it was asked for: it may be that one, and PostgreSQL have answered before.
    fn keep(&self, known: &Arc<CachedKey>, asked: &Asked) {
        let revoked = self.revoked();
        if *revoked == asked.revoked {
            self.known.insert(known.key.id.clone(), Arc::clone(known));
        }
    }

    /// Forgets a key that was revoked, for whoever asks from now on.
    pub(crate) fn forget(&self, id: &str) {
        let mut revoked = self.revoked();
        *revoked += 1;
        self.known.invalidate(id);
    }
}
