//! Rankings that are followed live: one task looks at each for all who follow it, and shows them what is new.
//!
//! A look is at one state: top and chosen players are read by one statement, after the version said that there is something to read. What is
//! shown is rendered once, however many are shown it, and each piece tells since which look it has been as it is; so whoever skips looks
//! misses nothing but what is over.

mod feed;
mod overtaken;
mod read;

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
    Error, Result,
    background::Background,
    boards::Boards,
    model::{
        board::{Board, Reading},
        period::{PeriodSelector, PeriodState},
        rank::{Header, Row, Standing},
        user::UserId,
    },
    ranking::Rankings,
};

/// Players that all followers of a ranking may have chosen together: a look at so many takes PostgreSQL about half a second.
const MOST_CHOSEN: usize = 2_000;

/// Choices that the followers of a ranking from one network may have made together: nobody takes all places.
const MOST_CHOSEN_BY_NETWORK: usize = MOST_CHOSEN / 4;

/// When who has chosen too many may come again: others leave when they please.
const COME_AGAIN: Duration = Duration::from_secs(10);

/// How long who comes waits for a look.
const FIRST_WITHIN: Duration = Duration::from_secs(5);

/// How what is shown is written.
#[derive(Debug)]
pub(crate) struct Rendering {
    /// What every event begins with, as members of an object.
    pub(crate) header: fn(&Board, &Header) -> Result<String>,
    /// A top.
    pub(crate) rows: fn(&[Row]) -> Result<String>,
    /// A chosen player.
    pub(crate) standing: fn(&Standing) -> Result<String>,
    /// One player who passed another, at the state of this header.
    pub(crate) overtaking: fn(&Header, &Overtaking) -> Result<String>,
}

/// What one follower wants to see.
#[derive(Debug, Clone)]
pub(crate) struct Interest {
    /// Players of the top.
    pub(crate) limit: u32,
    /// Chosen players, each once.
    pub(crate) users: Vec<UserId>,
}

/// What there is to see of a ranking.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Counts the looks, from 1.
    pub(crate) number: u64,
    /// Names the state: the period, its ranking or archive, the version and the names shown.
    pub(crate) tag: String,
    /// Who may read the board.
    pub(crate) reading: Reading,
    /// What every event begins with.
    pub(crate) header: Arc<str>,
    /// Whether the period takes scores still, or is closed.
    pub(crate) state: PeriodState,
    /// The look since which it has been so.
    pub(crate) state_since: u64,
    /// Tops by their limits.
    pub(crate) tops: BTreeMap<u32, Fragment>,
    /// Chosen players by their ids.
    pub(crate) players: HashMap<String, Fragment>,
    /// Who passed whom lately, oldest first.
    pub(crate) overtakings: VecDeque<Arc<Overtakings>>,
    /// That a period ended, the last time that one did.
    pub(crate) turn: Option<PeriodChange>,
    /// Since when PostgreSQL could not be asked; `None` while it can.
    pub(crate) stale_since: Option<Instant>,
    /// What is sent to all who are shown nothing but a top, by its limit: put together once, for thousands.
    pub(crate) sent: Arc<Mutex<BTreeMap<u32, Bytes>>>,
}

/// A part of what there is to see.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    /// As it is sent; `None` for a player without a score.
    pub(crate) text: Option<Arc<str>>,
    /// The look since which it has been so.
    pub(crate) since: u64,
}

/// Who passed whom from one look to the next.
#[derive(Debug)]
pub(crate) struct Overtakings {
    /// The look that showed it.
    pub(crate) at: u64,
    /// Each as it is sent.
    texts: Vec<String>,
    /// Which of them are of each player.
    of_players: HashMap<String, Vec<usize>>,
}

impl Overtakings {
    /// Of the look `at`: both players of each, and how it is sent.
    pub(crate) fn new<'a>(at: u64, told: impl IntoIterator<Item = ([&'a str; 2], String)>) -> Self {
        let mut overtakings = Self { at, texts: Vec::new(), of_players: HashMap::new() };
        for (players, text) in told {
            for player in players {
                overtakings.of_players.entry(player.to_owned()).or_default().push(overtakings.texts.len());
            }
            overtakings.texts.push(text);
        }
        overtakings
    }

    /// Those of some players, each once.
    pub(crate) fn of(&self, users: &[UserId]) -> impl Iterator<Item = &str> {
        let of_each = users.iter().filter_map(|user| self.of_players.get(user.as_str()));
        let told: BTreeSet<usize> = of_each.flatten().copied().collect();
        told.into_iter().map(|one| &*self.texts[one])
    }
}

