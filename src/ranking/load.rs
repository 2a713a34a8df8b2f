//! Loads an index from one snapshot, then applies the batches committed since. SQL answers during
//! the load.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::context::TokioContext;

use crate::{
    Code, Error, Result,
    ranking::{
        index::{RankIndex, key::RankKey},
        indexes::{Indexes, Loaded},
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

/// The permit to load an index, and the memory reserved for it.
pub(super) struct LoadPermit {
    indexes: Arc<Indexes>,
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
pub(super) async fn load(
    indexes: &Arc<Indexes>,
    ranking: RankingRef,
    name: &Arc<str>,
) -> Result<(std::result::Result<Loaded, u64>, LoadPermit)> {
    let began_at = Instant::now();
    loop {
        let permit = Arc::clone(&indexes.loading).acquire_owned().await;
        let permit = permit.map_err(|_| Error::unavailable(Code::ShuttingDown, "this instance is shutting down"))?;
        let load_permit = LoadPermit { indexes: Arc::clone(indexes), _permit: permit };
        // Start recording profile changes before the snapshot, so that its older profiles do not
        // overwrite newer ones.
        let load_guard = indexes.users.begin_load();
        // An unreachable instance that holds the lock must not block the others for longer than
        // `MAX_WAIT`.
        let alone_from = if began_at.elapsed() < MAX_WAIT { EXCLUSIVE_FROM_PLAYERS } else { u64::MAX };
        if let Some(found) = indexes.store.load_snapshot(ranking, alone_from).await? {
            return Ok((from_snapshot(indexes, ranking, name, found).await?, load_permit));
        }
        let is_current = |one: &NamedRanking| one.ranking == ranking;
        if !indexes.store.indexable_rankings(ranking.board).await?.iter().any(is_current) {
            return Err(Error::unavailable(Code::ConcurrentChange, "the ranking was replaced"));
        }
        drop(load_guard);
        drop(load_permit);
        tokio::time::sleep(RETRY_LOCK_EVERY).await;
    }
}

async fn from_snapshot(
    indexes: &Indexes,
    ranking: RankingRef,
    name: &Arc<str>,
    (mut snapshot, version, players): (LoadSnapshot, Version, u64),
) -> Result<std::result::Result<Loaded, u64>> {
    if let Err(bytes) = indexes.reserve(players).await {
        return Ok(Err(bytes));
    }
    indexes.users.start_epoch(&version.epoch, snapshot.revision);
    let index = read_keys(&mut snapshot, players).await?;
    read_profiles(indexes, snapshot, &index).await?;
    let mut loaded = Loaded::new(Arc::clone(name), version, index, indexes.millis());
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
async fn read_profiles(indexes: &Indexes, snapshot: LoadSnapshot, index: &RankIndex) -> Result<()> {
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
async fn catch_up(indexes: &Indexes, ranking: RankingRef, loaded: &mut Loaded) -> Result<()> {
    // A connection belongs to the runtime that opens it, and rounds use it later.
    let connecting = indexes.store.round_connection();
    let mut connection = TokioContext::new(connecting, indexes.runtime.clone()).await?;
    for _ in 0..MAX_ROUNDS {
        let batches = loaded.version.batches.clone();
        let round =
            connection.read(ranking.board, &[ranking.ranking_id], &batches, None, None, CATCH_UP_LIMITS).await?;
        let state = round.state.as_ref();
        let current = state.filter(|state| !state.rankings.is_empty());
        let Some((changes, batches)) = current.and_then(|state| Some((state.changes.as_ref()?, &state.batches))) else {
            return Err(Error::unavailable(
                Code::ConcurrentChange,
                "the ranking was replaced, or changes faster than it can be loaded",
            ));
        };
        if round.epoch != loaded.version.epoch {
            return Err(Error::unavailable(Code::ConcurrentChange, "the database has been replaced"));
        }
        let behind = changes.len();
        if !loaded.apply(batches, changes) {
            return Err(Error::Internal("a user id does not fit into an index, which holds ids below 2^32".to_owned()));
        }
        if behind <= MAX_LAG_CHANGES {
            return Ok(());
        }
    }
    Err(Error::unavailable(Code::Unavailable, "the ranking changes faster than its index can follow"))
}
