//! Messages for webhooks.

use chrono::{DateTime, Utc};

use crate::model::{board::BoardPattern, encryption::StoredSecret};

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Message {
    /// Id. Receivers recognize a repeated message by it.
    pub id: i64,
    pub board: String,
    /// The period, as a selector: `week:2024-01-15`.
    pub period: String,
    /// Kind of message: `period_closed`.
    pub kind: String,
    pub payload: serde_json::Value,
    pub created_at: DateTime<Utc>,
    /// Time at which a receiver accepted it.
    pub delivered_at: Option<DateTime<Utc>>,
    /// Delivery attempts since the last request to send it again.
    pub attempts: i32,
    /// Time of the next attempt; absent if it has been delivered, or if there is no receiver.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// HTTP status of the last attempt; absent if the receiver did not answer.
    pub last_status: Option<i32>,
    /// Error of the last attempt, if the receiver did not answer.
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    /// Only messages of this board.
    pub board: Option<BoardPattern>,
    /// Only messages that have not been delivered.
    pub waiting: bool,
    /// Maximum number of messages, newest first.
    pub limit: u32,
}

/// A message that this process has claimed for delivery.
#[derive(Debug)]
pub(crate) struct ClaimedMessage {
    pub(crate) message_id: i64,
    pub(crate) board: String,
    pub(crate) url: String,
    pub(crate) secret: StoredSecret,
    /// The exact text that is signed and sent.
    pub(crate) body: String,
    pub(crate) attempt: i32,
}

/// Result of one run of deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Messages that a receiver accepted.
    pub delivered: u64,
    /// Failed attempts. These messages are sent again later.
    pub failed: u64,
}
