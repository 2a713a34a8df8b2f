//! Comparing what is derived with the ledger: each look is one statement, and so one snapshot.

use sqlx::{PgConnection, types::Json};

use crate::{
    Result,
    model::audit::{CountDifference, Difference},
    store::{Store, rank::Version},
};

/// A period that has something to be compared: a ranking or an archive.
#[derive(Debug, Clone)]
pub(crate) struct AuditedPeriod {
    /// Its row.
    pub(crate) period_id: i64,
    /// The board's row.
    pub(crate) board_id: i32,
    /// The board's name.
    pub(crate) board: String,
    /// Its name as a selector.
    pub(crate) period: String,
    /// Its ranking, unless it is closed.
    pub(crate) ranking_id: Option<i64>,
}

/// A period as it was in one snapshot.
#[derive(Debug)]
pub(crate) struct PeriodLook {
    /// Players, by what is derived.
    pub(crate) players: u64,
    /// Its ranking in this snapshot, with version and players of each bucket.
    pub(crate) ranking: Option<(i64, Version, Vec<i64>)>,
    /// What differs.
    pub(crate) differences: Vec<Difference>,
}

/// A connection that has time.
#[derive(Debug)]
pub(crate) struct Auditor(PgConnection);

impl Store {
    /// A connection for looks that take long.
    pub(crate) async fn auditor(&self) -> Result<Auditor> {
        Ok(Auditor(self.patient_connection().await?))
    }

    /// Periods with a ranking or an archive: all, or those of a board, or just one.
    pub(crate) async fn audited_periods(
        &self,
        board_id: Option<i32>,
        period_id: Option<i64>,
    ) -> Result<Vec<AuditedPeriod>> {
        let periods = sqlx::query_as!(
            AuditedPeriod,
            r#"SELECT p.id AS period_id, p.board_id, b.slug AS board, p.ranking_id,
                      CASE p.kind WHEN 'all_time' THEN p.kind ELSE p.kind || ':' || p.label END AS "period!"
               FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
               WHERE (p.ranking_id IS NOT NULL OR p.frozen_top IS NOT NULL)
                 AND ($1::integer IS NULL OR p.board_id = $1) AND ($2::bigint IS NULL OR p.id = $2)
               ORDER BY b.slug, p.starts_at, p.kind"#,
            board_id,
            period_id
        )
        .fetch_all(&self.writers)
        .await?;
        Ok(periods)
    }

    /// Where a bucket of no more than `most` players does not have as many rows as it counts.
    pub(crate) async fn count_difference(
        &self,
        ranking_id: i64,
        bucket: i16,
        most: i64,
    ) -> Result<Option<CountDifference>> {
        let found = sqlx::query_as!(
            CountDifference,
            r#"SELECT $2 AS "bucket!", expected AS "expected!", found AS "found!" FROM centile_store.count_differences($1, $2, $3)"#,
            ranking_id,
            bucket,
            most
        )
        .fetch_optional(&self.writers)
        .await?;
        Ok(found)
    }
}

impl Auditor {
    /// Compares a period with the ledger: up to `limit` differences of each kind. `None` when there is nothing of it any more.
    pub(crate) async fn look(&mut self, period_id: i64, limit: i32) -> Result<Option<PeriodLook>> {
        let row = sqlx::query!(
            r#"SELECT p.ranking_id, centile.epoch() AS "epoch!", g.layout AS "layout?",
                      centile_store.lane_batches(g.board_id, g.lanes) AS "batches: Vec<Option<i64>>",
                      centile_store.bucket_totals(g.id) AS "counts: Vec<Option<i64>>",
                      coalesce(centile_store.player_count(g.id), 0) AS "live!", coalesce(p.archive_players, 0) AS "archived!",
                      (SELECT coalesce(jsonb_agg(d), '[]') FROM centile_store.differences(p.id, $2) d)
                          AS "differences!: Json<Vec<Difference>>"
               FROM centile_store.periods p LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id
               WHERE p.id = $1 AND (p.ranking_id IS NOT NULL OR p.frozen_top IS NOT NULL)"#,
            period_id,
            limit
        )
        .fetch_optional(&mut self.0)
        .await?;
        Ok(row.map(|row| {
            // A lane that is missing is among the differences; there are no version and no sums then.
            let batches = row.batches.and_then(|batches| batches.into_iter().collect::<Option<Vec<i64>>>());
            let counts = row.counts.and_then(|counts| counts.into_iter().collect::<Option<Vec<i64>>>());
            let ranking = row.ranking_id.zip(row.layout.zip(batches)).zip(counts).map(
                |((ranking_id, (layout, batches)), counts)| {
                    (ranking_id, Version { epoch: row.epoch, layout, batches }, counts)
                },
            );
            let players = if row.ranking_id.is_some() { row.live } else { row.archived };
            PeriodLook { players: players.unsigned_abs(), ranking, differences: row.differences.0 }
        }))
    }

    /// Players of a ranking, by its counts.
    pub(crate) async fn players(&mut self, ranking_id: i64) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.player_count($1) AS "players!""#, ranking_id)
            .fetch_one(&mut self.0)
            .await?;
        Ok(players.unsigned_abs())
    }

    /// What [`Store::count_difference`] looks for, of any size.
    pub(crate) async fn count_difference(&mut self, ranking_id: i64, bucket: i16) -> Result<Option<CountDifference>> {
        let found = sqlx::query_as!(
            CountDifference,
            r#"SELECT $2 AS "bucket!", expected AS "expected!", found AS "found!" FROM centile_store.count_differences($1, $2)"#,
            ranking_id,
            bucket
        )
        .fetch_optional(&mut self.0)
        .await?;
        Ok(found)
    }
}
