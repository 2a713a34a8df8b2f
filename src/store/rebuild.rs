//! SQL that builds a ranking beside the live one. Each step is a separate transaction.

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::{Result, model::act::Act, store::Store};

/// Players per transaction of [`Rebuilder::catch_up`].
const BATCH_PLAYERS: i32 = 2_000;

/// A ranking that is being built.
///
/// Its connection's session holds a lock that tells other processes that the build is running.
/// Dropping this value releases the lock; maintenance then releases a ranking that was not swapped
/// in.
#[derive(Debug)]
pub(crate) struct Rebuilder {
    connection: PgConnection,
    pub(crate) board_id: i32,
    /// Writer lanes of the board.
    lanes: i16,
    /// The ranking being built.
    pub(crate) ranking_id: i64,
    /// Id of the last ledger row that the new ranking is known to include.
    reached: i64,
    /// Last batch of each lane in the ledger; empty unless read.
    batches: Vec<i64>,
    /// Time of the last event of each lane, likewise.
    times: Vec<DateTime<Utc>>,
}

/// A rolling window that should accept scores and does not yet.
#[derive(Debug)]
pub(crate) struct WantedWindow {
    /// Id of the board.
    pub(crate) board_id: i32,
    /// The board's slug.
    pub(crate) board: String,
    /// Length of the window.
    pub(crate) length: String,
    /// An instant at which it is current.
    pub(crate) at: DateTime<Utc>,
    /// Label of the window.
    pub(crate) label: String,
}

impl Store {
    /// Starts a new ranking of a period.
    ///
    /// Returns [`crate::Error::Conflict`] when the period is closed or already being rebuilt.
    pub(crate) async fn rebuilder(&self, board_id: i32, period_id: i64) -> Result<Rebuilder> {
        let mut connection = self.unlimited_connection().await?;
        let begun = sqlx::query!(
            r#"SELECT r.ranking_id AS "ranking_id!", r.ledger_end AS "ledger_end!", b.lanes
               FROM centile_store.boards b CROSS JOIN centile_store.begin_rebuild($2) r WHERE b.id = $1"#,
            board_id,
            period_id
        )
        .fetch_one(&mut connection)
        .await?;
        Ok(Rebuilder {
            connection,
            board_id,
            lanes: begun.lanes,
            ranking_id: begun.ranking_id,
            reached: begun.ledger_end,
            batches: Vec::new(),
            times: Vec::new(),
        })
    }

    /// Returns the rolling windows that should accept scores and do not yet, current ones first.
    pub(crate) async fn wanted_windows(&self) -> Result<Vec<WantedWindow>> {
        let wanted = sqlx::query_as!(
            WantedWindow,
            r#"SELECT board_id AS "board_id!", board AS "board!", label AS "label!", length AS "length!", at AS "at!"
               FROM centile_store.wanted_windows()"#
        )
        .fetch_all(&self.writers)
        .await?;
        Ok(wanted)
    }

