//! The task that polls a ranking for all its subscribers.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    Code, Error, Resource, Result, boards,
    delivery::subscriptions::{
        Feed, FollowedRankings, Fragment, Interests, Overtakings, PeriodChange, RenderedSnapshot, Rendering, Subject,
        followed_state::{self, FollowedState},
        overtaken,
    },
    model::{board::Board, period::PeriodState, rank::Header},
    telemetry,
};

/// Interval between two polls, or twice the time of a poll where that is longer, to spare the
/// database.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Interval between two polls of an ended period, which hardly ever changes, unless the interests
/// change.
const ENDED_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Time of a poll, including its wait for a permit, after which PostgreSQL may be unreachable.
const POLL_TIMEOUT: Duration = Duration::from_secs(2);

/// Snapshots for which overtakings are kept: four seconds, for slow subscribers.
const OVERTAKINGS_KEPT_FOR: u64 = 16;

/// Removes the feed and informs its subscribers when the task ends for any reason.
struct Ending {
    followed: Arc<FollowedRankings>,
    feed: Arc<Feed>,
    subject: Subject,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.followed.end(&self.subject, &self.feed, true);
        self.feed.latest.send_if_modified(|latest| {
            let is_open = !matches!(latest, Some(Err(_)));
            if is_open {
                *latest = Some(Err(Error::retry(
                    Code::ConcurrentChange,
                    "the stream of this ranking has ended; connect again",
                )));
            }
            is_open
        });
        self.feed.last_poll.send_replace(Some((Instant::now(), Ok(()))));
    }
}

/// Polls until there are no subscribers, or nothing to follow.
///
/// Subscribers are informed of the end, even if the task never starts because the service is
/// shutting down.
pub(crate) fn run_feed(
    followed: Arc<FollowedRankings>,
    feed: Arc<Feed>,
    subject: Subject,
    board: Arc<Board>,
    rendering: &'static Rendering,
) -> impl Future<Output = ()> {
    let ending = Ending { followed, feed, subject };
    async move { poll_until_done(&ending, board, rendering).await }
}

async fn poll_until_done(
    Ending { followed, feed, subject }: &Ending,
    mut board: Arc<Board>,
    rendering: &'static Rendering,
) {
    let (mut shown, mut last_success) = (None, None);
    while !followed.end(subject, feed, false) {
        let began_at = Instant::now();
        let interests = feed.interests().clone();
        let polled = {
            let mut polling = pin!(poll(followed, &mut board, subject, &interests, &mut shown, feed, rendering));
            // The poll's statements have timeouts of their own. Starting again would take as long.
            loop {
                if let Ok(polled) = timeout(POLL_TIMEOUT, &mut polling).await {
                    break polled;
                }
                if !followed.read_router.current().reader.servers.is_reachable().await {
                    record_outage(feed, began_at, last_success, Error::no_answer());
                }
            }
        };
        let is_well = polled.is_ok();
        match polled {
            Ok(()) => {
                last_success = Some(began_at);
                feed.last_poll.send_replace(Some((began_at, Ok(()))));
            }
            Err(error) if followed.read_router.current().reader.servers.is_outage(&error).await => {
                record_outage(feed, began_at, last_success, error);
            }
            // Subscribers keep the last snapshot.
            Err(error) if error.is_temporary() || matches!(error, Error::Internal(_)) => {
                tracing::warn!(%error, board = %board.slug, "could not read a followed ranking");
                feed.last_poll.send_replace(Some((began_at, Err(error))));
            }
            Err(error) => {
                feed.latest.send_replace(Some(Err(error)));
                return;
            }
        }
        // A late poll shows an old state, so the next one must not be as late.
        let pause = POLL_INTERVAL.saturating_sub(began_at.elapsed()).max(began_at.elapsed().min(POLL_TIMEOUT));
        tokio::time::sleep(pause).await;
        if is_well && shown.as_ref().is_some_and(has_ended) {
            // A new subscriber gets the present snapshot at once. The timeout notices subscribers
            // that left.
            timeout(ENDED_POLL_INTERVAL, feed.interests_changed.notified()).await.ok();
        }
    }
}

/// Returns whether the period has ended. A combined board's only period has no end.
fn has_ended(shown: &FollowedState) -> bool {
    let period = &shown.header.period;
    period.ends_at.is_some() && matches!(period.state, PeriodState::Due | PeriodState::Closed)
}

/// Polls once, and publishes the snapshot if anything changed.
async fn poll(
    followed: &FollowedRankings,
    board: &mut Arc<Board>,
    (_, slug, selector, has_metadata): &Subject,
    interests: &Interests,
    shown: &mut Option<FollowedState>,
    feed: &Feed,
    rendering: &Rendering,
) -> Result<()> {
    // The semaphore is never closed.
    let _permit = followed.poll_permits.acquire().await;
    telemetry::count_live_read();
    // The board may have changed since the last poll, or another board may have its slug now.
    let found = boards::find(&followed.boards, slug).await?;
    // The first score has given it an id, if it had none.
    if found.id != board.id && !board.is_future() {
        return Err(Error::not_found(Resource::Board, slug.as_str()));
    }
    *board = found;
    // Read the ranking. Publish nothing if neither its state nor the interests have changed.
    let rankings = followed.read_router.current();
    let mut read = followed_state::read_state(rankings, board, selector, interests, shown.as_ref()).await?;
    if let Some(read) = read.as_mut().filter(|_| *has_metadata) {
        read.add_metadata(rankings, board).await?;
    }
    let last = feed.latest.borrow().clone().and_then(Result::ok);
    let is_as_before = read.is_none()
        && last.as_ref().is_some_and(|last| {
            last.stale_since.is_none() && last.reading == board.reading && has_all(last, interests)
        });
    if is_as_before {
        return Ok(());
    }
    // Compose the snapshot from this state and the one before it.
    let (before, now) = match read {
        Some(read) => (shown.replace(read), shown.as_ref()),
        None => (None, shown.as_ref()),
    };
    let Some(now) = now else { return Ok(()) };
    let snapshot = compose(board, interests, before.as_ref(), now, last.as_deref(), rendering)?;
    // Wake subscribers only if there is something to show.
    let has_changed = last.as_ref().is_none_or(|last| {
        last.stale_since.is_some()
            || last.reading != snapshot.reading
            || !has_all(last, interests)
            || snapshot.has_news()
    });
    feed.latest.send_if_modified(|latest| {
        *latest = Some(Ok(Arc::new(snapshot)));
        has_changed
    });
    Ok(())
}

