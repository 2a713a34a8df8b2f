//! Events for the outside.

use chrono::{DateTime, Utc};

use crate::model::{board::BoardSlug, webhook::StoredSecret};

/// An event of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id, by which receivers tell a repeat.
    pub id: i64,
    /// The board.
    pub board: String,
    /// The period it tells of, as a selector: `week:2024-01-15`.
    pub period: String,
    /// What has happened: `period_closed`.
    pub kind: String,
    /// What is sent.
    pub payload: serde_json::Value,
    /// When it happened.
    pub created_at: DateTime<Utc>,
    /// When a receiver has taken it.
    pub delivered_at: Option<DateTime<Utc>>,
    /// Attempts to deliver it, since it was last asked to be sent again.
    pub attempts: i32,
    /// When it is sent next; absent when it has been delivered, or there is nobody to send it to.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// What the receiver answered at the last attempt; absent when it did not answer.
    pub last_status: Option<i32>,
    /// Why there was no answer at the last attempt.
    pub last_error: Option<String>,
}

/// Which events are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Of this board only.
    pub board: Option<BoardSlug>,
    /// Only those that are still to be sent.
    pub waiting: bool,
    /// At most so many, the newest.
    pub limit: u32,
}

/// An event that this process has taken to send it.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) event_id: i64,
    pub(crate) board: String,
    pub(crate) url: String,
    pub(crate) secret: StoredSecret,
    /// The very text that is signed and sent.
    pub(crate) body: String,
    pub(crate) attempt: i32,
}

/// Result of a round of deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Events that a receiver has taken.
    pub delivered: u64,
    /// Attempts that failed; those events are due again later.
    pub failed: u64,
}
