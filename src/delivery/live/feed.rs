//! The task that looks at a ranking for all who follow it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    Error, Result, boards,
    delivery::live::{
        Feed, Fragment, Interests, Live, Overtakings, PeriodChange, Rendering, Subject, View, overtaken,
        read::{self, Shown},
    },
    model::{
        board::Board,
        period::{PeriodSelector, PeriodState},
        rank::Header,
    },
    telemetry,
};

/// From one look to the next, or twice as long as a look takes, where that is more: the database has others to answer.
const EVERY: Duration = Duration::from_millis(250);

/// From one look to the next at what was closed, which hardly ever changes, while nobody wants anything else.
const CLOSED_EVERY: Duration = Duration::from_secs(5);

/// How long a look may take, with the time that it waits for others, before it is told that what is shown is stale.
const PATIENCE: Duration = Duration::from_secs(2);

/// For how many looks it is kept who passed whom: four seconds, for those who are shown less often.
const PASSED_KEPT_FOR: u64 = 16;

/// Lets the feed go, however the looking ends: whoever still follows is told that there is nothing more.
struct Ending {
    live: Arc<Live>,
    feed: Arc<Feed>,
    subject: Subject,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.live.end(&self.subject, &self.feed, true);
        self.feed.latest.send_if_modified(|latest| {
            let is_open = !matches!(latest, Some(Err(_)));
            if is_open {
                *latest = Some(Err(Error::unavailable("nobody looks at this ranking any more")));
            }
            is_open
        });
        self.feed.looked_at.send_replace(Some(Instant::now()));
    }
}

/// Looks again and again, until nobody follows any more, or there is nothing to follow. However that ends, and if it never begins because the
/// service is stopping, whoever follows is told.
pub(crate) fn run(
    live: Arc<Live>,
    feed: Arc<Feed>,
    subject: Subject,
    board: Arc<Board>,
    rendering: &'static Rendering,
) -> impl Future<Output = ()> {
    let ending = Ending { live, feed, subject };
    async move { look_again_and_again(&ending, board, rendering).await }
}

async fn look_again_and_again(
    Ending { live, feed, subject }: &Ending,
    mut board: Arc<Board>,
    rendering: &'static Rendering,
) {
    let (mut shown, mut good_at) = (None, None);
    while !live.end(subject, feed, false) {
        let began_at = Instant::now();
        let wanted = feed.wanted().clone();
        let looked = {
            let mut looking = pin!(look(live, &mut board, subject, &wanted, &mut shown, feed, rendering));
            if let Ok(looked) = timeout(PATIENCE, &mut looking).await {
                looked
            } else {
                miss(feed, began_at, good_at, Error::unavailable("the database does not answer"));
                // Its statements end by themselves; begun anew it would take as long again.
                looking.await
            }
        };
        let is_well = looked.is_ok();
        match looked {
            Ok(()) => {
                good_at = Some(began_at);
                feed.looked_at.send_replace(good_at);
            }
            Err(error @ (Error::Unavailable { .. } | Error::Internal(_))) => miss(feed, began_at, good_at, error),
            Err(error) => {
                feed.latest.send_replace(Some(Err(error)));
                return;
            }
        }
        // What a late look found was so when it began: the next one is not to be as late.
        let pause = EVERY.saturating_sub(began_at.elapsed()).max(began_at.elapsed().min(PATIENCE));
        tokio::time::sleep(pause).await;
        let is_closed = shown.as_ref().is_some_and(|shown: &Shown| shown.header.period.state == PeriodState::Closed);
        if is_well && is_closed && matches!(subject.1, PeriodSelector::Labelled(..)) {
            // Whoever comes is shown it at once, and whoever goes is noticed in time.
            timeout(CLOSED_EVERY, feed.asked.notified()).await.ok();
        }
    }
}

/// Looks once, and shows what is new.
async fn look(
    live: &Live,
    board: &mut Arc<Board>,
    (board_id, selector): &Subject,
    wanted: &Interests,
    shown: &mut Option<Shown>,
    feed: &Feed,
    rendering: &Rendering,
) -> Result<()> {
    // Closed by nobody.
    let _turn = live.looks.acquire().await;
    telemetry::count_look();
    *board = boards::find(&live.boards, &board.slug).await?;
    if board.id != *board_id {
        return Err(Error::not_found("board", board.slug.to_string()));
    }
    let read = read::read(&live.rankings, board, selector, wanted, shown.as_ref()).await?;
    let last = feed.latest.borrow().clone().and_then(Result::ok);
    let is_as_before = read.is_none()
        && last
            .as_ref()
            .is_some_and(|last| last.stale_since.is_none() && last.reading == board.reading && has_all(last, wanted));
    if is_as_before {
        return Ok(());
    }
    let (before, now) = match read {
        Some(read) => (shown.replace(read), shown.as_ref()),
        None => (None, shown.as_ref()),
    };
    let Some(now) = now else { return Ok(()) };
    let look = compose(board, wanted, before.as_ref(), now, last.as_deref(), rendering)?;
    // Who would be shown nothing is not woken.
    let is_of_note = last.as_ref().is_none_or(|last| {
        last.stale_since.is_some() || last.reading != look.reading || !has_all(last, wanted) || look.has_news()
    });
    feed.latest.send_if_modified(|latest| {
        *latest = Some(Ok(Arc::new(look)));
        is_of_note
    });
    Ok(())
}

