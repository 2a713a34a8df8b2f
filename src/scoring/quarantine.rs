//! Lists, accepts and rejects events in quarantine.

use crate::{
    Error, Result,
    model::{
        act::Act,
        board::Board,
        quarantine::{QuarantinedEvent, State},
    },
    ranking::rankings::Rankings,
    store::{Administrator, Reader},
};

/// Returns a page of a board's events in one state, oldest first, and the cursor of the next page.
///
/// The page has up to `limit` events after `cursor`.
pub async fn list(
    reader: &Reader,
    board: &Board,
    state: State,
    limit: u32,
    cursor: Option<&str>,
) -> Result<(Vec<QuarantinedEvent>, Option<String>)> {
    let after = cursor.map_or(Ok(0), |cursor| {
        cursor.parse().map_err(|_| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))
    })?;
    let mut events = reader.quarantine(board.slug.as_str(), state, after, i64::from(limit) + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| more).map(|event| event.quarantine_id.to_string());
    Ok((events, next))
}

/// Moves an event into the ledger at the current time, and returns its transaction id.
///
/// Returns [`Error::NotFound`] when the board has no such event, [`Error::Conflict`] when the event
/// was rejected or its player is banned.
pub async fn accept(
    admin: &Administrator,
    rankings: &Rankings,
    board: &Board,
    quarantine_id: i64,
    act: &Act,
) -> Result<i64> {
    let transaction_id = admin.accept_event(board.slug.as_str(), quarantine_id, act).await?;
    rankings.acknowledge_all(board.owner).await?;
    Ok(transaction_id)
}
