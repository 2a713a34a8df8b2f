//! Rankings that are followed live: one task looks at each for all who follow it, and shows them what is new.
//!
//! A look is at one state: top and chosen players are read by one statement, after the version said that there is something to read. What is
//! shown is rendered once, however many are shown it, and each piece tells since which look it has been as it is; so whoever skips looks
//! misses nothing but what is over.

mod feed;
mod overtaken;
mod read;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::{Notify, Semaphore, watch};

use crate::{
    Error, Result,
    board::{Board, Reading},
    period::PeriodSelector,
    rank::{Header, Row, Standing},
    service::Service,
    user::UserId,
};
pub(crate) use overtaken::Overtaking;
use read::Shown;

/// Players that all followers of a ranking may have chosen together: a look at so many takes PostgreSQL about half a second.
const MOST_CHOSEN: usize = 2_000;

/// How what is shown is written.
#[derive(Debug)]
pub(crate) struct Rendering {
    /// What every event begins with, as members of an object.
    pub(crate) header: fn(&Board, &Header) -> Result<String>,
    /// A top.
    pub(crate) rows: fn(&[Row]) -> Result<String>,
    /// A chosen player.
    pub(crate) standing: fn(&Standing) -> Result<String>,
    /// One player who passed another.
    pub(crate) overtaking: fn(&Overtaking) -> Result<String>,
}

/// What one follower wants to see.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// Players of the top.
    pub(crate) limit: u32,
    /// Chosen players, each once.
    pub(crate) users: Vec<UserId>,
}

/// What there is to see of a ranking.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// Counts the looks, from 1.
    pub(crate) number: u64,
    /// Names the state: the period, its ranking or archive, the version and the names shown.
    pub(crate) tag: String,
    /// Who may read the board.
    pub(crate) reading: Reading,
    /// What every event begins with.
    pub(crate) header: Arc<str>,
    /// Tops by their limits.
    pub(crate) tops: BTreeMap<u32, Piece>,
    /// Chosen players by their ids.
    pub(crate) players: HashMap<String, Piece>,
    /// Who passed whom lately, oldest first.
    pub(crate) overtakings: VecDeque<Passed>,
    /// That a period ended, the last time that one did.
    pub(crate) turn: Option<Turn>,
    /// Since when PostgreSQL could not be asked; `None` while it can.
    pub(crate) stale_since: Option<Instant>,
}

/// A part of what there is to see.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// As it is sent; `None` for a player without a score.
    pub(crate) text: Option<Arc<str>>,
    /// The look since which it has been so.
    pub(crate) since: u64,
}

/// That one player passed another.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    /// The look that showed it.
    pub(crate) at: u64,
    /// Both players.
    pub(crate) user_ids: [String; 2],
    /// As it is sent.
    pub(crate) text: Arc<str>,
}

/// That a period ended.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// The look that showed it.
    pub(crate) at: u64,
    /// Name of the period that ended.
    pub(crate) ended: String,
    /// Name of the one that is shown from then on; `None` where the one that ended goes on being shown.
    pub(crate) next: Option<String>,
}

impl Look {
    /// Whether all is there that is wished for.
    pub(crate) fn has(&self, wish: &Wish) -> bool {
        self.tops.contains_key(&wish.limit) && wish.users.iter().all(|user| self.players.contains_key(user.as_str()))
    }
}

/// What is followed: a board, and what of it.
type Subject = (i32, PeriodSelector);
/// The newest look; nothing before the first, and why there is none any more.
type News = Option<Result<Arc<Look>>>;

/// Looks at the same time: however many rankings are followed, most connections are left to others.
const LOOKS_AT_ONCE: usize = 4;

/// What is followed in this process.
#[derive(Debug)]
pub(crate) struct Live {
    feeds: Mutex<HashMap<Subject, Arc<Feed>>>,
    looks: Semaphore,
}

impl Default for Live {
    fn default() -> Self {
        Self { feeds: Mutex::default(), looks: Semaphore::new(LOOKS_AT_ONCE) }
    }
}

/// What followers of one ranking want, and what they are shown.
#[derive(Debug)]
struct Feed {
    wanted: Mutex<Wanted>,
    /// Told when somebody else wants something.
    asked: Notify,
    news: watch::Sender<News>,
    /// When the last look began that found out how things stand.
    looked_at: watch::Sender<Option<Instant>>,
}

