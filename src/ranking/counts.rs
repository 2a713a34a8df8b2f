//! Bucket counts that are known by their version.
//!
//! They cannot make an answer wrong: the statement that reads a rank says which version it saw.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Result,
    cache::{Cache, CacheKey},
    ranking::Rankings,
    store::{period::RankingRef, rank::Version},
};

/// Shared with the other instances no more often than this, per ranking: under writes every batch has counts of its own.
const SHARE_EVERY: Duration = Duration::from_millis(250);

/// Players of each bucket of a ranking at one version.
#[derive(Debug)]
pub(crate) struct KnownCounts {
    /// The state they belong to.
    pub(crate) version: Version,
    /// Players of buckets 0 to 99.
    pub(crate) counts: Vec<i64>,
    shared_at: Instant,
}

impl KnownCounts {
    /// Counts that came with an answer, for that answer.
    pub(crate) fn of(version: Version, counts: Vec<i64>) -> Self {
        Self { version, counts, shared_at: Instant::now() }
    }

    /// Players of the ranking.
    pub(crate) fn players(&self) -> u64 {
        u64::try_from(self.counts.iter().sum::<i64>()).unwrap_or_default()
    }
}

/// The newest counts known of each ranking.
#[derive(Debug)]
pub(crate) struct CountsCache(moka::sync::Cache<i64, Arc<KnownCounts>>);

impl Default for CountsCache {
    fn default() -> Self {
        Self(moka::sync::Cache::new(1_000))
    }
}

impl CountsCache {
    /// Counts of a ranking at some version: from this process, or those that another instance has put into the cache for
    /// the version of now.
    pub(crate) async fn known(&self, rankings: &Rankings, ranking: RankingRef) -> Result<Option<Arc<KnownCounts>>> {
        if let Some(known) = self.0.get(&ranking.ranking_id) {
            return Ok(Some(known));
        }
        let Some(version) = rankings.store.ranking_version(ranking).await? else { return Ok(None) };
        let Some(counts) = cached(&rankings.cache, ranking.ranking_id, &version).await else { return Ok(None) };
        let known = Arc::new(KnownCounts { version, counts, shared_at: Instant::now() });
        self.0.insert(ranking.ranking_id, Arc::clone(&known));
        Ok(Some(known))
    }

    /// Keeps counts that a statement brought along, and puts them into the cache for the other instances.
    pub(crate) fn learn(
        &self,
        rankings: &Rankings,
        ranking: RankingRef,
        version: Version,
        counts: Vec<i64>,
    ) -> Arc<KnownCounts> {
        let before = self.0.get(&ranking.ranking_id).map(|known| known.shared_at);
        let shared_at = before.filter(|at| at.elapsed() < SHARE_EVERY);
        let known = Arc::new(KnownCounts { version, counts, shared_at: shared_at.unwrap_or_else(Instant::now) });
        self.0.insert(ranking.ranking_id, Arc::clone(&known));
        if shared_at.is_none()
            && let Ok(bytes) = serde_json::to_vec(&known.counts)
        {
            // In the background: no request waits for Redis.
            let (cache, key) = (rankings.cache.clone(), key(ranking.ranking_id, &known.version));
            rankings.background.spawn(async move { cache.put(&key, bytes).await });
        }
        known
    }

    /// Drops what is known of a ranking.
    pub(crate) fn forget(&self, ranking: RankingRef) {
        self.0.invalidate(&ranking.ranking_id);
    }
}

/// Counts that are in the cache for a version; what cannot be bucket counts is not there.
pub(crate) async fn cached(cache: &Cache, ranking_id: i64, version: &Version) -> Option<Vec<i64>> {
    let bytes = cache.get(&key(ranking_id, version)).await?;
    serde_json::from_slice(&bytes).ok().filter(|counts: &Vec<i64>| counts.len() == 100)
}

fn key(ranking: i64, version: &Version) -> CacheKey {
    CacheKey::Counts { ranking, version: version.text() }
}
