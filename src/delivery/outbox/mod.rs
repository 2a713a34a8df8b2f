//! The outbox: one message per closed period, written with the closing and sent to the board's
//! webhook at least once.
//!
//! A receiver recognizes a repeated delivery by the message's id.

pub(crate) mod sender;

use std::time::Duration;

use chrono::Utc;
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::{
    Error, Resource, Result,
    boards::{self, Boards},
    delivery::outbox::sender::Sender,
    model::{
        encryption::MasterKeys,
        outbox::{ClaimedMessage, Deliveries, Message, MessageFilter},
        webhook::{Secret, signature},
    },
    store::{Administrator, Reader},
};

pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum timeout of a receiver. An attempt must end before its lease
/// (`centile_store.claim_deliveries`).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Maximum concurrent deliveries, each to another board's receiver.
const MAX_CONCURRENT: usize = 16;

/// Returns messages, newest first. Returns [`Error::NotFound`] for an unknown board.
pub async fn list(boards: &Boards, filter: &MessageFilter) -> Result<Vec<Message>> {
    if let Some(board) = &filter.board {
        boards::check_pattern(boards, board).await?;
    }
    boards.reader.messages(None, filter).await
}

/// Returns the message with this id. Returns [`Error::NotFound`] when there is none.
pub async fn find(reader: &Reader, message_id: i64) -> Result<Message> {
    let filter = MessageFilter { limit: 1, ..MessageFilter::default() };
    let message = reader.messages(Some(message_id), &filter).await?.pop();
    message.ok_or_else(|| Error::not_found(Resource::Message, message_id.to_string()))
}

/// Sends all due messages; returns the numbers of deliveries.
///
/// A failed message is due again later, by `centile_store.retry_delay`, and its board is skipped
/// until the next call. So a receiver that hangs costs one timeout, however many messages wait for
/// it, and does not delay other boards.
///
/// Any number of calls may run concurrently: each message is claimed by one of them. A call may be
/// stopped at any time: its claimed messages are due again when their lease ends after a minute.
/// The timeout of a receiver is at most [`TIMEOUT_MAX`].
pub async fn deliver_due(
    admin: &Administrator,
    master_keys: Option<&MasterKeys>,
    timeout: Duration,
) -> Result<Deliveries> {
    let timeout = timeout.min(TIMEOUT_MAX);
    // Boards with a delivery in progress, and boards whose receivers have failed. Every attempt
    // leaves fewer due messages, or one more board to skip, so the loop ends.
    let mut skipped = Vec::new();
    let mut claimed = admin.claim_deliveries(free_slots(0), &skipped).await?;
    if claimed.is_empty() {
        return Ok(Deliveries::default());
    }
    // Creating the sender reads the system's certificates, so do it only when something is due.
    let sender = Sender::new()?;
    let (mut deliveries, mut attempts, mut ended) = (Deliveries::default(), FuturesUnordered::new(), Ok(()));
    loop {
        for claimed in claimed.drain(..) {
            skipped.push(claimed.board.clone());
            attempts.push(attempt(master_keys, &sender, claimed, timeout));
        }
        let Some((sent, answer)) = attempts.next().await else {
            return ended.map(|()| deliveries);
        };
        // Record the result here rather than in the attempt. While this task waits for a connection
        // it polls no attempt, and one of them might hold the connection.
        match record(admin, &sent, answer).await {
            Ok(true) => {
                deliveries.delivered += 1;
                skipped.retain(|board| *board != sent.board);
            }
            Ok(false) => deliveries.failed += 1,
            Err(error) => ended = Err(error),
        }
        // After a database failure nothing more is claimed, but the attempts in progress finish.
        if ended.is_ok() {
            match admin.claim_deliveries(free_slots(attempts.len()), &skipped).await {
                Ok(more) => claimed = more,
                Err(error) => ended = Err(error),
            }
        }
    }
}

/// Returns how many more messages may be sent concurrently.
fn free_slots(in_progress: usize) -> i32 {
    i32::try_from(MAX_CONCURRENT.saturating_sub(in_progress)).unwrap_or(i32::MAX)
}

/// The status of the receiver's response, or why there was none.
type DeliveryResult = Result<u16, String>;

/// Sends a message; returns it with the response.
pub(crate) async fn attempt(
    master_keys: Option<&MasterKeys>,
    sender: &Sender,
    claimed: ClaimedMessage,
    timeout: Duration,
) -> (ClaimedMessage, Result<DeliveryResult>) {
    let secret = match Secret::decrypt(&claimed.secret, master_keys, &claimed.board) {
        Ok(secret) => secret,
        // This must not stop the messages of other boards.
        Err(error) => return (claimed, Ok(Err(error.to_string()))),
    };
    let signature = match signature(&secret, Utc::now().timestamp(), &claimed.body) {
        Ok(signature) => signature,
        Err(error) => return (claimed, Err(error)),
    };
    let headers = [("Centile-Signature", signature.as_str()), ("Centile-Message-Id", &claimed.message_id.to_string())];
    let answer = sender.post(&claimed.url, headers, claimed.body.clone(), timeout).await;
    (claimed, Ok(answer))
}

/// Records the result of an attempt; returns whether the message was delivered.
async fn record(admin: &Administrator, sent: &ClaimedMessage, answer: Result<DeliveryResult>) -> Result<bool> {
    let ClaimedMessage { message_id, board, attempt, .. } = sent;
    let (status, error) = match answer? {
        Ok(status) => (Some(status), None),
        Err(error) => (None, Some(error)),
    };
    let is_delivered = status.is_some_and(|status| (200..300).contains(&status));
    if is_delivered {
        tracing::debug!(board, message_id, attempt, "a message was delivered");
    } else {
        tracing::warn!(
            board,
            message_id,
            attempt,
            status,
            error,
            "a message could not be delivered; it will be retried"
        );
    }
    admin.record_delivery(*message_id, status.map(i32::from), error.as_deref()).await?;
    Ok(is_delivered)
}
