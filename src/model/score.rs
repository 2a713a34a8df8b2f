//! Score events, their outcomes, and a player's history.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{
    act::Act,
    id::{Batch, Lane},
    metadata::Metadata,
    user::UserId,
};

/// A validated score event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Id of the player.
    pub user_id: UserId,
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub points: i64,
    /// Reason given by the caller, 1 to 256 bytes.
    pub reason: Option<String>,
    /// The caller's id of the event, 1 to 128 bytes. It makes retries safe.
    pub id: Option<String>,
    /// Tiebreak on `tiebreak` and `second` boards.
    pub tiebreak: Option<i64>,
    /// Metadata of the game.
    pub metadata: Option<Metadata>,
    /// Time of an imported event. A live one gets the time of its batch.
    pub occurred_at: Option<DateTime<Utc>>,
}

/// A past score that an administrator adds.
#[derive(Debug, Clone)]
pub struct Correction {
    pub user_id: UserId,
    /// Points, usually negative.
    pub points: i64,
    /// Tiebreak on `tiebreak` and `second` boards.
    pub tiebreak: Option<i64>,
    /// Time for which the score counts.
    pub at: DateTime<Utc>,
    /// Actor and reason. A correction requires a reason.
    pub act: Act,
}

/// A row of a player's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HistoryRowResponse)]
pub struct HistoryRow {
    /// Id in the ledger.
    #[schema(example = 1_042)]
    pub transaction_id: i64,
    /// `score`; with a server or admin key also `void`, `reset`, `ban` or `unban`.
    #[schema(example = "score")]
    pub kind: String,
    /// Points of a score.
    #[schema(example = 50, required = true)]
    pub points: Option<i64>,
    /// Tiebreak of a score, if it has one.
    #[schema(required = true)]
    pub tiebreak: Option<i64>,
    /// The reason given for the transaction. Only holders of a server or admin key see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "boss defeated")]
    pub reason: Option<String>,
    /// Id of the score transaction that a `void` cancels.
    #[schema(required = true)]
    pub voids: Option<i64>,
    /// Time that the transaction counts for.
    pub occurred_at: DateTime<Utc>,
    /// Metadata of a score. Present if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"character": "mage"}))]
    pub metadata: Option<Metadata>,
}

/// A line of an event stream: one row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TransactionResponse)]
#[expect(clippy::struct_field_names, reason = "ids have the same names everywhere")]
pub struct Transaction {
    /// Id in the ledger, unique in the database.
    #[schema(example = 1_042)]
    pub transaction_id: i64,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    pub user_id: String,
    /// `score`, `void`, `reset`, `ban` or `unban`.
    #[schema(example = "score")]
    pub kind: String,
    /// Points of a score.
    #[schema(example = 50, required = true)]
    pub points: Option<i64>,
    /// Tiebreak of a score, if it has one.
    #[schema(required = true)]
    pub tiebreak: Option<i64>,
    /// The reason given for the transaction.
    #[schema(required = true, example = "boss defeated")]
    pub reason: Option<String>,
    /// Id of the score transaction that a `void` cancels.
    #[schema(required = true)]
    pub voids: Option<i64>,
    /// The caller's id of the event, for seven days; null if it has none.
    #[schema(required = true, example = "match-7:ada")]
    pub event_id: Option<String>,
    /// Time that the transaction counts for.
    pub occurred_at: DateTime<Utc>,
    /// The player's writer lane. Transactions of a lane come in the order of their commits.
    #[schema(value_type = i16, example = 0, minimum = 0, maximum = 63)]
    pub lane: Lane,
    /// Number of the batch of the lane that the transaction belongs to.
    #[schema(value_type = i64, example = 17)]
    pub batch: Batch,
    /// Metadata of a score. Present if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({"character": "mage"}))]
    pub metadata: Option<Metadata>,
}
