//! The rank indexes of this instance: one per ranking that is read, within a memory bound.
//!
//! A request waits for a round, then reads from memory. The round brings the indexes of its board
//! to the state that the database has reached. It also checks which rankings are current. So an
//! answer is as fresh as that of a separate SQL statement.

pub(super) mod board;
mod load;
mod memory;
mod rounds;
mod small;
mod small_ranking;
pub(crate) mod status;

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Code, Error, Result,
    background::Background,
    model::id::RankingId,
    ranking::{
        batcher::{Batcher, Work},
        index_registry::{
            board::{BoardIndexes, IndexSlot, JointResult, LoadedIndex, RoundResult},
            small::TemplateRankings,
            small_ranking::SmallRanking,
        },
        rank_index::key::RankKey,
        user_lookup::UserLookup,
    },
    store::{
        BucketWriter, IndexReader,
        index::{CurrentRanking, StoredProfile},
        layout::LARGE_PLAYERS,
        period::{RankingRef, ResolvedPeriod},
        rank::StoredKey,
        small::SmallRef,
    },
};

/// Maximum concurrent rounds of each board, and maximum concurrent rounds of several boards.
const MAX_ROUNDS: usize = 1;

/// Time after which SQL may answer a request that waits for a round.
const ROUND_TIMEOUT: Duration = Duration::from_millis(50);

/// An index read within this time is kept current in the background.
const KEEP_CURRENT_FOR: Duration = Duration::from_mins(10);

