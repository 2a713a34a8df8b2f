//! Authentication of keys in requests: looked up, cached for seconds, compared in constant time.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use moka::policy::EvictionPolicy;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{
    Code, Error, Result,
    access::{
        ApiKeys,
        key::{ID_DIGITS, SECRET_BYTES},
    },
    model::key::{Key, KeyState},
    single_flight::SingleFlight,
    store::Administrator,
};

/// A cached key with the digest of its secret.
#[derive(Debug)]
pub(crate) struct CachedKey {
    pub(crate) key: Arc<Key>,
    secret_sha256: Vec<u8>,
    /// Time of the look-up in PostgreSQL.
    looked_up_at: Instant,
    /// Whether its use has been recorded since the look-up.
    is_use_recorded: AtomicBool,
}

impl CachedKey {
    /// Returns whether the key is valid and has this secret. Compares in constant time.
    fn accepts(&self, secret: &str) -> bool {
        let matches = bool::from(Sha256::digest(secret.as_bytes()).as_slice().ct_eq(&self.secret_sha256));
        matches && self.key.state() == KeyState::Active
    }

    /// Records the use of the key. Call it for authenticated requests only.
    pub(crate) async fn record_use(&self, admin: &Administrator) {
        if self.is_use_recorded.swap(true, Ordering::Relaxed) {
            return;
        }
        let id = &self.key.id;
        // Reads continue while PostgreSQL accepts no writes.
        if let Err(error) = admin.touch_key(id).await {
            tracing::warn!(key = id, %error, "could not record the use of a key");
        }
    }
}

/// Authenticates the key in an `Authorization` header.
///
/// Returns [`Error::Unauthorized`] without a valid key. The caller must also record the use
/// ([`CachedKey::record_use`]).
pub(crate) async fn find(keys: &ApiKeys, authorization: Option<&str>) -> Result<Arc<CachedKey>> {
    let text = authorization.ok_or_else(missing)?;
    let text = bearer(text)
        .ok_or_else(|| Error::unauthorized(Code::KeyInvalid, "send the key as Authorization: Bearer ctl_…"))?;
    let refused = || Error::unauthorized(Code::KeyInvalid, "unknown, revoked or expired key");
    let (id, secret) = parse(text).ok_or_else(refused)?;
    look_up(keys, id).await?.filter(|known| known.accepts(secret)).ok_or_else(refused)
}

/// Returns the error for a request that lacks a key.
pub(crate) fn missing() -> Error {
    Error::unauthorized(Code::KeyRequired, "an API key is required: Authorization: Bearer ctl_…")
}

/// Result of a look-up in the cache alone.
#[derive(Debug)]
pub(crate) enum CachedLookup {
    Valid(Arc<CachedKey>),
    /// The key is missing or invalid.
    Invalid,
    /// The key is not cached.
    NotCached,
}

/// Looks up the key of an `Authorization` header in the cache, without asking PostgreSQL.
pub(crate) fn look_up_cached(keys: &ApiKeys, authorization: Option<&str>) -> CachedLookup {
    let Some((id, secret)) = authorization.and_then(bearer).and_then(parse) else { return CachedLookup::Invalid };
    match keys.cache.get(id, keys.reader.servers.cache_reference_time()) {
        None => CachedLookup::NotCached,
        Some(known) if known.accepts(secret) => CachedLookup::Valid(known),
        Some(_) => CachedLookup::Invalid,
    }
}

/// Returns the key in an `Authorization` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, key) = authorization.split_once(' ')?;
    // The scheme's case does not matter (RFC 9110, section 11.1).
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim_start())
}

/// Returns the key with this id, at most [`MAX_AGE`] old. Concurrent look-ups of a key share one
/// query.
///
/// While a cluster's coordinator is down, keys that were younger than [`MAX_AGE`] at its last answer
/// remain valid until they are [`OUTAGE_MAX_AGE`] old.
async fn look_up(keys: &ApiKeys, id: &str) -> Result<Option<Arc<CachedKey>>> {
    let cache = &keys.cache;
    if let Some(known) = cache.get(id, keys.reader.servers.cache_reference_time()) {
        return Ok(Some(known));
    }
    let read = async || {
        // Another task may have cached it while this one waited.
        if let Some(known) = cache.get(id, Instant::now()) {
            return Ok(Some(known));
        }
        let lookup = cache.begin_lookup();
        let Some(stored) = keys.reader.key(id).await? else { return Ok(None) };
        let known = Arc::new(CachedKey {
            key: Arc::new(stored.key),
            secret_sha256: stored.secret_sha256,
            looked_up_at: lookup.at,
            is_use_recorded: AtomicBool::new(false),
        });
        cache.insert(&known, &lookup);
        Ok(Some(known))
    };
    match cache.lookups.read(id.to_owned(), read).await {
        Err(error) if error.is_temporary() => {
            keys.reader.servers.check_coordinator().await;
            cache.get(id, keys.reader.servers.cache_reference_time()).map(Some).ok_or(error)
        }
        found => found,
    }
}

/// Splits a key's text into id and secret.
pub(crate) fn parse(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix("ctl_")?.split_once('_')?;
    (id.len() == ID_DIGITS && secret.len() == SECRET_BYTES * 2 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        .then_some((id, secret))
}

/// Maximum age of a cached key, except while a cluster's coordinator is down. A revocation by another
/// instance takes effect after it.
const MAX_AGE: Duration = Duration::from_secs(4);

/// Maximum age of a cached key while a cluster's coordinator is down.
const OUTAGE_MAX_AGE: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(crate) struct KeyCache {
    known: moka::sync::Cache<String, Arc<CachedKey>>,
    lookups: SingleFlight<String, Option<Arc<CachedKey>>>,
    /// Number of keys that this instance has revoked. Locked while a key is inserted or removed.
    revoked: Mutex<u64>,
}

struct LookupStart {
    at: Instant,
    /// Number of keys revoked before the look-up.
    revoked: u64,
}

impl KeyCache {
    /// Creates an empty cache. A shared look-up fails after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            known: moka::sync::Cache::builder()
                .max_capacity(10_000)
                .time_to_live(OUTAGE_MAX_AGE)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            lookups: SingleFlight::new(timeout),
            revoked: Mutex::default(),
        }
    }

    /// Returns the key if it was younger than [`MAX_AGE`] at the time `at`.
    fn get(&self, id: &str, at: Instant) -> Option<Arc<CachedKey>> {
        self.known.get(id).filter(|known| at.saturating_duration_since(known.looked_up_at) < MAX_AGE)
    }

    fn revoked(&self) -> MutexGuard<'_, u64> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_lookup(&self) -> LookupStart {
        LookupStart { at: Instant::now(), revoked: *self.revoked() }
    }

    /// Caches a key, unless a key was revoked since the look-up started: it may be this one, read
    /// before.
    fn insert(&self, known: &Arc<CachedKey>, lookup: &LookupStart) {
        let revoked = self.revoked();
        if *revoked == lookup.revoked {
            self.known.insert(known.key.id.clone(), Arc::clone(known));
        }
    }

    /// Removes a revoked key from the cache.
    pub(crate) fn forget(&self, id: &str) {
        let mut revoked = self.revoked();
        *revoked += 1;
        self.known.invalidate(id);
    }
}
