//! Live subscriptions to rankings: one task polls each followed ranking for all its subscribers.
//!
//! A snapshot shows one state: one statement reads the top and the chosen players, after the
//! version has changed. Each fragment is rendered once for all subscribers, and records the
//! snapshot since which it is unchanged. So a subscriber that skips snapshots misses only
//! intermediate states.

mod feed;
mod followed_state;
mod overtaken;

pub(crate) use overtaken::Overtaking;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque, btree_map, hash_map},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::timeout,
};

use crate::{
    Code, Error, Result,
    background::Background,
    boards::Boards,
    model::{
        board::{Board, BoardSlug, Reading},
        period::{PeriodSelector, PeriodState},
        rank::{Header, PlayerStanding, Row},
        user::UserId,
    },
    ranking::read_router::ReadRouter,
};

/// Maximum players that all subscribers of a ranking choose together. PostgreSQL reads that many in
/// about half a second.
const MAX_CHOSEN: usize = 2_000;

/// Maximum rankings that are followed. Each is polled up to four times per second.
const MAX_FEEDS: usize = 1_000;

/// Maximum rankings that subscribers of one network were the first to follow.
const MAX_FEEDS_PER_NETWORK: usize = MAX_FEEDS / 4;

/// Maximum choices per ranking from one network, so that no network takes the whole capacity.
const MAX_CHOSEN_PER_NETWORK: usize = MAX_CHOSEN / 4;

/// Retry-After of a refused subscription. Other subscribers leave at any time.
const RETRY_AFTER: Duration = Duration::from_secs(10);

const FIRST_SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);

/// Renders the parts of a snapshot.
#[derive(Debug)]
pub(crate) struct Rendering {
    /// The first members of every event's object.
    pub(crate) header: fn(&Board, &Header) -> Result<String>,
    pub(crate) rows: fn(&Board, &Header, &[Row]) -> Result<String>,
    pub(crate) standing: fn(&Board, &PlayerStanding) -> Result<String>,
    /// One overtaking, at the state of this header.
    pub(crate) overtaking: fn(&Board, &Header, &Overtaking) -> Result<String>,
}

/// A subscriber's choice of data.
#[derive(Debug, Clone)]
pub(crate) struct Interest {
    /// Number of players of the top.
    pub(crate) limit: u32,
    pub(crate) users: Vec<UserId>,
    pub(crate) metadata: bool,
}

/// A snapshot of a ranking, rendered.
#[derive(Debug, Clone)]
pub(crate) struct RenderedSnapshot {
    /// Number of the snapshot, from 1.
    pub(crate) number: u64,
    /// Identifies the state: the period, its ranking or archive, the version and the profile
    /// revision.
    pub(crate) tag: String,
    pub(crate) reading: Reading,
    /// The first members of every event's object.
    pub(crate) header: Arc<str>,
    pub(crate) state: PeriodState,
    /// Snapshot since which this state holds.
    pub(crate) state_since: u64,
    pub(crate) tops: BTreeMap<u32, Fragment>,
    /// Chosen players by their ids.
    pub(crate) players: HashMap<String, Fragment>,
    /// Recent overtakings, oldest first.
    pub(crate) overtakings: VecDeque<Arc<Overtakings>>,
    pub(crate) period_change: Option<PeriodChange>,
    /// Start of the last successful poll while PostgreSQL is unavailable; `None` while it answers.
    pub(crate) stale_since: Option<Instant>,
    /// Messages for subscribers that see only a top, by its limit: built once for all of them.
    pub(crate) sent: Arc<Mutex<BTreeMap<u32, Bytes>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    /// Rendered text; `None` for a player without a score.
    pub(crate) text: Option<Arc<str>>,
    /// Snapshot since which the text is unchanged.
    pub(crate) since: u64,
}

/// Overtakings between two consecutive snapshots.
#[derive(Debug)]
pub(crate) struct Overtakings {
    /// Number of the snapshot that showed them.
    pub(crate) at: u64,
    texts: Vec<String>,
    /// Indexes of each player's overtakings.
    of_players: HashMap<String, Vec<usize>>,
}

