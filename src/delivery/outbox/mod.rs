//! The outbox: an event for each period that was closed, written with the closing, and sent to the board's webhook at least
//! once. A receiver tells a repeat by the event's id.

pub(crate) mod sender;

use std::time::Duration;

use chrono::Utc;
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::{
    Error, Result,
    boards::{self, Boards},
    delivery::outbox::sender::Sender,
    model::{
        act::Actor,
        outbox::{Claimed, Deliveries, Event, Wanted},
        seal::MasterKeys,
        webhook::signature,
    },
    store::Store,
};

/// How long a receiver may take to answer unless said otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest that a receiver may be given: an attempt must be over before its lease is (`centile_store.claim_deliveries`).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// How many events are sent at the same time, each to another board's receiver.
const AT_ONCE: usize = 16;

/// Events, the newest first. [`Error::NotFound`] when there is no such board.
pub async fn list(boards: &Boards, wanted: &Wanted) -> Result<Vec<Event>> {
    if let Some(slug) = &wanted.board {
        boards::find(boards, slug).await?;
    }
    boards.store.events(None, wanted).await
}

/// The event of this id. [`Error::NotFound`] when there is none.
pub async fn find(store: &Store, event_id: i64) -> Result<Event> {
    let wanted = Wanted { limit: 1, ..Wanted::default() };
    let event = store.events(Some(event_id), &wanted).await?.pop();
    event.ok_or_else(|| Error::not_found("event", event_id.to_string()))
}

/// Makes an event due now, delivered or not. [`Error::Conflict`] when its board has no webhook.
pub async fn resend(store: &Store, event_id: i64, by: &Actor) -> Result<()> {
    store.resend(event_id, by).await
}

/// Sends all events that are due, and tells what came of it. What fails is due again later, by `centile_store.retry_delay`, and
/// its board is left alone until the next call: a receiver that hangs costs one `timeout`, however many events wait for it, and
/// the other boards' events go on meanwhile.
///
/// May run anywhere, any number of times at once: each event is taken by one of them. May be stopped anywhere: what had been
/// taken is due again after its lease, a minute.
pub async fn deliver_due(store: &Store, master_keys: Option<&MasterKeys>) -> Result<Deliveries> {
    deliver_due_within(store, master_keys, DEFAULT_TIMEOUT).await
}

/// As [`deliver_due`], with `timeout` for each receiver to answer, at most [`TIMEOUT_MAX`].
pub async fn deliver_due_within(
    store: &Store,
    master_keys: Option<&MasterKeys>,
    timeout: Duration,
) -> Result<Deliveries> {
    let timeout = timeout.min(TIMEOUT_MAX);
    // The boards that something is being sent to, and those whose receivers have failed: with every attempt there is less due, or
    // one board more that is left alone, so that this ends.
    let mut left_alone = Vec::new();
    let mut claimed = store.claim_deliveries(places(0), &left_alone).await?;
    if claimed.is_empty() {
        return Ok(Deliveries::default());
    }
    // The certificates of the machine are read once there is something to send.
    let sender = Sender::new()?;
    let (mut deliveries, mut attempts, mut ended) = (Deliveries::default(), FuturesUnordered::new(), Ok(()));
    loop {
        for claimed in claimed.drain(..) {
            left_alone.push(claimed.board.clone());
            attempts.push(attempt(master_keys, &sender, claimed, timeout));
        }
        let Some((sent, answer)) = attempts.next().await else {
            return ended.map(|()| deliveries);
        };
        // Noted here and not by the attempts: nobody drives those while this waits for a connection, which one of them might hold.
        match note(store, &sent, answer).await {
            Ok(true) => {
                deliveries.delivered += 1;
                left_alone.retain(|board| *board != sent.board);
            }
            Ok(false) => deliveries.failed += 1,
            Err(error) => ended = Err(error),
        }
        // Once the database has failed nothing more is taken; what is on its way is not broken off.
        if ended.is_ok() {
            match store.claim_deliveries(places(attempts.len()), &left_alone).await {
                Ok(more) => claimed = more,
                Err(error) => ended = Err(error),
            }
        }
    }
}

/// How many events may be sent besides those on their way.
fn places(on_their_way: usize) -> i32 {
    i32::try_from(AT_ONCE.saturating_sub(on_their_way)).unwrap_or(i32::MAX)
}

/// The status that a receiver has answered, or why there was none.
type Answer = Result<u16, String>;

/// Sends an event; gives it back with what was answered.
pub(crate) async fn attempt(
    master_keys: Option<&MasterKeys>,
    sender: &Sender,
    claimed: Claimed,
    timeout: Duration,
) -> (Claimed, Result<Answer>) {
    let secret = match claimed.secret.open(master_keys, &claimed.board) {
        Ok(secret) => secret,
        // Nothing that other boards' events would have to wait for.
        Err(error) => return (claimed, Ok(Err(error.to_string()))),
    };
    let signature = match signature(&secret, Utc::now().timestamp(), &claimed.body) {
        Ok(signature) => signature,
        Err(error) => return (claimed, Err(error)),
    };
    let headers = [("Centile-Signature", signature.as_str()), ("Centile-Event-Id", &claimed.event_id.to_string())];
    let answer = sender.post(&claimed.url, headers, claimed.body.clone(), timeout).await;
    (claimed, Ok(answer))
}

/// Notes what came of an attempt; tells whether the event was taken.
async fn note(store: &Store, sent: &Claimed, answer: Result<Answer>) -> Result<bool> {
    let Claimed { event_id, board, attempt, .. } = sent;
    let (status, error) = match answer? {
        Ok(status) => (Some(status), None),
        Err(error) => (None, Some(error)),
    };
    let is_taken = status.is_some_and(|status| (200..300).contains(&status));
    if is_taken {
        tracing::debug!(board, event_id, attempt, "an event was delivered");
    } else {
        tracing::warn!(board, event_id, attempt, status, error, "an event could not be delivered; it is tried again");
    }
    store.note_delivery(*event_id, status.map(i32::from), error.as_deref()).await?;
    Ok(is_taken)
}
