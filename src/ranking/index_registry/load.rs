//! Loads an index from one snapshot, then applies the batches committed since. SQL answers during
//! the load.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::{context::TokioContext, task::AbortOnDropHandle};

use crate::{
    Code, Error, Result,
    model::board::PeriodKind,
    ranking::{
        index_registry::{
            IndexRegistry,
            board::{BoardIndexes, IndexSlot, LoadedIndex},
        },
        rank_index::{RankIndex, key::RankKey},
    },
    store::{
        index::{LoadSnapshot, NamedRanking},
        period::RankingRef,
        rank::Version,
    },
};

/// Only one instance at a time loads a ranking with at least this many players.
const EXCLUSIVE_FROM_PLAYERS: u64 = 100_000;

/// Interval between attempts to take the lock for such a load.
const RETRY_LOCK_EVERY: Duration = Duration::from_millis(500);

/// Maximum wait for the lock. After it the instance loads without the lock.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// Batches and changes of entries that one round of a load may apply. These limits exceed those of
/// other rounds because no request waits for a load.
const CATCH_UP_LIMITS: (i32, i64) = (1_000_000, 2_000_000);

/// An index is ready after a round with at most this many changes.
const MAX_LAG_CHANGES: usize = 2_000;

/// Maximum rounds of a load. After that many it fails.
const MAX_ROUNDS: usize = 100;

/// Profiles that are put into the directory under one lock.
const PROFILES_AT_ONCE: usize = 1_000;

/// Percentage of missing profiles up to which no bulk copy is made. Reads fetch them later.
const FEW_MISSING_PERCENT: usize = 10;

impl IndexRegistry {
    /// Starts to load the current rankings of a board.
    pub(crate) async fn load_board(&self, slug: &str, board_id: i32) -> Result<()> {
        if self.memory == 0 || self.is_paused() {
            return Ok(());
        }
        let board = self.board(board_id);
        for named in self.index_reader.indexable_rankings(board_id).await? {
            let name = format!("{slug}/{}", named.kind.period_name(&named.label));
            self.start_load(&board, named.ranking, name.into());
        }
        Ok(())
    }

