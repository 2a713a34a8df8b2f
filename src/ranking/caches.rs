//! Caches of one process for reads of rankings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    model::{
        board::PeriodKind,
        id::{Batch, RankingId},
        league::LeagueState,
        period::{Period, PeriodSelector},
        rank::{AnsweredBy, Distribution, Page},
        tier::Tiers,
        user::UserId,
    },
    single_flight::{SingleFlight, SingleFlightCache},
    store::{
        period::{PeriodSource, ResolvedPeriod},
        rank::{CountsVersion, StoredRow},
    },
};

/// Lifetime of a cached list after its last refill. An erased user's name disappears from every
/// instance within it.
const NAMES_TTL: Duration = Duration::from_hours(24);

/// Maximum age of an overview.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Approximate bytes of frozen tops that this process keeps.
const FROZEN_BYTES: u64 = 64 << 20;

/// Places of players in leagues that are kept, and members of kept cohorts.
const LEAGUE_PLACES: u64 = 100_000;
const COHORT_MEMBERS: u64 = 200_000;

/// Full cohorts in which each member has a standing. The members of such a cohort never change.
#[derive(Debug)]
pub(super) struct CohortCache {
    /// The cohort of a player, by board and player.
    places: moka::sync::Cache<(i32, UserId), i64>,
    cohorts: moka::sync::Cache<i64, Arc<KeptCohort>>,
}

/// A cohort, and the revision of the board's structure before it was read. Changes of the league and
/// closings raise the revision.
#[derive(Debug)]
pub(super) struct KeptCohort {
    pub(super) state: LeagueState,
    pub(super) revision: i64,
}

impl Default for CohortCache {
    fn default() -> Self {
        let members = |_: &i64, kept: &Arc<KeptCohort>| u32::try_from(kept.state.rows.len()).unwrap_or(u32::MAX);
        Self {
            places: moka::sync::Cache::new(LEAGUE_PLACES),
            cohorts: moka::sync::Cache::builder().max_capacity(COHORT_MEMBERS).weigher(members).build(),
        }
    }
}

impl CohortCache {
    pub(super) fn get(&self, board_id: i32, user: &UserId) -> Option<Arc<KeptCohort>> {
        self.cohorts.get(&self.places.get(&(board_id, user.clone()))?)
    }

    pub(super) fn insert(&self, board_id: i32, user: &UserId, cohort_id: i64, kept: KeptCohort) {
        self.places.insert((board_id, user.clone()), cohort_id);
        self.cohorts.insert(cohort_id, Arc::new(kept));
    }

    /// Forgets the place of a player.
    pub(super) fn forget(&self, board_id: i32, user: &UserId) {
        self.places.invalidate(&(board_id, user.clone()));
    }
}

/// Caches the period of each board and selector.
#[derive(Debug)]
pub(crate) struct PeriodCache(moka::sync::Cache<(i32, PeriodSelector), (Arc<ResolvedPeriod>, PeriodSource)>);

impl Default for PeriodCache {
    fn default() -> Self {
        Self(moka::sync::Cache::builder().max_capacity(100_000).time_to_live(Duration::from_mins(10)).build())
    }
}

impl PeriodCache {
    pub(super) fn get(&self, key: &(i32, PeriodSelector)) -> Option<(Arc<ResolvedPeriod>, PeriodSource)> {
        self.0.get(key)
    }

    pub(super) fn insert(&self, key: (i32, PeriodSelector), resolved: Arc<ResolvedPeriod>, source: PeriodSource) {
        self.0.insert(key, (resolved, source));
    }

    /// Drops the result of a selector.
    pub(crate) fn forget(&self, board_id: i32, selector: &PeriodSelector) {
        self.0.invalidate(&(board_id, selector.clone()));
    }
}

