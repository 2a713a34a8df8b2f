//! SQL that builds a ranking beside the live one. Each step is a separate transaction.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::{
    Result,
    model::{act::Act, id::RankingId},
    store::{Administrator, BucketWriter, cluster::Servers, error::written},
};

/// Players per act. Scores of the lane wait about 10 ms for it.
const ACT_PLAYERS: usize = 500;

/// Players whose bucket rows one transaction writes.
const STEP_PLAYERS: i32 = 50_000;

/// A ranking that is being built.
///
/// Its connection's session holds a lock that tells other processes that the build is running.
/// Dropping this value releases the lock; maintenance then releases a ranking that was not swapped
/// in.
#[derive(Debug)]
pub(crate) struct Rebuilder {
    connection: PgConnection,
    servers: Arc<Servers>,
    pub(crate) board_id: i32,
    /// Writer lanes of the board.
    lanes: i16,
    pub(crate) ranking_id: RankingId,
}

/// A player whose stored standing differs from the ledger, and the right one.
#[derive(Debug, sqlx::FromRow)]
struct RightStanding {
    lane: i16,
    /// The batch of the lane at which the standing is right.
    batch: i64,
    user_id: i64,
    /// `None` if the player should have no standing.
    rank_key: Option<i64>,
    tie_key: Option<i64>,
    only_zeros: Option<bool>,
    /// Whether the row only ends an act.
    ends_act: bool,
}

/// A rolling window that should accept scores and does not yet.
#[derive(Debug)]
pub(crate) struct WantedWindow {
    pub(crate) board_id: i32,
    pub(crate) board: String,
    pub(crate) length: String,
    /// An instant at which it is current.
    pub(crate) at: DateTime<Utc>,
    pub(crate) label: String,
}

impl BucketWriter {
    /// Returns the periods whose rankings are marked as damaged.
    pub(crate) async fn damaged_periods(&self) -> Result<Vec<i64>> {
        let periods = sqlx::query_scalar!(
            "SELECT p.id FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id
             WHERE g.damaged_at IS NOT NULL ORDER BY p.id"
        );
        Ok(periods.fetch_all(&self.layout_writers).await?)
    }

    /// Replaces the damaged rankings of templates' boards; returns the boards.
    pub(crate) async fn shrink_damaged(&self) -> Result<Vec<i32>> {
        let damaged = sqlx::query_scalar!(
            "SELECT g.id FROM centile_store.rankings g
             WHERE g.has_bucket_rows AND g.players_of <> g.board_id AND g.damaged_at IS NOT NULL AND g.released_at IS NULL"
        );
        let mut boards = Vec::new();
        for ranking_id in damaged.fetch_all(&self.layout_writers).await? {
            let shrunk = sqlx::query_scalar!(
                "SELECT g.players_of FROM centile_store.shrink_ranking($1) AS s (id) JOIN centile_store.rankings g ON g.id = s.id",
                ranking_id
            );
            boards.extend(written(shrunk.fetch_optional(&self.layout_writers).await)?);
        }
        Ok(boards)
    }
}

impl Administrator {
    /// Starts a new ranking of a period.
    ///
    /// Returns [`crate::Error::Conflict`] when the period is closed or already being rebuilt.
    pub(crate) async fn rebuilder(&self, board_id: i32, period_id: i64) -> Result<Rebuilder> {
        let servers = Arc::clone(&self.reader.servers);
        let mut connection = servers.unlimited_connection().await?;
        let begun = sqlx::query!(
            r#"SELECT r.ranking_id AS "ranking_id!", b.lanes
               FROM centile_store.boards b CROSS JOIN centile_store.begin_rebuild($2) AS r (ranking_id) WHERE b.id = $1"#,
            board_id,
            period_id
        )
        .fetch_one(&mut connection)
        .await?;
        let ranking_id = RankingId(begun.ranking_id);
        Ok(Rebuilder { connection, servers, board_id, lanes: begun.lanes, ranking_id })
    }