    /// Starts to load the next rolling window of each length whose current window is in memory. It is
    /// read from the moment when it becomes current.
    pub(super) async fn load_next_windows(&self) -> Result<()> {
        let boards: Vec<_> = self.boards().values().cloned().collect();
        for board in boards {
            let windows: HashMap<String, String> = board.rankings().values().filter_map(window_of).collect();
            if windows.is_empty() {
                continue;
            }
            for named in self.index_reader.indexable_rankings(board.board).await? {
                let slug = named.label.split('-').next().and_then(|length| windows.get(length));
                if let (PeriodKind::Rolling, Some(slug)) = (named.kind, slug) {
                    self.start_load(&board, named.ranking, format!("{slug}/rolling:{}", named.label).into());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.boards().values().any(|board| board.rankings().values().any(|slot| matches!(slot, IndexSlot::Loading)))
    }

    pub(super) fn start_load(&self, board: &Arc<BoardIndexes>, ranking: RankingRef, name: Arc<str>) {
        {
            let mut rankings = board.rankings_mut();
            match rankings.get(&ranking.ranking_id) {
                Some(IndexSlot::Loading | IndexSlot::Ready(_)) => return,
                Some(IndexSlot::Refused { until, .. }) if Instant::now() < *until => return,
                _ => rankings.insert(ranking.ranking_id, IndexSlot::Loading),
            };
        }
        let Some(indexes) = self.itself.upgrade() else { return };
        tracing::info!(index = %name, "rank index loading");
        let board = Arc::clone(board);
        self.tasks.spawn(self.stopping.clone().run_until_cancelled_owned(async move {
            let (of, own_name) = (Arc::clone(&indexes), Arc::clone(&name));
            let loading = tokio::spawn(async move { load(&of, ranking, &own_name).await });
            let loaded =
                AbortOnDropHandle::new(loading).await.unwrap_or_else(|error| Err(Error::Internal(error.to_string())));
            // Keep the permit and its reservation until `put` has stored the index.
            let (loaded, _load_permit) =
                loaded.map_or_else(|error| (Err(error), None), |(loaded, load_permit)| (Ok(loaded), Some(load_permit)));
            board.put(ranking.ranking_id, loaded, name);
            if indexes.is_paused() {
                indexes.pause();
            }
        }));
    }
}

/// Returns length and slug of a rolling window in memory.
fn window_of(slot: &IndexSlot) -> Option<(String, String)> {
    let IndexSlot::Ready(loaded) = slot else { return None };
    let (slug, label) = loaded.name.split_once("/rolling:")?;
    Some((label.split('-').next()?.to_owned(), slug.to_owned()))
}

/// The permit to load an index, and the memory reserved for it.
struct LoadPermit {
    indexes: Arc<IndexRegistry>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for LoadPermit {
    fn drop(&mut self) {
        // Before the permit is released, because the next load makes its own reservation.
        self.indexes.release();
    }
}

/// Loads the index of a ranking.
///
/// Returns `Ok((Err(bytes), _))` if there is not enough memory for it. Keep the permit until the
/// index is published.
async fn load(
    indexes: &Arc<IndexRegistry>,
    ranking: RankingRef,
    name: &Arc<str>,
) -> Result<(std::result::Result<LoadedIndex, u64>, LoadPermit)> {
    let began_at = Instant::now();
    loop {
        let permit = Arc::clone(&indexes.loading).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Stopping)?;
        let load_permit = LoadPermit { indexes: Arc::clone(indexes), _permit: permit };
        // Start recording profile changes before the snapshot, so that its older profiles do not
        // overwrite newer ones.
        let load_guard = indexes.users.begin_load();
        // An unreachable instance that holds the lock must not block the others for longer than
        // `MAX_WAIT`.
        let alone_from = if began_at.elapsed() < MAX_WAIT { EXCLUSIVE_FROM_PLAYERS } else { u64::MAX };
        if let Some(found) = indexes.index_reader.load_snapshot(ranking, alone_from).await? {
            return Ok((from_snapshot(indexes, ranking, name, found).await?, load_permit));
        }
        let is_current = |one: &NamedRanking| one.ranking == ranking;
        if !indexes.index_reader.indexable_rankings(ranking.board).await?.iter().any(is_current) {
            return Err(Error::retry(Code::ConcurrentChange, "the ranking was replaced"));
        }
        drop(load_guard);
        drop(load_permit);
        tokio::time::sleep(RETRY_LOCK_EVERY).await;
    }
}

async fn from_snapshot(
    indexes: &IndexRegistry,
    ranking: RankingRef,
    name: &Arc<str>,
    (mut snapshot, version, players): (LoadSnapshot, Version, u64),
) -> Result<std::result::Result<LoadedIndex, u64>> {
    if let Err(bytes) = indexes.reserve(players).await {
        return Ok(Err(bytes));
    }
    indexes.users.start_epoch(&version.epoch, snapshot.revision);
    let index = read_keys(&mut snapshot, players).await?;
    read_profiles(indexes, snapshot, &index).await?;
    let mut loaded = LoadedIndex::new(Arc::clone(name), version, index, indexes.millis());
    catch_up(indexes, ranking, &mut loaded).await?;
    Ok(Ok(loaded))
}

async fn read_keys(snapshot: &mut LoadSnapshot, players: u64) -> Result<RankIndex> {
    let mut builder = RankIndex::builder(usize::try_from(players).unwrap_or(usize::MAX));
    snapshot
        .keys(|rank_key, tie_key, user_id| {
            let user_id = u32::try_from(user_id).map_err(|_| {
                Error::Internal(format!("user id {user_id} does not fit into an index, which holds ids below 2^32"))
            })?;
            let damaged = |error| Error::Internal(format!("{error}; run `centile verify` to find the damage"));
            builder.push(RankKey { rank_key, tie_key, user_id }).map_err(damaged)
        })
        .await?;
    Ok(builder.finish())
}

/// Fills the directory with the players' profiles, unless it contains most of them.
async fn read_profiles(indexes: &IndexRegistry, snapshot: LoadSnapshot, index: &RankIndex) -> Result<()> {
    let users = &indexes.users;
    let missing = index.len() - users.count(index.range(1).map(|key| key.user_id)).await;
    if missing * 100 <= index.len() * FEW_MISSING_PERCENT {
        return Ok(());
    }
    users.reserve(missing).await;
    let mut profiles = Vec::with_capacity(PROFILES_AT_ONCE);
    snapshot
        .profiles(|profile| {
            profiles.push(profile);
            profiles.len() < PROFILES_AT_ONCE || users.load(&mut profiles)
        })
        .await?;
    users.load(&mut profiles);
    Ok(())
}

/// Applies the changes since the snapshot until few remain for the first round.
async fn catch_up(indexes: &IndexRegistry, ranking: RankingRef, loaded: &mut LoadedIndex) -> Result<()> {
    // A connection belongs to the runtime that opens it, and rounds use it later.
    let connecting = indexes.index_reader.round_connection();
    let mut connection = TokioContext::new(connecting, indexes.runtime.clone()).await?;
    for _ in 0..MAX_ROUNDS {
        let batches = loaded.version.batches.clone();
        let round =
            connection.read_round(ranking.board, &[ranking.ranking_id], &batches, None, None, CATCH_UP_LIMITS).await?;
        let state = round.state.as_ref();
        let current = state.filter(|state| !state.rankings.is_empty());
        let Some((changes, batches)) = current.and_then(|state| Some((state.changes.as_ref()?, &state.batches))) else {
            return Err(Error::retry(
                Code::ConcurrentChange,
                "the ranking was replaced, or changes faster than it can be loaded",
            ));
        };
        if round.epoch != loaded.version.epoch {
            return Err(Error::retry(Code::ConcurrentChange, "the database has been replaced"));
        }
        let behind = changes.len();
        if !loaded.apply(batches, changes) {
            return Err(Error::Internal("a user id does not fit into an index, which holds ids below 2^32".to_owned()));
        }
        if behind <= MAX_LAG_CHANGES {
            return Ok(());
        }
    }
    Err(Error::retry(Code::Unavailable, "the ranking changes faster than its index can follow"))
}
