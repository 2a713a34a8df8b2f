//! The cache of an instance: values that may be missing at any moment, but are never wrong.
//!
//! Besides `queue`, it is the only caller of Redis. No call returns an error: a failed read is
//! a miss, and a failed write stores nothing. Without Redis the values stay in this process, within a
//! bound in bytes.

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

use crate::{Result, background::Background, cache::remote::Remote, telemetry};

/// Maximum bytes of a stored value, including its key and frame. A longer value is not from
/// Centile.
const MAX_BYTES: usize = 4 << 20;

/// Approximate bytes of an in-process entry besides key and value.
const ENTRY_OVERHEAD: usize = 128;

/// A cache in Redis or in this process. Clones share it.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    prefix: String,
    backend: Backend,
    counters: Counters,
}

#[derive(Debug)]
enum Backend {
    InProcess(moka::sync::Cache<String, Entry>),
    Redis(Arc<Remote>),
}

/// A value of the in-process cache.
#[derive(Debug, Clone)]
struct Entry {
    value: Arc<[u8]>,
    lifetime: Duration,
}

/// Reasons why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// Redis did not answer in time.
    Timeout,
    /// The connection could not be opened, or broke.
    Connection,
    /// Redis answered with an error.
    Refused,
    /// The stored value does not belong to the key.
    Mismatch,
    /// The value is too long to store.
    TooLong,
    /// Redis was not called: it did not answer the last call, or is not connected yet.
    Skipped,
}

/// Counts of calls since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Values found.
    pub hits: u64,
    /// Values not found, for any reason.
    pub misses: u64,
    /// Values stored.
    pub puts: u64,
    /// Calls that Redis did not answer in time.
    pub timeouts: u64,
    /// Calls whose connection could not be opened or broke.
    pub connection_failures: u64,
    /// Calls that Redis answered with an error: out of memory, loading, read-only, …
    pub refusals: u64,
    /// Values that do not belong to their key: garbage, or a value of another key.
    pub mismatches: u64,
    /// Values that were too long to store.
    pub too_long: u64,
    /// Calls that were skipped because Redis had not answered.
    pub skipped: u64,
}

/// Counters behind [`CacheCounts`].
#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    puts: AtomicU64,
    timeouts: AtomicU64,
    connection_failures: AtomicU64,
    refusals: AtomicU64,
    mismatches: AtomicU64,
    too_long: AtomicU64,
    skipped: AtomicU64,
}

impl Cache {
    /// Creates a cache in this process of about `capacity_bytes`. It evicts the least used values.
    #[must_use]
    pub fn in_process(prefix: impl Into<String>, capacity_bytes: u64) -> Self {
        let entries = moka::sync::Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(|key: &String, entry: &Entry| {
                u32::try_from(key.len() + entry.value.len() + ENTRY_OVERHEAD).unwrap_or(u32::MAX)
            })
            .expire_after(Lifetimes)
            .build();
        Self::new(prefix.into(), Backend::InProcess(entries))
    }

    /// Creates a cache in the Redis at `url`, which may be unreachable at any time. Call it within a
    /// Tokio runtime, on which it connects in the background. Until then all reads are misses.
    ///
    /// `authorities` is a PEM file with the certificate authorities trusted for TLS; the system's
    /// by default. [`Error::Invalid`](crate::Error::Invalid) if the file cannot be read or `url` is
    /// not a Redis URL. The message does not repeat the URL.
    pub fn redis(
        url: &str,
        authorities: Option<&Path>,
        prefix: impl Into<String>,
        background: &Background,
    ) -> Result<Self> {
        let prefix = prefix.into();
        let remote = Remote::new(url, authorities, prefix.clone(), background.clone())?;
        Ok(Self::new(prefix, Backend::Redis(remote)))
    }

    fn new(prefix: String, backend: Backend) -> Self {
        Self(Arc::new(Inner { prefix, backend, counters: Counters::default() }))
    }

