//! `centile maintain`: runs once the background maintenance of `serve` that no other command runs.

use crate::{
    Error, Result,
    cli::{
        output::{self, thousands},
        with_instance,
    },
    config::Config,
    delivery::outbox::{self, DEFAULT_TIMEOUT},
    maintenance::{rebalance, scheduler},
    periods::closing::{self, ExpiredArchive},
    ranking::frozen,
    store::Store,
    users,
};

/// Runs this maintenance and prints a summary.
pub(super) async fn run(config: &Config) -> Result<()> {
    with_instance(config, async |instance| {
        let Store { admin, score_writer, bucket_writer, .. } = &instance.store;
        let deleted_ids = scheduler::maintain_ledger(admin, score_writer).await?;
        output::print(format!("ledger      upcoming months exist; {} expired ids deleted", thousands(deleted_ids)))?;
        // A failure must not stop the rest; its error is returned at the end.
        let months_frozen = match admin.freeze_ledger_months().await {
            Ok(months) => output::print(format!("ledger      {} ended months frozen", thousands(months as u64))),
            Err(error) => Err(error),
        };
        // A failed erasure must not stop the rest; its error is returned at the end.
        let erasures = users::finish_erasures(admin, &instance.rankings).await;
        let moves = users::finish_moves(admin, &instance.rankings).await;
        match closing::drop_expired(admin).await? {
            None => output::print("archives    another process is closing periods or dropping archives")?,
            Some(expired) => {
                for ExpiredArchive { board, period, dropped } in &expired {
                    output::print(match dropped {
                        Ok(()) => format!("archives    dropped {board} {period}"),
                        Err(error) => format!("archives    {board} {period} not dropped yet: {error}"),
                    })?;
                }
                let dropped = expired.iter().filter(|archive| archive.dropped.is_ok()).count();
                output::print(format!("archives    {} dropped", thousands(dropped)))?;
            }
        }
        let outdated = frozen::remove_shared(admin, &instance.cache, None).await.and_then(|is_removed| {
            let failed =
                || Error::Outage("Redis did not answer: tops with names of erased players may remain".to_owned());
            if is_removed { Ok(()) } else { Err(failed()) }
        });
        let removed = closing::remove_released(admin).await?;
        output::print(format!(
            "rankings    {} rows of closed periods and replaced rankings removed",
            thousands(removed)
        ))?;
        let outcome = outbox::deliver_due(admin, instance.master_keys.as_deref(), DEFAULT_TIMEOUT).await?;
        output::print(format!(
            "outbox      {} messages delivered, {} failed and will be retried",
            thousands(outcome.delivered),
            thousands(outcome.failed)
        ))?;
        // Last, because under constant writes there is always something to rebalance.
        let layout_moves = rebalance::rebalance_all(bucket_writer).await?;
        output::print(format!(
            "layouts     {} boundaries moved with {} rows, {} buckets repositioned",
            thousands(layout_moves.boundaries_moved),
            thousands(layout_moves.rows_moved),
            thousands(layout_moves.buckets_repositioned)
        ))?;
        months_frozen.and(erasures).and(moves).and(outdated)
    })
    .await
}
