//! Score transactions: how a score gets in, and the other acts on the ledger.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    board::Board,
    service::Service,
    user::UserId,
};

/// One scoring event as a caller sends it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whose score.
    pub user_id: UserId,
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub points: i64,
    /// Why, in the caller's words; 1 to 256 bytes.
    pub reason: Option<String>,
    /// The caller's id of the event, 1 to 128 bytes, that makes it safe to send again.
    pub id: Option<String>,
    /// Breaks ties on `tiebreak` boards: −2048 to 2047, larger wins.
    pub tiebreak: Option<i16>,
    /// Whether new and previous rank are wanted in the answer.
    pub ranks: bool,
}

/// What became of one event.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Committed now, or earlier under the same id.
    Accepted(Accepted),
    /// Refused by itself; the other events of the request are not touched.
    Refused(Error),
}

/// An event that is in the ledger.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Its id in the ledger.
    pub transaction_id: i64,
    /// The time it counts for.
    pub occurred_at: DateTime<Utc>,
    /// Whether this is the answer of an earlier call with the same id.
    pub repeated: bool,
    /// The player's standing per period, by name (`all_time`, `week:2024-01-15`).
    pub periods: BTreeMap<String, NewStanding>,
}

/// A player's standing in one period after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStanding {
    /// Score after the event.
    pub score: i64,
    /// Rank after the commit, when asked for and the player still has one.
    pub rank: Option<u64>,
    /// The rank that the score before the event would have now; absent for a newcomer.
    pub previous_rank: Option<u64>,
}

/// Writes events; each gets its own outcome, in their order. Returns after the commit.
pub async fn submit(service: &Service, board: &Board, events: Vec<Event>) -> Result<Vec<Outcome>> {
    let _ = (service, board, events);
    Err(Error::Internal("unwritten".into()))
}

/// Undoes one score transaction in the periods that are still open.
pub async fn void(service: &Service, board: &Board, transaction_id: i64, reason: Option<&str>) -> Result<()> {
    let _ = (service, board, transaction_id, reason);
    Err(Error::Internal("unwritten".into()))
}

/// Makes a player start anew in the periods that hold now.
pub async fn reset(service: &Service, board: &Board, user_id: &UserId, reason: Option<&str>) -> Result<()> {
    let _ = (service, board, user_id, reason);
    Err(Error::Internal("unwritten".into()))
}

/// One row of a player's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// Id in the ledger.
    pub transaction_id: i64,
    /// `score`, `void`, `reset`, `ban` or `unban`.
    pub kind: String,
    /// Points, of a score.
    pub points: Option<i64>,
    /// Tiebreak, of a score that has one.
    pub tiebreak: Option<i16>,
    /// Why.
    pub reason: Option<String>,
    /// The score transaction that a `void` undoes.
    pub voids: Option<i64>,
    /// The time it counts for.
    pub occurred_at: DateTime<Utc>,
}

/// A player's ledger on a board, newest first: up to `limit` rows older than `cursor`, and the cursor of the next page.
pub async fn history(
    service: &Service,
    board: &Board,
    user_id: &UserId,
    limit: u32,
    cursor: Option<&str>,
) -> Result<(Vec<HistoryRow>, Option<String>)> {
    let _ = (service, board, user_id, limit, cursor);
    Err(Error::Internal("unwritten".into()))
}
