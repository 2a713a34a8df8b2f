//! Layouts in the database: each step is one short transaction under the board's structure lock.

use super::Store;
use crate::Result;

/// A stripe that should stand in another bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StripeMove {
    /// Its lower bound.
    rank_key: i64,
    tie_key: i64,
    user_key: i64,
    pub(crate) from_bucket: i16,
    to_bucket: i16,
    /// Rows that it has.
    pub(crate) players: i64,
    /// Whether it should be cut first.
    pub(crate) is_large: bool,
}

/// What a step has done to the stripes of buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tidied {
    /// Stripes that were cut off others, or joined to them.
    pub(crate) changes: u64,
    /// How many of the buckets it came to.
    pub(crate) buckets: usize,
}

/// A ranking that is its period's current one.
#[derive(Debug)]
pub(crate) struct CurrentRanking {
    pub(crate) ranking_id: i64,
    pub(crate) board_id: i32,
    /// Numbers of its board's last batches, by which an idle one is told from a busy one.
    pub(crate) batches: Vec<i64>,
}

impl Store {
    /// Current rankings of all boards.
    pub(crate) async fn current_rankings(&self) -> Result<Vec<CurrentRanking>> {
        let rankings = sqlx::query_as!(
            CurrentRanking,
            r#"SELECT g.id AS "ranking_id!", g.board_id AS "board_id!",
                      centile_store.lane_batches(g.board_id, g.lanes) AS "batches!"
               FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id ORDER BY g.id"#
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(rankings)
    }

    /// Players of the fullest bucket of a ranking, beside a hundredth of all: 1 is even. `None` when it has fewer than `least` players.
    pub(crate) async fn bucket_skew(&self, ranking_id: i64, least: i64) -> Result<Option<f64>> {
        let skew = sqlx::query_scalar!(
            r#"SELECT (max(players) * 100 / sum(players))::float8 AS "skew!"
               FROM unnest(centile_store.bucket_totals($1)) AS players HAVING sum(players) >= $2"#,
            ranking_id,
            least as _
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(skew)
    }

    /// Current rankings of a board.
    pub(crate) async fn rankings_of(&self, board_id: i32) -> Result<Vec<i64>> {
        let rankings = sqlx::query_scalar!(
            r#"SELECT ranking_id AS "ranking_id!" FROM centile_store.periods
               WHERE board_id = $1 AND ranking_id IS NOT NULL ORDER BY ranking_id"#,
            board_id
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(rankings)
    }

    /// Buckets of a ranking with stripes to be split or merged, the one with the largest stripe first.
    pub(crate) async fn buckets_to_tidy(&self, ranking_id: i64) -> Result<Vec<i16>> {
        let buckets = sqlx::query_scalar!(
            r#"SELECT bucket AS "bucket!" FROM centile_store.buckets_to_tidy($1) AS bucket"#,
            ranking_id
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(buckets)
    }

    /// Splits stripes past `largest` times the target in these buckets and merges small ones, from the first bucket on, as far as one
    /// short step can.
    pub(crate) async fn tidy_buckets(&self, ranking_id: i64, buckets: &[i16], largest: f64) -> Result<Tidied> {
        let tidied = sqlx::query!(
            r#"SELECT changes AS "changes!", buckets AS "buckets!" FROM centile_store.tidy_buckets($1, $2, $3)"#,
            ranking_id,
            buckets,
            largest
        )
        .fetch_one(&self.keepers)
        .await?;
        Ok(Tidied { changes: tidied.changes.unsigned_abs().into(), buckets: tidied.buckets.unsigned_abs() as usize })
    }

    /// The next stripes to be moved, in the order in which they can be.
    pub(crate) async fn stripe_moves(&self, ranking_id: i64) -> Result<Vec<StripeMove>> {
        let moves = sqlx::query_as!(
            StripeMove,
            r#"SELECT rank_key AS "rank_key!", tie_key AS "tie_key!", user_key AS "user_key!",
                      from_bucket AS "from_bucket!", to_bucket AS "to_bucket!", players AS "players!", is_large AS "is_large!"
               FROM centile_store.stripe_moves($1)"#,
            ranking_id
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(moves)
    }

    /// Moves a stripe; gives the rows it has. `None`, and nothing done, when the layout is another by now.
    pub(crate) async fn move_stripe(&self, ranking_id: i64, stripe: StripeMove) -> Result<Option<u64>> {
        let StripeMove { rank_key, tie_key, user_key, to_bucket, .. } = stripe;
        let moved = sqlx::query_scalar!(
            "SELECT centile_store.move_stripe($1, $2, $3, $4, $5)",
            ranking_id,
            rank_key,
            tie_key,
            user_key,
            to_bucket
        )
        .fetch_one(&self.keepers)
        .await?;
        Ok(moved.map(i64::unsigned_abs))
    }
}