impl Overtakings {
    /// Collects overtakings of snapshot `at`: both players of each, and its rendered text.
    pub(crate) fn new<'a>(at: u64, rendered: impl IntoIterator<Item = ([&'a str; 2], String)>) -> Self {
        let mut overtakings = Self { at, texts: Vec::new(), of_players: HashMap::new() };
        for (players, text) in rendered {
            for player in players {
                overtakings.of_players.entry(player.to_owned()).or_default().push(overtakings.texts.len());
            }
            overtakings.texts.push(text);
        }
        overtakings
    }

    /// Returns the overtakings of some players, each once.
    pub(crate) fn texts_for(&self, users: &[UserId]) -> impl Iterator<Item = &str> {
        let of_each = users.iter().filter_map(|user| self.of_players.get(user.as_str()));
        let rendered: BTreeSet<usize> = of_each.flatten().copied().collect();
        rendered.into_iter().map(|one| &*self.texts[one])
    }
}

/// The end of a period.
#[derive(Debug, Clone)]
pub(crate) struct PeriodChange {
    /// Number of the snapshot that showed it.
    pub(crate) at: u64,
    pub(crate) ended: String,
    /// Name of the next period; `None` if the ended one stays on show.
    pub(crate) next: Option<String>,
}

impl RenderedSnapshot {
    /// Returns the message for subscribers that see only the top of this limit; built by
    /// `put_together` on first use.
    pub(crate) fn sent(&self, limit: u32, put_together: impl FnOnce() -> String) -> Bytes {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.entry(limit).or_insert_with(|| put_together().into()).clone()
    }

    /// Returns whether the snapshot has everything that the subscriber wants.
    pub(crate) fn has(&self, interest: &Interest) -> bool {
        self.tops.contains_key(&interest.limit)
            && interest.users.iter().all(|user| self.players.contains_key(user.as_str()))
    }

    /// Returns whether anything changed since the previous snapshot.
    fn has_news(&self) -> bool {
        self.state_since == self.number
            || self.period_change.as_ref().is_some_and(|change| change.at == self.number)
            || self.overtakings.back().is_some_and(|some| some.at == self.number)
            || self.tops.values().chain(self.players.values()).any(|fragment| fragment.since == self.number)
    }
}

/// A followed ranking: id and name of a board, a period, and whether rows have metadata. Boards of a
/// template without scores have no id of their own.
type Subject = (i32, BoardSlug, PeriodSelector, bool);

/// The latest snapshot; `None` before the first. An error ends the feed or reports an outage before
/// the first snapshot.
type LatestSnapshot = Option<Result<Arc<RenderedSnapshot>>>;

/// Maximum concurrent polls, so that most connections stay free for any number of followed
/// rankings.
const MAX_CONCURRENT_POLLS: usize = 4;

/// All followed rankings of this process.
#[derive(Debug)]
pub(crate) struct FollowedRankings {
    boards: Arc<Boards>,
    read_router: Arc<ReadRouter>,
    background: Background,
    feeds: Mutex<HashMap<Subject, Arc<Feed>>>,
    poll_permits: Semaphore,
}

/// The subscribers' interests in one ranking, and its latest snapshot.
#[derive(Debug)]
struct Feed {
    interests: Mutex<Interests>,
    interests_changed: Notify,
    latest: watch::Sender<LatestSnapshot>,
    /// Start and result of the last finished poll.
    last_poll: watch::Sender<Option<(Instant, Result<()>)>>,
    /// Network of the first subscriber.
    opened_by: Option<IpAddr>,
}

/// Interests of all subscribers, with the number of subscribers of each.
#[derive(Debug, Clone, Default)]
struct Interests {
    subscribers: usize,
    limits: BTreeMap<u32, usize>,
    users: HashMap<UserId, usize>,
    /// Choices of players per network.
    networks: HashMap<IpAddr, usize>,
}

/// A subscription to a ranking, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    interest: Interest,
    network: Option<IpAddr>,
    latest: watch::Receiver<LatestSnapshot>,
    subscribed_at: Instant,
}

