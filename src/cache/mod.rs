//! The cache of an instance: values that may be missing at any moment, but are never wrong.
//!
//! Besides `queue`, it is the only caller of Redis. No call returns an error: a failed read is
//! a miss, and a failed write stores nothing. Without Redis, this cache stores nothing; other caches of
//! the process still keep what they have read.

mod key;
mod remote;
mod value;

pub use key::{CacheKey, CacheKind};

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{Result, background::Background, cache::remote::Remote, telemetry};

/// Maximum bytes of a stored value. A longer value is not from Centile.
const MAX_BYTES: usize = 4 << 20;

/// A cache in Redis, or none. Clones share it.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    prefix: String,
    remote: Option<Arc<Remote>>,
    counters: Counters,
}

/// Reasons why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Timeout,
    /// The connection could not be opened, or broke.
    Connection,
    /// Redis answered with an error.
    Refused,
    /// The stored value does not belong to the key.
    Mismatch,
    TooLong,
    /// Redis was not called: it did not answer the last call, or is not connected yet.
    Skipped,
}

/// Counts of calls since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Values found.
    pub hits: u64,
    /// Values not found, or found outdated, for any reason.
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
    /// Creates a cache that stores nothing.
    pub(crate) fn none() -> Self {
        Self(Arc::new(Inner { prefix: String::new(), remote: None, counters: Counters::default() }))
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
        Ok(Self(Arc::new(Inner { prefix, remote: Some(remote), counters: Counters::default() })))
    }

    /// Returns the value of `key` if it `is_current`, or `None` after a miss or failure. Takes at most
    /// 50 ms.
    ///
    /// A key names no version, so the value must.
    pub async fn get<T: DeserializeOwned>(&self, key: &CacheKey, is_current: impl FnOnce(&T) -> bool) -> Option<T> {
        let remote = self.0.remote.as_ref()?;
        let counters = &self.0.counters;
        let full_key = self.full_key(key);
        let found = remote
            .get(&full_key)
            .await
            .and_then(|bytes| bytes.map(|bytes| value::decode(&full_key, &bytes).ok_or(Failure::Mismatch)).transpose());
        let found = found.unwrap_or_else(|failure| {
            counters.add_failure(failure);
            None
        });
        let found = found.filter(is_current);
        add(if found.is_some() { &counters.hits } else { &counters.misses });
        telemetry::count_shared_read(key.kind.label(), found.is_some());
        found
    }

    /// Stores `value`, an object with members, under `key` for the key's lifetime, if possible. Takes
    /// at most 50 ms.
    pub async fn put<T: Serialize>(&self, key: &CacheKey, value: &T) {
        let Some(remote) = &self.0.remote else { return };
        let full_key = self.full_key(key);
        let Some(text) = value::encode(&full_key, value) else { return };
        let stored = if text.len() > MAX_BYTES {
            Err(Failure::TooLong)
        } else {
            remote.put(&full_key, &text, key.kind.lifetime()).await
        };
        match stored {
            Ok(()) => add(&self.0.counters.puts),
            Err(failure) => self.0.counters.add_failure(failure),
        }
    }

    /// Removes these values. Returns `false` if Redis did not answer.
    pub(crate) async fn remove(&self, keys: &[CacheKey]) -> bool {
        let Some(remote) = &self.0.remote else { return true };
        let full_keys: Vec<String> = keys.iter().map(|key| self.full_key(key)).collect();
        remote.remove(&full_keys).await.is_ok()
    }

    /// Returns whether Redis answers now; `None` without Redis.
    ///
    /// Use it for a warning at startup and for the status that operators see, never to refuse a
    /// request.
    pub async fn answers(&self) -> Option<bool> {
        match &self.0.remote {
            Some(remote) => Some(remote.answers().await),
            None => None,
        }
    }

    /// Waits until Redis is connected, or an attempt to connect has failed: three seconds at most.
    pub async fn connected(&self) {
        if let Some(remote) = &self.0.remote {
            remote.checked().await;
        }
    }

    /// Returns whether Redis is skipped because it does not answer.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.0.remote.as_ref().is_some_and(|remote| remote.is_down())
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
