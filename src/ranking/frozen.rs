//! Frozen tops: the first players of closed periods, as they stood and were called when the period closed.
//!
//! The bytes never change under their name, so that they are kept for a day wherever there is room: in this process, in
//! the cache that instances share, and in PostgreSQL, which is asked only when neither of the others has them. No longer than
//! a day, for bytes of another revision may name somebody who has asked to be forgotten since.

use std::sync::Arc;

use serde::Deserialize;

use crate::{
    Error, Result,
    cache::CacheKey,
    ranking::{Rankings, top::NAMES_KEPT_FOR},
    store::{archive::ArchiveState, period::MeantPeriod, rank::StoredRow},
    telemetry::{self, Origin},
};

/// Bytes of frozen tops that this process keeps, about.
const CAPACITY_BYTES: u64 = 64 << 20;

/// A frozen top.
#[derive(Debug, Deserialize)]
pub(crate) struct Frozen {
    /// Players in the archive.
    pub(crate) players: u64,
    /// The first of them, best first.
    pub(crate) rows: Vec<StoredRow>,
}

impl Frozen {
    /// The first `limit` players, or all when there are fewer; `None` when not so many were frozen.
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
        // A row takes about so much, with its names.
        let bytes =
            |_: &CacheKey, frozen: &Arc<Frozen>| u32::try_from(256 * (frozen.rows.len() + 1)).unwrap_or(u32::MAX);
        Self(
            moka::sync::Cache::builder()
                .weigher(bytes)
                .max_capacity(CAPACITY_BYTES)
                .time_to_live(NAMES_KEPT_FOR)
                .build(),
        )
    }
}

impl FrozenCache {
    /// Has all of them read anew.
    pub(crate) fn forget_all(&self) {
        self.0.invalidate_all();
    }
}

/// The frozen top of an archive in the state just seen; `size` is that of frozen tops on its board. `None` when the archive
/// is no longer the one that was meant.
pub(crate) async fn frozen(
    rankings: &Rankings,
    meant: &MeantPeriod,
    state: &ArchiveState,
    size: u32,
) -> Result<Option<Arc<Frozen>>> {
    let key = CacheKey::Closed {
        epoch: state.epoch.clone(),
        period: state.archive.period_id,
        revision: i64::from(state.archive.revision),
        size,
    };
    let known = &rankings.tops.frozen.0;
    if let Some(frozen) = known.get(&key) {
        telemetry::count_read("closed", Origin::Here);
        return Ok(Some(frozen));
    }
    if let Some(bytes) = rankings.cache.get(&key).await
        && let Ok(frozen) = serde_json::from_slice(&bytes)
    {
        telemetry::count_read("closed", Origin::Shared);
        let frozen = Arc::new(frozen);
        known.insert(key, Arc::clone(&frozen));
        return Ok(Some(frozen));
    }
    let Some(bytes) = rankings.store.frozen_top(meant, state.archive).await? else { return Ok(None) };
    telemetry::count_read("closed", Origin::Database);
    let frozen: Frozen = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Internal(format!("the frozen top of {key} cannot be read: {error}")))?;
    let frozen = Arc::new(frozen);
    rankings.cache.put(&key, bytes).await;
    known.insert(key, Arc::clone(&frozen));
    Ok(Some(frozen))
}
