//! Background maintenance of an instance. It makes cron jobs optional.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::{Interval, MissedTickBehavior};

use crate::{
    Result,
    background::Background,
    cache::Cache,
    delivery::outbox::{self, DEFAULT_TIMEOUT},
    maintenance::{
        rebalance::{self, Rebalancer},
        rebuild,
        verify::{self, CountFindings},
        window::{self, Prepared},
    },
    model::encryption::MasterKeys,
    periods::{
        closing::{self, CloseOutcome},
        combining,
    },
    ranking::{frozen, rankings::Rankings},
    scoring::accepted::AcceptedScores,
    store::{Administrator, ScoreWriter, Store},
    users,
};

/// Interval of ledger maintenance: partitions of coming months, and expired ids.
const LEDGER_EVERY: Duration = Duration::from_mins(10);

/// Delay of a refresh after an archive's last correction, so that a series of corrections takes one,
/// and after a failure.
const REFRESH_DELAY: Duration = Duration::from_mins(1);

/// The parts that background maintenance uses.
#[derive(Debug)]
pub(crate) struct Scheduler {
    store: Store,
    rankings: Arc<Rankings>,
    master_keys: Option<Arc<MasterKeys>>,
    rebalancer: Rebalancer,
    count_checks: CountFindings,
    last_run: Mutex<Option<Instant>>,
}

impl Scheduler {
    /// Creates a scheduler. Nothing runs before [`Self::start`].
    pub(crate) fn new(
        store: Store,
        rankings: Arc<Rankings>,
        master_keys: Option<Arc<MasterKeys>>,
        accepted: Arc<AcceptedScores>,
    ) -> Arc<Self> {
        let (rebalancer, count_checks) = (Rebalancer::new(accepted), CountFindings::default());
        Arc::new(Self { store, rankings, master_keys, rebalancer, count_checks, last_run: Mutex::default() })
    }

    /// Starts the background work:
    /// - every ten minutes: maintains the ledger, freezes its ended months, finishes erasures, and removes
    ///   outdated tops from Redis;
    /// - at the interval `every`: moves players to other segments, delivers messages, checks counts,
    ///   prepares rolling windows, rebuilds damaged rankings, closes due periods, drops expired
    ///   archives, removes rows of released rankings, refreshes corrected archives of boards that want
    ///   this, and computes combined boards;
    /// - at this interval, or earlier after many accepted scores: rebalances.
    ///
    /// A step in progress when the instance stops is abandoned; another run repeats it.
    pub(crate) fn start(self: &Arc<Self>, every: Duration, background: &Background) {
        self.repeat(background, LEDGER_EVERY, "the ledger could not be maintained", |this| async move {
            maintain_ledger(&this.store.admin, &this.store.score_writer).await.map(drop)
        });
        self.repeat(background, LEDGER_EVERY, "ended months of the ledger could not be frozen", |this| async move {
            this.store.admin.freeze_ledger_months().await.map(drop)
        });
        self.repeat(background, LEDGER_EVERY, "an erasure could not be finished", |this| async move {
            users::finish_erasures(&this.store.admin, &this.rankings).await
        });
        self.repeat(background, LEDGER_EVERY, "tops could not be removed from Redis", |this| async move {
            frozen::remove_shared(&this.store.admin, &this.rankings.cache, None).await.map(drop)
        });
        self.repeat(background, every, "players could not be moved to other segments", |this| async move {
            users::finish_moves(&this.store.admin, &this.rankings).await
        });
        self.repeat(background, every, "messages could not be delivered", |this| async move {
            outbox::deliver_due(&this.store.admin, this.master_keys.as_deref(), DEFAULT_TIMEOUT).await.map(drop)
        });
        self.repeat(background, every, "counts could not be checked", |this| async move {
            verify::check_counts(&this.store.admin, &this.count_checks).await.map(drop)
        });
        self.repeat(background, every, "rolling windows could not be prepared", |this| async move {
            window::prepare_due(&this.store.admin, &this.store.bucket_writer, |Prepared { board, period, result }| {
                if let Err(error) = result {
                    tracing::error!(board, period, %error, "a rolling window could not be prepared");
                }
            })
            .await
        });
        self.repeat(background, every, "damaged rankings could not be rebuilt", |this| async move {
            rebuild::rebuild_damaged(&this.store.admin, &this.store.bucket_writer).await
        });
        self.repeat(background, every, "periods could not be closed", |this| async move {
            let closed = close_due(&this.store.admin, &this.rankings.cache).await;
            if closed.is_ok() {
                *this.last_run() = Some(Instant::now());
            }
            log_failure("archives could not be dropped", closing::drop_expired(&this.store.admin).await.map(drop));
            closed
        });
        // A task of its own: the rows of a large ranking take minutes, for which no period must wait.
        self.repeat(background, every, "rows of closed rankings could not be removed", |this| async move {
            closing::remove_released(&this.store.admin).await.map(drop)
        });
        self.repeat(background, every, "corrected archives could not be refreshed", |this| async move {
            let cache = &this.rankings.cache;
            closing::refresh_due(&this.store.admin, cache, REFRESH_DELAY, None, |board, period, result| {
                if let Err(error) = result {
                    tracing::error!(board, period, %error, "a corrected archive could not be refreshed");
                }
            })
            .await
            .map(drop)
        });
        self.repeat(background, every, "combined boards could not be refreshed", |this| async move {
            combining::refresh_due(&this.store.admin, &this.rankings.cache, |board, result| {
                if let Err(error) = result {
                    tracing::error!(board, %error, "a combined board could not be refreshed");
                }
            })
            .await
            .map(drop)
        });
        // Rebalancing also starts early, after many accepted scores.
        let this = Arc::clone(self);
        background.spawn(async move {
            let mut ticks = ticks(every);
            loop {
                let is_early = tokio::select! {
                    _ = ticks.tick() => false,
                    () = this.rebalancer.accepted.early.notified() => true,
                };
                let rebalanced = rebalance::rebalance_due(&this.store.bucket_writer, &this.rebalancer, is_early).await;
                log_failure("layouts could not be rebalanced", rebalanced.map(drop));
            }
        });
    }

