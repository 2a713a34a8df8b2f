//! The task that looks at a ranking for all who follow it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::{Feed, Look, Passed, Piece, Rendering, Shown, Subject, Turn, Wanted, overtaken, read};
use crate::{
    Error, Result,
    board::{self, Board},
    period::{PeriodSelector, PeriodState},
    rank::Header,
    service::Service,
    telemetry,
};

/// From one look to the next, or twice as long as a look takes, where that is more: the database has others to answer.
const EVERY: Duration = Duration::from_millis(250);
/// From one look to the next at what was closed, which hardly ever changes, while nobody wants anything else.
const CLOSED_EVERY: Duration = Duration::from_secs(5);
/// How long a look may take, with the time that it waits for others: whoever follows is told soon when the database is silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// For how many looks it is kept who passed whom: four seconds, for those who are shown less often.
const PASSED_KEPT_FOR: u64 = 16;

/// Looks again and again, until nobody follows any more, or there is nothing to follow.
pub(super) async fn run(
    service: Arc<Service>,
    feed: Arc<Feed>,
    subject: Subject,
    mut board: Arc<Board>,
    rendering: &'static Rendering,
) {
    let mut shown = None;
    while !service.live.end(&subject, &feed, false) {
        let began_at = Instant::now();
        let wanted = feed.wanted().clone();
        let looking = look(&service, &mut board, &subject, &wanted, &mut shown, &feed, rendering);
        let looked = timeout(PATIENCE, looking)
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("the database does not answer")));
        match looked {
            Ok(()) => drop(feed.looked_at.send_replace(Some(began_at))),
            Err(error @ (Error::Unavailable { .. } | Error::Internal(_))) => miss(&feed, error),
            Err(error) => {
                service.live.end(&subject, &feed, true);
                feed.news.send_replace(Some(Err(error)));
                return;
            }
        }
        let pause = EVERY.saturating_sub(began_at.elapsed()).max(began_at.elapsed());
        tokio::time::sleep(pause).await;
        let is_closed = shown.as_ref().is_some_and(|shown: &Shown| shown.header.period.state == PeriodState::Closed);
        if is_closed && matches!(subject.1, PeriodSelector::Labelled(..)) {
            // Whoever comes is shown it at once, and whoever goes is noticed in time.
            timeout(CLOSED_EVERY, feed.asked.notified()).await.ok();
        }
    }
}

/// Looks once, and shows what is new.
async fn look(
    service: &Service,
    board: &mut Arc<Board>,
    (_, selector): &Subject,
    wanted: &Wanted,
    shown: &mut Option<Shown>,
    feed: &Feed,
    rendering: &Rendering,
) -> Result<()> {
    // Closed by nobody.
    let _turn = service.live.looks.acquire().await;
    telemetry::count_look();
    *board = board::find(service, &board.slug).await?;
    let read = read::read(service, board, selector, wanted, shown.as_ref()).await?;
    let before = feed.news.borrow().clone().and_then(Result::ok);
    let is_new = read.is_some();
    let passed = match (&*shown, &read) {
        (Some(before), Some(now)) if before.header.period.name() == now.header.period.name() => {
            overtaken::overtakings(before, now)
        }
        _ => Vec::new(),
    };
    let turn = shown.as_ref().zip(read.as_ref()).and_then(|(before, now)| turn(&before.header, &now.header));
    if read.is_some() {
        *shown = read;
    }
    let Some(shown) = &*shown else { return Ok(()) };
    let had_all = before.as_ref().is_some_and(|before| {
        let has_tops = wanted.limits.keys().all(|limit| before.tops.contains_key(limit));
        has_tops && wanted.users.keys().all(|user| before.players.contains_key(user.as_str()))
    });
    let is_as_before = before
        .as_ref()
        .is_some_and(|before| had_all && before.stale_since.is_none() && before.reading == board.reading);
    if is_as_before && !is_new {
        return Ok(());
    }
    let number = before.as_ref().map_or(1, |before| before.number + 1);
    let turn = turn.map(|(ended, next)| Turn { at: number, ended, next });
    let is_other_period = turn.as_ref().is_some_and(|turn| turn.next.is_some());
    let piece = |old: Option<&Piece>, text: Option<String>| {
        let old = old.filter(|old| !is_other_period && old.text.as_deref() == text.as_deref());
        old.cloned().unwrap_or_else(|| Piece { text: text.map(Arc::from), since: number })
    };
    let mut look = Look {
        number,
        tag: shown.tag.clone(),
        reading: board.reading,
        header: (rendering.header)(board, &shown.header)?.into(),
        tops: BTreeMap::new(),
        players: HashMap::new(),
        overtakings: before.as_ref().map_or_else(VecDeque::new, |before| before.overtakings.clone()),
        turn: turn.or_else(|| before.as_ref().and_then(|before| before.turn.clone())),
        stale_since: None,
    };
    for &limit in wanted.limits.keys() {
        let rows = shown.rows.get(..limit as usize).unwrap_or(&shown.rows);
        let old = before.as_ref().and_then(|before| before.tops.get(&limit));
        look.tops.insert(limit, piece(old, Some((rendering.rows)(rows)?)));
    }
    for user in wanted.users.keys() {
        let standing = shown.standings.get(user.as_str()).and_then(Option::as_ref);
        let old = before.as_ref().and_then(|before| before.players.get(user.as_str()));
        let text = standing.map(rendering.standing).transpose()?;
        look.players.insert(user.to_string(), piece(old, text));
    }
    look.overtakings.retain(|passed| passed.at + PASSED_KEPT_FOR > number);
    for passed in &passed {
        look.overtakings.push_back(Passed {
            at: number,
            user_ids: [passed.player.user_id.clone(), passed.by.user_id.clone()],
            text: (rendering.overtaking)(passed)?.into(),
        });
    }
    // Who would be shown nothing is not woken.
    let is_of_note = !is_as_before
        || look.turn.as_ref().is_some_and(|turn| turn.at == number)
        || !passed.is_empty()
        || look.tops.values().chain(look.players.values()).any(|piece| piece.since == number);
    feed.news.send_if_modified(|news| {
        *news = Some(Ok(Arc::new(look)));
        is_of_note
    });
    Ok(())
}

/// Which period has ended from one state to the next, and which is shown now if it is another one.
fn turn(before: &Header, now: &Header) -> Option<(String, Option<String>)> {
    let (ended, next) = (before.period.name(), now.period.name());
    if ended != next {
        Some((ended, Some(next)))
    } else if before.period.state == PeriodState::Open && now.period.state != PeriodState::Open {
        Some((ended, None))
    } else {
        None
    }
}

/// Notes that PostgreSQL could not be asked: told once, until it could be again.
fn miss(feed: &Feed, error: Error) {
    // What was last shown was found right then for the last time.
    let since = *feed.looked_at.borrow();
    feed.news.send_if_modified(|news| match news {
        Some(Ok(look)) if look.stale_since.is_some() => false,
        Some(Ok(look)) => {
            tracing::warn!(%error, "a ranking that is followed cannot be read");
            *look = Arc::new(Look { stale_since: Some(since.unwrap_or_else(Instant::now)), ..Look::clone(look) });
            true
        }
        _ => {
            *news = Some(Err(error));
            true
        }
    });
}
