//! Score transactions: how a score gets in, and the other acts on the ledger.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{Error, model::user::UserId};

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

/// Outcome of one event.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Committed now, or earlier under the same id.
    Accepted(Accepted),
    /// It broke a rule of its board, which keeps such events apart until an administrator decides.
    Quarantined(Quarantined),
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

/// An event that is kept apart.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// Its id in the quarantine.
    pub quarantine_id: i64,
    /// Why: the rule that it broke, in words for the caller.
    pub why: String,
    /// Whether this is the answer of an earlier call with the same id.
    pub repeated: bool,
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