    /// Makes a rolling window, still without a ranking; returns the id of the period.
    ///
    /// Returns `None` if the window is open already, another process is filling it, or the board no
    /// longer wants it.
    pub(crate) async fn open_window(&self, window: &WantedWindow) -> Result<Option<i64>> {
        let period_id = sqlx::query_scalar!(
            "SELECT centile_store.open_window($1, $2, $3)",
            window.board_id,
            window.length,
            window.at
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(period_id)
    }

    /// Releases rolling windows of a board that are no longer used. Call it until it returns `false`.
    pub(crate) async fn release_unused_windows(&self) -> Result<bool> {
        let released = sqlx::query_scalar!(r#"SELECT centile_store.release_unused_windows() AS "released!""#)
            .fetch_one(&self.writers)
            .await?;
        Ok(released)
    }

    /// Returns the periods whose rankings are marked as damaged.
    pub(crate) async fn damaged_periods(&self) -> Result<Vec<i64>> {
        let periods = sqlx::query_scalar!(
            "SELECT p.id FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id
             WHERE g.damaged_at IS NOT NULL ORDER BY p.id"
        );
        Ok(periods.fetch_all(&self.layout_writers).await?)
    }

    /// Releases rankings whose build was interrupted; returns how many.
    ///
    /// Call it until it returns 0.
    pub(crate) async fn release_abandoned(&self) -> Result<u64> {
        let released = sqlx::query_scalar!(r#"SELECT centile_store.release_abandoned() AS "released!""#)
            .fetch_one(&self.writers)
            .await?;
        Ok(released.unsigned_abs())
    }
}

impl Rebuilder {
    /// Reads the whole ledger of the board for the last batch and event time of each lane. The swap
    /// repairs the lane rows with them.
    pub(crate) async fn read_lanes(&mut self) -> Result<()> {
        let lanes = sqlx::query!(
            r#"SELECT batches AS "batches!", times AS "times!" FROM centile_store.ledger_lanes($1)"#,
            self.board_id
        )
        .fetch_one(&mut self.connection)
        .await?;
        (self.batches, self.times) = (lanes.batches, lanes.times);
        Ok(())
    }

    /// Writes the entries from the ledger; returns how many.
    pub(crate) async fn fill_entries(&mut self) -> Result<u64> {
        let entries = sqlx::query_scalar!(r#"SELECT centile_store.fill_entries($1) AS "entries!""#, self.ranking_id)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(entries.unsigned_abs())
    }

    /// Writes the bounds, bucket rows and counts; returns the number of players.
    pub(crate) async fn fill_buckets(&mut self) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.fill_buckets($1) AS "players!""#, self.ranking_id)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(players.unsigned_abs())
    }

    /// Returns the number of players whose sum lies beyond 64 bits: see `centile_store.entries_of`.
    pub(crate) async fn limited_sums(&mut self) -> Result<u64> {
        let players = sqlx::query_scalar!(
            r#"SELECT count(*) AS "players!" FROM centile_store.leaderboard WHERE ranking_id = $1 AND only_zeros AND score <> 0"#,
            self.ranking_id
        )
        .fetch_one(&mut self.connection)
        .await?;
        Ok(players.unsigned_abs())
    }

    /// Applies the ledger rows written since the last call; returns the number of players affected.
    pub(crate) async fn catch_up(&mut self) -> Result<u64> {
        let end = sqlx::query_scalar!(r#"SELECT centile_store.settled_ledger_end($1) AS "end!""#, self.board_id)
            .fetch_one(&mut self.connection)
            .await?;
        let mut players = 0;
        for lane in 0..self.lanes {
            let mut after_user = 0;
            loop {
                let step = sqlx::query!(
                    r#"SELECT players AS "players!", last_user FROM centile_store.catch_up($1, $2, $3, $4, $5, $6)"#,
                    self.ranking_id,
                    lane,
                    self.reached,
                    end,
                    after_user,
                    BATCH_PLAYERS
                )
                .fetch_one(&mut self.connection)
                .await?;
                let Some(last_user) = step.last_user else { break };
                players += step.players.unsigned_abs();
                after_user = last_user;
            }
        }
        self.reached = end;
        Ok(players)
    }

    /// Makes the new ranking its period's current one, and records the act, if any, in the audit log;
    /// returns the previous ranking, or 0 if the period had none.
    ///
    /// Returns `None`, and changes nothing, when more than `limit` ledger rows are still to be
    /// applied. Returns [`crate::Error::Conflict`] when the period was closed meanwhile, or another
    /// process is rebuilding it.
    pub(crate) async fn swap(&mut self, limit: i32, act: Option<&Act>) -> Result<Option<i64>> {
        let mut transaction = self.connection.begin().await?;
        // The lock that swap_ranking takes stops all writers of the board.
        transaction.execute("SET LOCAL idle_in_transaction_session_timeout = '10s'").await?;
        let before = sqlx::query_scalar!(
            "SELECT centile_store.swap_ranking($1, $2, $3, $4, $5)",
            self.ranking_id,
            self.reached,
            limit,
            &self.batches,
            &self.times
        )
        .fetch_one(&mut *transaction)
        .await?;
        let Some(before) = before else { return Ok(None) };
        if let Some(act) = act {
            sqlx::query!(
                "SELECT centile_store.note_act($3, 'rebuild', p.board_id,
                 jsonb_build_object('ranking', $2::bigint, 'players', centile_store.player_count($2)),
                 jsonb_strip_nulls(jsonb_build_object(
                     'ranking', p.ranking_id, 'players', centile_store.player_count(p.ranking_id), 'reason', $4::text)),
                 centile_store.period_name(p.kind, p.label, p.segment))
             FROM centile_store.periods p WHERE p.ranking_id = $1",
                self.ranking_id,
                before,
                act.by.as_str(),
                act.reason()
            )
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(Some(before))
    }

    /// Closes the connection, which releases the lock.
    pub(crate) async fn end(self) {
        self.connection.close().await.ok();
    }
}
