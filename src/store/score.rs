//! SQL of score transactions.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::{
    Result,
    model::{
        act::Act,
        id::Batch,
        metadata::Metadata,
        name::Named as _,
        period::{Period, PeriodState},
        rank::RankChange,
        score::HistoryRow,
        segment::Segment,
    },
    rules::EventStanding,
    store::{Administrator, Reader, cluster::LANE_OF_TRANSACTION, error::written},
};

/// A position in a player's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryCursor {
    pub(crate) occurred_at: DateTime<Utc>,
    pub(crate) transaction_id: i64,
}

/// A player's entry as an answer shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownEntry<'a> {
    pub(crate) board_id: i32,
    pub(crate) period: &'a Period,
    /// The caller's own id of the player.
    pub(crate) user_id: &'a str,
    pub(crate) score: i64,
    pub(crate) reached_at: Option<DateTime<Utc>>,
    pub(crate) tiebreak: Option<i64>,
}

/// Reads the metadata of the events that decide `entries`, in their order, with one statement.
pub(super) async fn entry_metadata<'e>(
    executor: impl PgExecutor<'e>,
    entries: &[ShownEntry<'_>],
) -> Result<Vec<Option<Metadata>>> {
    let mut found = vec![None; entries.len()];
    if entries.is_empty() {
        return Ok(found);
    }
    let board_ids: Vec<i32> = entries.iter().map(|entry| entry.board_id).collect();
    // The time of a live entry is enough to find the event.
    let needs_period = |period: &&Period, at: Option<_>| period.state == PeriodState::Closed || at.is_none();
    let periods =
        entries.iter().map(|entry| Some(entry.period).filter(|period| needs_period(period, entry.reached_at)));
    let kinds: Vec<Option<&str>> = periods.clone().map(|period| period.map(|period| period.kind.name())).collect();
    let labels: Vec<Option<&str>> = periods.clone().map(|period| period.map(|period| period.label.as_str())).collect();
    let segments: Vec<Option<String>> =
        periods.map(|period| period?.segment.as_ref().map(Segment::to_string)).collect();
    let users: Vec<&str> = entries.iter().map(|entry| entry.user_id).collect();
    let times: Vec<Option<DateTime<Utc>>> = entries.iter().map(|entry| entry.reached_at).collect();
    let tiebreaks: Vec<Option<i64>> = entries.iter().map(|entry| entry.tiebreak).collect();
    let scores: Vec<i64> = entries.iter().map(|entry| entry.score).collect();
    let query = sqlx::query_file!(
        "sql/queries/entry_metadata.sql",
        &board_ids,
        &kinds as &[Option<&str>],
        &labels as &[Option<&str>],
        &users as &[&str],
        &times as &[Option<DateTime<Utc>>],
        &scores,
        &segments as &[Option<String>],
        &tiebreaks as &[Option<i64>],
    );
    for row in query.fetch_all(executor).await? {
        let entry = usize::try_from(row.n - 1).ok().and_then(|index| found.get_mut(index));
        if let Some(entry) = entry {
            *entry = Some(Metadata::stored(row.metadata));
        }
    }
    Ok(found)
}

impl Reader {
    /// Returns the current rank and the previous key's rank of each standing, in one snapshot.
    pub(crate) async fn rank_changes(&self, board_id: i32, standings: &[&EventStanding]) -> Result<Vec<RankChange>> {
        self.servers.require_coordinator()?;
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

    /// Returns the last batch of each lane of a board.
    pub(crate) async fn batches(&self, board_id: i32) -> Result<Vec<Batch>> {
        let batches = sqlx::query_scalar!(
            r#"SELECT centile_store.lane_batches(id, lanes) AS "batches!" FROM centile_store.boards WHERE id = $1"#,
            board_id
        )
        .fetch_optional(&self.readers)
        .await?;
        // A board that does not exist has no lanes.
        Ok(batches.map(Batch::from_numbers).unwrap_or_default())
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
        let rows = sqlx::query_file!(
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
        let rows = rows.into_iter().map(|row| HistoryRow {
            transaction_id: row.transaction_id,
            kind: row.kind,
            points: row.points,
            tiebreak: row.tiebreak,
            reason: row.reason,
            voids: row.voids,
            occurred_at: row.occurred_at,
            metadata: row.metadata.map(Metadata::stored),
        });
        Ok(Some(rows.collect()))
    }

    /// Returns the metadata of the events that decide these entries, in their order.
    pub(crate) async fn entry_metadata(&self, entries: &[ShownEntry<'_>]) -> Result<Vec<Option<Metadata>>> {
        entry_metadata(&self.readers, entries).await
    }
}

impl Administrator {
    pub(crate) async fn void_score(&self, board: &str, transaction_id: i64, act: &Act) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile.void_score($1, $2, $3, $4)",
            board,
            transaction_id,
            act.reason(),
            act.by.as_str()
        );
        written(query.fetch_one(&self.writers_of_row(LANE_OF_TRANSACTION, transaction_id).await?).await).map(drop)
    }

    /// Resets a player's scores in the current periods.
    pub(crate) async fn reset_player(&self, board: &str, user_id: &str, act: &Act) -> Result<()> {
        let query =
            sqlx::query!("SELECT centile.reset_player($1, $2, $3, $4)", board, user_id, act.reason(), act.by.as_str());
        written(query.fetch_one(&self.writers_of_user(user_id)).await).map(drop)
    }
}