/// That a period ended.
#[derive(Debug, Clone)]
pub(crate) struct PeriodChange {
    /// The look that showed it.
    pub(crate) at: u64,
    /// Name of the period that ended.
    pub(crate) ended: String,
    /// Name of the one that is shown from then on; `None` where the one that ended goes on being shown.
    pub(crate) next: Option<String>,
}

impl View {
    /// What is sent to all who are shown nothing but the top of this limit, as `put_together` makes it.
    pub(crate) fn sent(&self, limit: u32, put_together: impl FnOnce() -> String) -> Bytes {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.entry(limit).or_insert_with(|| put_together().into()).clone()
    }

    /// Whether all is there that is wished for.
    pub(crate) fn has(&self, interest: &Interest) -> bool {
        self.tops.contains_key(&interest.limit)
            && interest.users.iter().all(|user| self.players.contains_key(user.as_str()))
    }

    /// Whether anybody might be told anything that was not so at the look before.
    fn has_news(&self) -> bool {
        self.state_since == self.number
            || self.turn.as_ref().is_some_and(|turn| turn.at == self.number)
            || self.overtakings.back().is_some_and(|some| some.at == self.number)
            || self.tops.values().chain(self.players.values()).any(|piece| piece.since == self.number)
    }
}

/// What is followed: a board, and what of it.
type Subject = (i32, PeriodSelector);

/// The newest look; nothing before the first, and why there is none any more.
type LatestView = Option<Result<Arc<View>>>;

/// Looks at the same time: however many rankings are followed, most connections are left to others.
const LOOKS_AT_ONCE: usize = 4;

/// What is followed in this process.
#[derive(Debug)]
pub(crate) struct Live {
    boards: Arc<Boards>,
    rankings: Arc<Rankings>,
    background: Background,
    feeds: Mutex<HashMap<Subject, Arc<Feed>>>,
    looks: Semaphore,
}

/// What followers of one ranking want, and what they are shown.
#[derive(Debug)]
struct Feed {
    wanted: Mutex<Interests>,
    /// Notified when the interests change.
    asked: Notify,
    latest: watch::Sender<LatestView>,
    /// When the last look began, of which `news` tells what came.
    looked_at: watch::Sender<Option<Instant>>,
}

/// What followers want, with how many of them want each.
#[derive(Debug, Clone, Default)]
struct Interests {
    followers: usize,
    limits: BTreeMap<u32, usize>,
    users: HashMap<UserId, usize>,
    /// How many players were chosen from each network, counted by choices.
    networks: HashMap<IpAddr, usize>,
}

/// One who follows a ranking, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    interest: Interest,
    network: Option<IpAddr>,
    latest: watch::Receiver<LatestView>,
    came_at: Instant,
}

/// Follows what `selector` means on a board. [`Error::Unavailable`] when too many players have been chosen already, [`Error::TooMany`] when
/// too many have been from `network`.
pub(crate) fn subscribe(
    live: &Arc<Live>,
    board: &Arc<Board>,
    selector: &PeriodSelector,
    interest: Interest,
    network: Option<IpAddr>,
    rendering: &'static Rendering,
) -> Result<Subscription> {
    let mut feeds = live.feeds();
    let subject = (board.id, selector.clone());
    let feed = feeds.entry(subject.clone()).or_insert_with(|| {
        let feed = Arc::new(Feed {
            wanted: Mutex::default(),
            asked: Notify::new(),
            latest: watch::Sender::new(None),
            looked_at: watch::Sender::new(None),
        });
        let looking = feed::run(Arc::clone(live), Arc::clone(&feed), subject, Arc::clone(board), rendering);
        live.background.spawn(looking);
        feed
    });
    feed.wanted().add(&interest, network)?;
    feed.asked.notify_one();
    let feed = Arc::clone(feed);
    let latest = feed.latest.subscribe();
    Ok(Subscription { feed, interest, network, latest, came_at: Instant::now() })
}

impl Live {
    /// Nothing is followed yet.
    pub(crate) fn new(boards: Arc<Boards>, rankings: Arc<Rankings>, background: Background) -> Self {
        Self { boards, rankings, background, feeds: Mutex::default(), looks: Semaphore::new(LOOKS_AT_ONCE) }
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<Subject, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a feed go: always, or only if nobody follows it. Gives whether it is gone.
    fn end(&self, subject: &Subject, feed: &Feed, always: bool) -> bool {
        // Whoever comes to follow waits, and makes another one.
        let mut feeds = self.feeds();
        let ends = always || feed.wanted().followers == 0;
        if ends && feeds.get(subject).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), feed)) {
            feeds.remove(subject);
        }
        ends
    }
}

