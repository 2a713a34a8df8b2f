//! Shares one read among concurrent callers.
//!
//! A caller shares only a read that starts after the call, so the result includes every score
//! acknowledged before it. An uncontended caller starts at once. A caller that arrives during a
//! read waits for the next one.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use crate::{Error, Result};

/// Start and result of the last read of a key.
type Last<V> = tokio::sync::Mutex<Option<(Instant, Result<V>)>>;

/// Reads that callers share, by key.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, V> {
    /// The last read of each key. It is kept while a caller waits for it or for the next one.
    reads: Mutex<HashMap<K, Weak<Last<V>>>>,
    /// Maximum wait for another caller's read.
    timeout: Duration,
}

impl<K: Eq + Hash, V: Clone> SingleFlight<K, V> {
    /// Creates an empty set of reads. `timeout` limits the wait for another caller's read.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { reads: Mutex::default(), timeout }
    }

    /// Returns the result of `read`, or of another caller's read that began after this call.
    ///
    /// If the reading caller is dropped, the next waiting caller reads. [`Error::Overload`] if
    /// the wait exceeds the timeout.
    pub(crate) async fn read<F: Future<Output = Result<V>>>(&self, key: K, read: impl FnOnce() -> F) -> Result<V> {
        let arrived_at = Instant::now();
        let shared = self.shared(key);
        let lock = tokio::time::timeout(self.timeout, shared.lock()).await;
        let mut last = lock.map_err(|_| Error::overload("too many requests are waiting for the same read"))?;
        if let Some((began_at, answer)) = &*last
            && arrived_at < *began_at
        {
            return answer.clone();
        }
        let began_at = Instant::now();
        let answer = read().await;
        *last = Some((began_at, answer.clone()));
        answer
    }

    fn shared(&self, key: K) -> Arc<Last<V>> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = reads.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        // Remove unused entries before the map would grow.
        if reads.len() == reads.capacity() {
            reads.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::default();
        reads.insert(key, Arc::downgrade(&shared));
        shared
    }
}

/// Maximum values in a [`SingleFlightCache`].
const MAX_VALUES: u64 = 1_000;

/// Shared reads with cached values.
#[derive(Debug)]
pub(crate) struct SingleFlightCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    values: moka::sync::Cache<K, (Instant, V)>,
    reads: SingleFlight<K, V>,
    max_age: Duration,
}

