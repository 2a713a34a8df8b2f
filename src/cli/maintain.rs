//! `centile maintain`: the upkeep that `serve` does on its timer, once.

use crate::{
    Result,
    cli::{
        output::{self, thousands},
        with_instance,
    },
    config::Config,
    delivery::outbox,
    maintenance::{rebalance, scheduler},
    periods::closing::{self, ExpiredArchive},
    users,
};

/// Does what there is to do, and prints it.
pub(super) async fn run(config: &Config) -> Result<()> {
    with_instance(config, async |instance| {
        let forgotten = scheduler::keep_ledger(&instance.store).await?;
        output::print(format!("ledger      months ahead are there; {} expired ids forgotten", thousands(forgotten)))?;
        // One that fails keeps the rest from nothing.
        let erasures = users::finish_erasures(&instance.rankings).await;
        match closing::drop_expired(&instance.store).await? {
            None => output::print("archives    another centile is at them just now")?,
            Some(expired) => {
                for ExpiredArchive { board, period, dropped } in &expired {
                    output::print(match dropped {
                        Ok(()) => format!("archives    dropped {board} {period}"),
                        Err(error) => format!("archives    {board} {period} could not be dropped yet: {error}"),
                    })?;
                }
                let dropped = expired.iter().filter(|archive| archive.dropped.is_ok()).count();
                output::print(format!("archives    {} dropped", thousands(dropped)))?;
            }
        }
        let removed = closing::remove_released(&instance.store).await?;
        output::print(format!(
            "rankings    {} rows of closed periods and of replaced rankings removed",
            thousands(removed)
        ))?;
        let told = outbox::deliver_due(&instance.store, instance.master_keys.as_deref()).await?;
        output::print(format!(
            "outbox      {} events delivered, {} failed and tried again later",
            thousands(told.delivered),
            thousands(told.failed)
        ))?;
        // Last: under constant writing there is always something.
        let kept = rebalance::rebalance_all(&instance.store).await?;
        output::print(format!(
            "layouts     {} boundaries moved with {} rows, {} buckets repositioned",
            thousands(kept.boundaries_moved),
            thousands(kept.rows_moved),
            thousands(kept.buckets_repositioned)
        ))?;
        erasures
    })
    .await
}
