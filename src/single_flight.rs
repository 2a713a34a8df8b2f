//! Shares one read among concurrent callers.
//!
//! A read starts after all its callers have asked, so its answer holds every score acknowledged before.
//! A single caller starts at once. A caller that arrives during a read waits for the next one.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{Error, Result};

/// The last read of a question: when it began, and what came of it.
type Last<V> = tokio::sync::Mutex<Option<(Instant, Result<V>)>>;

/// Reads that callers share.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, V> {
    /// The last read of each question, kept as long as somebody waits for it or for the next.
    reads: Mutex<HashMap<K, Weak<Last<V>>>>,
    /// How long a caller waits for its turn.
    patience: Duration,
}

impl<K: Eq + Hash, V: Clone> SingleFlight<K, V> {
    /// No reads yet.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { reads: Mutex::default(), patience }
    }

    /// Returns the result of `read`, or of another caller's read that began after this call. If that
    /// caller is dropped during its read, the next waiting caller reads. [`Error::Unavailable`] if this
    /// caller's turn does not come in time.
    pub(crate) async fn read<F: Future<Output = Result<V>>>(&self, question: K, read: impl FnOnce() -> F) -> Result<V> {
        let came_at = Instant::now();
        let shared = self.shared(question);
        let turn = timeout(self.patience, shared.lock()).await;
        let mut last = turn.map_err(|_| Error::unavailable("too many reads of this are waiting already"))?;
        if let Some((began_at, answer)) = &*last
            && came_at < *began_at
        {
            return answer.clone();
        }
        let began_at = Instant::now();
        let answer = read().await;
        *last = Some((began_at, answer.clone()));
        answer
    }

    fn shared(&self, question: K) -> Arc<Last<V>> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = reads.get(&question).and_then(Weak::upgrade) {
            return shared;
        }
        // Those nobody waits for go whenever the room would have to grow.
        if reads.len() == reads.capacity() {
            reads.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::default();
        reads.insert(question, Arc::downgrade(&shared));
        shared
    }
}

/// Values of a [`SingleFlightCache`] that are kept at most.
const VALUES_MAX: u64 = 1_000;

/// Shared reads whose values are kept for a while.
#[derive(Debug)]
pub(crate) struct SingleFlightCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    known: moka::sync::Cache<K, (Instant, V)>,
    reads: SingleFlight<K, V>,
    kept_for: Duration,
}

impl<K, V> SingleFlightCache<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Nothing yet. A value is read again after `kept_for`.
    pub(crate) fn new(patience: Duration, kept_for: Duration) -> Self {
        // Unused values expire after a minute.
        let known = moka::sync::Cache::builder().max_capacity(VALUES_MAX).time_to_live(Duration::from_mins(1)).build();
        Self { known, reads: SingleFlight::new(patience), kept_for }
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
            self.known.insert(key.clone(), (asked_at, value.clone()));
            Ok(value)
        };
        self.reads.read(key.clone(), read_once).await
    }

    fn fresh(&self, key: &K) -> Option<V> {
        self.known.get(key).filter(|(asked_at, _)| asked_at.elapsed() < self.kept_for).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    /// Numbers its reads; the first waits until it may end.
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
    async fn who_comes_during_a_read_shares_the_next() {
        let (shared, source) = (SingleFlight::new(PATIENCE), Source::default());
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
        assert_eq!(other.ok(), Some(2), "another question waits for nobody");
        assert_eq!(waiting.into_iter().map(Result::ok).collect::<Vec<_>>(), vec![Some(3); 10]);
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(4));
    }

    #[tokio::test]
    async fn a_reader_who_goes_away_leaves_the_others_to_read() {
        let (shared, source) = (SingleFlight::new(PATIENCE), Source::default());
        {
            let first = shared.read("page", || source.read());
            tokio::select! {
                _ = first => unreachable!("it may not end"),
                () = source.begun.notified() => {}
            }
        }
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(2));
    }

    #[tokio::test]
    async fn a_failure_is_shared_and_not_kept() {
        let (shared, source) = (SingleFlight::new(PATIENCE), Source::default());
        let fail = async || source.read().await.and_then(|_| Err(Error::unavailable("gone")));
        let first = shared.read("page", fail);
        let others = async {
            source.begun.notified().await;
            let waiting = join_all((0..10).map(|_| shared.read("page", fail)));
            let end = async { source.end.notify_one() };
            tokio::join!(waiting, end).0
        };
        let (first, waiting) = tokio::join!(first, others);
        for failed in waiting.into_iter().chain([first]) {
            assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
        }
        assert_eq!(source.reads.load(Ordering::SeqCst), 2, "those who waited share one failure");
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_takes_long_keeps_nobody_for_as_long() {
        let (shared, source) = (SingleFlight::new(PATIENCE), Source::default());
        let first = shared.read("page", || source.read());
        let second = async {
            source.begun.notified().await;
            let began = tokio::time::Instant::now();
            let refused = shared.read("page", || source.read()).await;
            assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
            assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
            source.end.notify_one();
        };
        let (first, ()) = tokio::join!(first, second);
        assert_eq!(first.ok(), Some(1));
        assert_eq!(shared.read("page", || source.read()).await.ok(), Some(2));
    }

    #[tokio::test]
    async fn questions_that_nobody_waits_for_take_no_room() {
        let shared = SingleFlight::new(PATIENCE);
        for question in 0..10_000 {
            shared.read(question, || async { Ok(question) }).await.ok();
        }
        assert!(shared.reads.lock().unwrap_or_else(PoisonError::into_inner).capacity() < 100);
    }

    #[tokio::test]
    async fn what_many_ask_for_is_read_once_and_a_failure_is_not_kept() {
        let cache = SingleFlightCache::new(Duration::from_secs(2), Duration::from_mins(1));
        let reads = AtomicU32::new(0);
        let read = || async {
            tokio::task::yield_now().await;
            Ok(reads.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let failed = cache.read("board", || async { Err(Error::unavailable("away")) }).await;
        assert!(failed.is_err());
        let found = join_all((0..10).map(|_| cache.read("board", read))).await;
        assert_eq!(found.into_iter().map(Result::ok).collect::<Vec<_>>(), vec![Some(1); 10]);
        assert_eq!(cache.read("board", read).await.ok(), Some(1));
        assert_eq!(cache.read("other", read).await.ok(), Some(2));
    }
}
