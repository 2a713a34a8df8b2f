//! The cache, and the only caller of Redis: values that may be missing at any moment, and are never wrong.
//!
//! Nothing here fails: whatever goes wrong is a miss, or a value that was not kept. Without a Redis the values are kept
//! in this process, within a bound in bytes.

mod breaker;
mod frame;
mod key;
mod remote;

pub use key::CacheKey;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use moka::Expiry;

use crate::{Result, cache::remote::Remote, telemetry};

/// No value is kept that takes more bytes than this, key and frame included; what is longer is not ours.
const MAX_BYTES: usize = 4 << 20;

/// What an entry of the in-process cache takes beside key and value, roughly.
const ENTRY_OVERHEAD: usize = 128;

/// A cache, in Redis or in this process. Clones share it.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    prefix: String,
    place: Place,
    tally: Tally,
}

#[derive(Debug)]
enum Place {
    InProcess(moka::sync::Cache<String, Kept>),
    Redis(Box<Remote>),
}

/// A value of the in-process cache.
#[derive(Debug, Clone)]
struct Kept {
    value: Arc<[u8]>,
    lifetime: Duration,
}

/// Why a call of the cache came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// No answer in time.
    Timeout,
    /// No connection, or it broke.
    Connection,
    /// Redis said no.
    Refused,
    /// What was there was not what it should have been.
    Mismatch,
    /// The value was too long to be kept.
    TooLong,
    /// Redis was not asked, for it failed too often.
    LeftAlone,
}

/// How often what happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Values found.
    pub hits: u64,
    /// Values not found, for whatever reason.
    pub misses: u64,
    /// Values stored.
    pub puts: u64,
    /// Calls that Redis did not answer in time.
    pub timeouts: u64,
    /// Calls that found no connection, or whose connection broke.
    pub connection_failures: u64,
    /// Calls that Redis refused: out of memory, loading, read-only, …
    pub refusals: u64,
    /// Values that were not what they should have been: garbage, or a value of another key.
    pub mismatches: u64,
    /// Values that were too long to be stored.
    pub too_long: u64,
    /// Calls that were not made, because Redis had failed too often.
    pub left_alone: u64,
}

/// [`CacheCounts`], as it grows.
#[derive(Debug, Default)]
struct Tally {
    hits: AtomicU64,
    misses: AtomicU64,
    puts: AtomicU64,
    timeouts: AtomicU64,
    connection_failures: AtomicU64,
    refusals: AtomicU64,
    mismatches: AtomicU64,
    too_long: AtomicU64,
    left_alone: AtomicU64,
}

impl Cache {
    /// A cache in this process that keeps about `capacity_bytes`, and drops what is asked for least.
    #[must_use]
    pub fn in_process(prefix: impl Into<String>, capacity_bytes: u64) -> Self {
        let kept = moka::sync::Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(|key: &String, kept: &Kept| {
                u32::try_from(key.len() + kept.value.len() + ENTRY_OVERHEAD).unwrap_or(u32::MAX)
            })
            .expire_after(Lifetimes)
            .build();
        Self::new(prefix.into(), Place::InProcess(kept))
    }

    /// A cache in the Redis at `url`, which is connected to when it is first needed and may come and go.
    ///
    /// `authorities` is a file with certificates that vouch for it over TLS; the machine's own do without.
    /// [`Error::Invalid`](crate::Error::Invalid) when it cannot be read, or `url` is none; the message does not repeat it.
    pub fn redis(url: &str, authorities: Option<&Path>, prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        let remote = Remote::new(url, authorities, prefix.clone())?;
        Ok(Self::new(prefix, Place::Redis(Box::new(remote))))
    }

    fn new(prefix: String, place: Place) -> Self {
        Self(Arc::new(Inner { prefix, place, tally: Tally::default() }))
    }

