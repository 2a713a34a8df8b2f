//! Rankings of boards of templates, as long as they are small. Each template has rounds of its own. A
//! round drops the rankings that have changed from memory, and reads those that callers wait for and that
//! are not in memory.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::{
    Error, Result,
    model::id::RankingId,
    ranking::{
        batcher::{Batcher, PendingAnswer, Work},
        rank_index::key::RankKey,
        user_lookup::UserLookup,
    },
    store::{
        IndexReader,
        rank::Version,
        small::{SmallRead, SmallRef},
    },
};

/// Small rankings of one statement.
const READ_AT_ONCE: usize = 256;

/// Bytes of a ranking in memory besides its keys, about.
const OVERHEAD: usize = 192;

/// The keys of a ranking, best first.
type Keys = Arc<[RankKey]>;

/// The state of the database that a round has reached.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) version: Version,
    /// Profile revision that the directory has reached.
    pub(super) revision: i64,
    /// The database's clock at the start of the statement.
    pub(super) read_at: DateTime<Utc>,
}

/// Current small rankings, as rounds have reached them.
pub(super) type SmallRankings = Arc<HashMap<SmallRef, (Keys, Arc<Reached>)>>;

/// The small rankings of a template.
#[derive(Debug)]
pub(super) struct TemplateRankings {
    rounds: Arc<Batcher<SmallRef, Result<SmallRankings>>>,
    kept: Mutex<Kept>,
}

/// The small rankings in memory, in two halves. A ranking that is asked for moves to the newer half. The
/// older half is dropped as a whole, and the newer one takes its place.
#[derive(Debug, Default)]
struct Kept {
    newer: HashMap<RankingId, Keys>,
    older: HashMap<RankingId, Keys>,
    /// Ids of rankings, also of some that are no longer in memory.
    ids: HashMap<SmallRef, RankingId>,
    /// Bytes of the newer and of the older half.
    bytes: [usize; 2],
    max_bytes: usize,
    /// The version that all of them have reached.
    version: Option<Version>,
}

impl TemplateRankings {
    /// Keeps no ranking until it gets a bound of memory.
    pub(super) fn new(runtime: Handle, tasks: TaskTracker) -> Self {
        Self { rounds: Batcher::new(1, runtime, tasks), kept: Mutex::default() }
    }

    /// Requests a ranking as a round reads it that begins after this call.
    pub(super) fn ask(
        self: &Arc<Self>,
        of: SmallRef,
        reader: impl FnOnce() -> (i32, IndexReader, UserLookup),
    ) -> PendingAnswer<Result<SmallRankings>> {
        self.rounds.ask(of, || {
            let (template_id, index_reader, users) = reader();
            Rounds { template_id, index_reader, users, rankings: Arc::clone(self) }
        })
    }

    /// Returns the bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.kept().bytes.iter().sum::<usize>() as u64
    }

    /// Sets the bound of the memory.
    pub(super) fn set_max_bytes(&self, max_bytes: u64) {
        let mut kept = self.kept();
        kept.max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        kept.shrink();
    }

    /// Forgets the rankings that nobody has asked for since the last call.
    pub(super) fn turn(&self) {
        let mut kept = self.kept();
        kept.turn();
        if kept.bytes == [0, 0] {
            kept.version = None;
        }
    }

    /// Returns whether a ranking was asked for within the last two calls of [`Self::turn`].
    pub(super) fn is_used(&self) -> bool {
        self.kept().version.is_some()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Returns id and keys of a ranking, and moves it to the newer half.
    fn get(&mut self, of: SmallRef) -> Option<(RankingId, Keys)> {
        let ranking_id = *self.ids.get(&of)?;
        if let Some(keys) = self.newer.get(&ranking_id) {
            return Some((ranking_id, Arc::clone(keys)));
        }
        let keys = self.older.remove(&ranking_id)?;
        self.bytes[1] -= bytes_of(&keys);
        self.put(of, ranking_id, Arc::clone(&keys));
        Some((ranking_id, keys))
    }

    fn put(&mut self, of: SmallRef, ranking_id: RankingId, keys: Keys) {
        self.remove(ranking_id);
        self.bytes[0] += bytes_of(&keys);
        self.ids.insert(of, ranking_id);
        self.newer.insert(ranking_id, keys);
        self.shrink();
    }

    fn remove(&mut self, ranking_id: RankingId) {
        for (half, bytes) in [&mut self.newer, &mut self.older].into_iter().zip(&mut self.bytes) {
            *bytes -= half.remove(&ranking_id).map_or(0, |keys| bytes_of(&keys));
        }
    }

    /// Drops the older half if the newer one takes half of the memory, or both too much.
    fn shrink(&mut self) {
        while self.bytes[0] > self.max_bytes / 2 || self.bytes[0] + self.bytes[1] > self.max_bytes {
            self.turn();
            if self.bytes[1] > self.max_bytes {
                self.turn();
            }
        }
    }

    /// Drops the older half. The newer one takes its place.
    fn turn(&mut self) {
        self.older = mem::take(&mut self.newer);
        self.bytes = [0, self.bytes[0]];
        self.ids.retain(|_, id| self.older.contains_key(id));
    }

    /// Applies what a round has read.
    fn apply(&mut self, read: &SmallRead, keys: &HashMap<RankingId, Keys>) {
        if let Some(changed) = &read.changed {
            for ranking_id in changed {
                self.remove(*ranking_id);
            }
        } else {
            *self = Self { max_bytes: self.max_bytes, ..Self::default() };
        }
        self.version = Some(read.version.clone());
        for (of, ranking_id) in &read.current {
            if let Some((id, keys)) = ranking_id.and_then(|id| keys.get_key_value(&id)) {
                self.put(*of, *id, Arc::clone(keys));
            }
        }
    }
}

