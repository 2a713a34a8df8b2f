//! The rank indexes of this instance: one per ranking that is read, within a memory bound.
//!
//! A request waits for a round, then reads from memory. The round brings the indexes of its board
//! to the state that the database has reached. It also checks which rankings are current. So an
//! answer is as fresh as that of a separate SQL statement.

mod rounds;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{
    Error, Result,
    model::{name::Named as _, rank::AnsweredBy},
    ranking::{
        batcher::{Answer, Batcher},
        index::{RankIndex, RankKey},
        indexes::rounds::Rounds,
        load,
        users::Users,
    },
    store::{
        Store,
        index::{BoardState, Changes, CurrentRanking, StoredProfile},
        period::{MeantPeriod, RankingRef},
        rank::{RankingState, StoredKey, Version},
    },
};

/// Maximum concurrent rounds of one board.
const MAX_ROUNDS: usize = 1;

/// Time after which SQL may answer a request that waits for a round.
const ROUND_TIMEOUT: Duration = Duration::from_millis(50);

/// Maximum concurrent SQL reads of a board while its index loads or lags.
const MAX_SQL_READS: usize = 4;

/// An index read within this time is kept current in the background.
const KEEP_CURRENT_FOR: Duration = Duration::from_mins(10);

/// Interval between background checks of each board.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An index read within this time is not dropped to load another. If all indexes together exceed
/// the memory bound, it may be dropped.
const IN_USE_FOR: Duration = Duration::from_mins(1);

/// Delay between a failed or refused load and the next attempt. SQL answers until then.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// Bytes per player that must be free before a load starts.
const EXPECTED_BYTES: u64 = 48;

/// Largest share of the memory for indexes, as numerator and denominator. The directory gets the
/// rest.
const INDEX_SHARE: (u64, u64) = (3, 4);

/// The indexes of this instance.
#[derive(Debug)]
pub(crate) struct Indexes {
    pub(super) store: Store,
    pub(super) users: Users,
    /// Bytes that indexes and directory may take.
    memory: u64,
    boards: RwLock<HashMap<i32, Arc<BoardIndexes>>>,
    /// One index loads at a time.
    pub(super) loading: Arc<Semaphore>,
    /// Bytes granted to the index that is being loaded.
    reserved: AtomicU64,
    /// Serializes changes of the memory bounds.
    bounds: tokio::sync::Mutex<()>,
    started_at: Instant,
    tasks: TaskTracker,
    stopping: CancellationToken,
    itself: Weak<Self>,
    /// The thread that runs rounds. One thread costs fewer wake-ups than several that share the
    /// work.
    thread: Option<Runtime>,
    runtime: Handle,
}

/// The indexes of a board.
#[derive(Debug)]
pub(super) struct BoardIndexes {
    pub(super) board: i32,
    rankings: RwLock<HashMap<i64, Slot>>,
    rounds: Arc<Batcher<(), Result<Arc<RoundResult>>>>,
    last: Mutex<Option<LastRound>>,
    sql: Arc<Semaphore>,
}

/// The last round. A later round with the same snapshot reuses its result.
#[derive(Debug)]
struct LastRound {
    snapshot: String,
    /// Ids of the rankings that it read.
    asked: Vec<i64>,
    batches: Vec<i64>,
    epoch: String,
    rankings: Arc<[CurrentRanking]>,
}

/// State of a ranking's index.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most slots are ready, and there are few")]
enum Slot {
    /// The index is being loaded.
    Loading,
    /// The load failed or found too little memory. SQL answers until `until`.
    Refused { name: Arc<str>, until: Instant, bytes: Option<u64> },
    /// The index is in memory.
    Ready(Loaded),
}

/// A ranking in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Slug of the board and name of the period.
    pub(super) name: Arc<str>,
    /// The state that the index has reached.
    pub(crate) version: Version,
    /// All players in rank order.
    pub(crate) index: RankIndex,
    /// Time of the last read, in milliseconds since the start of the instance.
    read_at: AtomicU64,
    /// End of the last round, in milliseconds since the start of the instance.
    round_at: AtomicU64,
}

