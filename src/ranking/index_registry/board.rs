//! The indexes of one board, and the changes that rounds apply to them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;

use crate::{
    Result,
    model::{
        id::{Batch, RankingId},
        rank::AnsweredBy,
    },
    ranking::{
        batcher::Batcher,
        index_registry::small::TemplateRankings,
        rank_index::{RankIndex, key::RankKey},
    },
    store::{
        index::{BoardState, CurrentRanking, EntryChange},
        rank::{RankingState, StateOf, Version},
    },
};

/// Maximum concurrent SQL reads of a board while its index loads or lags.
const MAX_SQL_READS: usize = 4;

/// Delay between a failed or refused load and the next attempt. SQL answers until then.
const RETRY_DELAY: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct BoardIndexes {
    pub(super) board: i32,
    pub(super) rankings: RwLock<HashMap<RankingId, IndexSlot>>,
    pub(super) rounds: Arc<Batcher<(), Result<Arc<RoundResult>>>>,
    /// Applies batches before reads by SQL.
    pub(super) applies: Arc<Batcher<(), Result<()>>>,
    /// Held by the round in progress: its own, or one of several boards.
    pub(super) round_lock: tokio::sync::Mutex<()>,
    pub(super) last: Mutex<Option<LastRound>>,
    pub(super) sql: Arc<Semaphore>,
    /// Small rankings of the boards of a template.
    pub(super) small: Arc<TemplateRankings>,
}

/// The last round. A later round with the same snapshots reuses its result.
#[derive(Debug)]
pub(super) struct LastRound {
    /// One per server, in the connection's order.
    pub(super) snapshots: Vec<String>,
    /// Ids of the rankings that it read.
    pub(super) asked: Vec<RankingId>,
    pub(super) batches: Vec<Batch>,
    pub(super) epoch: String,
    pub(super) rankings: Arc<[CurrentRanking]>,
}

/// State of a ranking's index.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most slots are ready, and there are few")]
pub(super) enum IndexSlot {
    /// The index is being loaded.
    Loading,
    /// The load failed or found too little memory. SQL answers until `until`.
    Refused { name: Arc<str>, until: Instant, bytes: Option<u64> },
    /// The index is in memory.
    Ready(LoadedIndex),
}

#[derive(Debug)]
pub(crate) struct LoadedIndex {
    /// Slug of the board and name of the period.
    pub(super) name: Arc<str>,
    /// The state that the index has reached.
    pub(crate) version: Version,
    /// All players in rank order.
    pub(crate) index: RankIndex,
    /// Time of the last read, in milliseconds since the start of the instance.
    pub(super) read_at: AtomicU64,
    /// End of the last round, in milliseconds since the start of the instance.
    pub(super) round_at: AtomicU64,
}

/// Result of a round: the database's time, and the rankings that are current.
#[derive(Debug)]
pub(super) struct RoundResult {
    pub(super) epoch: String,
    pub(super) read_at: DateTime<Utc>,
    pub(super) rankings: Arc<[CurrentRanking]>,
}

/// Result of a round of several boards, by board.
pub(super) type JointResult = Arc<HashMap<i32, Arc<RoundResult>>>;

impl RoundResult {
    /// Returns the result of a round without rankings.
    pub(super) fn empty() -> Self {
        Self { epoch: String::new(), read_at: DateTime::UNIX_EPOCH, rankings: Arc::default() }
    }
}

impl BoardIndexes {
    pub(super) fn new(
        board: i32,
        rounds: Arc<Batcher<(), Result<Arc<RoundResult>>>>,
        applies: Arc<Batcher<(), Result<()>>>,
        small: TemplateRankings,
    ) -> Self {
        let sql = Arc::new(Semaphore::new(MAX_SQL_READS));
        Self {
            board,
            rankings: RwLock::default(),
            rounds,
            applies,
            round_lock: tokio::sync::Mutex::default(),
            last: Mutex::default(),
            sql,
            small: Arc::new(small),
        }
    }

    pub(super) fn rankings(&self) -> RwLockReadGuard<'_, HashMap<RankingId, IndexSlot>> {
        self.rankings.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rankings_mut(&self) -> RwLockWriteGuard<'_, HashMap<RankingId, IndexSlot>> {
        self.rankings.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(
        &self,
        ranking_id: RankingId,
        loaded: Result<std::result::Result<LoadedIndex, u64>>,
        name: Arc<str>,
    ) {
        let until = Instant::now() + RETRY_DELAY;
        let slot = match loaded {
            Ok(Ok(loaded)) => {
                tracing::info!(index = %name, players = loaded.index.len(), bytes = loaded.index.bytes(), "rank index loaded");
                IndexSlot::Ready(loaded)
            }
            Ok(Err(bytes)) => {
                tracing::warn!(index = %name, bytes, "not enough memory for a rank index; SQL answers");
                IndexSlot::Refused { name, until, bytes: Some(bytes) }
            }
            Err(error) => {
                tracing::warn!(index = %name, %error, "a rank index could not be loaded; SQL answers");
                IndexSlot::Refused { name, until, bytes: None }
            }
        };
        self.rankings_mut().insert(ranking_id, slot);
    }

