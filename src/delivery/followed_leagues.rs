//! Live subscriptions to leagues: one task per board reads the cohorts of all followed players, in one
//! statement, whenever the board has changed.

use std::{
    collections::{HashMap, hash_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    Error, Resource, Result,
    background::Background,
    model::{board::Board, league::LeagueState, user::UserId},
    store::Reader,
};

/// Interval between two looks at a board, or twice the time of a read where that is longer.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Time after which cohorts are read although the board has not changed: a period may have ended.
const READ_AFTER: Duration = Duration::from_secs(5);

/// Maximum players who are followed in a league. PostgreSQL reads that many cohorts of 30 in about
/// two seconds.
const MAX_PLAYERS: usize = 2_000;

/// The latest state of a player; `None` before the first read. An error ends the stream.
type Latest = Option<Result<Arc<LeagueState>>>;

/// Boards whose leagues are followed, by their ids.
#[derive(Debug)]
pub(crate) struct FollowedLeagues {
    reader: Reader,
    background: Background,
    feeds: Mutex<HashMap<i32, Arc<Feed>>>,
}

/// The followed players of a board.
#[derive(Debug, Default)]
struct Feed {
    players: Mutex<HashMap<UserId, watch::Sender<Latest>>>,
}

impl Feed {
    fn players(&self) -> MutexGuard<'_, HashMap<UserId, watch::Sender<Latest>>> {
        self.players.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows a player's cohort until the receiver is dropped.
///
/// Returns [`Error::Overload`] when too many players of the league are followed.
pub(crate) fn follow(
    leagues: &Arc<FollowedLeagues>,
    board: &Arc<Board>,
    user: &UserId,
) -> Result<watch::Receiver<Latest>> {
    let mut feeds = leagues.feeds();
    let feed = feeds.entry(board.id).or_insert_with(|| {
        let feed = Arc::new(Feed::default());
        leagues.background.spawn(run_feed(Arc::clone(leagues), Arc::clone(&feed), Arc::clone(board)));
        feed
    });
    let mut players = feed.players();
    let is_full = players.len() >= MAX_PLAYERS;
    match players.entry(user.clone()) {
        hash_map::Entry::Occupied(followed) => {
            let mut latest = followed.get().subscribe();
            latest.mark_changed();
            Ok(latest)
        }
        hash_map::Entry::Vacant(_) if is_full => {
            Err(Error::overload("too many players of this league are followed already"))
        }
        hash_map::Entry::Vacant(place) => Ok(place.insert(watch::Sender::new(None)).subscribe()),
    }
}

impl FollowedLeagues {
    pub(crate) fn new(reader: Reader, background: Background) -> Self {
        Self { reader, background, feeds: Mutex::default() }
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<i32, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets players without subscribers. Returns whether there are others, and removes the feed
    /// otherwise: a new subscriber waits for this lock, and then starts another one.
    fn goes_on(&self, board_id: i32, feed: &Feed) -> bool {
        let mut feeds = self.feeds();
        let mut players = feed.players();
        players.retain(|_, latest| latest.receiver_count() > 0);
        if players.is_empty() {
            feeds.remove(&board_id);
        }
        !players.is_empty()
    }
}

/// Reads until no player is followed. If the instance stops, the streams end by themselves.
async fn run_feed(leagues: Arc<FollowedLeagues>, feed: Arc<Feed>, board: Arc<Board>) {
    let mut seen: Option<(String, Instant)> = None;
    while leagues.goes_on(board.id, &feed) {
        let began_at = Instant::now();
        let is_new = feed.players().values().any(|latest| latest.borrow().is_none());
        match poll(&leagues.reader, &feed, &board, seen.as_ref().filter(|_| !is_new)).await {
            Ok(Some(version)) => seen = Some((version, began_at)),
            Ok(None) => {}
            // Subscribers keep the last state.
            Err(error) => tracing::warn!(%error, board = %board.slug, "could not read a followed league"),
        }
        tokio::time::sleep(POLL_INTERVAL.max(began_at.elapsed())).await;
    }
}

/// Publishes the states of all players, if the board has changed since `seen`. Returns its version.
async fn poll(reader: &Reader, feed: &Feed, board: &Board, seen: Option<&(String, Instant)>) -> Result<Option<String>> {
    let version = reader.league_version(board.id).await?;
    if seen.is_some_and(|(last, at)| *last == version && at.elapsed() < READ_AFTER) {
        return Ok(None);
    }
    let users: Vec<String> = feed.players().keys().map(ToString::to_string).collect();
    let mut states = reader.league_states(board.id, &users).await?;
    for (user, latest) in &*feed.players() {
        if !users.iter().any(|read| read == user.as_str()) {
            continue;
        }
        let state = states.remove(user.as_str());
        latest.send_if_modified(|latest| {
            let now = state.ok_or_else(|| Error::not_found(Resource::User, user.as_str()));
            let is_same = matches!((&*latest, &now), (Some(Ok(was)), Ok(now)) if was.is_like(now));
            if !is_same {
                *latest = Some(now.map(Arc::new));
            }
            !is_same
        });
    }
    Ok(Some(version))
}