    /// Returns the rolling windows that should accept scores and do not yet, current ones first.
    pub(crate) async fn wanted_windows(&self) -> Result<Vec<WantedWindow>> {
        let query = sqlx::query_as!(
            WantedWindow,
            r#"SELECT board_id AS "board_id!", board AS "board!", label AS "label!", length AS "length!", at AS "at!"
               FROM centile_store.wanted_windows()"#
        );
        Ok(query.fetch_all(&self.writers).await?)
    }

    /// Makes a rolling window, still without a ranking; returns the id of the period.
    ///
    /// Returns `None` if the window is open already, another process is filling it, or the board no
    /// longer wants it.
    pub(crate) async fn open_window(&self, window: &WantedWindow) -> Result<Option<i64>> {
        let query = sqlx::query_scalar!(
            "SELECT centile_store.open_window($1, $2, $3)",
            window.board_id,
            window.length,
            window.at
        );
        written(query.fetch_one(&self.writers).await)
    }

    /// Releases the unused rolling windows of one board, and returns whether there were any. Call it
    /// until it returns `false`.
    pub(crate) async fn release_unused_windows(&self) -> Result<bool> {
        let query = sqlx::query_scalar!(r#"SELECT centile_store.release_unused_windows() AS "released!""#);
        written(query.fetch_one(&self.writers).await)
    }

    /// Releases rankings whose build was interrupted; returns how many.
    ///
    /// Call it until it returns 0.
    pub(crate) async fn release_abandoned(&self) -> Result<u64> {
        let query = sqlx::query_scalar!(r#"SELECT centile_store.release_abandoned() AS "released!""#);
        let released = written(query.fetch_one(&self.writers).await)?;
        Ok(released.unsigned_abs())
    }
}

impl Rebuilder {
    /// Repairs lanes that are behind the ledger.
    pub(crate) async fn raise_lanes(&mut self) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile_store.raise_lanes($1, l.batches, l.times) FROM centile_store.ledger_lanes($1) l",
            self.board_id
        );
        written(query.execute(&mut self.connection).await).map(drop)
    }