    /// Takes the last round, if it read the same rankings and all their indexes have reached its
    /// state.
    pub(super) fn take_last(&self, asked: &[RankingId], known: &Version) -> Option<LastRound> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_reached = last.asked == asked && last.epoch == known.epoch && covers(&known.batches, &last.batches);
        is_reached.then_some(last)
    }

    /// Records the end of a round at `millis`, and the result that later rounds may reuse.
    pub(super) fn end_round(&self, millis: u64, last: Option<LastRound>) {
        self.record_round_end(millis);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// Records that a round has ended at `millis`.
    pub(super) fn record_round_end(&self, millis: u64) {
        for slot in self.rankings().values() {
            if let IndexSlot::Ready(loaded) = slot {
                loaded.round_at.store(millis, Ordering::Relaxed);
            }
        }
    }

    /// Applies the result of a round and returns the current rankings.
    ///
    /// `asked`: the rankings that it read. `known`: the version that all their indexes had reached.
    pub(super) fn apply(
        &self,
        asked: &[RankingId],
        known: &Version,
        epoch: &str,
        state: BoardState,
    ) -> Arc<[CurrentRanking]> {
        let BoardState { batches, rankings: current, changes, .. } = state;
        // The last change of each entry, found before the lock is taken.
        let changes = changes.map(|changes| {
            let mut by_ranking: HashMap<RankingId, HashMap<i64, EntryChange>> = HashMap::new();
            for change in changes {
                by_ranking.entry(change.ranking_id).or_default().insert(change.user_id, change);
            }
            by_ranking
        });
        let mut rankings = self.rankings_mut();
        let drop_if = |rankings: &mut HashMap<RankingId, IndexSlot>,
                       is_wrong: &dyn Fn(RankingId, &LoadedIndex) -> bool| {
            rankings.retain(|id, slot| !matches!(slot, IndexSlot::Ready(loaded) if is_wrong(*id, loaded)));
        };
        // An index of another epoch does not belong to this state of the database.
        drop_if(&mut rankings, &|_, loaded| loaded.version.epoch != epoch);
        if epoch != known.epoch {
            return Arc::default();
        }
        // Batch numbers went back: the database was restored in place.
        drop_if(&mut rankings, &|id, loaded| asked.contains(&id) && !covers(&batches, &loaded.version.batches));
        match changes {
            Some(changes) => {
                for one in &current {
                    let changes = changes.get(&one.ranking_id).into_iter().flat_map(HashMap::values);
                    // Remove it from the map first: a panic must not leave a half-changed index
                    // there.
                    let slot = match rankings.remove(&one.ranking_id) {
                        Some(IndexSlot::Ready(mut loaded)) => {
                            loaded.apply(&batches, changes).then_some(IndexSlot::Ready(loaded))
                        }
                        other => other,
                    };
                    if let Some(slot) = slot {
                        rankings.insert(one.ranking_id, slot);
                    }
                }
            }
            // The log has a gap. Keep only indexes that a load has brought to this state.
            None => {
                drop_if(&mut rankings, &|id, loaded| asked.contains(&id) && !covers(&loaded.version.batches, &batches));
            }
        }
        drop_if(&mut rankings, &|id, _| asked.contains(&id) && !current.iter().any(|one| one.ranking_id == id));
        current.into()
    }
}

/// Returns whether `batches` is at least `others` in every lane.
pub(super) fn covers(batches: &[Batch], others: &[Batch]) -> bool {
    batches.len() == others.len() && batches.iter().zip(others).all(|(batch, other)| batch >= other)
}

impl IndexSlot {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Ready(loaded) => loaded.index.bytes() as u64,
            _ => 0,
        }
    }
}

impl LoadedIndex {
    /// Creates an index. `millis` is the time of its last read and last round.
    pub(super) fn new(name: Arc<str>, version: Version, index: RankIndex, millis: u64) -> Self {
        Self { name, version, index, read_at: AtomicU64::new(millis), round_at: AtomicU64::new(millis) }
    }

    /// Applies a round's changes unless the index has them.
    ///
    /// Returns `false` if a user's internal id is too large for an index.
    pub(super) fn apply<'a>(&mut self, batches: &[Batch], changes: impl IntoIterator<Item = &'a EntryChange>) -> bool {
        // A round is at least as new as an earlier one in every lane.
        if covers(&self.version.batches, batches) {
            return true;
        }
        for EntryChange { user_id, key, .. } in changes {
            let Ok(user_id) = u32::try_from(*user_id) else { return false };
            match *key {
                Some((rank_key, tie_key)) => self.index.set(RankKey { rank_key, tie_key, user_id }),
                None => {
                    self.index.remove(user_id);
                }
            }
        }
        self.version.batches.clear();
        self.version.batches.extend_from_slice(batches);
        true
    }

    /// Returns the state for answers.
    pub(crate) fn state(&self, revision: i64) -> RankingState {
        let Version { epoch, batches } = self.version.clone();
        RankingState {
            epoch,
            of: StateOf::Batches(batches),
            players: self.index.len() as u64,
            revision,
            answered_by: AnsweredBy::Index,
        }
    }
}
