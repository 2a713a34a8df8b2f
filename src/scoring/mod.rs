//! Submission, voiding, reset and history of scores.

pub(crate) mod accepted;
pub(crate) mod applier;
pub(crate) mod quarantine;
pub(crate) mod wait_estimate;
pub(crate) mod write;
pub(crate) mod writer;

use std::collections::BTreeMap;

use chrono::DateTime;

use crate::{
    Code, Error, Resource, Result,
    boards::Boards,
    model::{
        act::Act,
        board::{Board, BoardSlug, Mode},
        rank::{RankChange, Tiering},
        score::{Accepted, Event, HistoryRow, NewStanding, Outcome, Quarantined},
        user::{UserId, lane_hash},
    },
    ranking::{self, Rankings},
    rules::Standing,
    scoring::{
        write::Answer,
        writer::{Admission, Writers},
    },
    store::{Store, score::HistoryCursor},
    telemetry,
};

/// Admits a request with scores before its key or body is read.
///
/// Keep the returned value until the request is answered. Returns [`Error::Unavailable`] when more
/// scores are queued than can be written in time.
pub(crate) fn admit<'a>(writers: &'a Writers, boards: &Boards, slug: &BoardSlug) -> Result<Admission<'a>> {
    let admit = writers.admit(boards.cache.last_seen(slug).as_deref());
    admit.inspect_err(count_refused)
}

/// Admits a request whose boards are known only from its body. [`submit`] checks each board.
pub(crate) fn admit_any(writers: &Writers) -> Result<Admission<'_>> {
    writers.admit(None)
}

fn count_refused(_: &Error) {
    telemetry::count_refused("scores");
}

/// Writes events, and returns after the commit with one outcome for each, in their order.
///
/// Returns [`Error::Unavailable`] when all of them would wait too long.
pub async fn submit(writers: &Writers, rankings: &Rankings, board: &Board, events: Vec<Event>) -> Result<Vec<Outcome>> {
    if board.mode == Mode::Combined {
        let message = format!("board {} is computed from other boards: write to those", board.slug);
        return Err(Error::conflict(Code::BoardCombined, message));
    }
    writers.check(board).inspect_err(count_refused)?;
    let ranks_wanted: Vec<bool> = events.iter().map(|event| event.ranks).collect();
    let mut by_lane: BTreeMap<i16, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
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
    let mut outcomes: Vec<Option<Result<Answer>>> = ranks_wanted.iter().map(|_| None).collect();
    for (indexes, answer) in waiting {
        let answer = match answer {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answers) => {
                for (index, one) in indexes.into_iter().zip(answers) {
                    outcomes[index] = Some(Ok(one));
                }
            }
            Err(error) => {
                for index in indexes {
                    outcomes[index] = Some(Err(error.clone()));
                }
            }
        }
    }
    let outcomes: Vec<Result<Answer>> =
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(Error::outcome_unknown()))).collect();
    // Different errors stay with their events: after one of them, a retry may be safe, after another not.
    if let Some(Err(error)) = outcomes.first()
        && outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(|other| other.code() == error.code()))
    {
        return Err(error.clone());
    }
    // The events are committed, so a failure to read ranks only leaves the ranks out.
    let ranks = ranks_after(rankings, board, &outcomes, &ranks_wanted).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read ranks after a commit");
        vec![Vec::new(); outcomes.len()]
    });
    Ok(outcomes
        .into_iter()
        .zip(ranks)
        .map(|(answer, ranks)| answer.map_or_else(Outcome::Refused, |answer| outcome(board, answer, &ranks)))
        .collect())
}

/// Returns the lane of a player.
pub(crate) fn lane_of(user_id: &UserId, board: &Board) -> Result<i16> {
    let lane = i32::from(lane_hash(user_id.as_str())).checked_rem(i32::from(board.lanes));
    lane.and_then(|lane| i16::try_from(lane).ok())
        .ok_or_else(|| Error::Internal(format!("board {} has {} lanes", board.slug, board.lanes)))
}

/// Reads new and previous ranks after the commit, for the events that want them, by event and
/// period.
async fn ranks_after(
    rankings: &Rankings,
    board: &Board,
    outcomes: &[Result<Answer>],
    wanted: &[bool],
) -> Result<Vec<Vec<RankChange>>> {
    let standings_of = |index: usize| match &outcomes[index] {
        Ok(Answer::Accepted { accepted, .. }) if wanted[index] => &accepted.standings[..],
        _ => &[],
    };
    let standings: Vec<&Standing> = (0..outcomes.len()).flat_map(standings_of).collect();
    if standings.is_empty() {
        return Ok(vec![Vec::new(); outcomes.len()]);
    }
    let mut ranks = ranking::rank_changes(rankings, board, &standings).await?.into_iter();
    Ok((0..outcomes.len()).map(|index| ranks.by_ref().take(standings_of(index).len()).collect()).collect())
}

/// Builds the outcome that the caller of an event receives.
fn outcome(board: &Board, answer: Answer, ranks: &[RankChange]) -> Outcome {
    let (accepted, repeated) = match answer {
        Answer::Accepted { accepted, repeated } => (accepted, repeated),
        Answer::Quarantined { quarantine_id, violation, repeated } => {
            let error = violation.error(board);
            let (rule, why) = (error.code(), error.to_string());
            return Outcome::Quarantined(Quarantined { quarantine_id, rule, why, repeated });
        }
        Answer::Refused(refusal) => return Outcome::Refused(refusal.error(board)),
    };
    let ranks = ranks.iter().copied().map(Some).chain(std::iter::repeat(None));
    let periods = accepted.standings.into_iter().zip(ranks).map(|(standing, ranks)| {
        let RankChange { rank, previous_rank, score, players } = ranks.unwrap_or_default();
        let known = rank.zip(score).zip(players);
        let tier = known.and_then(|((rank, score), players)| Tiering::open(board, players).tier(score, rank));
        let tier = tier.map(|tier| tier.map(ToOwned::to_owned));
        (standing.period, NewStanding { score: standing.score, rank, previous_rank, tier })
    });
    Outcome::Accepted(Accepted {
        transaction_id: accepted.transaction_id,
        occurred_at: accepted.at,
        repeated,
        periods: periods.collect(),
    })
}

/// Voids one score transaction in the periods that are still open.
pub async fn void(rankings: &Rankings, board: &Board, transaction_id: i64, act: &Act) -> Result<()> {
    rankings.store.void_score(board.slug.as_str(), transaction_id, act).await?;
    rankings.acknowledge_all(board.id).await
}

/// Resets a player's scores in the current periods.
pub async fn reset(rankings: &Rankings, board: &Board, user_id: &UserId, act: &Act) -> Result<()> {
    rankings.store.reset_player(board.slug.as_str(), user_id.as_str(), act).await?;
    rankings.acknowledge_all(board.id).await
}

/// Returns a page of a player's ledger on a board, newest first, and the cursor of the next page.
///
/// The page has up to `limit` rows older than `cursor`. Only with `shows_acts` has it rows other than
/// scores.
pub async fn history(
    store: &Store,
    board: &Board,
    user_id: &UserId,
    limit: u32,
    cursor: Option<&str>,
    shows_acts: bool,
) -> Result<(Vec<HistoryRow>, Option<String>)> {
    let cursor = cursor.map(parse_cursor).transpose()?;
    let rows = store.history(board.id, user_id.as_str(), cursor, i64::from(limit) + 1, shows_acts).await?;
    let mut rows = rows.ok_or_else(|| Error::not_found(Resource::User, user_id.as_str()))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
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
