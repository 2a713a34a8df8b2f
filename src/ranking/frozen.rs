//! Frozen tops: the first players of closed periods, with their names at the time of closing.
//!
//! A cache key always names the same bytes. This process and the shared cache keep them for a day;
//! PostgreSQL answers only if both miss. The limit of a day exists because bytes of an older
//! revision may name a user who has been erased since.

use std::sync::Arc;

use crate::{
    Error, Result,
    cache::CacheKey,
    ranking::{caches::Frozen, rankings::Rankings},
    store::{
        period::{ArchiveRef, ResolvedPeriod},
        rank::RankingState,
    },
    telemetry::{self, ReadSource},
};

/// Returns the frozen top of an archive in a state just read.
///
/// `size` is the board's size of frozen tops. [`Error::Replaced`] if the archive has been replaced.
pub(crate) async fn frozen(
    rankings: &Rankings,
    resolved: &ResolvedPeriod,
    archive: ArchiveRef,
    state: &RankingState,
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
    let bytes = rankings.reader.frozen_top(resolved, archive).await?;
    telemetry::count_read("closed", ReadSource::Database);
    let frozen: Frozen = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Internal(format!("the frozen top of {key} cannot be read: {error}")))?;
    let frozen = Arc::new(frozen);
    rankings.share(key.clone(), bytes);
    known.insert(key, Arc::clone(&frozen));
    Ok(frozen)
}
