//! Score events, their outcomes, and a player's history.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

use crate::model::{metadata::Metadata, user::UserId};

/// Tiebreaks of `tiebreak` boards; larger ones win.
pub(crate) const TIEBREAKS: RangeInclusive<i16> = -2_048..=2_047;

/// A validated score event.
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
    /// Time of an imported event. A live one gets the time of its batch.
    pub occurred_at: Option<DateTime<Utc>>,
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
