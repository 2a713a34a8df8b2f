//! `centile maintain`: the upkeep that `serve` does on its timer, once.

use super::{
    output::{self, thousands},
    with_service,
};
use crate::{
    Result,
    closing::{self, ExpiredArchive},
    config::Config,
    layout, outbox, upkeep, user,
};

/// Does what there is to do, and prints it.
pub(super) async fn run(config: &Config) -> Result<()> {
    with_service(config, async |service| {
        let forgotten = upkeep::keep_ledger(service).await?;
        output::print(format!("ledger      months ahead are there; {} expired ids forgotten", thousands(forgotten)))?;
        // One that fails keeps the rest from nothing.
        let erasures = user::finish_erasures(service).await;
        match closing::drop_expired(service).await? {
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
        let removed = closing::remove_released(service).await?;
        output::print(format!(
            "rankings    {} rows of closed periods and of replaced rankings removed",
            thousands(removed)
        ))?;
        let told = outbox::deliver_due(service).await?;
        output::print(format!(
            "outbox      {} events delivered, {} failed and tried again later",
            thousands(told.delivered),
            thousands(told.failed)
        ))?;
        // Last: under constant writing there is always something.
        let kept = layout::keep_all(service).await?;
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
