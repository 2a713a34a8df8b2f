//! SQL that applies logged batches to bucket rows and counts.

use std::time::Duration;

use tokio::time::sleep;

use crate::{Error, Result, store::BucketWriter};

/// Changed entries after which a step ends. The last batch may exceed it. A step takes about 300 ms.
const STEP_CHANGES: i32 = 15_000;

/// Pause before the next attempt to take the bucket lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A step that runs into the statement timeout is halved down to this size.
const MIN_STEP_CHANGES: i32 = 100;

impl BucketWriter {
    /// Applies all batches of a board that are logged when the call begins.
    ///
    /// Returns at once if there are none. Returns `false` if `waits` is false and another session
    /// holds the bucket lock.
    pub(crate) async fn apply(&self, board_id: i32, waits: bool) -> Result<bool> {
        let (mut until, mut limit): (Option<Vec<i64>>, i32) = (None, STEP_CHANGES);
        loop {
            let step = sqlx::query!(
                "SELECT a.until, a.is_done FROM centile_store.apply_board($1, $2, $3, false) a",
                board_id,
                limit,
                until.as_deref() as Option<&[i64]>
            )
            .fetch_one(&self.layout_writers)
            .await;
            match step.map_err(Error::from) {
                Ok(step) => match step.is_done {
                    Some(false) => until = step.until,
                    Some(true) => return Ok(true),
                    // Without a connection, which other boards need.
                    None if waits => {
                        until = step.until;
                        sleep(LOCK_PAUSE).await;
                    }
                    None => return Ok(false),
                },
                Err(Error::Overload { .. }) if limit > MIN_STEP_CHANGES => limit /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the boards that have batches to apply.
    pub(crate) async fn boards_behind(&self) -> Result<Vec<i32>> {
        let boards =
            sqlx::query_scalar!(r#"SELECT l.board_id AS "board_id!" FROM centile_store.boards_behind() l (board_id)"#);
        Ok(boards.fetch_all(&self.layout_writers).await?)
    }
}