/// Players in each bucket of a ranking, as instances share them in Redis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CachedCounts {
    /// Id of the ranking.
    pub(crate) ranking: RankingId,
    #[serde(flatten)]
    pub(crate) version: CountsVersion,
    /// Players of buckets 0 to 99.
    pub(crate) counts: Vec<i64>,
    /// When this process last shared counts of this ranking.
    #[serde(skip)]
    pub(super) shared_at: Option<Instant>,
}

/// The newest known counts of each ranking.
#[derive(Debug)]
pub(crate) struct CountsCache(pub(super) moka::sync::Cache<RankingId, Arc<CachedCounts>>);

impl Default for CountsCache {
    fn default() -> Self {
        Self(moka::sync::Cache::new(1_000))
    }
}

#[derive(Debug)]
pub(crate) struct Overviews {
    pub(super) periods: SingleFlightCache<i32, Arc<[Period]>>,
    pub(super) segments: SingleFlightCache<(i32, PeriodKind, String), Arc<[String]>>,
    pub(super) distributions: SingleFlightCache<(i32, PeriodSelector), Arc<Distribution>>,
}

impl Overviews {
    /// Creates empty caches. `timeout` limits the wait for another caller's read.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            periods: SingleFlightCache::new(timeout, MAX_AGE),
            segments: SingleFlightCache::new(timeout, MAX_AGE),
            distributions: SingleFlightCache::new(timeout, MAX_AGE),
        }
    }
}

/// A top list in this process.
#[derive(Debug, Clone)]
pub(crate) struct CachedTop {
    pub(super) page: Arc<Page>,
    pub(super) body: Arc<str>,
    pub(super) etag: Arc<str>,
    pub(super) coverage: Coverage,
    pub(super) answered_by: AnsweredBy,
    /// Start of the read that last confirmed this state.
    pub(super) confirmed_at: Instant,
}

/// The scores that a list contains.
#[derive(Debug, Clone)]
pub(crate) enum Coverage {
    /// All scores of the board up to these batches, one per lane.
    Batches(Arc<[Batch]>),
    /// All scores of a closed period.
    Closed {
        /// End of the time in which the selector means this period, by the database's clock.
        until: Option<DateTime<Utc>>,
    },
}

/// The tiers of the board are a part of the key, because the rendered bodies contain them.
pub(super) type ListKey = (i32, PeriodSelector, u32, Tiers);

#[derive(Debug)]
pub(crate) struct TopCache {
    pub(super) frozen: FrozenCache,
    pub(super) lists: moka::sync::Cache<ListKey, CachedTop>,
    pub(super) refills: SingleFlight<ListKey, CachedTop>,
}

impl TopCache {
    /// Creates an empty cache. A caller waits up to `timeout` for another caller's refill.
    pub(crate) fn new(timeout: Duration) -> Self {
        // A page takes about as much memory as its body.
        let bytes = |_: &ListKey, cached: &CachedTop| u32::try_from(2 * cached.body.len() + 256).unwrap_or(u32::MAX);
        Self {
            frozen: FrozenCache::default(),
            lists: moka::sync::Cache::builder().weigher(bytes).max_capacity(64 << 20).time_to_live(NAMES_TTL).build(),
            refills: SingleFlight::new(timeout),
        }
    }

    /// Drops all lists and frozen tops, so that none is served during an outage either.
    pub(crate) fn forget_all(&self) {
        self.lists.invalidate_all();
        self.frozen.0.invalidate_all();
    }
}

/// The frozen top of a closed period.
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

/// Frozen tops by version.
#[derive(Debug)]
pub(crate) struct FrozenCache(pub(super) moka::sync::Cache<String, Arc<Frozen>>);

impl Default for FrozenCache {
    fn default() -> Self {
        // About 256 bytes per row, texts included.
        let bytes = |_: &String, frozen: &Arc<Frozen>| u32::try_from(256 * (frozen.rows.len() + 1)).unwrap_or(u32::MAX);
        Self(moka::sync::Cache::builder().weigher(bytes).max_capacity(FROZEN_BYTES).time_to_live(NAMES_TTL).build())
    }
}
