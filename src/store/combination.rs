//! SQL of combined boards. Refreshes run in two transactions, on their own connection.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use crate::{
    Error, Result,
    model::{
        act::Actor,
        combination::{RefreshRule, RefreshState, SourceChanges},
    },
    store::{Administrator, error::written},
};

const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A combined board, and what decides whether its refresh is due.
#[derive(Debug)]
pub(crate) struct CombinedBoard {
    pub(crate) board_id: i32,
    pub(crate) board: String,
    pub(crate) refresh: RefreshRule,
    /// Values that decide by the clock whether a refresh is due.
    pub(crate) state: RefreshState,
    /// Duration of the last refresh, in seconds.
    pub(crate) seconds: Option<f64>,
    /// Whether replaced views wait to be dropped.
    pub(crate) has_old_views: bool,
}

/// A ranking that answers from now on.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Id of the board's only period.
    pub(crate) period_id: i64,
    /// Revision of the ranking, from 1.
    pub(crate) revision: i32,
    pub(crate) players: i64,
}

/// A connection that holds the lock for refreshes, without a statement timeout.
#[derive(Debug)]
pub(crate) struct Refresher(PgConnection);

impl Administrator {
    /// Returns all combined boards, or one. A board comes after the boards that it is computed from.
    pub(crate) async fn combined(&self, board_id: Option<i32>) -> Result<Vec<CombinedBoard>> {
        let rows = sqlx::query!(
            r#"SELECT board_id AS "board_id!", board AS "board!", time_zone AS "time_zone!", refresh AS "refresh!",
                      now AS "now!", defined_at AS "defined_at!", as_of, is_restored AS "is_restored!",
                      failures AS "failures!", failed_at, seconds, has_old_views AS "has_old_views!"
               FROM centile_store.combined_boards($1)"#,
            board_id
        )
        .fetch_all(&self.writers)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(CombinedBoard {
                    board_id: row.board_id,
                    board: row.board,
                    refresh: row.refresh.parse().unwrap_or(RefreshRule::Manual),
                    state: RefreshState {
                        now: row.now,
                        time_zone: row.time_zone,
                        defined_at: row.defined_at,
                        as_of: row.as_of,
                        is_restored: row.is_restored,
                        failures: row.failures.unsigned_abs(),
                        failed_at: row.failed_at,
                    },
                    seconds: row.seconds,
                    has_old_views: row.has_old_views,
                })
            })
            .collect()
    }

    /// Returns what has changed in the sources of a combined board. Counts up to `limit` scores.
    pub(crate) async fn source_changes(&self, board_id: i32, limit: u32) -> Result<SourceChanges> {
        let row = sqlx::query!(
            r#"SELECT any_changed AS "any!", closed_changed AS "closed!", scores AS "scores!"
               FROM centile_store.source_changes($1, $2)"#,
            board_id,
            i64::from(limit)
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(SourceChanges { any: row.any, closed: row.closed, scores: row.scores.unsigned_abs() })
    }

    pub(crate) async fn fail_combination(&self, board_id: i32, failure: &str) -> Result<()> {
        sqlx::query!("SELECT centile_store.fail_combination($1, $2)", board_id, failure).execute(&self.writers).await?;
        Ok(())
    }

    /// Takes the lock of refreshes; returns `None` if another process holds it for longer than `wait`.
    pub(crate) async fn refresher(&self, wait: Duration) -> Result<Option<Refresher>> {
        let mut connection = self.reader.servers.unlimited_connection().await?;
        let begin = tokio::time::Instant::now();
        loop {
            let is_ours = sqlx::query_scalar!(r#"SELECT centile_store.try_combining_lock() AS "is_ours!""#)
                .fetch_one(&mut connection)
                .await?;
            if is_ours {
                return Ok(Some(Refresher(connection)));
            }
            if begin.elapsed() >= wait {
                return Ok(None);
            }
            tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
        }
    }
}

impl Refresher {
    /// Computes the ranking into a new view, in one snapshot. The last ranking still answers.
    ///
    /// Tries twice, because a change of the definition at the same moment makes the snapshot unusable.
    pub(crate) async fn build(&mut self, board_id: i32) -> Result<()> {
        match self.try_build(board_id).await {
            Err(Error::Retry { .. }) => self.try_build(board_id).await,
            built => built,
        }
    }

    async fn try_build(&mut self, board_id: i32) -> Result<()> {
        let mut transaction = self.0.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        sqlx::query!("SELECT centile_store.build_combination($1)", board_id).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Replaces the ranking by the new one. The audit log has a refresh only if somebody asked for it.
    pub(crate) async fn finish(&mut self, board_id: i32, by: Option<&Actor>, duration: Duration) -> Result<Finished> {
        let query = sqlx::query_as!(
            Finished,
            r#"SELECT period_id AS "period_id!", revision AS "revision!", players AS "players!"
               FROM centile_store.finish_combination($1, $2, $3)"#,
            board_id,
            by.map(Actor::as_str),
            duration.as_secs_f64()
        );
        written(query.fetch_one(&mut self.0).await)
    }

    /// Drops replaced views, the newest one only ten seconds after the refresh.
    pub(crate) async fn drop_old_views(&mut self, board_id: i32) -> Result<()> {
        sqlx::query!("SELECT centile_store.drop_old_views($1)", board_id).execute(&mut self.0).await?;
        Ok(())
    }

    /// Closes the connection, which releases the lock.
    pub(crate) async fn end(self) {
        self.0.close().await.ok();
    }
}
