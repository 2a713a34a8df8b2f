//! Frozen tops: the first players of closed periods, with their names at the time of closing.
//!
//! This process keeps them for a day, the shared cache for as long as the archive. PostgreSQL
//! answers only if both miss. The top of a version never changes. An older version may name a user who
//! has been erased since, so an erasure removes it from the cache.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Error, Result,
    cache::{Cache, CacheKey, CacheKind},
    ranking::{caches::Frozen, source::RankSource},
    store::{Administrator, closing::FrozenTop, period::ArchiveRef, rank::RankingState},
    telemetry::{self, ReadSource},
};

/// A frozen top in the shared cache: written as PostgreSQL stores it, read as [`Frozen`].
#[derive(Serialize, Deserialize)]
struct ClosedTop<T> {
    /// Version of answers from the archive at this revision.
    version: String,
    closed_top: T,
}

/// Returns the frozen top of an archive in a state just read.
///
/// [`Error::Replaced`] if the archive has been replaced.
pub(crate) async fn frozen(source: &RankSource<'_>, archive: ArchiveRef, state: &RankingState) -> Result<Arc<Frozen>> {
    let RankSource { rankings, board, resolved, .. } = source;
    let (version, cached) = (state.version(), &rankings.tops.frozen.0);
    if let Some(frozen) = cached.get(&version) {
        telemetry::count_read("closed", ReadSource::Here);
        return Ok(frozen);
    }
    let key = key(board.slug.as_str(), &resolved.period.full_name());
    let is_current = |shared: &ClosedTop<Frozen>| shared.version == version;
    if let Some(shared) = rankings.cache.get(&key, is_current).await {
        telemetry::count_read("closed", ReadSource::Shared);
        let frozen = Arc::new(shared.closed_top);
        cached.insert(version, Arc::clone(&frozen));
        return Ok(frozen);
    }
    let bytes = rankings.reader.frozen_top(resolved, archive).await?;
    telemetry::count_read("closed", ReadSource::Database);
    let unreadable = |error| Error::Internal(format!("the frozen top of {key} cannot be read: {error}"));
    let frozen: Frozen = serde_json::from_slice(&bytes).map_err(unreadable)?;
    let shared = ClosedTop::new(version.clone(), &bytes).map_err(unreadable)?;
    let frozen = Arc::new(frozen);
    rankings.share(key, shared);
    cached.insert(version, Arc::clone(&frozen));
    Ok(frozen)
}

/// Puts the frozen top of a period that was closed or refreshed into the shared cache. On failure the
/// first reader does it.
pub(crate) async fn put_shared(admin: &Administrator, cache: &Cache, period_id: i64) {
    let stored = match admin.closed_top(period_id).await {
        Ok(stored) => stored,
        Err(error) => return tracing::warn!(period_id, %error, "could not put a frozen top into the cache"),
    };
    let Some(FrozenTop { board, period, version, bytes }) = stored else { return };
    if let Ok(shared) = ClosedTop::new(version, &bytes) {
        cache.put(&key(&board, &period), &shared).await;
    }
}

/// Removes the frozen tops of these periods from the shared cache. Without periods, removes those that
/// have lost an erased player or their archive within three days.
///
/// Returns `false`, and logs a warning, if Redis did not answer.
pub(crate) async fn remove_shared(admin: &Administrator, cache: &Cache, periods: Option<&[i64]>) -> Result<bool> {
    let names = admin.outdated_tops(periods).await?;
    let keys: Vec<CacheKey> = names.iter().map(|(board, period)| key(board, period)).collect();
    let is_removed = cache.remove(&keys).await;
    if !is_removed && !keys.is_empty() {
        tracing::warn!(tops = keys.len(), "Redis did not answer: tops with names of erased players may remain in it");
    }
    Ok(is_removed || keys.is_empty())
}

fn key(board: &str, period: &str) -> CacheKey {
    CacheKind::ClosedTop.of(board, period)
}

impl ClosedTop<Box<RawValue>> {
    fn new(version: String, bytes: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self { version, closed_top: serde_json::from_slice(bytes)? })
    }
}
