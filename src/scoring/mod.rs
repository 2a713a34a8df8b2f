//! Scores: submitted, voided, reset, and listed.

pub(crate) mod accepted;
pub(crate) mod quarantine;
pub(crate) mod wait_estimate;
pub(crate) mod write;
pub(crate) mod writer;

use std::collections::BTreeMap;

use chrono::DateTime;
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    boards::Boards,
    model::{
        act::Act,
        board::{Board, BoardSlug},
        score::{Accepted, Event, HistoryRow, NewStanding, Outcome, Quarantined},
        user::UserId,
    },
    ranking::{self, Rankings},
    rules::Standing,
    scoring::{
        write::Answer,
        writer::{Admission, Writers},
    },
    store::{Store, score::HistoryPlace},
    telemetry,
};

/// Lets a request with scores for a board in, before its key, its body or anything else of it is looked at. [`Error::Unavailable`] when more
/// are waiting than are written in time; the value is to be kept until the request is answered.
pub(crate) fn admit<'a>(writers: &'a Writers, boards: &Boards, slug: &BoardSlug) -> Result<Admission<'a>> {
    let admit = writers.admit(boards.cache.last_seen(slug).as_deref());
    admit.inspect_err(count_refused)
}

fn count_refused(_: &Error) {
    telemetry::count_refused("scores");
}

/// Writes events; each gets its own outcome, in their order. Returns after the commit. [`Error::Unavailable`] when all of them would wait for
/// too long.
pub async fn submit(writers: &Writers, rankings: &Rankings, board: &Board, events: Vec<Event>) -> Result<Vec<Outcome>> {
    writers.check(board).inspect_err(count_refused)?;
    let ranks_wanted: Vec<bool> = events.iter().map(|event| event.ranks).collect();
    let mut by_lane: BTreeMap<i16, (Vec<usize>, Vec<Event>)> = BTreeMap::new();
    for (place, event) in events.into_iter().enumerate() {
        let (places, events) = by_lane.entry(lane_of(&event.user_id, board)).or_default();
        places.push(place);
        events.push(event);
    }
    // Handed to all lanes before the first is waited for, so that they write side by side.
    let mut waiting = Vec::with_capacity(by_lane.len());
    for (lane, (places, events)) in by_lane {
        waiting.push((places, writers.submit(board, lane, events)));
    }
    // What one lane cannot take is refused by itself: the others may have committed.
    let mut outcomes: Vec<Option<Result<Answer>>> = ranks_wanted.iter().map(|_| None).collect();
    for (places, answer) in waiting {
        let answer = match answer {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answers) => {
                for (place, one) in places.into_iter().zip(answers) {
                    outcomes[place] = Some(Ok(one));
                }
            }
            Err(error) => {
                for place in places {
                    outcomes[place] = Some(Err(error.clone()));
                }
            }
        }
    }
    let outcomes: Vec<Result<Answer>> = outcomes.into_iter().flatten().collect();
    if let Some(Err(error)) = outcomes.first()
        && outcomes.iter().all(Result::is_err)
    {
        return Err(error.clone());
    }
    // The events are written: ranks that cannot be read just now are left out.
    let ranks = ranks_after(rankings, board, &outcomes, &ranks_wanted).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "ranks after a commit could not be read");
        vec![Vec::new(); outcomes.len()]
    });
    Ok(outcomes
        .into_iter()
        .zip(ranks)
        .map(|(answer, ranks)| answer.map_or_else(Outcome::Refused, |answer| outcome(board, answer, &ranks)))
        .collect())
}

/// The lane of a player, as `centile.lane_hash` gives it: two bytes of the SHA-256 of the id, modulo the lanes.
pub(crate) fn lane_of(user_id: &UserId, board: &Board) -> i16 {
    let digest = Sha256::digest(user_id.as_str().as_bytes());
    let hash = i32::from(digest[0]) << 8 | i32::from(digest[1]);
    i16::try_from(hash % i32::from(board.lanes)).unwrap_or_default()
}

