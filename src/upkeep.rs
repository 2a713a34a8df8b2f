//! What an instance looks after in the background, so that cron is a choice and not a need.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::MissedTickBehavior};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Result, audit,
    closing::{self, Outcome},
    layout, outbox,
    service::Service,
    user,
};

/// How often the months of the ledger and the ids that callers gave are looked after.
const LEDGER_EVERY: Duration = Duration::from_mins(10);

/// Starts the background work of an instance: every `close_every` it closes what is over and delivers what has been told. Ends when `stopping` is cancelled;
/// a step that is under way then is given up, and done again by whoever comes next.
pub(crate) fn start(service: &Arc<Service>, close_every: Duration, tasks: &TaskTracker, stopping: &CancellationToken) {
    let repeat = |every, early: &Arc<Notify>, job: fn(Arc<Service>) -> futures::future::BoxFuture<'static, ()>| {
        let (service, early) = (Arc::downgrade(service), Arc::clone(early));
        tasks.spawn(stopping.clone().run_until_cancelled_owned(async move {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = early.notified() => {}
                }
                let Some(service) = service.upgrade() else { return };
                job(service).await;
            }
        }));
    };
    let never = Arc::default();
    repeat(LEDGER_EVERY, &never, |service| {
        Box::pin(async move { log("the ledger could not be looked after", keep_ledger(&service)).await })
    });
    repeat(LEDGER_EVERY, &never, |service| {
        Box::pin(async move { log("an erasure could not be ended", user::finish_erasures(&service)).await })
    });
    repeat(close_every, &never, |service| {
        Box::pin(async move { log("events could not be delivered", outbox::deliver_due(&service)).await })
    });
    repeat(close_every, &service.keeper.look_early, |service| {
        Box::pin(async move { log("layouts could not be looked after", layout::keep_due(&service)).await })
    });
    repeat(close_every, &never, |service| {
        Box::pin(async move { log("counts could not be looked at", audit::look_at_counts(&service)).await })
    });
    repeat(close_every, &never, |service| {
        Box::pin(async move {
            log("periods could not be closed", close_due(&service)).await;
            log("archives could not be dropped", closing::drop_expired(&service)).await;
            log("rows of closed rankings could not be removed", closing::remove_released(&service)).await;
        })
    });
}

async fn log<T>(what: &str, job: impl Future<Output = Result<T>>) {
    if let Err(error) = job.await {
        tracing::warn!(%error, "{what}");
    }
}

/// Closes what is due; what waits for an import that was cut short is worth a warning.
async fn close_due(service: &Service) -> Result<()> {
    closing::close_due(service, |outcome| {
        if let Outcome::Waits { board, period, source, is_running: false } = outcome {
            tracing::warn!(
                board,
                period,
                source,
                "a period waits for an import that was cut short: run it again, or abandon it"
            );
        }
    })
    .await
    .map(drop)
}

/// Creates the ledger's months ahead and deletes what has expired: decided events of the quarantine, changes of batches that rank indexes
/// follow, and callers' ids. Returns how many ids.
pub async fn keep_ledger(service: &Service) -> Result<u64> {
    service.store.ensure_ledger_months().await?;
    while service.store.forget_decided_events().await? > 0 {}
    while service.store.forget_batch_changes().await? > 0 {}
    let mut forgotten = 0;
    loop {
        match service.store.forget_expired_ids().await? {
            0 => return Ok(forgotten),
            some => forgotten += some,
        }
    }
}