/// Interval between background checks of each board.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which a read that waits for SQL checks whether the index has been loaded.
const LOAD_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Interval between look-ups of the next rolling windows.
const WINDOWS_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct IndexRegistry {
    index_reader: IndexReader,
    /// The primary, because a replica cannot apply batches.
    primary: BucketWriter,
    users: UserLookup,
    /// Bytes that indexes and directory may take.
    memory: u64,
    /// Maximum wait for a permit for SQL, or until batches are applied.
    pool_wait: Duration,
    /// Whether SQL answers everything, and no index is in memory.
    is_paused: AtomicBool,
    boards: RwLock<HashMap<i32, Arc<BoardIndexes>>>,
    joint_rounds: Arc<Batcher<Vec<Arc<BoardIndexes>>, Result<JointResult>>>,
    /// Rankings of one board at a time get bucket rows.
    growing: Arc<Semaphore>,
    /// One index loads at a time.
    loading: Arc<Semaphore>,
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

/// Applies the batches of a board.
struct ApplyWork(BucketWriter, i32);

impl Work<(), Result<()>> for ApplyWork {
    async fn answer(&mut self, _: Vec<()>) -> Result<()> {
        self.0.apply(self.1, true).await.map(drop)
    }
}

/// Source of the answer to a read of an open period.
#[derive(Debug)]
pub(crate) enum ReadPath {
    Index(IndexView),
    /// SQL. Hold the permit, if there is one, until the statement has ended.
    Sql(Option<OwnedSemaphorePermit>),
}

/// A ranking to read: the slug of its board, its period, and the ranking itself.
pub(super) type IndexRequest<'a> = (&'a str, &'a ResolvedPeriod, RankingRef);

/// State of the index of a ranking, before a round.
enum IndexState {
    Ready(Arc<BoardIndexes>),
    /// It is being loaded, or indexes are paused.
    Loading(Arc<BoardIndexes>),
    /// It does not fit into memory, or indexes are turned off.
    Refused,
}

/// A ranking in memory, after a round or statement that began after the request.
#[derive(Debug, Clone)]
pub(crate) struct IndexView {
    indexes: Arc<IndexRegistry>,
    source: ViewSource,
}

#[derive(Debug, Clone)]
enum ViewSource {
    /// An index that the instance keeps, after a round.
    Kept { board: Arc<BoardIndexes>, ranking_id: RankingId, round: Arc<RoundResult> },
    /// A small ranking, as a round has reached it.
    Small(Arc<SmallRanking>),
}

impl IndexRegistry {
    /// Creates an empty set. `memory` is the bound in bytes on indexes and directory; 0 turns them
    /// off.
    pub(crate) fn new(
        index_reader: IndexReader,
        primary: BucketWriter,
        memory: u64,
        pool_wait: Duration,
        Background { tasks, stopping }: &Background,
    ) -> Arc<Self> {
        let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        let thread = || Builder::new_multi_thread().worker_threads(1).thread_name("rounds").enable_all().build().ok();
        let thread = (memory > 0).then(thread).flatten();
        let runtime = thread.as_ref().map_or_else(Handle::current, |thread| thread.handle().clone());
        Arc::new_cyclic(|itself| Self {
            users: UserLookup::new(index_reader.clone(), bytes, runtime.clone(), tasks.clone()),
            index_reader,
            primary,
            memory,
            pool_wait,
            is_paused: AtomicBool::new(false),
            boards: RwLock::default(),
            joint_rounds: Batcher::new(MAX_ROUNDS, runtime.clone(), tasks.clone()),
            growing: Arc::new(Semaphore::new(1)),
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
        let (mut windows_at, mut turned_at) = (Instant::now(), Instant::now());
        loop {
            ticks.tick().await;
            if windows_at.elapsed() >= WINDOWS_INTERVAL {
                windows_at = Instant::now();
                if let Err(error) = self.load_next_windows().await {
                    tracing::debug!(%error, "the next rolling windows could not be looked up");
                }
            }
            let boards: Vec<_> = self.boards().values().cloned().collect();
            let mut answers = Vec::new();
            for board in boards {
                let is_behind = board.rankings().values().any(|slot| {
                    matches!(slot, IndexSlot::Ready(loaded)
                        if self.since(&loaded.round_at) >= CHECK_INTERVAL && self.since(&loaded.read_at) < KEEP_CURRENT_FOR)
                });
                if is_behind {
                    answers.push(self.request_round(&board));
                }
            }
            // Keep the answers: the batcher skips requests whose answer has been dropped.
            timeout(CHECK_INTERVAL, futures::future::join_all(answers)).await.ok();
            if turned_at.elapsed() >= KEEP_CURRENT_FOR {
                turned_at = Instant::now();
                let small: Vec<_> = self.boards().values().map(|board| Arc::clone(&board.small)).collect();
                for one in small {
                    one.turn();
                }
            }
            self.free_memory().await;
            self.drop_unused();
        }
    }

    /// Drops refusals that have ended, and boards without indexes.
    fn drop_unused(&self) {
        for board in self.boards().values() {
            board
                .rankings_mut()
                .retain(|_, slot| !matches!(slot, IndexSlot::Refused { until, .. } if *until <= Instant::now()));
        }
        // A board of which there is no other reference is not in use, and stays so during the lock.
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|_, board| Arc::strong_count(board) > 1 || !board.rankings().is_empty() || board.small.is_used());
    }

    /// Chooses the source for a read of `ranking`.
    ///
    /// The selector means this ranking only within the time range of `resolved`. The round checks
    /// that by the database's clock. A shared read needs no permit for SQL.
    ///
    /// Returns [`Error::Replaced`] if the period has another ranking, and [`Code::IndexUnavailable`]
    /// for a ranking without bucket rows whose index is not ready within the time limit of a wait for
    /// a connection.
    pub(crate) async fn read_path(
        self: &Arc<Self>,
        slug: &str,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        is_shared: bool,
    ) -> Result<ReadPath> {
        if ranking.is_small() {
            let of = SmallRef { board_id: ranking.players_of, period_id: ranking.period_id };
            return self.small_view(resolved, ranking.board, of).await.map(ReadPath::Index);
        }
        // While the index loads, SQL answers, unless the index is ready first.
        let board = match self.index_state(slug, resolved, ranking) {
            IndexState::Ready(board) => board,
            IndexState::Loading(board) => {
                // Under load, the index may be ready before all batches are applied.
                let sql = self.applied_sql(&board, resolved, ranking, is_shared);
                tokio::pin!(sql);
                loop {
                    if let Ok(sql) = timeout(LOAD_CHECK_INTERVAL, &mut sql).await {
                        return sql;
                    }
                    match self.index_state(slug, resolved, ranking) {
                        IndexState::Ready(board) => break board,
                        IndexState::Refused if !ranking.has_bucket_rows => {
                            return Err(self.no_index(resolved, ranking).await);
                        }
                        IndexState::Loading(_) | IndexState::Refused => {}
                    }
                }
            }
            IndexState::Refused if ranking.has_bucket_rows => return Ok(ReadPath::Sql(None)),
            IndexState::Refused => return Err(self.no_index(resolved, ranking).await),
        };
        // Request a round, which brings the index to the current state of the database.
        let mut answer = self.request_round(&board);
        let round = if let Ok(round) = timeout(ROUND_TIMEOUT, &mut answer).await {
            round
        } else {
            // The round is late. SQL answers if it gets a permit, and all batches are applied, before
            // the round ends.
            tokio::select! {
                round = answer => round,
                sql = self.applied_sql(&board, resolved, ranking, is_shared) => return sql,
            }
        };
        // Without a round, SQL answers if the ranking has bucket rows.
        let end = match round {
            Some(Ok(end)) => end,
            Some(Err(error)) if !ranking.has_bucket_rows => return Err(error),
            None if !ranking.has_bucket_rows => return Err(self.no_index(resolved, ranking).await),
            // SQL reads may still get a connection when the round got none.
            _ => return self.limited_sql(&board, is_shared).await,
        };
        self.view(board, resolved, ranking, end).map(ReadPath::Index).ok_or(Error::Replaced)
    }

    /// Returns the indexes of rankings of several boards after one round of all these boards.
    ///
    /// `None` for a ranking without an index and for one that was replaced, and for all if the round
    /// failed or took too long. [`Self::read_path`] then chooses the source.
    pub(super) async fn index_views(self: &Arc<Self>, wanted: &[Option<IndexRequest<'_>>]) -> Vec<Option<IndexView>> {
        let ready = wanted.iter().map(|wanted| {
            let (slug, resolved, ranking) = (*wanted)?;
            if ranking.is_small() {
                return None;
            }
            match self.index_state(slug, resolved, ranking) {
                IndexState::Ready(board) => Some((board, resolved, ranking)),
                IndexState::Loading(_) | IndexState::Refused => None,
            }
        });
        let ready: Vec<_> = ready.collect();
        let boards: Vec<_> = ready.iter().flatten().map(|(board, ..)| Arc::clone(board)).collect();
        if boards.is_empty() {
            return wanted.iter().map(|_| None).collect();
        }
        let ends = match timeout(ROUND_TIMEOUT, self.request_joint_round(boards)).await {
            Ok(Some(Ok(ends))) => ends,
            _ => JointResult::default(),
        };
        let view = |ready: Option<(Arc<BoardIndexes>, &ResolvedPeriod, RankingRef)>| {
            let (board, resolved, ranking) = ready?;
            let end = Arc::clone(ends.get(&board.board)?);
            self.view(board, resolved, ranking, end)
        };
        ready.into_iter().map(view).collect()
    }

    /// Returns a small ranking as a round reads it that starts after this call.
    ///
    /// [`Error::Replaced`] if `resolved` no longer holds, or if the ranking is large or deleted.
    pub(super) async fn small_view(
        self: &Arc<Self>,
        resolved: &ResolvedPeriod,
        template_id: i32,
        of: SmallRef,
    ) -> Result<IndexView> {
        let reader = || (template_id, self.index_reader.clone(), self.users.clone());
        let asked = self.board(template_id).small.ask(of, reader);
        let read = match timeout(self.pool_wait, asked).await {
            Ok(read) => read.ok_or(Error::Stopping)??,
            Err(_) => return Err(Error::overload("too many reads are waiting")),
        };
        let small = SmallRanking::of(&read, of)?.ok_or(Error::Replaced)?;
        if !resolved.holds_at(small.read_at) {
            return Err(Error::Replaced);
        }
        if small.loaded.index.len() >= LARGE_PLAYERS {
            self.start_growth(of.board_id);
        }
        Ok(IndexView { indexes: Arc::clone(self), source: ViewSource::Small(Arc::new(small)) })
    }

    /// Gives large rankings of a board bucket rows, unless that is being done for any board. The next
    /// read starts it then.
    fn start_growth(&self, board_id: i32) {
        if let Ok(permit) = Arc::clone(&self.growing).try_acquire_owned() {
            let primary = self.primary.clone();
            let growth = async move {
                primary.grow_board(board_id).await;
                drop(permit);
            };
            self.tasks.spawn_on(growth, &self.runtime);
        }
    }

    /// Returns the state of the index of `ranking`. Starts to load it if necessary.
    fn index_state(&self, slug: &str, resolved: &ResolvedPeriod, ranking: RankingRef) -> IndexState {
        if self.memory == 0 {
            return IndexState::Refused;
        }
        let board = self.board(ranking.board);
        if self.is_paused() {
            return if ranking.has_bucket_rows { IndexState::Loading(board) } else { IndexState::Refused };
        }
        let is_loading = match board.rankings().get(&ranking.ranking_id) {
            Some(IndexSlot::Ready(loaded)) => {
                loaded.read_at.store(self.millis(), Ordering::Relaxed);
                None
            }
            Some(IndexSlot::Loading) => Some(true),
            Some(IndexSlot::Refused { until, .. }) if Instant::now() < *until => return IndexState::Refused,
            _ => Some(false),
        };
        if is_loading == Some(false) {
            self.start_load(&board, ranking, format!("{slug}/{}", resolved.period.full_name()).into());
        }
        if is_loading.is_none() { IndexState::Ready(board) } else { IndexState::Loading(board) }
    }

    /// Returns the index of `ranking` after the round `end`, if `resolved` still holds.
    fn view(
        self: &Arc<Self>,
        board: Arc<BoardIndexes>,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        end: Arc<RoundResult>,
    ) -> Option<IndexView> {
        let is_current =
            |one: &CurrentRanking| one.ranking_id == ranking.ranking_id && one.period_id == ranking.period_id;
        let is_valid = resolved.holds_at(end.read_at) && end.rankings.iter().any(is_current);
        is_valid.then(|| {
            let source = ViewSource::Kept { board, ranking_id: ranking.ranking_id, round: end };
            IndexView { indexes: Arc::clone(self), source }
        })
    }

    /// Returns the SQL read path, with a permit unless the read is shared.
    ///
    /// The wait for a permit has the same limit as the wait for a connection.
    async fn limited_sql(&self, board: &BoardIndexes, is_shared: bool) -> Result<ReadPath> {
        if is_shared {
            return Ok(ReadPath::Sql(None));
        }
        let permit = timeout(self.pool_wait, Arc::clone(&board.sql).acquire_owned()).await;
        match permit {
            Ok(Ok(permit)) => Ok(ReadPath::Sql(Some(permit))),
            _ => Err(Error::overload("the rank index is not available, and too many SQL reads are waiting")),
        }
    }

    /// Returns the SQL read path with a permit. Do not wait for another permit while holding it.
    pub(super) async fn sql_permit(&self, board_id: i32) -> Result<ReadPath> {
        self.limited_sql(&self.board(board_id), false).await
    }

    /// Like [`Self::limited_sql`], but applies all batches first. For a ranking without bucket rows,
    /// waits for `pool_wait` and returns an error.
    async fn applied_sql(
        &self,
        board: &BoardIndexes,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        is_shared: bool,
    ) -> Result<ReadPath> {
        if !ranking.has_bucket_rows {
            tokio::time::sleep(self.pool_wait).await;
            return Err(self.no_index(resolved, ranking).await);
        }
        let read_path = self.limited_sql(board, is_shared).await?;
        self.apply(board.board).await?;
        Ok(read_path)
    }

    /// Returns the error of a read without bucket rows and index: [`Error::Replaced`] if the selector no
    /// longer means the ranking.
    async fn no_index(&self, resolved: &ResolvedPeriod, ranking: RankingRef) -> Error {
        match self.primary.reader.is_current(resolved, ranking).await {
            Ok(true) => Error::retry(
                Code::IndexUnavailable,
                "the period has no bucket rows, and its rank index is not ready; retry, and see that --index-memory has room for it",
            ),
            Ok(false) => Error::Replaced,
            Err(error) => error,
        }
    }

    /// Applies all batches of a board that were committed before this call.
    ///
    /// Concurrent callers share a run that starts after they have called.
    pub(super) async fn apply(&self, board_id: i32) -> Result<()> {
        let board = self.board(board_id);
        let applied = board.applies.ask((), || ApplyWork(self.primary.clone(), board_id));
        match timeout(self.pool_wait, applied).await {
            Ok(Some(applied)) => applied,
            Ok(None) => Err(Error::Stopping),
            Err(_) => Err(Error::overload("the ranking is behind its scores, and no rank index can answer; retry")),
        }
    }

    fn board(&self, board: i32) -> Arc<BoardIndexes> {
        if let Some(found) = self.boards().get(&board) {
            return Arc::clone(found);
        }
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        let made = boards.entry(board).or_insert_with(|| {
            let batcher = || (self.runtime.clone(), self.tasks.clone());
            let ((rounds, tasks), (applies, more)) = (batcher(), batcher());
            let small = TemplateRankings::new(self.runtime.clone(), self.tasks.clone());
            let rounds = Batcher::new(MAX_ROUNDS, rounds, tasks);
            Arc::new(BoardIndexes::new(board, rounds, Batcher::new(1, applies, more), small))
        });
        Arc::clone(made)
    }

    fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Drops all indexes and the directory. SQL answers until [`Self::resume`].
    pub(crate) fn pause(&self) {
        self.is_paused.store(true, Ordering::Relaxed);
        for board in self.boards().values() {
            board.rankings_mut().retain(|_, slot| matches!(slot, IndexSlot::Loading));
            board.small.set_max_bytes(0);
        }
        self.users.clear();
    }

    /// Loads indexes again when they are read.
    pub(crate) fn resume(&self) {
        self.is_paused.store(false, Ordering::Relaxed);
    }

    fn boards(&self) -> RwLockReadGuard<'_, HashMap<i32, Arc<BoardIndexes>>> {
        self.boards.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since a result of [`Self::millis`].
    fn since(&self, moment: &AtomicU64) -> Duration {
        Duration::from_millis(self.millis().saturating_sub(moment.load(Ordering::Relaxed)))
    }

    /// Returns the milliseconds since the start of the instance.
    fn millis(&self) -> u64 {
        u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the bytes that indexes and directory may take.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }
}

impl Drop for IndexRegistry {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.shutdown_background();
        }
    }
}

impl IndexView {
    /// Reads from the index. `read` also gets the profile revision of the directory.
    /// [`Error::Replaced`] if the index was dropped after the round.
    pub(crate) fn read_index<T>(&self, read: impl FnOnce(&LoadedIndex, i64) -> T) -> Result<T> {
        match &self.source {
            ViewSource::Small(small) => Ok(read(&small.loaded, small.revision)),
            ViewSource::Kept { board, ranking_id, round } => {
                let revision = self.indexes.users.revision(&round.epoch);
                match board.rankings().get(ranking_id) {
                    Some(IndexSlot::Ready(loaded)) if loaded.version.epoch == round.epoch => Ok(read(loaded, revision)),
                    _ => Err(Error::Replaced),
                }
            }
        }
    }

    /// Returns the internal id of each user, `None` for an unknown one. [`Error::Replaced`] if the
    /// epoch has changed.
    pub(crate) async fn find(&self, external_ids: &[String]) -> Result<Vec<Option<u32>>> {
        self.indexes.users.find(self.epoch(), external_ids).await
    }

    /// Returns the profiles of users, in their order. [`Error::Replaced`] if the epoch has changed.
    pub(crate) async fn profiles(&self, user_ids: &[u32]) -> Result<Vec<StoredProfile>> {
        self.indexes.users.profiles(self.epoch(), user_ids).await
    }

    /// Returns the database's time at the start of the round or statement.
    pub(crate) fn read_at(&self) -> DateTime<Utc> {
        match &self.source {
            ViewSource::Kept { round, .. } => round.read_at,
            ViewSource::Small(small) => small.read_at,
        }
    }

    fn epoch(&self) -> &str {
        match &self.source {
            ViewSource::Kept { round, .. } => &round.epoch,
            ViewSource::Small(small) => &small.loaded.version.epoch,
        }
    }
}

/// Converts the key of a cursor or of an earlier entry for the index. An internal id too large for
/// an index sorts behind all others.
pub(crate) fn key_of(key: StoredKey) -> RankKey {
    let user_id = u32::try_from(key.internal_id.max(0)).unwrap_or(u32::MAX);
    RankKey { rank_key: key.rank_key, tie_key: key.tie_key, user_id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{instance::Instance, model::settings::Settings};

    #[tokio::test]
    async fn boards_without_indexes_or_users_are_dropped() -> Result<()> {
        let instance = Instance::connect(&Settings::without_server()).await?;
        let indexes = &instance.rankings.indexes;
        let refused = |until| IndexSlot::Refused { name: "b/week".into(), until, bytes: None };
        let now = Instant::now();
        for (board, slot) in [
            (1, None),
            (2, Some(IndexSlot::Loading)),
            (3, Some(refused(now))),
            (4, Some(refused(now + Duration::from_mins(1)))),
        ] {
            indexes.board(board).rankings_mut().extend(slot.map(|slot| (RankingId(10), slot)));
        }
        // A reader that has just looked the board up.
        let held = indexes.board(5);
        let left = || {
            indexes.drop_unused();
            let mut left: Vec<i32> = indexes.boards().keys().copied().collect();
            left.sort_unstable();
            left
        };
        assert_eq!(left(), [2, 4, 5]);
        drop(held);
        assert_eq!(left(), [2, 4]);
        Ok(())
    }
}