/// What followers want, with how many of them want each.
#[derive(Debug, Clone, Default)]
struct Wanted {
    followers: usize,
    limits: BTreeMap<u32, usize>,
    users: HashMap<UserId, usize>,
}

/// One who follows a ranking, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Following {
    feed: Arc<Feed>,
    wish: Wish,
    news: watch::Receiver<News>,
    came_at: Instant,
}

/// Follows what `selector` means on a board. [`Error::Unavailable`] when too many players have been chosen already.
pub(crate) fn follow(
    service: &Arc<Service>,
    board: &Arc<Board>,
    selector: &PeriodSelector,
    wish: Wish,
    rendering: &'static Rendering,
) -> Result<Following> {
    let mut feeds = service.live.feeds();
    let subject = (board.id, selector.clone());
    let feed = feeds.entry(subject.clone()).or_insert_with(|| {
        let feed = Arc::new(Feed {
            wanted: Mutex::default(),
            asked: Notify::new(),
            news: watch::Sender::new(None),
            looked_at: watch::Sender::new(None),
        });
        let looking = feed::run(Arc::clone(service), Arc::clone(&feed), subject, Arc::clone(board), rendering);
        service.attend(looking);
        feed
    });
    feed.wanted().add(&wish)?;
    feed.asked.notify_one();
    let feed = Arc::clone(feed);
    let news = feed.news.subscribe();
    Ok(Following { feed, wish, news, came_at: Instant::now() })
}

impl Live {
    fn feeds(&self) -> MutexGuard<'_, HashMap<Subject, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a feed go: always, or only if nobody follows it. Gives whether it is gone.
    fn end(&self, subject: &Subject, feed: &Feed, always: bool) -> bool {
        // Whoever comes to follow waits, and makes another one.
        let mut feeds = self.feeds();
        let ends = always || feed.wanted().followers == 0;
        if ends {
            feeds.remove(subject);
        }
        ends
    }
}

impl Feed {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    fn add(&mut self, wish: &Wish) -> Result<()> {
        let others = wish.users.iter().filter(|user| !self.users.contains_key(*user)).count();
        if self.users.len() + others > MOST_CHOSEN {
            return Err(Error::unavailable("too many players of this ranking are followed already"));
        }
        self.followers += 1;
        *self.limits.entry(wish.limit).or_default() += 1;
        for user in &wish.users {
            *self.users.entry(user.clone()).or_default() += 1;
        }
        Ok(())
    }

    fn remove(&mut self, wish: &Wish) {
        self.followers -= 1;
        if let Some(count) = self.limits.get_mut(&wish.limit) {
            *count -= 1;
        }
        for user in &wish.users {
            if let Some(count) = self.users.get_mut(user) {
                *count -= 1;
            }
        }
        self.limits.retain(|_, count| *count > 0);
        self.users.retain(|_, count| *count > 0);
    }
}

impl Following {
    /// What is wished for.
    pub(crate) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// The newest look, once there is one that has all that is wished for and was begun after this follower came, so that it holds whatever
    /// was acknowledged before; why there is none, if so. While the database is away, tops may be older.
    pub(crate) async fn first(&mut self) -> Result<Arc<Look>> {
        let mut looked_at = self.feed.looked_at.subscribe();
        loop {
            let is_recent = looked_at.borrow_and_update().is_some_and(|at| at >= self.came_at);
            match self.newest() {
                Some(Ok(look)) if look.stale_since.is_some() => {
                    let is_of_tops_alone = self.wish.users.is_empty();
                    return if is_of_tops_alone && look.has(&self.wish) {
                        Ok(look)
                    } else {
                        Err(Error::unavailable("the database cannot be reached now"))
                    };
                }
                Some(Ok(look)) if is_recent && look.has(&self.wish) => return Ok(look),
                Some(Err(error)) => return Err(error),
                _ => {}
            }
            tokio::select! {
                // The senders live as long as the feed, which this value holds.
                _ = looked_at.changed() => {}
                _ = self.news.changed() => {}
            }
        }
    }

    /// The newest look, or why there is none any more.
    pub(crate) fn newest(&mut self) -> News {
        self.news.borrow_and_update().clone()
    }

    /// Waits until there is something new.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as the feed, which this value holds.
        let _ = self.news.changed().await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.feed.wanted().remove(&self.wish);
    }
}
