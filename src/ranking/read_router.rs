//! The server that answers reads: the primary, or a replica that is close enough behind it.
//!
//! Each has its own rank indexes and caches, because their states differ. Only the indexes of the
//! server in use take memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    background::Background,
    model::batches::BoardBatches,
    ranking::{acknowledged::covers, rankings::Rankings},
    store::Store,
};

/// Interval at which the replica is compared with the primary.
const COMPARE_EVERY: Duration = Duration::from_millis(250);

/// Timeout for the answer of each of the two servers.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a read waits until the replica has the batches that the caller asks for.
const WRITTEN_WAIT: Duration = Duration::from_millis(500);

/// Pause between the first two checks for these batches. Each further pause is twice as long, so
/// that waiting for batches that never arrive costs few statements.
const WRITTEN_PAUSE: Duration = Duration::from_millis(10);

/// Maximum positions of the primary that are kept.
const POSITIONS_MAX: usize = 1_000;

/// Chooses the server for each read.
#[derive(Debug)]
pub(crate) struct ReadRouter {
    primary: Arc<Rankings>,
    primary_store: Store,
    replica: Option<Arc<Replica>>,
}

/// State of the replica, for responses and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicaStatus {
    pub(crate) is_used: bool,
    /// Upper bound of its lag; `None` if the replica was never reachable or does not follow the
    /// primary.
    pub(crate) lag: Option<Duration>,
}

#[derive(Debug)]
struct Replica {
    rankings: Arc<Rankings>,
    store: Store,
    max_lag: Duration,
    is_used: AtomicBool,
    lag: Mutex<LagTracker>,
}

impl ReadRouter {
    /// Reads everything from the primary.
    pub(crate) fn primary(primary: Arc<Rankings>, primary_store: Store) -> Self {
        Self { primary, primary_store, replica: None }
    }

    /// Reads from `replica` while it is at most `max_lag` behind. Compares it with the primary
    /// until the instance stops.
    pub(crate) fn with_replica(
        primary: Arc<Rankings>,
        primary_store: Store,
        (rankings, store): (Arc<Rankings>, Store),
        max_lag: Duration,
        background: &Background,
    ) -> Self {
        let (is_used, lag) = (AtomicBool::new(false), Mutex::default());
        let replica = Arc::new(Replica { rankings, store, max_lag, is_used, lag });
        replica.rankings.indexes.pause();
        let (watched, source, source_store) = (Arc::clone(&replica), Arc::clone(&primary), primary_store.clone());
        background.spawn(async move {
            let mut ticks = tokio::time::interval(COMPARE_EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                watched.compare(&source, &source_store).await;
            }
        });
        Self { primary, primary_store, replica: Some(replica) }
    }

    /// Returns the server for a read without conditions.
    pub(crate) fn current(&self) -> &Arc<Rankings> {
        self.used().map_or(&self.primary, |replica| &replica.rankings)
    }

    /// Returns the server for a read whose answer must contain `written`, and the lag of a replica.
    ///
    /// Waits up to 500 ms for the replica, then chooses the primary, which contains all
    /// acknowledged scores.
    pub(crate) async fn containing(&self, written: &[BoardBatches]) -> (&Arc<Rankings>, Option<Duration>) {
        if let Some(replica) = self.used()
            && replica.reaches(written).await
            // Reads may have moved to the primary during the wait.
            && let ReplicaStatus { is_used: true, lag } = replica.status()
        {
            return (&replica.rankings, lag);
        }
        (&self.primary, None)
    }

    /// Drops all top lists of both servers from this process.
    pub(crate) fn forget_frozen_tops(&self) {
        self.primary.forget_frozen_tops();
        if let Some(replica) = &self.replica {
            replica.rankings.forget_frozen_tops();
        }
    }

    /// Returns the connections to the primary, and to the replica.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &Store> {
        let replica = self.replica.as_ref().map(|replica| &replica.store);
        [&self.primary_store].into_iter().chain(replica)
    }

    /// Compares the replica with the primary now, to choose the server for the first reads.
    pub(crate) async fn compare(&self) {
        if let Some(replica) = &self.replica {
            replica.compare(&self.primary, &self.primary_store).await;
        }
    }

    /// Returns the state of the replica; `None` without one.
    pub(crate) fn replica(&self) -> Option<ReplicaStatus> {
        self.replica.as_ref().map(|replica| replica.status())
    }

    fn used(&self) -> Option<&Arc<Replica>> {
        self.replica.as_ref().filter(|replica| replica.status().is_used)
    }
}

impl Replica {
    fn status(&self) -> ReplicaStatus {
        let lag = self.lag().upper_bound(Instant::now());
        let is_used = self.is_used.load(Ordering::Relaxed) && lag.is_some_and(|lag| lag <= self.max_lag);
        ReplicaStatus { is_used, lag }
    }

