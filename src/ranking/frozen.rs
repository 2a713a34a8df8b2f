//! Frozen tops: the first players of closed periods, with their names at the time of closing.
//!
//! A cache key always names the same bytes. This process and the shared cache keep them for a day;
//! PostgreSQL answers only if both miss. The limit of a day exists because bytes of an older
//! revision may name a user who has been erased since.

use std::sync::Arc;

use serde::Deserialize;

use crate::{
    Error, Result,
    cache::CacheKey,
    ranking::{Rankings, top::NAMES_TTL},
    store::{
        period::{ArchiveRef, ResolvedPeriod},
        rank::{State, StoredRow},
    },
    telemetry::{self, ReadSource},
};

/// Approximate bytes of frozen tops that this process keeps.
const CAPACITY_BYTES: u64 = 64 << 20;

#[derive(Debug, Deserialize)]
pub(crate) struct Frozen {
    pub(crate) players: u64,
    /// The first of them, best first.
    pub(crate) rows: Vec<StoredRow>,
}

impl Frozen {
    /// Returns the first `limit` players, or all if there are fewer. `None` if the frozen top is
    /// too short.
    pub(crate) fn first(&self, limit: u32) -> Option<&[StoredRow]> {
        let wanted = usize::try_from(u64::from(limit).min(self.players)).ok()?;
        self.rows.get(..wanted)
    }
}

/// The frozen tops of this process.
#[derive(Debug)]
pub(crate) struct FrozenCache(moka::sync::Cache<CacheKey, Arc<Frozen>>);

impl Default for FrozenCache {
    fn default() -> Self {
        // About 256 bytes per row, texts included.
        let bytes =
            |_: &CacheKey, frozen: &Arc<Frozen>| u32::try_from(256 * (frozen.rows.len() + 1)).unwrap_or(u32::MAX);
        Self(moka::sync::Cache::builder().weigher(bytes).max_capacity(CAPACITY_BYTES).time_to_live(NAMES_TTL).build())
    }
}

impl FrozenCache {
    pub(crate) fn forget_all(&self) {
        self.0.invalidate_all();
    }
}

/// Returns the frozen top of an archive in a state just read.
///
/// `size` is the board's size of frozen tops. [`Error::Replaced`] if the archive has been replaced.
pub(crate) async fn frozen(
    rankings: &Rankings,
    resolved: &ResolvedPeriod,
    archive: ArchiveRef,
    state: &State,
    size: u32,
) -> Result<Arc<Frozen>> {
    let key = CacheKey::Closed {
        epoch: state.epoch.clone(),
        period: archive.period_id,
        revision: i64::from(archive.revision),
        size,
    };
    let known = &rankings.tops.frozen.0;
    if let Some(frozen) = known.get(&key) {
        telemetry::count_read("closed", ReadSource::Here);
        return Ok(frozen);
    }
    if let Some(bytes) = rankings.cache.get(&key).await
        && let Ok(frozen) = serde_json::from_slice(&bytes)
    {
        telemetry::count_read("closed", ReadSource::Shared);
        let frozen = Arc::new(frozen);
        known.insert(key, Arc::clone(&frozen));
        return Ok(frozen);
    }
    let bytes = rankings.store.frozen_top(resolved, archive).await?;
    telemetry::count_read("closed", ReadSource::Database);
    let frozen: Frozen = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Internal(format!("the frozen top of {key} cannot be read: {error}")))?;
    let frozen = Arc::new(frozen);
    rankings.share(key.clone(), bytes);
    known.insert(key, Arc::clone(&frozen));
    Ok(frozen)
}