    /// The value of `key`, if it is known. Takes 50 ms at most.
    pub async fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        let tally = &self.0.tally;
        let full_key = self.full_key(key);
        let found = match &self.0.place {
            Place::InProcess(kept) => Ok(kept.get(&full_key).map(|kept| kept.value.to_vec())),
            Place::Redis(remote) => remote.get(&full_key).await.and_then(|bytes| {
                bytes.map(|bytes| frame::unwrap(&full_key, bytes).ok_or(Failure::Mismatch)).transpose()
            }),
        };
        let found = found.unwrap_or_else(|failure| {
            tally.add_failure(failure);
            None
        });
        add(if found.is_some() { &tally.hits } else { &tally.misses });
        telemetry::count_shared_read(key.kind(), found.is_some());
        found
    }

    /// Keeps `value` under `key` for the key's lifetime, if that is possible now. Takes 50 ms at most.
    pub async fn put(&self, key: &CacheKey, value: Vec<u8>) {
        let tally = &self.0.tally;
        match self.store(key, value).await {
            Ok(()) => add(&tally.puts),
            Err(failure) => tally.add_failure(failure),
        }
    }

    /// Drops all that is kept of these closed periods, of whatever revision; `false` when Redis did not answer.
    pub(crate) async fn forget_closed(&self, periods: &[i64]) -> bool {
        let prefix = &self.0.prefix;
        match &self.0.place {
            Place::InProcess(kept) => {
                let gone = kept.iter().map(|(key, _)| key);
                let gone = gone.filter(|key| periods.iter().any(|period| key::is_of_closed(key, prefix, *period)));
                gone.for_each(|key| kept.invalidate(&*key));
                true
            }
            Place::Redis(remote) => {
                for period in periods {
                    if remote.remove(&key::closed_pattern(prefix, *period)).await.is_err() {
                        return false;
                    }
                }
                true
            }
        }
    }

    async fn store(&self, key: &CacheKey, value: Vec<u8>) -> Result<(), Failure> {
        let full_key = self.full_key(key);
        let frame = frame::wrap(&full_key, &value);
        if frame.len() > MAX_BYTES {
            return Err(Failure::TooLong);
        }
        let lifetime = key.lifetime();
        match &self.0.place {
            Place::InProcess(kept) => {
                kept.insert(full_key, Kept { value: value.into(), lifetime });
                Ok(())
            }
            Place::Redis(remote) => remote.put(&full_key, &frame, lifetime).await,
        }
    }

    /// Whether the cache can be used now: for a warning at the start, and for the state that operators see. Never a
    /// reason to refuse a request.
    pub async fn is_reachable(&self) -> bool {
        match &self.0.place {
            Place::InProcess(_) => true,
            Place::Redis(remote) => remote.ping().await,
        }
    }

    /// Whether Redis is used.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(&self.0.place, Place::Redis(_))
    }

    /// Whether Redis failed so often that it is left alone for the moment.
    #[must_use]
    pub fn is_left_alone(&self) -> bool {
        match &self.0.place {
            Place::InProcess(_) => false,
            Place::Redis(remote) => remote.is_left_alone(),
        }
    }

    /// How often what happened since the start.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        self.0.tally.counts()
    }

    fn full_key(&self, key: &CacheKey) -> String {
        format!("{}:{key}", self.0.prefix)
    }
}

impl Tally {
    fn add_failure(&self, failure: Failure) {
        add(match failure {
            Failure::Timeout => &self.timeouts,
            Failure::Connection => &self.connection_failures,
            Failure::Refused => &self.refusals,
            Failure::Mismatch => &self.mismatches,
            Failure::TooLong => &self.too_long,
            Failure::LeftAlone => &self.left_alone,
        });
    }

    fn counts(&self) -> CacheCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheCounts {
            hits: read(&self.hits),
            misses: read(&self.misses),
            puts: read(&self.puts),
            timeouts: read(&self.timeouts),
            connection_failures: read(&self.connection_failures),
            refusals: read(&self.refusals),
            mismatches: read(&self.mismatches),
            too_long: read(&self.too_long),
            left_alone: read(&self.left_alone),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Lets each entry of the in-process cache live as long as its key says.
struct Lifetimes;

impl Expiry<String, Kept> for Lifetimes {
    fn expire_after_create(&self, _: &String, kept: &Kept, _: Instant) -> Option<Duration> {
        Some(kept.lifetime)
    }

    fn expire_after_update(&self, _: &String, kept: &Kept, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(kept.lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(user_id: &str) -> CacheKey {
        CacheKey::User { user_id: user_id.to_owned() }
    }

    #[tokio::test]
    async fn the_in_process_cache_keeps_values_by_key() {
        let cache = Cache::in_process("p", 1 << 20);
        assert_eq!(cache.get(&user("ann")).await, None);
        cache.put(&user("ann"), b"first".to_vec()).await;
        cache.put(&user("ann"), b"second".to_vec()).await;
        assert_eq!(cache.clone().get(&user("ann")).await.as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.get(&user("bob")).await, None);
        assert_eq!(cache.counts(), CacheCounts { hits: 1, misses: 2, puts: 2, ..CacheCounts::default() });
        assert!(cache.is_reachable().await && !cache.is_left_alone());
    }

    #[tokio::test]
    async fn the_in_process_cache_is_bounded_by_bytes() {
        let cache = Cache::in_process("p", 100_000);
        for number in 0..1_000 {
            cache.put(&user(&number.to_string()), vec![0; 1_000]).await;
        }
        let Place::InProcess(kept) = &cache.0.place else { panic!("not in process") };
        kept.run_pending_tasks();
        assert!(kept.weighted_size() <= 100_000 && kept.entry_count() > 50, "{} bytes", kept.weighted_size());
    }

    #[tokio::test]
    async fn a_value_that_is_too_long_is_not_kept() {
        let cache = Cache::in_process("p", 1 << 30);
        cache.put(&user("ann"), vec![0; MAX_BYTES]).await;
        assert_eq!(cache.get(&user("ann")).await, None);
        assert_eq!(cache.counts().too_long, 1);
    }
}
