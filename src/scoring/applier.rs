//! Applies logged batches to bucket rows and counts, behind the writers.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use tokio::time::MissedTickBehavior;

use crate::{Result, store::BucketWriter};

/// Interval at which each instance applies the batches of all boards, whoever wrote them.
const APPLY_INTERVAL: Duration = Duration::from_millis(250);

/// Boards whose batches are applied at the same time.
const CONCURRENT_BOARDS: usize = 2;

/// Applies batches until the future is dropped.
pub(crate) async fn apply_continuously(bucket_writer: BucketWriter) {
    let mut ticks = tokio::time::interval(APPLY_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = apply_all(&bucket_writer).await {
            tracing::warn!(%error, "could not look for batches to apply");
        }
    }
}

/// Applies the batches that were committed before the call. Logs the boards that fail, and leaves out
/// those whose bucket lock another session holds.
pub(crate) async fn apply_all(bucket_writer: &BucketWriter) -> Result<()> {
    let boards = bucket_writer.boards_behind().await?;
    stream::iter(boards)
        .for_each_concurrent(CONCURRENT_BOARDS, async |board_id| {
            if let Err(error) = bucket_writer.apply(board_id, false).await {
                tracing::warn!(board_id, %error, "batches could not be applied");
            }
        })
        .await;
    Ok(())
}