    /// Returns the value of `key`, or `None` after a miss or failure. Takes at most 50 ms.
    pub async fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        let counters = &self.0.counters;
        let full_key = self.full_key(key);
        let found = match &self.0.backend {
            Backend::InProcess(entries) => Ok(entries.get(&full_key).map(|entry| entry.value.to_vec())),
            Backend::Redis(remote) => remote.get(&full_key).await.and_then(|bytes| {
                bytes.map(|bytes| frame::unwrap(&full_key, bytes).ok_or(Failure::Mismatch)).transpose()
            }),
        };
        let found = found.unwrap_or_else(|failure| {
            counters.add_failure(failure);
            None
        });
        add(if found.is_some() { &counters.hits } else { &counters.misses });
        telemetry::count_shared_read(key.kind(), found.is_some());
        found
    }

    /// Stores `value` under `key` for the key's lifetime, if possible. Takes at most 50 ms.
    pub async fn put(&self, key: &CacheKey, value: Vec<u8>) {
        let counters = &self.0.counters;
        match self.store(key, value).await {
            Ok(()) => add(&counters.puts),
            Err(failure) => counters.add_failure(failure),
        }
    }

    /// Removes all values of these closed periods, of all revisions. Returns `false` if Redis did
    /// not answer.
    pub(crate) async fn forget_closed(&self, periods: &[i64]) -> bool {
        let prefix = &self.0.prefix;
        match &self.0.backend {
            Backend::InProcess(entries) => {
                let matching = entries.iter().map(|(key, _)| key);
                let matching =
                    matching.filter(|key| periods.iter().any(|period| key::is_of_closed(key, prefix, *period)));
                matching.for_each(|key| entries.invalidate(&*key));
                true
            }
            Backend::Redis(remote) => {
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
        match &self.0.backend {
            Backend::InProcess(entries) => {
                entries.insert(full_key, Entry { value: value.into(), lifetime });
                Ok(())
            }
            Backend::Redis(remote) => remote.put(&full_key, &frame, lifetime).await,
        }
    }

    /// Returns whether the cache is reachable now.
    ///
    /// Use it for a warning at startup and for the status that operators see, never to refuse a
    /// request.
    pub async fn is_reachable(&self) -> bool {
        match &self.0.backend {
            Backend::InProcess(_) => true,
            Backend::Redis(remote) => remote.answers().await,
        }
    }

    /// Waits until Redis is connected, or an attempt to connect has failed: three seconds at most.
    pub async fn connected(&self) {
        if let Backend::Redis(remote) = &self.0.backend {
            remote.checked().await;
        }
    }

    /// Returns whether Redis is used.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(&self.0.backend, Backend::Redis(_))
    }

    /// Returns whether Redis is skipped because it does not answer.
    #[must_use]
    pub fn is_down(&self) -> bool {
        match &self.0.backend {
            Backend::InProcess(_) => false,
            Backend::Redis(remote) => remote.is_down(),
        }
    }

    /// Returns the counts of calls since the start.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        self.0.counters.counts()
    }

    fn full_key(&self, key: &CacheKey) -> String {
        format!("{}:{key}", self.0.prefix)
    }
}

impl Counters {
    fn add_failure(&self, failure: Failure) {
        add(match failure {
            Failure::Timeout => &self.timeouts,
            Failure::Connection => &self.connection_failures,
            Failure::Refused => &self.refusals,
            Failure::Mismatch => &self.mismatches,
            Failure::TooLong => &self.too_long,
            Failure::Skipped => &self.skipped,
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
            skipped: read(&self.skipped),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Expires each in-process entry after the lifetime of its key.
struct Lifetimes;

impl Expiry<String, Entry> for Lifetimes {
    fn expire_after_create(&self, _: &String, entry: &Entry, _: Instant) -> Option<Duration> {
        Some(entry.lifetime)
    }

    fn expire_after_update(&self, _: &String, entry: &Entry, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(entry.lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(user_id: &str) -> CacheKey {
        CacheKey::User { user_id: user_id.to_owned() }
    }

    #[tokio::test]
    async fn the_in_process_cache_stores_values_by_key() {
        let cache = Cache::in_process("p", 1 << 20);
        assert_eq!(cache.get(&user("ann")).await, None);
        cache.put(&user("ann"), b"first".to_vec()).await;
        cache.put(&user("ann"), b"second".to_vec()).await;
        assert_eq!(cache.clone().get(&user("ann")).await.as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.get(&user("bob")).await, None);
        assert_eq!(cache.counts(), CacheCounts { hits: 1, misses: 2, puts: 2, ..CacheCounts::default() });
        assert!(cache.is_reachable().await && !cache.is_down());
    }

    #[tokio::test]
    async fn the_in_process_cache_is_bounded_by_bytes() {
        let cache = Cache::in_process("p", 100_000);
        for number in 0..1_000 {
            cache.put(&user(&number.to_string()), vec![0; 1_000]).await;
        }
        let Backend::InProcess(entries) = &cache.0.backend else { panic!("not in process") };
        entries.run_pending_tasks();
        assert!(entries.weighted_size() <= 100_000 && entries.entry_count() > 50, "{} bytes", entries.weighted_size());
    }

    #[tokio::test]
    async fn a_too_long_value_is_not_stored() {
        let cache = Cache::in_process("p", 1 << 30);
        cache.put(&user("ann"), vec![0; MAX_BYTES]).await;
        assert_eq!(cache.get(&user("ann")).await, None);
        assert_eq!(cache.counts().too_long, 1);
    }
}