impl Feed {
    fn wanted(&self) -> MutexGuard<'_, Interests> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interests {
    fn add(&mut self, interest: &Interest, network: Option<IpAddr>) -> Result<()> {
        let others = interest.users.iter().filter(|user| !self.users.contains_key(*user)).count();
        if self.users.len() + others > MOST_CHOSEN {
            return Err(Error::unavailable("too many players of this ranking are followed already"));
        }
        if let (Some(network), false) = (network, interest.users.is_empty()) {
            let chosen = self.networks.get(&network).map_or(0, |chosen| *chosen) + interest.users.len();
            if chosen > MOST_CHOSEN_BY_NETWORK {
                let message = format!("too many players of this ranking are followed from address {network}");
                return Err(Error::TooMany { message, retry_after: COME_AGAIN });
            }
            self.networks.insert(network, chosen);
        }
        self.followers += 1;
        *self.limits.entry(interest.limit).or_default() += 1;
        for user in &interest.users {
            *self.users.entry(user.clone()).or_default() += 1;
        }
        Ok(())
    }

    fn remove(&mut self, interest: &Interest, network: Option<IpAddr>) {
        self.followers -= 1;
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
    /// What is wished for.
    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The newest look, once there is one that has all that is wished for and was begun after this follower came, so that it holds whatever
    /// was acknowledged before; why there is none, if so. While the database is away, tops may be older.
    pub(crate) async fn first(&mut self) -> Result<Arc<View>> {
        let away = || Error::unavailable("the database does not answer");
        timeout(FIRST_WITHIN, self.first_at_all()).await.unwrap_or_else(|_| Err(away()))
    }

    async fn first_at_all(&mut self) -> Result<Arc<View>> {
        let mut looked_at = self.feed.looked_at.subscribe();
        loop {
            let is_recent = looked_at.borrow_and_update().is_some_and(|at| at >= self.came_at);
            match self.newest() {
                _ if !is_recent => {}
                Some(Ok(look)) if look.stale_since.is_some() => {
                    let is_of_tops_alone = self.interest.users.is_empty();
                    return if is_of_tops_alone && look.has(&self.interest) {
                        Ok(look)
                    } else {
                        Err(Error::unavailable("the database cannot be reached now"))
                    };
                }
                Some(Ok(look)) if look.has(&self.interest) => return Ok(look),
                Some(Err(error)) => return Err(error),
                _ => {}
            }
            // The senders live as long as the feed, which this value holds. What a look found is sent before that it ended.
            let _ = looked_at.changed().await;
        }
    }

    /// The newest look, or why there is none any more.
    pub(crate) fn newest(&mut self) -> LatestView {
        self.latest.borrow_and_update().clone()
    }

    /// Waits until there is something new.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as the feed, which this value holds.
        let _ = self.latest.changed().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.wanted().remove(&self.interest, self.network);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_chooses_all_players_for_himself() -> Result<()> {
        let interest = |first: usize, count: usize| Interest {
            limit: 10,
            users: (first..first + count).filter_map(|user| format!("p{user}").parse().ok()).collect(),
        };
        let of = |host: u8| Some(IpAddr::from([192, 0, 2, host]));
        let mut wanted = Interests::default();
        for turn in 0..MOST_CHOSEN_BY_NETWORK / 20 {
            wanted.add(&interest(20 * turn, 20), of(1))?;
        }
        assert!(matches!(wanted.add(&interest(0, 1), of(1)), Err(Error::TooMany { .. })));
        wanted.add(&interest(0, 0), of(1))?;
        wanted.add(&interest(0, 1), of(2))?;
        wanted.remove(&interest(0, 20), of(1));
        wanted.add(&interest(20, 20), of(1))?;
        // Where networks are not known, there is the limit for all.
        for turn in 0..MOST_CHOSEN / 20 {
            if turn >= MOST_CHOSEN_BY_NETWORK / 20 {
                wanted.add(&interest(20 * turn, 20), None)?;
            }
        }
        assert_eq!(wanted.users.len(), MOST_CHOSEN - 19, "the first choice of the second network is left");
        assert!(matches!(wanted.add(&interest(MOST_CHOSEN, 20), of(3)), Err(Error::Unavailable { .. })));
        wanted.add(&interest(0, 20), of(3))?;
        // Who goes leaves nothing behind.
        let mut left = Interests::default();
        left.add(&interest(0, 20), of(1))?;
        left.add(&interest(10, 20), of(1))?;
        left.remove(&interest(0, 20), of(1));
        left.remove(&interest(10, 20), of(1));
        assert!(left.users.is_empty() && left.limits.is_empty() && left.networks.is_empty());
        Ok(())
    }
}
