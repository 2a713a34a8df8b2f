//! SQL that compares derived data with the ledger. Each comparison is one statement and so one
//! snapshot.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, types::Json};

use crate::{
    Result,
    model::{
        id::RankingId,
        verification::{CountDifference, Difference},
    },
    store::{Administrator, error::written, rank::CountsVersion},
};

/// A period with derived data to compare: a ranking or an archive.
#[derive(Debug, Clone)]
pub(crate) struct VerifiablePeriod {
    pub(crate) period_id: i64,
    pub(crate) board_id: i32,
    pub(crate) board: String,
    /// The period's name as a selector.
    pub(crate) period: String,
    /// The current ranking; `None` for a closed period.
    pub(crate) ranking_id: Option<RankingId>,
}

/// A period as compared in one snapshot.
#[derive(Debug)]
pub(crate) struct PeriodComparison {
    /// Players, according to the derived data.
    pub(crate) players: u64,
    /// Id of the ranking in this snapshot; `None` for a closed period.
    pub(crate) ranking_id: Option<RankingId>,
    /// The ranking in this snapshot, with the players of each bucket and their version.
    pub(crate) ranking: Option<(RankingId, CountsVersion, Vec<i64>)>,
    /// When damage of the ranking was found, if it was known in this snapshot.
    pub(crate) damaged_at: Option<DateTime<Utc>>,
    pub(crate) revision: i32,
    /// Revision that was verified before, or 0 after damage was found.
    pub(crate) verified: Option<i32>,
    pub(crate) differences: Vec<Difference>,
}

/// A point in the ledger of a board, up to which all rows are committed. Without `ledger_end`,
/// it is unknown.
#[derive(Debug)]
pub(crate) struct SettledPoint {
    ledger_end: Option<i64>,
    batches: Option<Vec<i64>>,
    times: Option<Vec<DateTime<Utc>>>,
}

/// A connection without a limit on statement time.
#[derive(Debug)]
pub(crate) struct Verifier(PgConnection);

impl Administrator {
    /// Returns a connection for long comparisons.
    pub(crate) async fn verifier(&self) -> Result<Verifier> {
        Ok(Verifier(self.reader.servers.unlimited_connection().await?))
    }

    /// Returns the periods with a ranking or an archive: all, those of a board, or one.
    pub(crate) async fn verifiable_periods(
        &self,
        board_id: Option<i32>,
        period_id: Option<i64>,
    ) -> Result<Vec<VerifiablePeriod>> {
        let query = sqlx::query!(
            r#"SELECT p.id AS period_id, p.board_id, b.slug AS board, p.ranking_id,
                      centile_store.period_name(p.kind, p.label, p.segment) AS "period!"
               FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
               WHERE b.deleted_at IS NULL AND (p.ranking_id IS NOT NULL OR p.frozen_top IS NOT NULL)
                 AND ($1::integer IS NULL OR p.board_id = $1) AND ($2::bigint IS NULL OR p.id = $2)
               ORDER BY b.slug, p.starts_at, p.kind, p.segment"#,
            board_id,
            period_id
        )
        .map(|row| VerifiablePeriod {
            period_id: row.period_id,
            board_id: row.board_id,
            board: row.board,
            period: row.period,
            ranking_id: row.ranking_id.map(RankingId),
        });
        Ok(query.fetch_all(&self.writers).await?)
    }

    /// Compares a bucket's count with its rows; returns the difference, if any.
    ///
    /// Skips a bucket that counts more than `most` players.
    pub(crate) async fn count_difference(
        &self,
        ranking_id: RankingId,
        bucket: i16,
        most: i64,
    ) -> Result<Option<CountDifference>> {
        let query = sqlx::query_as!(
            CountDifference,
            r#"SELECT $2 AS "bucket!", expected AS "expected!", found AS "found!" FROM centile_store.count_differences($1, $2, $3)"#,
            ranking_id.0,
            bucket,
            most
        );
        Ok(query.fetch_optional(&self.writers).await?)
    }
}

impl Verifier {
    /// Returns the end of a board's ledger, for [`Self::end`] after a later comparison.
    pub(crate) async fn begin(&mut self, board_id: i32) -> Result<SettledPoint> {
        let query = sqlx::query_as!(
            SettledPoint,
            "SELECT ledger_end, batches, times FROM centile_store.begin_verification($1)",
            board_id
        );
        Ok(query.fetch_one(&mut self.0).await?)
    }