/// Result of a round: the database's time, and the rankings that are current.
#[derive(Debug)]
struct RoundResult {
    epoch: String,
    read_at: DateTime<Utc>,
    rankings: Arc<[CurrentRanking]>,
}

/// Source of the answer to a read of an open period.
#[derive(Debug)]
pub(crate) enum Access {
    /// The index.
    Index(View),
    /// SQL. Hold the permit, if there is one, until the statement has ended.
    Sql(Option<OwnedSemaphorePermit>),
    /// The period has another ranking. Look the period up again.
    Replaced,
}

/// A ranking in memory, after a round that began after the request.
#[derive(Debug, Clone)]
pub(crate) struct View {
    indexes: Arc<Indexes>,
    board: Arc<BoardIndexes>,
    ranking_id: i64,
    round: Arc<RoundResult>,
}

/// Status of an index, for `/metrics` and `/ops`.
#[derive(Debug, Clone)]
pub(crate) struct IndexStatus {
    /// Board and period.
    pub(crate) name: Arc<str>,
    /// Players in it.
    pub(crate) players: u64,
    /// Bytes that it takes or, if refused, needs.
    pub(crate) bytes: u64,
    /// Time since the last round; `None` for an index that was refused for its size.
    pub(crate) age: Option<Duration>,
}

impl Indexes {
    /// Creates an empty set. `memory` is the bound in bytes on indexes and directory; 0 turns them
    /// off.
    pub(crate) fn new(store: Store, memory: u64, tasks: &TaskTracker, stopping: &CancellationToken) -> Arc<Self> {
        let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        let thread = || Builder::new_multi_thread().worker_threads(1).thread_name("rounds").enable_all().build().ok();
        let thread = (memory > 0).then(thread).flatten();
        let runtime = thread.as_ref().map_or_else(Handle::current, |thread| thread.handle().clone());
        Arc::new_cyclic(|itself| Self {
            users: Users::new(store.clone(), bytes, runtime.clone(), tasks.clone()),
            store,
            memory,
            boards: RwLock::default(),
            loading: Arc::new(Semaphore::new(1)),
            reserved: AtomicU64::new(0),
            bounds: tokio::sync::Mutex::default(),
            started_at: Instant::now(),
            tasks: tasks.clone(),
            stopping: stopping.clone(),
            itself: itself.clone(),
            thread,
            runtime,
        })
    }

