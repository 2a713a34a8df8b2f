//! The outbox: an event for each period that was closed, written with the closing, and sent to the board's webhook at least
//! once. A receiver tells a repeat by the event's id.

mod sender;

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;

use self::sender::Sender;
use crate::{
    Error, Result,
    board::{self, BoardSlug},
    service::Service,
    webhook::{Secret, signature},
};

/// How long a receiver may take to answer unless said otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest that a receiver may be given: an attempt must be over before its lease is (`centile_store.claim_deliveries`).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// How many events are sent at the same time, each to another board's receiver.
const AT_ONCE: i32 = 16;

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
    pub(crate) secret: Secret,
    /// The very text that is signed and sent.
    pub(crate) body: String,
    pub(crate) attempt: i32,
}

/// What came of a round of deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Events that a receiver has taken.
    pub delivered: u64,
    /// Attempts that failed; those events are due again later.
    pub failed: u64,
}

/// Events, the newest first. [`Error::NotFound`] when there is no such board.
pub async fn list(service: &Service, wanted: &Wanted) -> Result<Vec<Event>> {
    if let Some(slug) = &wanted.board {
        board::find(service, slug).await?;
    }
    service.store.events(None, wanted).await
}

/// The event of this id. [`Error::NotFound`] when there is none.
pub async fn find(service: &Service, event_id: i64) -> Result<Event> {
    let wanted = Wanted { limit: 1, ..Wanted::default() };
    let event = service.store.events(Some(event_id), &wanted).await?.pop();
    event.ok_or_else(|| Error::not_found("event", event_id.to_string()))
}

/// Makes an event due now, delivered or not. [`Error::Conflict`] when its board has no webhook.
pub async fn resend(service: &Service, event_id: i64) -> Result<()> {
    service.store.resend(event_id).await
}

/// Sends all events that are due now, and tells what came of it. What fails is due again later, by `centile_store.retry_delay`.
///
/// May run anywhere, any number of times at once: each event is taken by one of them. May be stopped anywhere: what had been
/// taken is due again after its lease, a minute.
pub async fn deliver_due(service: &Service) -> Result<Deliveries> {
    deliver_due_within(service, DEFAULT_TIMEOUT).await
}

/// As [`deliver_due`], with `timeout` for each receiver to answer, at most [`TIMEOUT_MAX`].
pub async fn deliver_due_within(service: &Service, timeout: Duration) -> Result<Deliveries> {
    let timeout = timeout.min(TIMEOUT_MAX);
    // Only what is due by now, so that this ends although the first to fail are due again before the last was sent.
    let due_by = service.store.now().await?;
    let mut deliveries = Deliveries::default();
    // The certificates of the machine are read once there is something to send.
    let mut sender = None;
    loop {
        let claimed = service.store.claim_deliveries(AT_ONCE, due_by).await?;
        if claimed.is_empty() {
            return Ok(deliveries);
        }
        let sender = match &mut sender {
            Some(sender) => sender,
            none => none.insert(Sender::new()?),
        };
        for delivered in join_all(claimed.into_iter().map(|claimed| attempt(service, sender, claimed, timeout))).await {
            if delivered? {
                deliveries.delivered += 1;
            } else {
                deliveries.failed += 1;
            }
        }
    }
}

/// Sends an event and notes what came of it; tells whether it was taken.
async fn attempt(service: &Service, sender: &Sender, claimed: Claimed, timeout: Duration) -> Result<bool> {
    let Claimed { event_id, board, url, secret, body, attempt } = claimed;
    let signature = signature(&secret, Utc::now().timestamp(), &body)?;
    let headers = [("Centile-Signature", signature.as_str()), ("Centile-Event-Id", &event_id.to_string())];
    let (status, error) = match sender.post(&url, headers, body, timeout).await {
        Ok(status) => (Some(status), None),
        Err(error) => (None, Some(error)),
    };
    let is_taken = status.is_some_and(|status| (200..300).contains(&status));
    if is_taken {
        tracing::debug!(board, event_id, attempt, "an event was delivered");
    } else {
        tracing::warn!(board, event_id, attempt, status, error, "an event could not be delivered; it is tried again");
    }
    service.store.note_delivery(event_id, status.map(i32::from), error.as_deref()).await?;
    Ok(is_taken)
}
