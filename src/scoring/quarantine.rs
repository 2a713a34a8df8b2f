//! Events in quarantine: listed, accepted, rejected.

use crate::{
    Error, Result,
    model::{
        act::Act,
        board::Board,
        quarantine::{QuarantinedEvent, State},
    },
    ranking::Rankings,
    store::Store,
};

/// Events of a board's quarantine in a state, the oldest first: up to `limit` after `cursor`, and the cursor of the next page.
pub async fn list(
    store: &Store,
    board: &Board,
    state: State,
    limit: u32,
    cursor: Option<&str>,
) -> Result<(Vec<QuarantinedEvent>, Option<String>)> {
    let after = cursor.map_or(Ok(0), |cursor| {
        cursor.parse().map_err(|_| Error::invalid("cursor", "is not the `next` of an earlier page"))
    })?;
    let mut events = store.quarantine(board.slug.as_str(), state, after, i64::from(limit) + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| more).map(|event| event.quarantine_id.to_string());
    Ok((events, next))
}

/// Takes an event into the ledger, with the time of now, and gives its id there. [`Error::NotFound`] when the board has no such event,
/// [`Error::Conflict`] when it was rejected, or its player is banned.
pub async fn accept(rankings: &Rankings, board: &Board, quarantine_id: i64, act: &Act) -> Result<i64> {
    let transaction_id = rankings.store.accept_event(board.slug.as_str(), quarantine_id, act).await?;
    rankings.acknowledge_all(board.id).await?;
    Ok(transaction_id)
}

/// Rejects an event for good. [`Error::NotFound`] when the board has no such event, [`Error::Conflict`] when it was accepted.
pub async fn reject(store: &Store, board: &Board, quarantine_id: i64, act: &Act) -> Result<()> {
    store.reject_event(board.slug.as_str(), quarantine_id, act).await
}