/// New and previous ranks of the events that want them: per event and period, read after the commit.
async fn ranks_after(
    rankings: &Rankings,
    board: &Board,
    outcomes: &[Result<Answer>],
    wanted: &[bool],
) -> Result<Vec<Vec<(Option<u64>, Option<u64>)>>> {
    let standings_of = |place: usize| match &outcomes[place] {
        Ok(Answer::Accepted { accepted, .. }) if wanted[place] => &accepted.standings[..],
        _ => &[],
    };
    let standings: Vec<&Standing> = (0..outcomes.len()).flat_map(standings_of).collect();
    if standings.is_empty() {
        return Ok(vec![Vec::new(); outcomes.len()]);
    }
    let mut ranks = ranking::rank_changes(rankings, board, &standings).await?.into_iter();
    Ok((0..outcomes.len()).map(|place| ranks.by_ref().take(standings_of(place).len()).collect()).collect())
}

/// Answer to the caller of an event.
fn outcome(board: &Board, answer: Answer, ranks: &[(Option<u64>, Option<u64>)]) -> Outcome {
    let (accepted, repeated) = match answer {
        Answer::Accepted { accepted, repeated } => (accepted, repeated),
        Answer::Quarantined { quarantine_id, violation, repeated } => {
            let why = violation.error(board).to_string();
            return Outcome::Quarantined(Quarantined { quarantine_id, why, repeated });
        }
        Answer::Refused(refusal) => return Outcome::Refused(refusal.error(board)),
    };
    let ranks = ranks.iter().copied().map(Some).chain(std::iter::repeat(None));
    let periods = accepted.standings.into_iter().zip(ranks).map(|(standing, ranks)| {
        let (rank, previous_rank) = ranks.unwrap_or_default();
        (standing.period, NewStanding { score: standing.score, rank, previous_rank })
    });
    Outcome::Accepted(Accepted {
        transaction_id: accepted.transaction_id,
        occurred_at: accepted.at,
        repeated,
        periods: periods.collect(),
    })
}

/// Undoes one score transaction in the periods that are still open.
pub async fn void(rankings: &Rankings, board: &Board, transaction_id: i64, act: &Act) -> Result<()> {
    rankings.store.void_score(board.slug.as_str(), transaction_id, act).await?;
    rankings.acknowledge_all(board.id).await
}

/// Makes a player start anew in the periods that hold now.
pub async fn reset(rankings: &Rankings, board: &Board, user_id: &UserId, act: &Act) -> Result<()> {
    rankings.store.reset_player(board.slug.as_str(), user_id.as_str(), act).await?;
    rankings.acknowledge_all(board.id).await
}

/// A player's ledger on a board, newest first: up to `limit` rows older than `cursor`, and the cursor of the next page.
pub async fn history(
    store: &Store,
    board: &Board,
    user_id: &UserId,
    limit: u32,
    cursor: Option<&str>,
) -> Result<(Vec<HistoryRow>, Option<String>)> {
    let place = cursor.map(parse_cursor).transpose()?;
    let rows = store.history(board.id, user_id.as_str(), place, i64::from(limit) + 1).await?;
    let mut rows = rows.ok_or_else(|| Error::not_found("user", user_id.as_str()))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{}.{}", row.occurred_at.timestamp_micros(), row.transaction_id));
    Ok((rows, next))
}

/// A cursor of [`history`]: microseconds since 1970, and the id, of the last row of the page before.
fn parse_cursor(text: &str) -> Result<HistoryPlace> {
    let parsed = text.split_once('.').and_then(|(micros, id)| {
        // Nothing in a ledger is older, and PostgreSQL knows no such times.
        let occurred_at = DateTime::from_timestamp_micros(micros.parse().ok()?).filter(|at| at.timestamp() >= 0)?;
        Some(HistoryPlace { occurred_at, transaction_id: id.parse().ok()? })
    });
    parsed.ok_or_else(|| Error::invalid("cursor", "is not the `next` of an earlier page"))
}