/// Whether a look has what all followers want.
fn has_all(look: &View, wanted: &Interests) -> bool {
    wanted.limits.keys().all(|limit| look.tops.contains_key(limit))
        && wanted.users.keys().all(|user| look.players.contains_key(user.as_str()))
}

/// A look at the state `now`, which came after `before`; what is as it was at the `last` look is taken from there.
fn compose(
    board: &Board,
    wanted: &Interests,
    before: Option<&Shown>,
    now: &Shown,
    last: Option<&View>,
    rendering: &Rendering,
) -> Result<View> {
    let number = last.map_or(1, |last| last.number + 1);
    let turn = before.and_then(|before| turn(&before.header, &now.header));
    let turn = turn.map(|(ended, next)| PeriodChange { at: number, ended, next });
    let is_other_period = turn.as_ref().is_some_and(|turn| turn.next.is_some());
    let piece = |old: Option<&Fragment>, text: Option<String>| {
        let old = old.filter(|old| !is_other_period && old.text.as_deref() == text.as_deref());
        old.cloned().unwrap_or_else(|| Fragment { text: text.map(Arc::from), since: number })
    };
    let mut tops = BTreeMap::new();
    for &limit in wanted.limits.keys() {
        let rows = now.rows.get(..limit as usize).unwrap_or(&now.rows);
        tops.insert(limit, piece(last.and_then(|last| last.tops.get(&limit)), Some((rendering.rows)(rows)?)));
    }
    let mut players = HashMap::with_capacity(wanted.users.len());
    for user in wanted.users.keys() {
        let standing = now.standings.get(user.as_str()).and_then(Option::as_ref);
        let text = standing.map(rendering.standing).transpose()?;
        players.insert(user.to_string(), piece(last.and_then(|last| last.players.get(user.as_str())), text));
    }
    // By a restore, or from one period to the next, nobody has passed anybody.
    let goes_on = !is_other_period && before.is_none_or(|before| before.epoch == now.epoch);
    // Names that were changed or erased since are told no more, nor is what was in a period before.
    let is_kept = goes_on && before.is_none_or(|before| before.revision == now.revision);
    let mut overtakings = last.filter(|_| is_kept).map_or_else(VecDeque::new, |last| last.overtakings.clone());
    overtakings.retain(|some| some.at + PASSED_KEPT_FOR > number);
    let passed = before.filter(|_| goes_on).map(|before| overtaken::overtakings(before, now));
    if let Some(passed) = passed.filter(|passed| !passed.is_empty()) {
        let told = passed.iter().map(|one| {
            let text = (rendering.overtaking)(&now.header, one)?;
            Ok(([&*one.player.user_id, &*one.by.user_id], text))
        });
        overtakings.push_back(Arc::new(Overtakings::new(number, told.collect::<Result<Vec<_>>>()?)));
    }
    Ok(View {
        number,
        tag: now.tag.clone(),
        reading: board.reading,
        header: (rendering.header)(board, &now.header)?.into(),
        state: now.header.period.state,
        state_since: last
            .filter(|last| !is_other_period && last.state == now.header.period.state)
            .map_or(number, |last| last.state_since),
        tops,
        players,
        overtakings,
        turn: turn.or_else(|| last.and_then(|last| last.turn.clone())),
        stale_since: None,
        sent: Arc::default(),
    })
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

/// Notes that PostgreSQL could not be asked by a look that began then, after one at `good_at` for which it could: told once, until it can be
/// again.
fn miss(feed: &Feed, began_at: Instant, good_at: Option<Instant>, error: Error) {
    feed.latest.send_if_modified(|latest| match latest {
        Some(Ok(look)) if look.stale_since.is_some() => false,
        Some(Ok(look)) => {
            tracing::warn!(%error, "a ranking that is followed cannot be read");
            *look = Arc::new(View { stale_since: Some(good_at.unwrap_or(began_at)), ..View::clone(look) });
            true
        }
        _ => {
            *latest = Some(Err(error));
            true
        }
    });
    feed.looked_at.send_replace(Some(began_at));
}