    /// Records that a ranking agrees with the ledger up to this point, or that it is damaged.
    ///
    /// `damaged_at` is the damage that was known in the snapshot of the comparison.
    pub(crate) async fn end(
        &mut self,
        ranking_id: RankingId,
        agrees: bool,
        damaged_at: Option<DateTime<Utc>>,
        point: &SettledPoint,
    ) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile_store.end_verification($1, $2, $3, $4, $5, $6)",
            ranking_id.0,
            agrees,
            damaged_at,
            point.ledger_end,
            point.batches.as_deref(),
            point.times.as_deref()
        );
        written(query.execute(&mut self.0).await).map(drop)
    }

    /// Records the revision of a period's archive that agrees with the ledger, or 0 for damage.
    ///
    /// `before` is what the snapshot of the comparison had. Records nothing if another session has
    /// recorded damage since. An agreement skips a period that is being refreshed, because the
    /// refresh makes another revision.
    pub(crate) async fn end_archive(&mut self, period_id: i64, verified: i32, before: Option<i32>) -> Result<()> {
        let query = sqlx::query!(
            "UPDATE centile_store.cut_offs SET verified_revision = $2
             WHERE $2 = 0 AND period_id = $1
                OR period_id IN (SELECT c.period_id FROM centile_store.cut_offs c
                                 WHERE c.period_id = $1 AND $2 > 0 AND c.verified_revision IS NOT DISTINCT FROM $3
                                 FOR UPDATE SKIP LOCKED)",
            period_id,
            verified,
            before
        );
        written(query.execute(&mut self.0).await).map(drop)
    }

    /// Compares a period with the ledger; returns up to `limit` differences of each kind.
    ///
    /// If not `whole`, reads only the ledger rows since the last verification of a ranking, and skips
    /// a verified archive. Returns `None` when the period has neither a ranking nor an archive any
    /// more.
    pub(crate) async fn compare(
        &mut self,
        period_id: i64,
        limit: i32,
        whole: bool,
    ) -> Result<Option<PeriodComparison>> {
        let row = sqlx::query!(
            r#"SELECT p.ranking_id, centile.epoch() AS "epoch!", g.layout AS "layout?",
                      centile_store.count_revisions(g.id, g.lanes) AS revisions,
                      centile_store.bucket_totals(g.id) AS "counts: Vec<Option<i64>>",
                      coalesce(centile_store.player_count(g.id), 0) AS "live!", coalesce(p.archive_players, 0) AS "archived!",
                      p.archive_revision, (SELECT v.damaged_at FROM centile_store.verified_rankings v WHERE v.ranking_id = g.id) AS "damaged_at?",
                      (SELECT c.verified_revision FROM centile_store.cut_offs c WHERE c.period_id = p.id) AS "verified?",
                      (SELECT coalesce(jsonb_agg(d), '[]') FROM centile_store.differences(p.id, $2, $3) d)
                          AS "differences!: Json<Vec<Difference>>"
               FROM centile_store.periods p LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id
               WHERE p.id = $1 AND (p.ranking_id IS NOT NULL OR p.frozen_top IS NOT NULL)"#,
            period_id,
            limit,
            whole
        )
        .fetch_optional(&mut self.0)
        .await?;
        Ok(row.map(|row| {
            // If counts are missing, the sums are unknown. The differences report the missing counts.
            let counts = row.counts.and_then(|counts| counts.into_iter().collect::<Option<Vec<i64>>>());
            let ranking_id = row.ranking_id.map(RankingId);
            let ranking = ranking_id.zip(row.layout.zip(row.revisions)).zip(counts).map(
                |((ranking_id, (layout, revisions)), counts)| {
                    (ranking_id, CountsVersion { epoch: row.epoch, layout, revisions }, counts)
                },
            );
            let players = if ranking_id.is_some() { row.live } else { row.archived };
            PeriodComparison {
                players: players.unsigned_abs(),
                ranking_id,
                ranking,
                damaged_at: row.damaged_at,
                revision: row.archive_revision,
                verified: row.verified,
                differences: row.differences.0,
            }
        }))
    }

    /// Returns the players of a ranking, according to its counts.
    pub(crate) async fn players(&mut self, ranking_id: RankingId) -> Result<u64> {
        let players = sqlx::query_scalar!(r#"SELECT centile_store.player_count($1) AS "players!""#, ranking_id.0)
            .fetch_one(&mut self.0)
            .await?;
        Ok(players.unsigned_abs())
    }

    /// Compares as [`Administrator::count_difference`] does, for a bucket of any size.
    pub(crate) async fn count_difference(
        &mut self,
        ranking_id: RankingId,
        bucket: i16,
    ) -> Result<Option<CountDifference>> {
        let query = sqlx::query_as!(
            CountDifference,
            r#"SELECT $2 AS "bucket!", expected AS "expected!", found AS "found!" FROM centile_store.count_differences($1, $2)"#,
            ranking_id.0,
            bucket
        );
        Ok(query.fetch_optional(&mut self.0).await?)
    }
}