/// Returns whether a snapshot has what all subscribers want.
fn has_all(snapshot: &RenderedSnapshot, interests: &Interests) -> bool {
    interests.limits.keys().all(|limit| snapshot.tops.contains_key(limit))
        && interests.users.keys().all(|user| snapshot.players.contains_key(user.as_str()))
}

/// Builds the snapshot of state `now`, which follows `before`; reuses unchanged fragments of the
/// `last` snapshot.
fn compose(
    board: &Board,
    interests: &Interests,
    before: Option<&FollowedState>,
    now: &FollowedState,
    last: Option<&RenderedSnapshot>,
    rendering: &Rendering,
) -> Result<RenderedSnapshot> {
    let number = last.map_or(1, |last| last.number + 1);
    // Find out whether the period has ended. The next period reuses no fragments.
    let change = before.and_then(|before| period_change(&before.header, &now.header));
    let change = change.map(|(ended, next)| PeriodChange { at: number, ended, next });
    let is_other_period = change.as_ref().is_some_and(|change| change.next.is_some());
    let fragment = |old: Option<&Fragment>, text: Option<String>| {
        let old = old.filter(|old| !is_other_period && old.text.as_deref() == text.as_deref());
        old.cloned().unwrap_or_else(|| Fragment { text: text.map(Arc::from), since: number })
    };
    // Render a top of each requested length, and each chosen player.
    let mut tops = BTreeMap::new();
    for &limit in interests.limits.keys() {
        let rows = now.rows.get(..limit as usize).unwrap_or(&now.rows);
        tops.insert(
            limit,
            fragment(last.and_then(|last| last.tops.get(&limit)), Some((rendering.rows)(board, &now.header, rows)?)),
        );
    }
    let mut players = HashMap::with_capacity(interests.users.len());
    for user in interests.users.keys() {
        let standing = now.standings.get(user.as_str()).and_then(Option::as_ref);
        let text = standing.map(|standing| (rendering.standing)(board, standing)).transpose()?;
        players.insert(user.to_string(), fragment(last.and_then(|last| last.players.get(user.as_str())), text));
    }
    // A restored database or a new period makes no overtakings.
    let goes_on = !is_other_period && before.is_none_or(|before| before.epoch == now.epoch);
    // Earlier overtakings may contain names that were changed or erased since, or belong to the
    // previous period.
    let is_kept = goes_on && before.is_none_or(|before| before.revision == now.revision);
    let mut overtakings = last.filter(|_| is_kept).map_or_else(VecDeque::new, |last| last.overtakings.clone());
    overtakings.retain(|some| some.at + OVERTAKINGS_KEPT_FOR > number);
    // Add the overtakings since the state before.
    let passed = before.filter(|_| goes_on).map(|before| overtaken::overtakings(before, now));
    if let Some(passed) = passed.filter(|passed| !passed.is_empty()) {
        let rendered = passed.iter().map(|one| {
            let text = (rendering.overtaking)(board, &now.header, one)?;
            Ok(([&*one.player.user_id, &*one.by.user_id], text))
        });
        overtakings.push_back(Arc::new(Overtakings::new(number, rendered.collect::<Result<Vec<_>>>()?)));
    }
    Ok(RenderedSnapshot {
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
        period_change: change.or_else(|| last.and_then(|last| last.period_change.clone())),
        stale_since: None,
        sent: Arc::default(),
    })
}

/// Returns the name of the period that ended between two states, and of the next one if it differs.
fn period_change(before: &Header, now: &Header) -> Option<(String, Option<String>)> {
    let (ended, next) = (before.period.name(), now.period.name());
    if ended != next {
        Some((ended, Some(next)))
    } else if before.period.state == PeriodState::Open && now.period.state != PeriodState::Open {
        Some((ended, None))
    } else {
        None
    }
}

/// Records that a poll met an outage, and marks the snapshot as stale once until a poll succeeds.
///
/// `began_at` is the start of the failed poll, `last_success` that of the last successful one.
fn record_outage(feed: &Feed, began_at: Instant, last_success: Option<Instant>, error: Error) {
    feed.latest.send_if_modified(|latest| match latest {
        Some(Ok(snapshot)) if snapshot.stale_since.is_some() => false,
        Some(Ok(snapshot)) => {
            tracing::warn!(%error, "PostgreSQL is unreachable for a followed ranking");
            *snapshot = Arc::new(RenderedSnapshot {
                stale_since: Some(last_success.unwrap_or(began_at)),
                ..RenderedSnapshot::clone(snapshot)
            });
            true
        }
        _ => {
            *latest = Some(Err(error.clone()));
            true
        }
    });
    feed.last_poll.send_replace(Some((began_at, Err(error))));
}