/// Subscribes to the period that `selector` means on a board.
///
/// Returns [`Error::Overload`] when too many rankings are followed or too many players are chosen
/// in total, [`Error::TooMany`] when too many are from `network`.
pub(crate) fn subscribe(
    followed: &Arc<FollowedRankings>,
    board: &Arc<Board>,
    selector: &PeriodSelector,
    interest: Interest,
    network: Option<IpAddr>,
    rendering: &'static Rendering,
) -> Result<Subscription> {
    let mut feeds = followed.feeds();
    let subject = (board.id, board.slug.clone(), selector.clone(), interest.metadata);
    if !feeds.contains_key(&subject) {
        check_capacity(feeds.values().map(|feed| feed.opened_by), network)?;
    }
    let feed = feeds.entry(subject.clone()).or_insert_with(|| {
        let feed = Arc::new(Feed {
            interests: Mutex::default(),
            interests_changed: Notify::new(),
            latest: watch::Sender::new(None),
            last_poll: watch::Sender::new(None),
            opened_by: network,
        });
        let polling = feed::run_feed(Arc::clone(followed), Arc::clone(&feed), subject, Arc::clone(board), rendering);
        followed.background.spawn(polling);
        feed
    });
    feed.interests().add(&interest, network)?;
    feed.interests_changed.notify_one();
    let feed = Arc::clone(feed);
    let latest = feed.latest.subscribe();
    Ok(Subscription { feed, interest, network, latest, subscribed_at: Instant::now() })
}

/// Refuses another feed if there are too many, in total or opened by this network.
fn check_capacity(opened_by: impl Iterator<Item = Option<IpAddr>> + Clone, network: Option<IpAddr>) -> Result<()> {
    if opened_by.clone().count() >= MAX_FEEDS {
        return Err(Error::overload("too many rankings are followed already"));
    }
    if let Some(network) = network
        && opened_by.filter(|opened_by| *opened_by == Some(network)).count() >= MAX_FEEDS_PER_NETWORK
    {
        let message = format!("too many rankings are followed from address {network}");
        return Err(Error::TooMany { code: Code::TooManyConnections, message, retry_after: RETRY_AFTER });
    }
    Ok(())
}

impl FollowedRankings {
    pub(crate) fn new(boards: Arc<Boards>, read_router: Arc<ReadRouter>, background: Background) -> Self {
        Self {
            boards,
            read_router,
            background,
            feeds: Mutex::default(),
            poll_permits: Semaphore::new(MAX_CONCURRENT_POLLS),
        }
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<Subject, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a feed: always, or only without subscribers. Returns whether it ends.
    fn end(&self, subject: &Subject, feed: &Feed, always: bool) -> bool {
        // A new subscriber waits for this lock, and then starts another feed.
        let mut feeds = self.feeds();
        let ends = always || feed.interests().subscribers == 0;
        if ends && feeds.get(subject).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), feed)) {
            feeds.remove(subject);
        }
        ends
    }
}

