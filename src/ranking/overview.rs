//! What pages show beside ranks: which periods a board has, and how the scores of one are spread.
//!
//! Neither tells anybody a rank, or names anybody. So both are kept for some seconds: a page then costs the database no more than the ranks on it.

use std::{
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
        rank::Distribution,
    },
    ranking::{Rankings, period, read},
    single_flight::SingleFlight,
};

/// How old either may be.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Most of each that are kept.
const CAPACITY: u64 = 1_000;

/// Past periods of each kind that are listed.
const PERIODS: u32 = 12;

/// What this process read lately.
#[derive(Debug)]
pub(crate) struct Overviews {
    periods: Lately<i32, Arc<[Period]>>,
    distributions: Lately<(i32, PeriodSelector), Arc<Distribution>>,
}

impl Overviews {
    /// Nothing yet; whoever waits for somebody else's read waits for so long at most.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { periods: Lately::new(patience), distributions: Lately::new(patience) }
    }
}

/// The newest periods of each kind, newest first.
pub(crate) async fn periods(rankings: &Rankings, board: &Board) -> Result<Arc<[Period]>> {
    let read = || async { period::list(rankings, board, PERIODS).await.map(Arc::from) };
    rankings.overviews.periods.read(board.id, read).await
}

/// How the scores of a period are spread.
pub(crate) async fn distribution(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<Arc<Distribution>> {
    let read = || async { read::distribution(rankings, board, selector).await.map(Arc::new) };
    rankings.overviews.distributions.read((board.id, selector.clone()), read).await
}

/// What was read in the last seconds.
#[derive(Debug)]
struct Lately<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    known: moka::sync::Cache<K, (Instant, V)>,
    reads: SingleFlight<K, V>,
}

impl<K, V> Lately<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(patience: Duration) -> Self {
        // What nobody asks for goes after a minute.
        let known = moka::sync::Cache::builder().max_capacity(CAPACITY).time_to_live(Duration::from_mins(1)).build();
        Self { known, reads: SingleFlight::new(patience) }
    }

    /// What is known, or what `read` gives, once for all who ask at the same moment.
    async fn read<F: Future<Output = Result<V>>>(&self, key: K, read: impl FnOnce() -> F) -> Result<V> {
        if let Some(value) = self.fresh(&key) {
            return Ok(value);
        }
        let read_once = || async {
            // Whoever waited for another's read takes that.
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
        self.known.get(key).filter(|(asked_at, _)| asked_at.elapsed() < KEPT_FOR).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;

    use super::*;
    use crate::Error;

    #[tokio::test]
    async fn what_many_ask_for_is_read_once_and_a_failure_is_not_kept() {
        let lately = Lately::new(Duration::from_secs(2));
        let reads = AtomicU32::new(0);
        let read = || async {
            tokio::task::yield_now().await;
            Ok(reads.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let failed = lately.read("board", || async { Err(Error::unavailable("away")) }).await;
        assert!(failed.is_err());
        let found = join_all((0..10).map(|_| lately.read("board", read))).await;
        assert_eq!(found.into_iter().map(Result::ok).collect::<Vec<_>>(), vec![Some(1); 10]);
        assert_eq!(lately.read("board", read).await.ok(), Some(1));
        assert_eq!(lately.read("other", read).await.ok(), Some(2));
    }
}