impl<K, V> SingleFlightCache<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates an empty cache. A value is read again after `max_age`.
    pub(crate) fn new(timeout: Duration, max_age: Duration) -> Self {
        // Unused values expire after a minute.
        let values = moka::sync::Cache::builder().max_capacity(MAX_VALUES).time_to_live(Duration::from_mins(1)).build();
        Self { values, reads: SingleFlight::new(timeout), max_age }
    }

    /// Returns the cached value, or the result of `read`, which concurrent callers share.
    pub(crate) async fn read<F: Future<Output = Result<V>>>(&self, key: K, read: impl FnOnce() -> F) -> Result<V> {
        if let Some(value) = self.fresh(&key) {
            return Ok(value);
        }
        let read_once = || async {
            // Another caller may have read it meanwhile.
            if let Some(value) = self.fresh(&key) {
                return Ok(value);
            }
            let asked_at = Instant::now();
            let value = read().await?;
            self.values.insert(key.clone(), (asked_at, value.clone()));
            Ok(value)
        };
        self.reads.read(key.clone(), read_once).await
    }

    fn fresh(&self, key: &K) -> Option<V> {
        self.values.get(key).filter(|(asked_at, _)| asked_at.elapsed() < self.max_age).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(2);

    /// Numbers its reads. The first one waits for `end`.
    #[derive(Default)]
    struct Source {
        reads: AtomicU32,
        begun: Notify,
        end: Notify,
    }

    impl Source {
        async fn read(&self) -> Result<u32> {
            let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
            if number == 1 {
                self.begun.notify_one();
                self.end.notified().await;
            }
            Ok(number)
        }
    }

    #[tokio::test]
    async fn callers_during_a_read_share_the_next_one() {
        let (shared, source) = (SingleFlight::new(TIMEOUT), Source::default());
        let first = shared.read("page", || source.read());
        let others = async {
            source.begun.notified().await;
            let waiting = join_all((0..10).map(|_| shared.read("page", || source.read())));
            let other = shared.read("other page", || source.read());
            let end = async { source.end.notify_one() };
            tokio::join!(waiting, other, end)
        };
        let (first, (waiting, other, ())) = tokio::join!(first, others);
        assert_eq!(first.ok(), Some(1));
        assert_eq!(other.ok(), Some(2), "another key does not wait");
        assert_eq!(waiting.into_iter().map(Result::ok).collect::<Vec<_>>(), vec![Some(3); 10]);
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(4));
    }

    #[tokio::test]
    async fn the_next_caller_reads_if_the_reader_is_dropped() {
        let (shared, source) = (SingleFlight::new(TIMEOUT), Source::default());
        {
            let first = shared.read("page", || source.read());
            tokio::select! {
                _ = first => unreachable!("the read waits for `end`"),
                () = source.begun.notified() => {}
            }
        }
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(2));
    }

    #[tokio::test]
    async fn a_failure_is_shared_and_not_cached() {
        let (shared, source) = (SingleFlight::new(TIMEOUT), Source::default());
        let fail = async || source.read().await.and_then(|_| Err(Error::overload("failed")));
        let first = shared.read("page", fail);
        let others = async {
            source.begun.notified().await;
            let waiting = join_all((0..10).map(|_| shared.read("page", fail)));
            let end = async { source.end.notify_one() };
            tokio::join!(waiting, end).0
        };
        let (first, waiting) = tokio::join!(first, others);
        for failed in waiting.into_iter().chain([first]) {
            assert!(matches!(failed, Err(Error::Overload { .. })), "{failed:?}");
        }
        assert_eq!(source.reads.load(Ordering::SeqCst), 2, "the waiting callers share one failure");
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_read_does_not_hold_a_caller_beyond_its_timeout() {
        let (shared, source) = (SingleFlight::new(TIMEOUT), Source::default());
        let first = shared.read("page", || source.read());
        let second = async {
            source.begun.notified().await;
            let began = tokio::time::Instant::now();
            let refused = shared.read("page", || source.read()).await;
            assert!(matches!(refused, Err(Error::Overload { .. })), "{refused:?}");
            assert!(began.elapsed() < 2 * TIMEOUT, "{:?}", began.elapsed());
            source.end.notify_one();
        };
        let (first, ()) = tokio::join!(first, second);
        assert_eq!(first.ok(), Some(1));
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(2));
    }

    #[tokio::test]
    async fn unused_keys_are_removed() {
        let shared = SingleFlight::new(TIMEOUT);
        for key in 0..10_000 {
            shared.read(key, || async { Ok(key) }).await.ok();
        }
        assert!(shared.reads.lock().unwrap_or_else(PoisonError::into_inner).capacity() < 100);
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_read_and_a_failure_is_not_cached() {
        let cache = SingleFlightCache::new(Duration::from_secs(2), Duration::from_mins(1));
        let reads = AtomicU32::new(0);
        let read = || async {
            tokio::task::yield_now().await;
            Ok(reads.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let failed = cache.read("board", || async { Err(Error::overload("failed")) }).await;
        assert!(failed.is_err());
        let found = join_all((0..10).map(|_| cache.read("board", read))).await;
        assert_eq!(found.into_iter().map(Result::ok).collect::<Vec<_>>(), vec![Some(1); 10]);
        assert_eq!(cache.read("board", read).await.ok(), Some(1));
        assert_eq!(cache.read("other", read).await.ok(), Some(2));
    }
}