    /// Runs rounds for boards without requests and enforces the memory bound until the instance
    /// stops.
    pub(crate) async fn maintain(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let boards: Vec<_> = self.boards().values().cloned().collect();
            let mut answers = Vec::new();
            for board in boards {
                let is_behind = board.rankings().values().any(|slot| {
                    matches!(slot, Slot::Ready(loaded)
                        if self.since(&loaded.round_at) >= CHECK_INTERVAL && self.since(&loaded.read_at) < KEEP_CURRENT_FOR)
                });
                if is_behind {
                    answers.push(self.request_round(&board));
                }
            }
            // Keep the answers: the batcher skips requests whose answer has been dropped.
            timeout(CHECK_INTERVAL, futures::future::join_all(answers)).await.ok();
            self.free_memory().await;
            for board in self.boards().values() {
                board
                    .rankings_mut()
                    .retain(|_, slot| !matches!(slot, Slot::Refused { until, .. } if *until <= Instant::now()));
            }
        }
    }

    /// Chooses the source for a read of `ranking`.
    ///
    /// The selector means this ranking only within the time range of `meant`. The round checks that
    /// by the database's clock. A shared read needs no permit for SQL.
    pub(crate) async fn access(
        self: &Arc<Self>,
        slug: &str,
        meant: &MeantPeriod,
        ranking: RankingRef,
        is_shared: bool,
    ) -> Result<Access> {
        if self.memory == 0 {
            return Ok(Access::Sql(None));
        }
        let board = self.board(ranking.board);
        let is_ready = {
            let rankings = board.rankings();
            match rankings.get(&ranking.ranking_id) {
                Some(Slot::Ready(loaded)) => {
                    loaded.read_at.store(self.millis(), Ordering::Relaxed);
                    Some(true)
                }
                Some(Slot::Loading) => Some(false),
                Some(Slot::Refused { until, .. }) if Instant::now() < *until => return Ok(Access::Sql(None)),
                _ => None,
            }
        };
        if is_ready != Some(true) {
            if is_ready.is_none() {
                self.start_load(&board, ranking, format!("{slug}/{}", meant.period.name()).into());
            }
            return self.limited_sql(&board, is_shared).await;
        }
        let mut answer = self.request_round(&board);
        let round = if let Ok(round) = timeout(ROUND_TIMEOUT, &mut answer).await {
            round
        } else {
            // The round is late. SQL answers if it gets a permit before the round ends.
            tokio::select! {
                round = answer => round,
                sql = self.limited_sql(&board, is_shared) => return sql,
            }
        };
        // SQL reads may still get a connection when the round got none.
        let Some(Ok(end)) = round else { return self.limited_sql(&board, is_shared).await };
        let is_current =
            |one: &CurrentRanking| one.ranking_id == ranking.ranking_id && one.period_id == ranking.period_id;
        let is_meant = meant.meant_from.is_none_or(|from| from <= end.read_at)
            && meant.meant_until.is_none_or(|until| end.read_at < until);
        if !is_meant || !end.rankings.iter().any(is_current) {
            return Ok(Access::Replaced);
        }
        Ok(Access::Index(View { indexes: Arc::clone(self), board, ranking_id: ranking.ranking_id, round: end }))
    }

    /// Requests a round that begins after this call.
    fn request_round(&self, board: &Arc<BoardIndexes>) -> Answer<Result<Arc<RoundResult>>> {
        board.rounds.ask((), || Rounds { indexes: self.itself.upgrade(), board: Arc::clone(board) })
    }

    /// Returns access to SQL, with a permit unless the read is shared.
    ///
    /// The wait for a permit has the same limit as the wait for a connection.
    async fn limited_sql(&self, board: &BoardIndexes, is_shared: bool) -> Result<Access> {
        if is_shared {
            return Ok(Access::Sql(None));
        }
        let permit = timeout(self.store.pool_wait(), Arc::clone(&board.sql).acquire_owned()).await;
        match permit {
            Ok(Ok(permit)) => Ok(Access::Sql(Some(permit))),
            _ => Err(Error::unavailable("the rank index is not available, and too many SQL reads are waiting")),
        }
    }

    /// Returns the indexes of a board.
    fn board(&self, board: i32) -> Arc<BoardIndexes> {
        if let Some(found) = self.boards().get(&board) {
            return Arc::clone(found);
        }
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        let made = boards.entry(board).or_insert_with(|| {
            Arc::new(BoardIndexes {
                board,
                rankings: RwLock::default(),
                rounds: Batcher::new(MAX_ROUNDS, self.runtime.clone(), self.tasks.clone()),
                last: Mutex::default(),
                sql: Arc::new(Semaphore::new(MAX_SQL_READS)),
            })
        });
        Arc::clone(made)
    }

    fn boards(&self) -> RwLockReadGuard<'_, HashMap<i32, Arc<BoardIndexes>>> {
        self.boards.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to load the current rankings of a board.
    pub(crate) async fn load_board(&self, slug: &str, board_id: i32) -> Result<()> {
        if self.memory == 0 {
            return Ok(());
        }
        let board = self.board(board_id);
        for named in self.store.indexable_rankings(board_id).await? {
            let name = match named.kind {
                crate::model::board::PeriodKind::AllTime => format!("{slug}/all_time"),
                kind => format!("{slug}/{}:{}", kind.name(), named.label),
            };
            self.start_load(&board, named.ranking, name.into());
        }
        Ok(())
    }

    /// Returns whether an index is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.boards().values().any(|board| board.rankings().values().any(|slot| matches!(slot, Slot::Loading)))
    }

    fn start_load(&self, board: &Arc<BoardIndexes>, ranking: RankingRef, name: Arc<str>) {
        {
            let mut rankings = board.rankings_mut();
            match rankings.get(&ranking.ranking_id) {
                Some(Slot::Loading | Slot::Ready(_)) => return,
                Some(Slot::Refused { until, .. }) if Instant::now() < *until => return,
                _ => rankings.insert(ranking.ranking_id, Slot::Loading),
            };
        }
        let Some(indexes) = self.itself.upgrade() else { return };
        tracing::info!(index = %name, "rank index loading");
        let board = Arc::clone(board);
        self.tasks.spawn(self.stopping.clone().run_until_cancelled_owned(async move {
            let (of, own_name) = (Arc::clone(&indexes), Arc::clone(&name));
            let loading = tokio::spawn(async move { load::load(&of, ranking, &own_name).await });
            let loaded =
                AbortOnDropHandle::new(loading).await.unwrap_or_else(|error| Err(Error::Internal(error.to_string())));
            // Keep the permit and its reservation until `put` has stored the index.
            let (loaded, _load_permit) =
                loaded.map_or_else(|error| (Err(error), None), |(loaded, load_permit)| (Ok(loaded), Some(load_permit)));
            board.put(ranking.ranking_id, loaded, name);
        }));
    }

    /// Returns the bytes of the indexes that `counts` selects.
    fn bytes(&self, counts: impl Fn(&Loaded) -> bool) -> u64 {
        let of_slot = |slot: &Slot| match slot {
            Slot::Ready(loaded) if counts(loaded) => slot.bytes(),
            _ => 0,
        };
        let of_board = |board: &Arc<BoardIndexes>| board.rankings().values().map(of_slot).sum::<u64>();
        self.boards().values().map(of_board).sum()
    }

    /// Returns the bytes that indexes may take after a load.
    fn share(&self) -> u64 {
        self.memory / INDEX_SHARE.1 * INDEX_SHARE.0
    }

    /// Reserves memory for an index of this many players while it loads. Returns the needed bytes
    /// as `Err` if there is not enough.
    pub(super) async fn reserve(&self, players: u64) -> std::result::Result<(), u64> {
        let needed = players * EXPECTED_BYTES;
        // Decide before dropping any index.
        if self.bytes(|loaded| self.since(&loaded.read_at) < IN_USE_FOR) + needed > self.share() {
            return Err(needed);
        }
        self.reserved.store(needed, Ordering::Relaxed);
        if self.free_memory().await {
            return Ok(());
        }
        self.release();
        Err(needed)
    }

    /// Ends the reservation.
    pub(super) fn release(&self) {
        self.reserved.store(0, Ordering::Relaxed);
    }

    /// Drops the least recently read indexes until the others and the reservation fit.
    ///
    /// Returns `false` if they do not fit. The directory gets the memory that indexes leave.
    async fn free_memory(&self) -> bool {
        let _alone = self.bounds.lock().await;
        let reserved = self.reserved.load(Ordering::Relaxed);
        let mut used = self.bytes(|_| true) + reserved;
        while used > self.share() {
            // A load never drops an index in use. Growth beyond the bound does.
            let min_idle = if used.saturating_sub(reserved) > self.memory { Duration::ZERO } else { IN_USE_FOR };
            let Some((bytes, board, ranking_id)) = self.least_recently_read(min_idle) else { break };
            board.rankings_mut().remove(&ranking_id);
            used = used.saturating_sub(bytes);
        }
        self.users.set_max_bytes(usize::try_from(self.memory.saturating_sub(used)).unwrap_or(usize::MAX)).await;
        used <= self.share()
    }

    /// Returns the index with the oldest last read, unless all were read within `min_idle`.
    fn least_recently_read(&self, min_idle: Duration) -> Option<(u64, Arc<BoardIndexes>, i64)> {
        let mut found: Option<(Duration, u64, Arc<BoardIndexes>, i64)> = None;
        for board in self.boards().values() {
            for (id, slot) in board.rankings().iter() {
                let Slot::Ready(loaded) = slot else { continue };
                let unread = self.since(&loaded.read_at);
                if unread >= min_idle && found.as_ref().is_none_or(|(longest, ..)| unread > *longest) {
                    found = Some((unread, slot.bytes(), Arc::clone(board), *id));
                }
            }
        }
        found.map(|(_, bytes, board, id)| (bytes, board, id))
    }

    /// Returns the time since a result of [`Self::millis`].
    fn since(&self, moment: &AtomicU64) -> Duration {
        Duration::from_millis(self.millis().saturating_sub(moment.load(Ordering::Relaxed)))
    }

    /// Returns the milliseconds since the start of the instance.
    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the status of each index, loaded or refused for its size, and the bytes and users of
    /// the directory.
    pub(crate) fn status(&self) -> (Vec<IndexStatus>, (usize, usize)) {
        let mut all = Vec::new();
        for board in self.boards().values() {
            all.extend(board.rankings().values().filter_map(|slot| slot.status(self)));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        (all, self.users.size())
    }

    /// Returns the bytes that indexes and directory may take.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }
}

