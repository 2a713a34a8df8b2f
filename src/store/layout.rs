//! SQL of layouts. Each step is one short transaction under the board's bucket lock.

use crate::{
    Error, Result,
    model::id::{Batch, RankingId},
    store::{BucketWriter, Reader, error::written},
};

/// Number of buckets of each ranking, and of bucket tables.
pub(crate) const PLACES: usize = 100;

/// Players from which on a ranking of a template's board gets bucket rows. Then an index or SQL answers;
/// below, each read is a statement that returns the whole ranking.
pub(crate) const LARGE_PLAYERS: usize = 1300;

/// Players of each bucket of a ranking, in one snapshot.
#[derive(Debug)]
pub(crate) struct LayoutCounts {
    pub(crate) layout: i32,
    /// Players of each bucket, by place, lowest first.
    pub(crate) players: Vec<u64>,
}

/// A ranking that is its period's current one.
#[derive(Debug)]
pub(crate) struct RebalanceCandidate {
    pub(crate) ranking_id: RankingId,
    pub(crate) board_id: i32,
    /// Applied batches of the board's lanes. Rebalancing compares them to tell an idle board from a
    /// busy one.
    pub(crate) batches: Vec<Batch>,
}

impl Reader {
    /// Returns the current rankings of all boards, without those that have no bucket rows.
    pub(crate) async fn current_rankings(&self) -> Result<Vec<RebalanceCandidate>> {
        let query = sqlx::query!(
            r#"SELECT g.id AS "ranking_id!", g.board_id AS "board_id!",
                      centile_store.applied_batches(g.board_id, g.lanes) AS "batches!"
               FROM centile_store.current_rankings c JOIN centile_store.rankings g ON g.id = c.id
               WHERE g.has_bucket_rows ORDER BY g.id"#
        )
        .map(|row| RebalanceCandidate {
            ranking_id: RankingId(row.ranking_id),
            board_id: row.board_id,
            batches: Batch::from_numbers(row.batches),
        });
        Ok(query.fetch_all(&self.readers).await?)
    }

    /// Returns the players of a ranking's fullest bucket, in units as in
    /// [`crate::maintenance::rebalance`].
    ///
    /// A unit is a hundredth of the players, at least 1,000.
    pub(crate) async fn bucket_skew(&self, ranking_id: RankingId) -> Result<f64> {
        let query = sqlx::query_scalar!(
            r#"SELECT coalesce(max(players) / greatest(sum(players) / 100, 1000), 0)::float8 AS "skew!"
               FROM unnest(centile_store.bucket_totals($1)) AS players"#,
            ranking_id.0
        );
        Ok(query.fetch_one(&self.readers).await?)
    }

    /// Returns the current rankings of a board or template, without those that have no bucket rows.
    pub(crate) async fn rankings_of(&self, board_id: i32) -> Result<Vec<RankingId>> {
        let query = sqlx::query_scalar!(
            r#"SELECT g.id AS "id!" FROM centile_store.current_rankings c JOIN centile_store.rankings g ON g.id = c.id
               WHERE c.board_id = $1 AND g.has_bucket_rows ORDER BY g.id"#,
            board_id
        );
        let ids = query.fetch_all(&self.readers).await?;
        Ok(ids.into_iter().map(RankingId).collect())
    }

    /// Returns the players of each bucket of a ranking; `None` when the ranking has no bucket rows, or
    /// is no longer current.
    pub(crate) async fn layout_counts(&self, ranking_id: RankingId) -> Result<Option<LayoutCounts>> {
        let row = sqlx::query!(
            r#"SELECT g.layout, centile_store.bucket_totals(g.id) AS "players!"
               FROM centile_store.current_rankings c JOIN centile_store.rankings g ON g.id = c.id
               WHERE g.id = $1 AND g.has_bucket_rows"#,
            ranking_id.0
        )
        .fetch_optional(&self.readers)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let players = row.players.into_iter().map(u64::try_from).collect::<Result<_, _>>().map_err(|_| {
            Error::Internal(format!(
                "ranking {} has a negative count of players; `centile verify` shows where",
                ranking_id.0
            ))
        })?;
        Ok(Some(LayoutCounts { layout: row.layout, players }))
    }
}

impl BucketWriter {
    /// Moves up to `rows` rows from the bucket at place `from` to its neighbour at `to`; returns
    /// how many.
    ///
    /// Returns `None`, and changes nothing, when the layout has changed.
    pub(crate) async fn move_boundary(
        &self,
        ranking_id: RankingId,
        layout: i32,
        from: usize,
        to: usize,
        rows: u64,
    ) -> Result<Option<u64>> {
        let query = sqlx::query_scalar!(
            "SELECT centile_store.move_boundary($1, $2, $3, $4, $5)",
            ranking_id.0,
            layout,
            array_position(from),
            array_position(to),
            i32::try_from(rows).unwrap_or(i32::MAX)
        );
        let moved = written(query.fetch_one(&self.layout_writers).await)?;
        Ok(moved.map(|rows| rows.unsigned_abs().into()))
    }

    /// Gives rankings of a template's board bucket rows, if they have at least [`LARGE_PLAYERS`]
    /// players. Logs an error, after which the next call tries again.
    pub(crate) async fn grow_board(&self, board_id: i32) {
        let least = i64::try_from(LARGE_PLAYERS).unwrap_or(i64::MAX);
        let query = sqlx::query_scalar!(r#"SELECT centile_store.grow_board($1, $2) AS "rankings!""#, board_id, least);
        match written(query.fetch_one(&self.layout_writers).await) {
            Ok(0) => {}
            Ok(rankings) => tracing::info!(board_id, rankings, "rankings of a template's board have bucket rows now"),
            Err(error) => tracing::warn!(board_id, %error, "rankings of a template's board got no bucket rows"),
        }
    }

    /// Moves an empty bucket beside another one.
    ///
    /// Returns `false`, and changes nothing, when the layout has changed or the bucket is not
    /// empty.
    pub(crate) async fn reposition_bucket(
        &self,
        ranking_id: RankingId,
        layout: i32,
        from: usize,
        beside: usize,
        is_above: bool,
    ) -> Result<bool> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.reposition_bucket($1, $2, $3, $4, $5) AS "done!""#,
            ranking_id.0,
            layout,
            array_position(from),
            array_position(beside),
            is_above
        );
        written(query.fetch_one(&self.layout_writers).await)
    }
}

/// Returns the 1-based PostgreSQL array position of an index.
pub(super) fn array_position(index: usize) -> i32 {
    i32::try_from(index + 1).unwrap_or(i32::MAX)
}