fn bytes_of(keys: &Keys) -> usize {
    mem::size_of_val(&**keys) + OVERHEAD
}

/// The task that runs rounds of a template.
struct Rounds {
    template_id: i32,
    index_reader: IndexReader,
    users: UserLookup,
    rankings: Arc<TemplateRankings>,
}

impl Work<SmallRef, Result<SmallRankings>> for Rounds {
    async fn answer(&mut self, mut asked: Vec<SmallRef>) -> Result<SmallRankings> {
        asked.sort_unstable();
        asked.dedup();
        let mut answers = HashMap::with_capacity(asked.len());
        for some in asked.chunks(READ_AT_ONCE) {
            self.round(some, &mut answers).await?;
        }
        Ok(Arc::new(answers))
    }
}

impl Rounds {
    async fn round(&self, asked: &[SmallRef], answers: &mut HashMap<SmallRef, (Keys, Arc<Reached>)>) -> Result<()> {
        let mut found: HashMap<RankingId, Keys> = HashMap::new();
        let (asked, known): (Vec<_>, _) = {
            let mut kept = self.rankings.kept();
            let kept_id = |of: &SmallRef| {
                let (id, keys) = kept.get(*of)?;
                found.insert(id, keys);
                Some(id)
            };
            (asked.iter().copied().zip(asked.iter().map(kept_id)).collect(), kept.version.clone())
        };
        let mut read = self.index_reader.small_rankings(self.template_id, &asked, known.as_ref()).await?;
        let keys = mem::take(&mut read.read).into_iter().map(|(id, keys)| Ok((id, in_order(keys)?)));
        let keys: HashMap<RankingId, Keys> = keys.collect::<Result<_>>()?;
        self.rankings.kept().apply(&read, &keys);
        let SmallRead { read_at, version, revision, current, .. } = read;
        self.users.catch_up(&version.epoch, revision).await?;
        let reached = Arc::new(Reached { version, revision, read_at });
        for (of, ranking_id) in current {
            let keys = match ranking_id {
                Some(id) => keys.get(&id).or_else(|| found.get(&id)).cloned(),
                None => Some(Keys::default()),
            };
            if let Some(keys) = keys {
                answers.insert(of, (keys, Arc::clone(&reached)));
            }
        }
        Ok(())
    }
}

/// Returns the keys of players, best first.
fn in_order(players: Vec<(i64, i64, i64)>) -> Result<Keys> {
    let keys = players.into_iter().map(|(rank_key, tie_key, user_id)| {
        let user_id = u32::try_from(user_id)
            .map_err(|_| Error::Internal(format!("user id {user_id} does not fit into an index")))?;
        Ok(RankKey { rank_key, tie_key, user_id })
    });
    let mut keys: Vec<RankKey> = keys.collect::<Result<_>>()?;
    keys.sort_unstable_by(|a, b| b.cmp(a));
    Ok(keys.into())
}
