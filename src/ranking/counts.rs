//! Cached bucket counts, each with its version.
//!
//! Outdated counts cannot make an answer wrong: the statement that reads a rank compares their
//! version.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Result,
    cache::{Cache, CacheKey},
    ranking::{caches::CachedCounts, rankings::Rankings},
    store::{period::RankingRef, rank::CountsVersion},
};

/// Minimum interval between writes of a ranking's counts to the shared cache.
const SHARE_INTERVAL: Duration = Duration::from_millis(250);

/// Returns counts of a ranking at any version from this process, or at the current version from
/// the shared cache.
pub(crate) async fn cached_counts(rankings: &Rankings, ranking: RankingRef) -> Result<Option<Arc<CachedCounts>>> {
    if let Some(known) = rankings.counts.0.get(&ranking.ranking_id) {
        return Ok(Some(known));
    }
    let Some(version) = rankings.primary.counts_version(ranking).await? else { return Ok(None) };
    let Some(counts) = counts_of_version(&rankings.cache, ranking.ranking_id, &version).await else { return Ok(None) };
    let known = Arc::new(CachedCounts { version, counts, shared_at: Instant::now() });
    rankings.counts.0.insert(ranking.ranking_id, Arc::clone(&known));
    Ok(Some(known))
}

/// Stores counts that a statement returned, here and in the shared cache.
pub(crate) fn store_counts(
    rankings: &Rankings,
    ranking: RankingRef,
    version: CountsVersion,
    counts: Vec<i64>,
) -> Arc<CachedCounts> {
    let before = rankings.counts.0.get(&ranking.ranking_id).map(|known| known.shared_at);
    let shared_at = before.filter(|at| at.elapsed() < SHARE_INTERVAL);
    let known = Arc::new(CachedCounts { version, counts, shared_at: shared_at.unwrap_or_else(Instant::now) });
    rankings.counts.0.insert(ranking.ranking_id, Arc::clone(&known));
    if shared_at.is_none()
        && let Ok(bytes) = serde_json::to_vec(&known.counts)
    {
        rankings.share(key(ranking.ranking_id, &known.version), bytes);
    }
    known
}

/// Returns the counts of a version from the shared cache. Ignores values that are not bucket
/// counts.
pub(crate) async fn counts_of_version(cache: &Cache, ranking_id: i64, version: &CountsVersion) -> Option<Vec<i64>> {
    let bytes = cache.get(&key(ranking_id, version)).await?;
    serde_json::from_slice(&bytes).ok().filter(|counts: &Vec<i64>| counts.len() == 100)
}

fn key(ranking: i64, version: &CountsVersion) -> CacheKey {
    CacheKey::Counts { ranking, version: version.text() }
}
