//! Submission, voiding, reset and history of scores.

pub(crate) mod accepted;
pub(crate) mod applier;
pub(crate) mod batch;
pub(crate) mod inbox;
pub(crate) mod quarantine;
pub(crate) mod wait_estimate;
pub(crate) mod writer;

use std::collections::BTreeMap;

use chrono::DateTime;

use crate::{
    Code, Error, Resource, Result,
    model::{
        act::Act,
        board::{Board, Mode},
        id::Lane,
        score::{Event, HistoryRow},
        user::{UserId, lane_hash},
    },
    ranking::{rank_change, rankings::Rankings},
    rules::{EventStanding, Refusal},
    scoring::{batch::EventOutcome, writer::Writers},
    store::{Administrator, Reader, rows::paired, score::HistoryCursor},
};

/// Writes events, and returns after the commit with one answer for each, in their order.
/// `wants_ranks` asks for new and previous ranks.
///
/// Returns [`Error::Overload`] when all of them would wait too long.
pub async fn submit(
    writers: &Writers,
    rankings: &Rankings,
    board: &Board,
    events: Vec<Event>,
    wants_ranks: bool,
) -> Result<Vec<Result<EventOutcome>>> {
    if board.mode == Mode::Combined {
        let message = format!("board {} is computed from other boards: write to those", board.slug);
        return Err(Error::conflict(Code::BoardCombined, message));
    }
    writers.check(board)?;
    let created;
    let board = if board.is_future() {
        created = writers.create_board(board).await?;
        &created
    } else {
        board
    };
    // Group the events by lane.
    let mut answers: Vec<Option<Result<_>>> = events.iter().map(|_| None).collect();
    let mut by_lane: BTreeMap<Lane, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
    for (index, event) in events.into_iter().enumerate() {
        let (indexes, events) = by_lane.entry(lane_of(&event.user_id, board)?).or_default();
        indexes.push(index);
        events.push(event);
    }
    // Queues the events in all lanes before it waits for any, so that the lanes write concurrently.
    let mut waiting = Vec::with_capacity(by_lane.len());
    for (lane, (indexes, events)) in by_lane {
        waiting.push((indexes, writers.submit(board, lane, events)));
    }
    // A full lane refuses only its own events: other lanes may have committed theirs.
    for (indexes, written) in waiting {
        let written = match written {
            Ok(written) => written.await,
            Err(error) => Err(error),
        };
        match written {
            Ok(of_lane) => {
                // The events may be committed. Without an answer to each, all outcomes are unknown.
                let of_events = paired("events and answers", indexes, of_lane)
                    .inspect_err(|error| tracing::error!(%error, "a batch lacks answers"));
                for (index, answer) in of_events.into_iter().flatten() {
                    answers[index] = Some(Ok(answer));
                }
            }
            Err(error) => {
                for index in indexes {
                    answers[index] = Some(Err(error.clone()));
                }
            }
        }
    }
    let answers: Vec<Result<_>> =
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(Error::outcome_unknown()))).collect();
    // Different errors stay with their events: after one of them, a retry may be safe, after another not.
    if let Some(error) = Error::of_all(&answers) {
        return Err(error.clone());
    }
    let refused = |refusal: Refusal| refusal.error(board);
    let mut answers: Vec<Result<EventOutcome>> =
        answers.into_iter().map(|answer| answer.and_then(|answer| answer.map_err(refused))).collect();
    if wants_ranks && let Err(error) = add_ranks(rankings, board, &mut answers).await {
        // The events are committed, so a failure to read ranks only leaves the ranks out.
        tracing::warn!(%error, "could not read ranks after a commit");
    }
    Ok(answers)
}

pub(crate) fn lane_of(user_id: &UserId, board: &Board) -> Result<Lane> {
    let lane = i32::from(lane_hash(user_id.as_str())).checked_rem(i32::from(board.limits.lanes));
    lane.and_then(|lane| i16::try_from(lane).ok())
        .map(Lane)
        .ok_or_else(|| Error::Internal(format!("board {} has {} lanes", board.slug, board.limits.lanes)))
}

/// Adds the ranks after the commit to the answers.
async fn add_ranks(rankings: &Rankings, board: &Board, answers: &mut [Result<EventOutcome>]) -> Result<()> {
    let accepted = answers.iter().filter_map(|answer| match answer {
        Ok(EventOutcome::Accepted { accepted, .. }) => Some(&accepted.standings),
        _ => None,
    });
    let standings: Vec<&EventStanding> = accepted.flatten().collect();
    if standings.is_empty() {
        return Ok(());
    }
    let mut changes = rank_change::rank_changes(rankings, board, &standings).await?.into_iter();
    for answer in answers {
        if let Ok(EventOutcome::Accepted { accepted, ranks, .. }) = answer {
            ranks.extend(changes.by_ref().take(accepted.standings.len()));
        }
    }
    Ok(())
}

/// Voids one score transaction in the periods that are still open.
pub async fn void(
    admin: &Administrator,
    rankings: &Rankings,
    board: &Board,
    transaction_id: i64,
    act: &Act,
) -> Result<()> {
    admin.void_score(board.slug.as_str(), transaction_id, act).await?;
    rankings.acknowledge_all(board.owner).await
}

/// Resets a player's scores in the current periods.
pub async fn reset(
    admin: &Administrator,
    rankings: &Rankings,
    board: &Board,
    user_id: &UserId,
    act: &Act,
) -> Result<()> {
    admin.reset_player(board.slug.as_str(), user_id.as_str(), act).await?;
    rankings.acknowledge_all(board.owner).await
}

/// Returns a page of a player's ledger on a board, newest first, and the cursor of the next page.
///
/// The page has up to `limit` rows older than `cursor`. Only with `shows_acts` has it reasons, and rows
/// other than scores.
pub async fn history(
    reader: &Reader,
    board: &Board,
    user_id: &UserId,
    limit: u32,
    cursor: Option<&str>,
    shows_acts: bool,
) -> Result<(Vec<HistoryRow>, Option<String>)> {
    let cursor = cursor.map(parse_cursor).transpose()?;
    let rows = reader.history(board.id, user_id.as_str(), cursor, i64::from(limit) + 1, shows_acts).await?;
    let mut rows = rows.ok_or_else(|| Error::not_found(Resource::User, user_id.as_str()))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    if !shows_acts {
        for row in &mut rows {
            row.reason = None;
        }
    }
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{}.{}", row.occurred_at.timestamp_micros(), row.transaction_id));
    Ok((rows, next))
}

/// Parses a cursor of [`history`]: microseconds since 1970 and id of the previous page's last row.
fn parse_cursor(text: &str) -> Result<HistoryCursor> {
    let parsed = text.split_once('.').and_then(|(micros, id)| {
        // No ledger row is older than 1970, and PostgreSQL rejects times far before it.
        let occurred_at = DateTime::from_timestamp_micros(micros.parse().ok()?).filter(|at| at.timestamp() >= 0)?;
        Some(HistoryCursor { occurred_at, transaction_id: id.parse().ok()? })
    });
    parsed.ok_or_else(|| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))
}
