//! Cached bucket counts, each with its version.
//!
//! Outdated counts cannot make an answer wrong: the statement that reads a rank compares their
//! version in its own snapshot.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    cache::{Cache, CacheKey, CacheKind},
    model::{board::Board, id::RankingId},
    ranking::{caches::CachedCounts, rankings::Rankings},
    store::{
        period::{RankingRef, ResolvedPeriod},
        rank::CountsVersion,
    },
    telemetry::ReadSource,
};

/// Counts of a ranking with bucket rows: one for each bucket. Others are not shared.
const BUCKETS: usize = 100;

/// Minimum interval between writes of a ranking's counts to the shared cache.
const SHARE_INTERVAL: Duration = Duration::from_millis(250);

/// Returns counts of a ranking at any version, from this process or the shared cache.
pub(crate) async fn cached_counts(
    rankings: &Rankings,
    board: &Board,
    resolved: &ResolvedPeriod,
    ranking: RankingRef,
) -> Option<(Arc<CachedCounts>, ReadSource)> {
    if let Some(cached) = rankings.counts.0.get(&ranking.ranking_id) {
        return Some((cached, ReadSource::Here));
    }
    let (period, ranking_id) = (resolved.period.full_name(), ranking.ranking_id);
    let cached = Arc::new(shared_counts(&rankings.cache, board.slug.as_str(), &period, ranking_id).await?);
    rankings.counts.0.insert(ranking_id, Arc::clone(&cached));
    Some((cached, ReadSource::Shared))
}

/// Stores counts that a statement returned, here and in the shared cache.
pub(crate) fn store_counts(
    rankings: &Rankings,
    board: &Board,
    resolved: &ResolvedPeriod,
    ranking: RankingRef,
    version: CountsVersion,
    counts: Vec<i64>,
) -> Arc<CachedCounts> {
    let ranking = ranking.ranking_id;
    let before = rankings.counts.0.get(&ranking).and_then(|cached| cached.shared_at);
    let shared_at = before.filter(|at| at.elapsed() < SHARE_INTERVAL);
    let cached = CachedCounts { ranking, version, counts, shared_at: shared_at.or_else(|| Some(Instant::now())) };
    if shared_at.is_none() && cached.counts.len() == BUCKETS {
        rankings.share(key(board.slug.as_str(), &resolved.period.full_name()), cached.clone());
    }
    let cached = Arc::new(cached);
    rankings.counts.0.insert(ranking, Arc::clone(&cached));
    cached
}

/// Returns counts of a ranking at any version from the shared cache.
pub(crate) async fn shared_counts(
    cache: &Cache,
    board: &str,
    period: &str,
    ranking_id: RankingId,
) -> Option<CachedCounts> {
    let is_current = |shared: &CachedCounts| shared.ranking == ranking_id && shared.counts.len() == BUCKETS;
    cache.get(&key(board, period), is_current).await
}

fn key(board: &str, period: &str) -> CacheKey {
    CacheKind::Counts.of(board, period)
}
