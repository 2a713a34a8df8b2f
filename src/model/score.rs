//! Score events, their outcomes, and a player's history.

use std::{collections::BTreeMap, ops::RangeInclusive};

use chrono::{DateTime, Utc};

use crate::{
    Code, Error,
    model::{metadata::Metadata, user::UserId},
};

/// Tiebreaks of `tiebreak` boards; larger ones win.
pub(crate) const TIEBREAKS: RangeInclusive<i16> = -2_048..=2_047;

/// A validated score event of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The player.
    pub user_id: UserId,
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub points: i64,
    /// Reason given by the caller, 1 to 256 bytes.
    pub reason: Option<String>,
    /// The caller's id of the event, 1 to 128 bytes. It makes retries safe.
    pub id: Option<String>,
    /// Tiebreak for `tiebreak` boards: −2048 to 2047, larger wins.
    pub tiebreak: Option<i16>,
    /// Metadata of the game.
    pub metadata: Option<Metadata>,
    /// Whether the answer should contain new and previous rank.
    pub ranks: bool,
}

/// Outcome of one event.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The event was committed, now or earlier under the same id.
    Accepted(Accepted),
    /// The event broke a rule of its board and is in quarantine until an administrator decides.
    Quarantined(Quarantined),
    /// The event was refused. Other events of the request are not affected.
    Refused(Error),
}

/// An event that is in the ledger.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Id in the ledger.
    pub transaction_id: i64,
    /// Time of the event.
    pub occurred_at: DateTime<Utc>,
    /// Whether this repeats the answer to an earlier request with the same id.
    pub repeated: bool,
    /// The player's standings by period name (`all_time`, `week:2024-01-15`).
    pub periods: BTreeMap<String, NewStanding>,
}

/// An event in quarantine.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// Id in the quarantine.
    pub quarantine_id: i64,
    /// The broken rule: the code that a refusal would have.
    pub rule: Code,
    /// The broken rule, in words for the caller.
    pub why: String,
    /// Whether this repeats the answer to an earlier request with the same id.
    pub repeated: bool,
}

/// A player's standing in one period after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStanding {
    /// Score after the event.
    pub score: i64,
    /// Rank after the commit, if requested and the player still has one.
    pub rank: Option<u64>,
    /// The rank that the previous score would have now; absent for a new player.
    pub previous_rank: Option<u64>,
    /// The player's tier at this rank; an inner `None` for a player without a tier. `None` without
    /// a rank, or on boards without tiers.
    pub tier: Option<Option<String>>,
}

/// One row of the ledger about a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// Id in the ledger.
    pub transaction_id: i64,
    /// `score`, `void`, `reset`, `ban` or `unban`.
    pub kind: String,
    /// Points of a score.
    pub points: Option<i64>,
    /// Tiebreak of a score, if it has one.
    pub tiebreak: Option<i16>,
    /// Reason.
    pub reason: Option<String>,
    /// Score transaction that a `void` cancels.
    pub voids: Option<i64>,
    /// Time of the event.
    pub occurred_at: DateTime<Utc>,
    /// Metadata of a score, if it has any.
    pub metadata: Option<Metadata>,
}

/// One row of the ledger of a board, for event streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Id in the ledger.
    pub transaction_id: i64,
    /// The player's lane.
    pub lane: i16,
    /// Batch of the lane.
    pub batch: i64,
    /// The caller's own id of the player.
    pub user_id: String,
    /// `score`, `void`, `reset`, `ban` or `unban`.
    pub kind: String,
    /// Points of a score.
    pub points: Option<i64>,
    /// Tiebreak of a score, if it has one.
    pub tiebreak: Option<i16>,
    /// Reason.
    pub reason: Option<String>,
    /// Score transaction that a `void` cancels.
    pub voids: Option<i64>,
    /// The caller's id of the event, while it is kept.
    pub event_id: Option<String>,
    /// Time of the event.
    pub occurred_at: DateTime<Utc>,
    /// Metadata of a score, if it has any.
    pub metadata: Option<Metadata>,
}
