//! Score transactions in the database.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::{postgres::types::PgInterval, types::Json};

use super::Store;
use crate::{
    Error, Result,
    act::Act,
    score::{Event, HistoryRow},
};

/// Days for which callers' ids are kept, from HTTP.
const KEEP_IDS_DAYS: i32 = 7;
/// How often a batch is sent again when the database says that it should be.
const MOST_TRIES: usize = 5;

/// Events of one lane, column by column, as the SQL function takes them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Players, by the callers' ids.
    pub(crate) user_ids: Vec<String>,
    /// Points.
    pub(crate) points: Vec<i64>,
    /// Reasons.
    pub(crate) reasons: Vec<Option<String>>,
    /// The callers' ids of the events.
    pub(crate) ids: Vec<Option<String>>,
    /// Tiebreaks.
    pub(crate) tiebreaks: Vec<Option<i16>>,
    /// For an import: times of their own; an event without one gets the lane's time, as all do that come live.
    pub(crate) times: Option<Vec<Option<DateTime<Utc>>>>,
}

/// Live events, which have no times of their own.
impl<'a> FromIterator<&'a Event> for Batch {
    fn from_iter<T: IntoIterator<Item = &'a Event>>(events: T) -> Self {
        let mut batch = Self::default();
        for event in events {
            batch.user_ids.push(event.user_id.to_string());
            batch.points.push(event.points);
            batch.reasons.push(event.reason.clone());
            batch.ids.push(event.id.clone());
            batch.tiebreaks.push(event.tiebreak);
        }
        batch
    }
}

/// What the SQL function says of one event.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// `accepted`, `quarantined`, or why it is refused.
    pub(crate) outcome: String,
    /// More on the refusal.
    pub(crate) detail: Option<String>,
    /// Whether the answer is that of an earlier call.
    pub(crate) repeated: bool,
    /// What is remembered of an accepted event.
    pub(crate) result: Option<StoredResult>,
    /// What is remembered of an event that is kept apart.
    pub(crate) quarantined: Option<StoredQuarantined>,
    /// Number of the lane's last batch: whoever has seen it has seen this event.
    pub(crate) batch: i64,
    /// Rankings in which a stripe has grown out of its size by the batch.
    pub(crate) crowded: Option<Vec<i64>>,
}

/// What is remembered of an accepted event.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StoredResult {
    /// Id in the ledger.
    pub(crate) transaction_id: i64,
    /// The time it counts for.
    pub(crate) occurred_at: DateTime<Utc>,
    /// Per period, by its name.
    pub(crate) periods: BTreeMap<String, StoredStanding>,
}

/// What is remembered of an event that broke a rule and is kept apart.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StoredQuarantined {
    /// Id in the quarantine.
    pub(crate) quarantine_id: i64,
    /// The rule, as an outcome of `centile_store.broken_rules`.
    pub(crate) rule: String,
    /// What is allowed, and what was met.
    pub(crate) detail: String,
}

/// What an event made of a player's standing in one period.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StoredStanding {
    /// Internal id of the player.
    pub(crate) user: i64,
    /// Score after the event.
    pub(crate) score: i64,
    /// Rank key and tie key before it.
    pub(crate) was: Option<(i64, i64)>,
}

/// A place in a player's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryPlace {
    /// Time of the row there.
    pub(crate) occurred_at: DateTime<Utc>,
    /// Its id.
    pub(crate) transaction_id: i64,
}

impl Store {
    /// Writes a batch in one transaction and returns after its commit: one answer per event, in their order.
    pub(crate) async fn record_scores(&self, board_id: i32, lane: i16, batch: &Batch) -> Result<Vec<Recorded>> {
        let keep_ids = batch.times.is_none().then_some(PgInterval { months: 0, days: KEEP_IDS_DAYS, microseconds: 0 });
        let mut tries = 0;
        // A look at whether a period has to be opened costs a live batch as much as a rank, and finds one once a day.
        let mut opens = batch.times.is_some();
        let rows = loop {
            tries += 1;
            let query = sqlx::query_file!(
                "sql/queries/record_scores.sql",
                board_id,
                lane,
                &batch.user_ids,
                &batch.points,
                &batch.reasons as &[Option<String>],
                &batch.ids as &[Option<String>],
                &batch.tiebreaks as &[Option<i16>],
                batch.times.as_deref() as Option<&[Option<DateTime<Utc>>]>,
                keep_ids,
                opens,
            );
            match query.fetch_all(&self.recorders).await {
                Err(sqlx::Error::Database(error)) if tries < MOST_TRIES => match error.code().as_deref() {
                    // A boundary passed on the way in, or two writers met: nothing was written.
                    Some("CB001") => opens = true,
                    Some("40001" | "40P01") => {}
                    // No partition holds the time: the month is new.
                    Some("23514") if error.constraint().is_none() => self.ensure_ledger_months().await?,
                    _ => return Err(sqlx::Error::Database(error).into()),
                },
                // Said after the statement had ended: it may have been committed.
                Err(error @ (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))) => {
                    tracing::error!(%error, "the answer to a batch cannot be read");
                    return Err(Error::unavailable(
                        "what became of the events is not known; send them again with their ids",
                    ));
                }
                other => break other?,
            }
        };
        Ok(rows
            .into_iter()
            .map(|row| Recorded {
                outcome: row.outcome,
                detail: row.detail,
                repeated: row.repeated,
                result: row.result.map(|Json(result)| result),
                quarantined: row.quarantined.map(|Json(quarantined)| quarantined),
                batch: row.batch,
                crowded: row.crowded,
            })
            .collect())
    }

    /// Rank now and rank of the key before, for each standing in the period of this name, in one snapshot.
    pub(crate) async fn rank_changes(
        &self,
        board_id: i32,
        standings: &[(&String, &StoredStanding)],
    ) -> Result<Vec<(Option<u64>, Option<u64>)>> {
        let periods: Vec<String> = standings.iter().map(|&(period, _)| period.clone()).collect();
        let users: Vec<i64> = standings.iter().map(|(_, standing)| standing.user).collect();
        let was = || standings.iter().map(|(_, standing)| standing.was);
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
            .map(|row| (row.rank.map(i64::unsigned_abs), row.previous_rank.map(i64::unsigned_abs)))
            .collect())
    }

    /// Undoes a score transaction.
    pub(crate) async fn void_score(&self, board: &str, transaction_id: i64, act: &Act) -> Result<()> {
        sqlx::query!("SELECT centile.void_score($1, $2, $3, $4)", board, transaction_id, act.reason(), act.by.as_str())
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Makes a player start anew in the current periods.
    pub(crate) async fn reset_player(&self, board: &str, user_id: &str, act: &Act) -> Result<()> {
        sqlx::query!("SELECT centile.reset_player($1, $2, $3, $4)", board, user_id, act.reason(), act.by.as_str())
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Numbers of the last batch of each lane of a board.
    pub(crate) async fn batches(&self, board_id: i32) -> Result<Vec<i64>> {
        let batches = sqlx::query_scalar!(
            r#"SELECT centile_store.lane_batches(id, lanes) AS "batches!" FROM centile_store.boards WHERE id = $1"#,
            board_id
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(batches.unwrap_or_default())
    }

    /// A player's ledger on a board, newest first, below `place`. `None` when there is no such user.
    pub(crate) async fn history(
        &self,
        board_id: i32,
        user_id: &str,
        place: Option<HistoryPlace>,
        limit: i64,
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
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(Some(rows))
    }
}