impl Drop for Indexes {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.shutdown_background();
        }
    }
}

impl BoardIndexes {
    fn rankings(&self) -> RwLockReadGuard<'_, HashMap<i64, Slot>> {
        self.rankings.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn rankings_mut(&self) -> RwLockWriteGuard<'_, HashMap<i64, Slot>> {
        self.rankings.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, ranking_id: i64, loaded: Result<std::result::Result<Loaded, u64>>, name: Arc<str>) {
        let until = Instant::now() + RETRY_DELAY;
        let slot = match loaded {
            Ok(Ok(loaded)) => {
                tracing::info!(index = %name, players = loaded.index.len(), bytes = loaded.index.bytes(), "rank index loaded");
                Slot::Ready(loaded)
            }
            Ok(Err(bytes)) => {
                tracing::warn!(index = %name, bytes, "not enough memory for a rank index; SQL answers");
                Slot::Refused { name, until, bytes: Some(bytes) }
            }
            Err(error) => {
                tracing::warn!(index = %name, %error, "a rank index could not be loaded; SQL answers");
                Slot::Refused { name, until, bytes: None }
            }
        };
        self.rankings_mut().insert(ranking_id, slot);
    }

    /// Takes the last round, if it read the same rankings and all their indexes have reached its
    /// state.
    fn take_last(&self, asked: &[i64], known: &Version) -> Option<LastRound> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_reached = last.asked == asked && last.epoch == known.epoch && covers(&known.batches, &last.batches);
        is_reached.then_some(last)
    }

    /// Records the end of a round at `millis`, and the result that later rounds may reuse.
    fn end_round(&self, millis: u64, last: Option<LastRound>) {
        for slot in self.rankings().values() {
            if let Slot::Ready(loaded) = slot {
                loaded.round_at.store(millis, Ordering::Relaxed);
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// Applies the result of a round and returns the current rankings.
    ///
    /// `asked`: the rankings that it read. `known`: the version that all their indexes had reached.
    fn apply(&self, asked: &[i64], known: &Version, epoch: &str, state: BoardState) -> Arc<[CurrentRanking]> {
        let BoardState { batches, rankings: current, changes, .. } = state;
        let mut rankings = self.rankings_mut();
        let drop_if = |rankings: &mut HashMap<i64, Slot>, is_wrong: &dyn Fn(i64, &Loaded) -> bool| {
            rankings.retain(|id, slot| !matches!(slot, Slot::Ready(loaded) if is_wrong(*id, loaded)));
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
                for (place, one) in current.iter().enumerate() {
                    // Remove it from the map first: a panic must not leave a half-changed index
                    // there.
                    let slot = match rankings.remove(&one.ranking_id) {
                        Some(Slot::Ready(mut loaded)) => {
                            loaded.apply(one, &batches, place, &changes).then_some(Slot::Ready(loaded))
                        }
                        other => other,
                    };
                    if let Some(slot) = slot {
                        rankings.insert(one.ranking_id, slot);
                    }
                }
            }
            // The feed has a gap. Keep only indexes that a load has brought to this state.
            None => {
                drop_if(&mut rankings, &|id, loaded| asked.contains(&id) && !covers(&loaded.version.batches, &batches));
            }
        }
        drop_if(&mut rankings, &|id, _| asked.contains(&id) && !current.iter().any(|one| one.ranking_id == id));
        current.into()
    }
}

/// Returns whether `batches` is at least `others` in every lane.
fn covers(batches: &[i64], others: &[i64]) -> bool {
    batches.len() == others.len() && batches.iter().zip(others).all(|(batch, other)| batch >= other)
}

impl Slot {
    fn bytes(&self) -> u64 {
        match self {
            Self::Ready(loaded) => loaded.index.bytes() as u64,
            _ => 0,
        }
    }

    fn status(&self, indexes: &Indexes) -> Option<IndexStatus> {
        match self {
            Self::Ready(loaded) => Some(IndexStatus {
                name: Arc::clone(&loaded.name),
                players: loaded.index.len() as u64,
                bytes: self.bytes(),
                age: Some(indexes.since(&loaded.round_at)),
            }),
            Self::Refused { name, bytes: Some(bytes), .. } => {
                Some(IndexStatus { name: Arc::clone(name), players: *bytes / EXPECTED_BYTES, bytes: *bytes, age: None })
            }
            _ => None,
        }
    }
}

impl Loaded {
    /// Creates an index. `millis` is the time of its last read and last round.
    pub(super) fn new(name: Arc<str>, version: Version, index: RankIndex, millis: u64) -> Self {
        Self { name, version, index, read_at: AtomicU64::new(millis), round_at: AtomicU64::new(millis) }
    }

    /// Applies a round's changes unless the index has them.
    ///
    /// `place` is the ranking's position in `changes`. Returns `false` if a user's internal id is
    /// too large for an index.
    pub(super) fn apply(&mut self, current: &CurrentRanking, batches: &[i64], place: usize, changes: &Changes) -> bool {
        self.version.layout = self.version.layout.max(current.layout);
        // Of two snapshots of one server, one is at least as new in every lane.
        if covers(&self.version.batches, batches) {
            return true;
        }
        let users = &changes.user_ids;
        let keys = changes.keys.iter().skip(place * users.len());
        for (user_id, key) in users.iter().zip(keys) {
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
        RankingState {
            version: self.version.clone(),
            players: self.index.len() as u64,
            revision,
            answered_by: AnsweredBy::Index,
        }
    }
}

impl View {
    /// Reads from the index. `read` also gets the profile revision of the directory. `None` if the
    /// index was dropped after the round.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Loaded, i64) -> T) -> Option<T> {
        let revision = self.indexes.users.revision(&self.round.epoch);
        match self.board.rankings().get(&self.ranking_id) {
            Some(Slot::Ready(loaded)) if loaded.version.epoch == self.round.epoch => Some(read(loaded, revision)),
            _ => None,
        }
    }

    /// Returns the internal id of each user; an inner `None` marks an unknown id. The outer `None`
    /// means that the epoch has changed.
    pub(crate) async fn find(&self, external_ids: &[String]) -> Result<Option<Vec<Option<u32>>>> {
        self.indexes.users.find(&self.round.epoch, external_ids).await
    }

    /// Returns the profiles of users, in their order. `None` if the epoch has changed.
    pub(crate) async fn profiles(&self, user_ids: &[u32]) -> Result<Option<Vec<StoredProfile>>> {
        self.indexes.users.profiles(&self.round.epoch, user_ids).await
    }
}

/// Converts the key of a cursor or of an earlier entry for the index. An internal id too large for
/// an index sorts behind all others.
pub(crate) fn key_of(key: StoredKey) -> RankKey {
    let user_id = u32::try_from(key.internal_id.max(0)).unwrap_or(u32::MAX);
    RankKey { rank_key: key.rank_key, tie_key: key.tie_key, user_id }
}
