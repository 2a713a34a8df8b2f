//! SQL that reads a whole period in one snapshot, a chunk at a time.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::time::timeout;

use crate::{
    Error, Result,
    model::{
        export::ExportedRow,
        id::{Batch, RankingId},
        metadata::Metadata,
    },
    store::{
        RESPONSE_GRACE, Reader,
        error::busy,
        period::{PeriodSource, RankingRef, ResolvedPeriod},
        rank::{RankingState, StateOf, read, unless_dropped},
        score::{self, ShownEntry},
    },
};

/// Rows per chunk: some hundred kilobytes, read in some milliseconds.
const CHUNK_ROWS: i32 = 2_000;

/// Timeout of a chunk. Past it, the server is frozen or unreachable.
///
/// A disk that seeks for each player needs about ten seconds.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens one snapshot, with the readers' plan settings: every statement is a look-up that fits a
/// generic plan.
///
/// The application name tells an operator which session holds vacuum back.
const BEGIN: &str = "SET application_name = 'centile export';

    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL plan_cache_mode = force_generic_plan;
    SET LOCAL enable_seqscan = off;
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL max_parallel_workers_per_gather = 0";

/// A snapshot of a period, on its own connection, that lasts as long as this value.
///
/// It must not last long: vacuum cannot remove rows deleted since it was taken.
#[derive(Debug)]
pub(crate) struct ExportSnapshot {
    connection: PgConnection,
    source: PeriodSource,
    /// Position of the next row.
    next: i64,
    /// Whether a cursor reads the rows, because every chunk would read all players.
    has_cursor: bool,
}

impl Reader {
    /// Takes a snapshot of the period. [`Error::Replaced`] if the selector no longer means `source`.
    pub(crate) async fn export_snapshot(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
    ) -> Result<(ExportSnapshot, RankingState)> {
        match timeout(self.servers.pool_wait + RESPONSE_GRACE, self.take_snapshot(resolved, source)).await {
            Ok(taken) => taken,
            Err(_) if self.servers.is_reachable().await => Err(busy(&"no snapshot in time")),
            Err(_) => Err(Error::no_answer()),
        }
    }

    async fn take_snapshot(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
    ) -> Result<(ExportSnapshot, RankingState)> {
        let mut connection = self.servers.unlimited_connection().await?;
        connection.execute(BEGIN).await?;
        let has_cursor = matches!(source, PeriodSource::Live(RankingRef { has_bucket_rows: false, .. }));
        if has_cursor {
            // Each statement reads all players.
            connection.execute("SET LOCAL enable_seqscan = on; SET LOCAL work_mem = '128MB'").await?;
        }
        let state: Result<(RankingState, ())> = read!(&mut connection, resolved, source, |row| (),
            "sql/queries/ranking_state.sql"; "sql/queries/archive_state.sql");
        let (state, ()) = state?;
        if let PeriodSource::Live(RankingRef { ranking_id: RankingId(ranking_id), has_bucket_rows: false, .. }) = source
        {
            // The keys are in no order, so they are sorted once.
            let cursor = format!(
                "DECLARE export NO SCROLL CURSOR FOR
                 SELECT row_number() OVER best, CASE b.ties WHEN 'shared' THEN rank() OVER (ORDER BY l.rank_key DESC) ELSE row_number() OVER best END,
                        u.external_id, u.name, l.score, l.reached_at, l.tiebreak
                 FROM centile_store.leaderboard l
                 JOIN centile_store.rankings g ON g.id = l.ranking_id
                 JOIN centile_store.boards b ON b.id = g.board_id
                 JOIN centile_store.users u ON u.id = l.user_id
                 WHERE l.ranking_id = {ranking_id}
                 WINDOW best AS (ORDER BY l.rank_key DESC, l.tie_key DESC, l.user_key DESC)"
            );
            sqlx::raw_sql(AssertSqlSafe(cursor)).execute(&mut connection).await?;
        }
        Ok((ExportSnapshot { connection, source, next: 1, has_cursor }, state))
    }
}

impl ExportSnapshot {
    /// Returns the next rows, best first; empty after the last.
    pub(crate) async fn next_rows(&mut self) -> Result<Vec<ExportedRow>> {
        let lines = timeout(CHUNK_TIMEOUT, self.read_rows()).await.unwrap_or_else(|_| Err(Error::no_answer()))?;
        self.next += i64::try_from(lines.len()).unwrap_or(i64::MAX);
        Ok(lines)
    }

    /// Returns the metadata of the events that decide these entries, in their order.
    pub(crate) async fn metadata(&mut self, entries: &[ShownEntry<'_>]) -> Result<Vec<Option<Metadata>>> {
        let found = timeout(CHUNK_TIMEOUT, score::entry_metadata(&mut self.connection, entries)).await;
        found.unwrap_or_else(|_| Err(Error::no_answer()))
    }

    async fn read_rows(&mut self) -> Result<Vec<ExportedRow>> {
        if self.has_cursor {
            type Row = (i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>);
            let rows: Vec<Row> = sqlx::query_as("FETCH 2000 FROM export").fetch_all(&mut self.connection).await?;
            let row = |(position, rank, user_id, name, score, reached_at, tiebreak): Row| ExportedRow {
                position: position.unsigned_abs(),
                rank: rank.unsigned_abs(),
                user_id,
                name,
                score,
                reached_at,
                tiebreak,
            };
            return Ok(rows.into_iter().map(row).collect());
        }
        macro_rules! lines {
            ($file:literal, $id:expr) => {
                sqlx::query_file!($file, $id, self.next, CHUNK_ROWS)
                    .map(|row| ExportedRow {
                        position: row.position.unsigned_abs(),
                        rank: row.rank.unsigned_abs(),
                        user_id: row.user_id,
                        name: row.user_name,
                        score: row.score,
                        reached_at: row.reached_at,
                        tiebreak: row.tiebreak,
                    })
                    .fetch_all(&mut self.connection)
                    .await?
            };
        }
        Ok(match self.source {
            PeriodSource::Live(ranking) => lines!("sql/queries/export.sql", ranking.ranking_id.0),
            PeriodSource::Archive(archive) => lines!("sql/queries/archive_export.sql", archive.period_id),
        })
    }
}