    /// Repairs stored standings that differ from the ledger, some players per act; returns the number
    /// of players. In a rolling window, all players get their standings.
    pub(crate) async fn repair_players(&mut self) -> Result<u64> {
        let mut reader = self.servers.unlimited_connection().await?;
        // WITH HOLD stores the rows on the server, so the snapshot ends before the repairs.
        let differing = format!(
            "DECLARE differing NO SCROLL CURSOR WITH HOLD FOR SELECT * FROM centile_store.differing_players({})",
            self.ranking_id.0
        );
        sqlx::raw_sql(AssertSqlSafe(differing)).execute(&mut reader).await?;
        let (mut repaired, mut act) = (0, Vec::new());
        loop {
            let rows: Vec<RightStanding> = sqlx::query_as("FETCH 500 FROM differing").fetch_all(&mut reader).await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                if act.first().is_some_and(|first: &RightStanding| act.len() >= ACT_PLAYERS || first.lane != row.lane) {
                    self.repair(&act).await?;
                    act.clear();
                }
                let ends_act = row.ends_act;
                repaired += u64::from(!ends_act);
                act.push(row);
                if ends_act {
                    self.repair(&act).await?;
                    act.clear();
                }
            }
        }
        self.repair(&act).await?;
        reader.close().await?;
        Ok(repaired)
    }

    /// Repairs players in one act. All have the lane and batch of the first.
    async fn repair(&mut self, players: &[RightStanding]) -> Result<()> {
        let (Some(first), Some(last)) = (players.first(), players.last()) else { return Ok(()) };
        let differing = || players.iter().filter(|player| !player.ends_act);
        let users: Vec<i64> = differing().map(|player| player.user_id).collect();
        let rank_keys: Vec<Option<i64>> = differing().map(|player| player.rank_key).collect();
        let tie_keys: Vec<Option<i64>> = differing().map(|player| player.tie_key).collect();
        let only_zeros: Vec<Option<bool>> = differing().map(|player| player.only_zeros).collect();
        let query = sqlx::query!(
            "SELECT centile_store.repair_players($1, $2, $3, $4, $5, $6, $7, $8)",
            self.ranking_id.0,
            first.lane,
            first.batch,
            last.user_id,
            &users,
            &rank_keys as &[Option<i64>],
            &tie_keys as &[Option<i64>],
            &only_zeros as &[Option<bool>],
        );
        written(query.execute(&mut self.connection).await).map(drop)
    }

    /// Sets the bounds of the buckets; returns the number of players.
    pub(crate) async fn fill_bounds(&mut self) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.fill_bounds($1) AS "players!""#, self.ranking_id.0)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(players.unsigned_abs())
    }

    /// Writes the bucket rows of all players, and applies later changes to them; returns the number
    /// of these changes. Lanes take turns, so that none falls far behind its log.
    pub(crate) async fn fill_rows(&mut self) -> Result<u64> {
        let mut changes = 0;
        loop {
            let mut players = 0;
            for lane in 0..self.lanes {
                let step = sqlx::query!(
                    r#"SELECT players AS "players!", changes AS "changes!" FROM centile_store.fill_rows($1, $2, $3)"#,
                    self.ranking_id.0,
                    lane,
                    STEP_PLAYERS
                )
                .fetch_one(&mut self.connection)
                .await?;
                players += step.players;
                changes += step.changes.unsigned_abs();
            }
            if players == 0 {
                return Ok(changes);
            }
        }
    }

    /// Returns the number of players whose sum lies beyond 64 bits: see `centile_store.entries_of`.
    pub(crate) async fn limited_sums(&mut self) -> Result<u64> {
        let players = sqlx::query_scalar!(
            r#"SELECT count(*) AS "players!" FROM centile_store.leaderboard WHERE ranking_id = $1 AND only_zeros AND (score <> 0 OR tiebreak IS NOT NULL)"#,
            self.ranking_id.0
        )
        .fetch_one(&mut self.connection)
        .await?;
        Ok(players.unsigned_abs())
    }

    /// Makes the new ranking its period's current one, and records the act, if any, in the audit log;
    /// returns the previous ranking, or 0 if the period had none.
    ///
    /// Returns `None`, and changes nothing, when more than `limit` changes are still to be applied.
    /// Returns [`crate::Error::Conflict`] when the period was closed meanwhile, or another process is
    /// rebuilding it.
    pub(crate) async fn swap(&mut self, limit: i32, act: Option<&Act>) -> Result<Option<RankingId>> {
        let mut transaction = self.connection.begin().await?;
        // The lock that swap_ranking takes stops all writers of the board.
        transaction.execute("SET LOCAL idle_in_transaction_session_timeout = '10s'").await?;
        let before = sqlx::query_scalar!("SELECT centile_store.swap_ranking($1, $2)", self.ranking_id.0, limit)
            .fetch_one(&mut *transaction)
            .await?;
        let Some(before) = before else { return Ok(None) };
        if let Some(act) = act {
            sqlx::query!(
                "SELECT centile_store.note_act($3, 'rebuild', p.board_id,
                 jsonb_build_object('ranking', $2::bigint, 'players', (SELECT centile_store.player_count(g.id) FROM centile_store.rankings g WHERE g.id = $2 AND g.has_bucket_rows)),
                 jsonb_strip_nulls(jsonb_build_object(
                     'ranking', p.ranking_id, 'players', (SELECT centile_store.player_count(g.id) FROM centile_store.rankings g WHERE g.id = p.ranking_id AND g.has_bucket_rows), 'reason', $4::text)),
                 centile_store.period_name(p.kind, p.label, p.segment))
             FROM centile_store.periods p WHERE p.ranking_id = $1",
                self.ranking_id.0,
                before,
                act.by.as_str(),
                act.reason()
            )
            .execute(&mut *transaction)
            .await?;
        }
        written(transaction.commit().await)?;
        sqlx::query!("SELECT centile_store.forget_fillings($1)", self.board_id).execute(&mut self.connection).await?;
        Ok(Some(RankingId(before)))
    }

    /// Closes the connection, which releases the lock.
    pub(crate) async fn end(self) {
        self.connection.close().await.ok();
    }
}
