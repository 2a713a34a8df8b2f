//! SQL of score transactions.

use chrono::{DateTime, Utc};

use crate::{
    Result,
    model::{act::Act, rank::RankChange, score::HistoryRow},
    rules::Standing,
    store::Store,
};

/// A position in a player's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryCursor {
    /// Time of the row.
    pub(crate) occurred_at: DateTime<Utc>,
    /// Id of the row.
    pub(crate) transaction_id: i64,
}

impl Store {
    /// Returns the current rank and the previous key's rank of each standing, in one snapshot.
    pub(crate) async fn rank_changes(&self, board_id: i32, standings: &[&Standing]) -> Result<Vec<RankChange>> {
        let periods: Vec<String> = standings.iter().map(|standing| standing.period.clone()).collect();
        let users: Vec<i64> = standings.iter().map(|standing| standing.user_id).collect();
        let was = || standings.iter().map(|standing| standing.was);
        let rank_keys: Vec<Option<i64>> = was().map(|was| was.map(|(key, _)| key)).collect();
        let tie_keys: Vec<Option<i64>> = was().map(|was| was.map(|(_, key)| key)).collect();
        let query = sqlx::query_file!(
            "sql/queries/rank_changes.sql",
            board_id,
            &periods,
            &users,
            &rank_keys as &[Option<i64>],
            &tie_keys as &[Option<i64>],
        );
        let rows = query.fetch_all(&self.readers).await?;
        Ok(rows
            .into_iter()
            .map(|row| RankChange {
                rank: row.rank.map(i64::unsigned_abs),
                previous_rank: row.previous_rank.map(i64::unsigned_abs),
                score: row.score,
                players: row.players.map(i64::unsigned_abs),
            })
            .collect())
    }

    /// Voids a score transaction.
    pub(crate) async fn void_score(&self, board: &str, transaction_id: i64, act: &Act) -> Result<()> {
        sqlx::query!("SELECT centile.void_score($1, $2, $3, $4)", board, transaction_id, act.reason(), act.by.as_str())
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Resets a player's scores in the current periods.
    pub(crate) async fn reset_player(&self, board: &str, user_id: &str, act: &Act) -> Result<()> {
        sqlx::query!("SELECT centile.reset_player($1, $2, $3, $4)", board, user_id, act.reason(), act.by.as_str())
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Returns the last batch of each lane of a board.
    pub(crate) async fn batches(&self, board_id: i32) -> Result<Vec<i64>> {
        let batches = sqlx::query_scalar!(
            r#"SELECT centile_store.lane_batches(id, lanes) AS "batches!" FROM centile_store.boards WHERE id = $1"#,
            board_id
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(batches.unwrap_or_default())
    }

    /// Returns a player's ledger on a board below `place`, newest first; `None` when the user does
    /// not exist.
    pub(crate) async fn history(
        &self,
        board_id: i32,
        user_id: &str,
        place: Option<HistoryCursor>,
        limit: i64,
        shows_acts: bool,
    ) -> Result<Option<Vec<HistoryRow>>> {
        let user = sqlx::query_scalar!("SELECT id FROM centile_store.users WHERE external_id = $1", user_id)
            .fetch_optional(&self.readers)
            .await?;
        let Some(user) = user else { return Ok(None) };
        let rows = sqlx::query_file_as!(
            HistoryRow,
            "sql/queries/history.sql",
            board_id,
            user,
            place.map(|place| place.occurred_at),
            place.map(|place| place.transaction_id),
            limit,
            shows_acts
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(Some(rows))
    }
}
