//! The connections, indexes and caches that all reads of an instance share.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    Error, Result,
    background::{Background, UPKEEP_EVERY},
    cache::{Cache, CacheKey},
    ranking::{
        acknowledged::AcknowledgedBatches,
        caches::{CohortCache, CountsCache, Overviews, PeriodCache, TopCache},
        index_registry::IndexRegistry,
    },
    store::{BucketWriter, IndexReader, Reader, period::RankingRef},
};

/// Connections, indexes and caches that all reads of an instance share.
#[derive(Debug)]
pub struct Rankings {
    pub(crate) reader: Reader,
    /// The primary, which answers by SQL: a replica cannot apply batches.
    pub(crate) primary: Reader,
    pub(crate) cache: Cache,
    pub(crate) indexes: Arc<IndexRegistry>,
    pub(crate) acknowledged: Arc<AcknowledgedBatches>,
    pub(super) periods: PeriodCache,
    pub(super) counts: CountsCache,
    pub(super) overviews: Overviews,
    pub(super) tops: TopCache,
    pub(super) cohorts: CohortCache,
    background: Background,
}

impl Rankings {
    /// Creates empty caches.
    ///
    /// Rank indexes and the user directory may take `index_memory` bytes; 0 turns them off.
    /// `timeout` limits the wait for another caller's read.
    pub(crate) fn new(
        reader: Reader,
        index_reader: IndexReader,
        primary: BucketWriter,
        cache: Cache,
        index_memory: u64,
        timeout: Duration,
        background: &Background,
    ) -> Self {
        let primary_reader = primary.reader.clone();
        let indexes = IndexRegistry::new(index_reader, primary, index_memory, timeout, background);
        if index_memory > 0 {
            background.spawn(Arc::clone(&indexes).maintain());
        }
        let acknowledged: Arc<AcknowledgedBatches> = Arc::default();
        let idle = Arc::clone(&acknowledged);
        background.repeat(UPKEEP_EVERY, move || idle.forget_idle(Instant::now()));
        Self {
            reader,
            primary: primary_reader,
            cache,
            indexes,
            acknowledged,
            periods: PeriodCache::default(),
            counts: CountsCache::default(),
            overviews: Overviews::new(timeout),
            tops: TopCache::new(timeout),
            cohorts: CohortCache::default(),
            background: background.clone(),
        }
    }

    /// Puts a value into the shared cache in the background, so that no request waits for Redis.
    pub(super) fn share(&self, key: CacheKey, value: impl Serialize + Send + Sync + 'static) {
        let cache = self.cache.clone();
        self.background.spawn(async move { cache.put(&key, &value).await });
    }

    /// Returns the connections for a statement about a ranking, once all batches that were committed
    /// before this call are applied.
    pub(super) async fn applied(&self, ranking: RankingRef) -> Result<&Reader> {
        if ranking.has_bucket_rows {
            self.indexes.apply(ranking.board).await?;
        }
        Ok(&self.primary)
    }

    /// After a write: treats all batches of a board so far as acknowledged by this instance.
    pub(crate) async fn acknowledge_all(&self, board_id: i32) -> Result<()> {
        let batches = self.reader.batches(board_id).await.map_err(Error::after_write)?;
        for (lane, batch) in batches.into_iter().enumerate() {
            self.acknowledged.raise(board_id, lane, batch);
        }
        Ok(())
    }

    /// Drops all top lists, frozen ones included, from this process.
    pub(crate) fn forget_frozen_tops(&self) {
        self.tops.forget_all();
    }
}