    /// Time since the last run in which closing did not fail; `None` before the first.
    pub(crate) fn since_last_run(&self) -> Option<Duration> {
        self.last_run().map(|at| at.elapsed())
    }

    /// Number of bucket counts that are known to be wrong.
    pub(crate) fn count_differences(&self) -> usize {
        self.count_checks.wrong()
    }

    fn last_run(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.last_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job at this interval, and logs its failures.
    fn repeat<F: Future<Output = Result<()>> + Send + 'static>(
        self: &Arc<Self>,
        background: &Background,
        every: Duration,
        failure: &'static str,
        job: fn(Arc<Self>) -> F,
    ) {
        let this = Arc::clone(self);
        background.spawn(async move {
            let mut ticks = ticks(every);
            loop {
                ticks.tick().await;
                log_failure(failure, job(Arc::clone(&this)).await);
            }
        });
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn log_failure(what: &'static str, result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "{what}");
    }
}

/// Closes due periods, and logs a warning for each that waits for an interrupted import.
async fn close_due(admin: &Administrator, cache: &Cache) -> Result<()> {
    closing::close_due(admin, cache, |outcome| {
        if let CloseOutcome::Waits { board, period, source, is_running: false } = outcome {
            tracing::warn!(
                board,
                period,
                source,
                "a period waits for an import that was interrupted: run the import again, or abandon it"
            );
        }
    })
    .await
    .map(drop)
}

/// Creates the ledger's partitions for coming months, and deletes expired rows; returns how many
/// ids it deleted.
///
/// These rows are decided events in quarantine, logged batches, and callers' ids.
pub async fn maintain_ledger(admin: &Administrator, score_writer: &ScoreWriter) -> Result<u64> {
    score_writer.ensure_ledger_months().await?;
    while admin.forget_decided_events().await? > 0 {}
    while admin.forget_batches().await? > 0 {}
    let mut forgotten = 0;
    loop {
        match admin.forget_expired_ids().await? {
            0 => return Ok(forgotten),
            some => forgotten += some,
        }
    }
}