impl Feed {
    fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interests {
    fn add(&mut self, interest: &Interest, network: Option<IpAddr>) -> Result<()> {
        let others = interest.users.iter().filter(|user| !self.users.contains_key(*user)).count();
        if self.users.len() + others > MAX_CHOSEN {
            return Err(Error::overload("too many players of this ranking are followed already"));
        }
        if let (Some(network), false) = (network, interest.users.is_empty()) {
            let chosen = self.networks.get(&network).map_or(0, |chosen| *chosen) + interest.users.len();
            if chosen > MAX_CHOSEN_PER_NETWORK {
                let message = format!("too many players of this ranking are followed from address {network}");
                return Err(Error::TooMany { code: Code::TooManyConnections, message, retry_after: RETRY_AFTER });
            }
            self.networks.insert(network, chosen);
        }
        self.subscribers += 1;
        *self.limits.entry(interest.limit).or_default() += 1;
        for user in &interest.users {
            *self.users.entry(user.clone()).or_default() += 1;
        }
        Ok(())
    }

    fn remove(&mut self, interest: &Interest, network: Option<IpAddr>) {
        self.subscribers -= 1;
        if let Some(network) = network
            && let hash_map::Entry::Occupied(mut chosen) = self.networks.entry(network)
        {
            *chosen.get_mut() -= interest.users.len();
            if *chosen.get() == 0 {
                chosen.remove();
            }
        }
        if let btree_map::Entry::Occupied(mut count) = self.limits.entry(interest.limit) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        for user in &interest.users {
            if let hash_map::Entry::Occupied(mut count) = self.users.entry(user.clone()) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }
}

impl Subscription {
    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// Waits for the first snapshot that has all of the interest and was read after the
    /// subscription.
    ///
    /// So it includes everything acknowledged before. Returns the error when there is none. During
    /// an outage of PostgreSQL, a top may be older.
    pub(crate) async fn first(&mut self) -> Result<Arc<RenderedSnapshot>> {
        if let Ok(first) = timeout(FIRST_SNAPSHOT_TIMEOUT, self.wait_for_first()).await {
            return first;
        }
        Err(match self.newest() {
            Some(Err(error)) => error,
            Some(Ok(snapshot)) if snapshot.stale_since.is_some() => Error::no_answer(),
            _ => Error::overload("the ranking could not be read in time"),
        })
    }

    async fn wait_for_first(&mut self) -> Result<Arc<RenderedSnapshot>> {
        let mut last_poll = self.feed.last_poll.subscribe();
        loop {
            let polled = last_poll.borrow_and_update().clone().filter(|(at, _)| *at >= self.subscribed_at);
            if let Some((_, polled)) = polled {
                let wants_only_top = self.interest.users.is_empty();
                match (self.newest(), polled) {
                    (Some(Ok(stale)), Err(_))
                        if stale.stale_since.is_some() && wants_only_top && stale.has(&self.interest) =>
                    {
                        return Ok(stale);
                    }
                    (_, Err(error)) | (Some(Err(error)), Ok(())) => return Err(error),
                    (Some(Ok(snapshot)), Ok(())) if snapshot.stale_since.is_none() && snapshot.has(&self.interest) => {
                        return Ok(snapshot);
                    }
                    _ => {}
                }
            }
            // The senders live as long as the feed, which this value holds. A poll publishes its
            // snapshot before it updates `last_poll`.
            let _ = last_poll.changed().await;
        }
    }

    /// Returns the latest snapshot, or the error that replaced it.
    pub(crate) fn newest(&mut self) -> LatestSnapshot {
        self.latest.borrow_and_update().clone()
    }

    /// Waits until there is a new snapshot or error.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as the feed, which this value holds.
        let _ = self.latest.changed().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.interests().remove(&self.interest, self.network);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_opens_a_share_of_the_feeds() {
        let network = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let check = |opened_by: &[Option<IpAddr>], network| check_capacity(opened_by.iter().copied(), network);
        let mut opened_by = vec![network(1); MAX_FEEDS_PER_NETWORK - 1];
        assert!(check(&opened_by, network(1)).is_ok());
        opened_by.push(network(1));
        assert!(matches!(check(&opened_by, network(1)), Err(Error::TooMany { .. })));
        assert!(check(&opened_by, network(2)).is_ok() && check(&opened_by, None).is_ok());
        opened_by.resize(MAX_FEEDS, None);
        assert!(matches!(check(&opened_by, network(2)), Err(Error::Overload { .. })));
        assert!(matches!(check(&opened_by, None), Err(Error::Overload { .. })));
    }

    #[test]
    fn one_network_cannot_choose_all_players() -> Result<()> {
        let interest = |first: usize, count: usize| Interest {
            limit: 10,
            users: (first..first + count).filter_map(|user| format!("p{user}").parse().ok()).collect(),
            metadata: false,
        };
        let of = |host: u8| Some(IpAddr::from([192, 0, 2, host]));
        let mut interests = Interests::default();
        for group in 0..MAX_CHOSEN_PER_NETWORK / 20 {
            interests.add(&interest(20 * group, 20), of(1))?;
        }
        assert!(matches!(interests.add(&interest(0, 1), of(1)), Err(Error::TooMany { .. })));
        interests.add(&interest(0, 0), of(1))?;
        interests.add(&interest(0, 1), of(2))?;
        interests.remove(&interest(0, 20), of(1));
        interests.add(&interest(20, 20), of(1))?;
        // Without a known network only the total limit applies.
        for group in 0..MAX_CHOSEN / 20 {
            if group >= MAX_CHOSEN_PER_NETWORK / 20 {
                interests.add(&interest(20 * group, 20), None)?;
            }
        }
        assert_eq!(interests.users.len(), MAX_CHOSEN - 19, "the second network still follows one player");
        assert!(matches!(interests.add(&interest(MAX_CHOSEN, 20), of(3)), Err(Error::Overload { .. })));
        interests.add(&interest(0, 20), of(3))?;
        // Leaving subscribers leave no counts behind.
        let mut left = Interests::default();
        left.add(&interest(0, 20), of(1))?;
        left.add(&interest(10, 20), of(1))?;
        left.remove(&interest(0, 20), of(1));
        left.remove(&interest(10, 20), of(1));
        assert!(left.users.is_empty() && left.limits.is_empty() && left.networks.is_empty());
        Ok(())
    }
}