    fn lag(&self) -> std::sync::MutexGuard<'_, LagTracker> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the replica with the primary, and decides whether it answers reads.
    async fn compare(&self, primary: &Rankings, primary_store: &Store) {
        let asked_at = Instant::now();
        // While the primary does not answer, the lag grows; above `max_lag` the replica is not
        // used.
        if let Ok(Ok(position)) = timeout(COMPARE_TIMEOUT, primary_store.primary_position()).await {
            if self.lag().epoch != position.epoch {
                self.rankings.acknowledged.forget_all();
            }
            self.lag().record_primary(position.epoch, position.wal, asked_at);
        }
        let epoch = self.lag().epoch.clone();
        let answer = timeout(COMPARE_TIMEOUT, self.store.replayed(&epoch)).await;
        let follows = !matches!(answer, Ok(Ok(None)));
        let replayed = answer.ok().and_then(|replayed| replayed.ok().flatten());
        if !self.lag().record_replayed(replayed) {
            self.rankings.acknowledged.forget_all();
        }
        // A slow replica stays in use until it lags too much. An unreachable one is dropped at
        // once.
        let is_reachable = replayed.is_some() || follows && self.store.try_connect().await.is_ok();
        let was_used = self.is_used.load(Ordering::Relaxed);
        // Avoids switching back and forth near the limit: each switch loads rank indexes.
        let limit = if was_used { self.max_lag } else { self.max_lag / 2 };
        let lag = self.lag().upper_bound(Instant::now());
        let is_used = is_reachable && lag.is_some_and(|lag| lag <= limit);
        if is_used == was_used {
            return;
        }
        // Switch the reads. An instance keeps indexes only of the server that answers.
        let (next, last) = if is_used { (&*self.rankings, primary) } else { (primary, &*self.rankings) };
        next.indexes.resume();
        self.is_used.store(is_used, Ordering::Relaxed);
        last.indexes.pause();
        if is_used {
            tracing::info!(?lag, "the replica answers reads");
        } else if follows {
            tracing::warn!(?lag, "the replica is out of reach or too far behind; the primary answers reads");
        } else {
            tracing::warn!("the replica does not follow the primary; the primary answers reads");
        }
    }

    /// Waits until the replica contains `written`; returns false after 500 ms.
    async fn reaches(&self, written: &[BoardBatches]) -> bool {
        let known = &self.rankings.acknowledged;
        let mut pause = WRITTEN_PAUSE;
        let wait = async {
            for BoardBatches { board_id, batches } in written {
                while !covers(&known.batches(*board_id), batches) {
                    let Ok(reached) = self.rankings.reader.batches(*board_id).await else { return false };
                    if covers(&reached, batches) {
                        // From now on, cached top lists contain these batches, too.
                        for (lane, batch) in batches.iter().enumerate() {
                            known.raise(*board_id, lane, *batch);
                        }
                    } else {
                        tokio::time::sleep(pause).await;
                        pause *= 2;
                    }
                }
            }
            true
        };
        timeout(WRITTEN_WAIT, wait).await.unwrap_or(false)
    }
}

/// Measures how far a replica is behind the primary.
///
/// The positions of the primary are kept with their times. Once the replica has replayed a
/// position, it contains everything that was acknowledged before that position's time.
#[derive(Debug, Default)]
struct LagTracker {
    epoch: String,
    /// Positions of the primary that the replica has not replayed yet, and their times.
    positions: VecDeque<(i64, Instant)>,
    /// A position that the replica has replayed. The replica contains everything that was
    /// acknowledged before its time.
    complete_until: Option<(i64, Instant)>,
}

impl LagTracker {
    /// Records a position of the primary at `at`.
    fn record_primary(&mut self, epoch: String, wal: i64, at: Instant) {
        if self.epoch != epoch {
            // Positions of different histories cannot be compared.
            *self = Self { epoch, ..Self::default() };
        }
        let is_full = self.positions.len() >= POSITIONS_MAX;
        match self.positions.back_mut() {
            // With fewer positions the lag is only less precise.
            Some(last) if last.0 == wal || is_full => *last = (wal, at),
            _ => self.positions.push_back((wal, at)),
        }
    }

    /// Records the position of the replica; `None` if it is out of reach or does not follow the
    /// primary. Returns false if it has gone back, as it may after a crash.
    fn record_replayed(&mut self, replayed: Option<i64>) -> bool {
        let Some(replayed) = replayed else { return true };
        let went_back = self.complete_until.take_if(|(wal, _)| replayed < *wal).is_some();
        while let Some(reached) = self.positions.pop_front_if(|(wal, _)| *wal <= replayed) {
            self.complete_until = Some(reached);
        }
        !went_back
    }

    /// Returns an upper bound of the lag.
    fn upper_bound(&self, now: Instant) -> Option<Duration> {
        self.complete_until.map(|(_, until)| now.saturating_duration_since(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_replica_lags_by_the_age_of_the_last_position_it_has_replayed() {
        let begin = Instant::now();
        let mut lag = LagTracker::default();
        assert_eq!(lag.upper_bound(begin), None);
        lag.record_primary("a".to_owned(), 100, begin);
        lag.record_replayed(Some(99));
        assert_eq!(lag.upper_bound(begin + SECOND), None);
        lag.record_primary("a".to_owned(), 200, begin + SECOND);
        lag.record_replayed(Some(150));
        assert_eq!(lag.upper_bound(begin + 2 * SECOND), Some(2 * SECOND));
        lag.record_primary("a".to_owned(), 200, begin + 3 * SECOND);
        lag.record_replayed(Some(200));
        assert_eq!(lag.upper_bound(begin + 3 * SECOND), Some(Duration::ZERO));
        // Restarted with an earlier state.
        assert!(!lag.record_replayed(Some(180)));
        assert_eq!(lag.upper_bound(begin + 3 * SECOND), None);
        lag.record_primary("a".to_owned(), 200, begin + 3 * SECOND);
        assert!(lag.record_replayed(Some(200)));
        // Out of reach, and idle.
        lag.record_replayed(None);
        assert_eq!(lag.upper_bound(begin + 4 * SECOND), Some(SECOND));
        lag.record_primary("a".to_owned(), 200, begin + 5 * SECOND);
        lag.record_replayed(Some(200));
        assert_eq!(lag.upper_bound(begin + 5 * SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn positions_of_another_epoch_do_not_count() {
        let begin = Instant::now();
        let mut lag = LagTracker::default();
        lag.record_primary("a".to_owned(), 100, begin);
        lag.record_replayed(Some(100));
        lag.record_primary("b".to_owned(), 90, begin + SECOND);
        assert_eq!(lag.upper_bound(begin + SECOND), None);
    }
}
