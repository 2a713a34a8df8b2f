//! Top lists, cached as rendered bodies.
//!
//! A list may lag by 250 ms, but never behind a score that this instance acknowledged. One caller
//! at a time refills a list; the others wait for it. Lists of closed periods come from the frozen
//! tops, and each read only checks that the archive has not been replaced.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{
    Error, Result,
    cache::CacheKey,
    model::{
        board::Board,
        period::PeriodSelector,
        rank::{AnsweredBy, Page},
    },
    ranking::{
        Open, Rankings,
        acknowledged::covers,
        frozen::{self, FrozenCache},
        period::{self, Meant},
        read,
    },
    store::{
        period::{ArchiveRef, MeantPeriod, RankingRef, Source},
        rank::RankingState,
    },
    telemetry::{self, Origin},
};

/// Maximum age of a list since its state was last confirmed to be current.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Lifetime of a cached list after its last refill. An erased user's name disappears from every
/// instance within it.
pub(crate) const NAMES_TTL: Duration = Duration::from_hours(24);

/// Maximum difference between the clocks of instances and database. When an alias such as
/// `week:previous` is about to change its period, its cached list is checked again from this time
/// on.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// Maximum look-ups of a ranking or archive that is replaced while it is read.
const MAX_LOOK_UPS: usize = 4;

/// A cached top list: the rendered body and its entity tag.
#[derive(Debug, Clone)]
pub struct Top {
    /// The JSON body, rendered once by the function given to [`top`].
    pub body: Arc<str>,
    /// Entity tag without quotes: version, size, and the profile revision unless the names are
    /// frozen.
    pub etag: String,
    /// Whether the period is closed.
    pub is_closed: bool,
    /// Source of the last refill.
    pub answered_by: AnsweredBy,
    /// Age of the state if PostgreSQL is unreachable; `None` for a current list.
    pub stale_for: Option<Duration>,
}

/// A list in this process.
#[derive(Debug, Clone)]
struct CachedTop {
    body: Arc<str>,
    etag: Arc<str>,
    coverage: Coverage,
    answered_by: AnsweredBy,
    /// Start of the read that last confirmed this state.
    confirmed_at: Instant,
}

/// The scores that a list contains.
#[derive(Debug, Clone)]
enum Coverage {
    /// All scores of the board up to these batches, one per lane.
    Batches(Arc<[i64]>),
    /// All scores of a closed period.
    Closed {
        /// End of the time in which the selector means this period, by the database's clock.
        until: Option<DateTime<Utc>>,
    },
}

impl Coverage {
    /// Returns whether the list contains every acknowledged score.
    fn covers(&self, acknowledged: &[i64]) -> bool {
        match self {
            Self::Batches(batches) => covers(batches, acknowledged),
            Self::Closed { until } => until.is_none_or(|until| Utc::now() + MAX_CLOCK_SKEW < until),
        }
    }
}

impl From<&RankingState> for Coverage {
    fn from(state: &RankingState) -> Self {
        Self::Batches(state.version.batches.as_slice().into())
    }
}

/// A list in the shared cache; its key names epoch, ranking and size.
#[derive(Serialize, Deserialize)]
struct Shared<'a> {
    #[serde(borrow)]
    etag: Cow<'a, str>,
    /// JSON within JSON. It nearly always contains escapes, so it is rarely borrowed.
    #[serde(borrow)]
    body: Cow<'a, str>,
}

type ListKey = (i32, PeriodSelector, u32);

/// The lists of this process, and a lock per list that serializes its refills.
#[derive(Debug)]
pub(crate) struct TopCache {
    pub(crate) frozen: FrozenCache,
    lists: moka::sync::Cache<ListKey, CachedTop>,
    refills: moka::sync::Cache<ListKey, Arc<Mutex<LastFailure>>>,
}

impl TopCache {
    /// Drops all lists and frozen tops, so that none is served during an outage either.
    pub(crate) fn forget_all(&self) {
        self.lists.invalidate_all();
        self.frozen.forget_all();
    }
}

/// Start and error of the last refill; `None` if it succeeded.
type LastFailure = Option<(Instant, Error)>;

impl Default for TopCache {
    fn default() -> Self {
        let bytes = |_: &ListKey, kept: &CachedTop| u32::try_from(kept.body.len() + 256).unwrap_or(u32::MAX);
        Self {
            frozen: FrozenCache::default(),
            lists: moka::sync::Cache::builder().weigher(bytes).max_capacity(64 << 20).time_to_live(NAMES_TTL).build(),
            refills: moka::sync::Cache::new(10_000),
        }
    }
}

/// Returns the first `limit` players, from the cache if possible.
///
/// The list lags by at most 250 ms, and never behind a score that this instance acknowledged. While
/// PostgreSQL is unreachable, returns the last known list, marked with its age.
pub async fn top(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Top> {
    let key = (board.id, selector.clone(), limit);
    // The list must contain these scores. Later ones concern later calls.
    let (arrived_at, acknowledged_before) = (Instant::now(), rankings.acknowledged.of(board.id));
    let fresh = || {
        let kept = rankings.tops.lists.get(&key)?;
        let lag = arrived_at.saturating_duration_since(kept.confirmed_at);
        (lag < MAX_LAG && kept.coverage.covers(&acknowledged_before)).then(|| answer(&kept, None))
    };
    if let Some(top) = fresh() {
        telemetry::count_read("top", Origin::Here);
        return Ok(top);
    }
    // After waiting, check the list again: a refill that began before this call may lack
    // acknowledged scores. A refill that began later counts for this call, even if it failed;
    // otherwise each waiting caller would repeat the failed read.
    let refill = rankings.tops.refills.get_with(key.clone(), Arc::default);
    let mut last_failure = refill.lock().await;
    if let Some(top) = fresh() {
        telemetry::count_read("top", Origin::Here);
        return Ok(top);
    }
    let refilled = match &*last_failure {
        Some((began_at, error)) if arrived_at <= *began_at => Err(error.clone()),
        _ => {
            let began_at = Instant::now();
            let refilled = refill_list(rankings, board, selector, limit, render).await;
            *last_failure = refilled.as_ref().err().map(|error| (began_at, error.clone()));
            refilled
        }
    };
    match refilled {
        Ok(kept) => {
            rankings.tops.lists.insert(key, kept.clone());
            Ok(answer(&kept, None))
        }
        Err(error @ Error::Unavailable { .. }) => {
            let last = rankings.tops.lists.get(&key);
            telemetry::count_read("top", Origin::Stale);
            last.map(|kept| answer(&kept, Some(kept.confirmed_at.elapsed()))).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

fn answer(kept: &CachedTop, stale_for: Option<Duration>) -> Top {
    telemetry::note_top_age(kept.confirmed_at.elapsed());
    let is_closed = matches!(kept.coverage, Coverage::Closed { .. });
    let answered_by = kept.answered_by;
    Top { body: Arc::clone(&kept.body), etag: kept.etag.to_string(), is_closed, answered_by, stale_for }
}

/// Returns a current list: the cached one if its state is current, another instance's, or a new
/// one.
async fn refill_list(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<CachedTop> {
    for _ in 0..MAX_LOOK_UPS {
        let asked_at = Instant::now();
        let (meant, ranking) = match period::meant(rankings, board, selector).await? {
            Meant::Players(meant, Source::Live(ranking)) => (meant, ranking),
            Meant::Players(meant, Source::Archive(archive)) => {
                let key = (board.id, selector.clone(), limit);
                if let Some(kept) = closed(rankings, board, key, &meant, archive, render).await? {
                    return Ok(kept);
                }
                rankings.periods.forget(board.id, selector);
                continue;
            }
            Meant::Empty(period, state) => {
                let page = read::page_of(board, read::header(&period, &state), Vec::new());
                return Ok(CachedTop {
                    body: render(board, &page)?.into(),
                    etag: format!("{}.{}", period.name().replace(':', "."), state.version.text()).into(),
                    coverage: Coverage::from(&state),
                    answered_by: state.answered_by,
                    confirmed_at: asked_at,
                });
            }
        };
        let open = Open { rankings, board, meant: &meant, ranking, is_shared: true };
        let Some(state) = open.state().await? else {
            rankings.periods.forget(board.id, selector);
            continue;
        };
        let tag = etag(&meant, ranking, &state, limit);
        if let Some(kept) = current(rankings, (board.id, selector.clone(), limit), ranking, &state, tag, asked_at).await
        {
            return Ok(kept);
        }
        if let Some(kept) = read(&open, limit, render).await? {
            return Ok(kept);
        }
        rankings.periods.forget(board.id, selector);
    }
    Err(Error::unavailable(format!("{selector} is being replaced; retry")))
}

/// Returns the list of a closed period: the cached one if the archive is the same, or the frozen
/// top. If the frozen top is too short, reads the first page of the archive with current names.
/// `None` if the archive has been replaced.
async fn closed(
    rankings: &Rankings,
    board: &Board,
    key: ListKey,
    meant: &MeantPeriod,
    archive: ArchiveRef,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Option<CachedTop>> {
    let asked_at = Instant::now();
    let limit = key.2;
    let Some((state, size)) = rankings.store.archive_state(meant, archive).await? else { return Ok(None) };
    let coverage = Coverage::Closed { until: meant.meant_until };
    let frozen_etag = format!("{}.{limit}", state.version());
    let named_etag = format!("{}.{limit}", state.etag());
    if let Some(kept) =
        rankings.tops.lists.get(&key).filter(|kept| [&*frozen_etag, &*named_etag].contains(&&*kept.etag))
    {
        telemetry::count_read("top", Origin::Here);
        return Ok(Some(CachedTop { coverage, confirmed_at: asked_at, ..kept }));
    }
    let Some(frozen) = frozen::frozen(rankings, meant, &state, size).await? else { return Ok(None) };
    let (state, rows, etag) = if let Some(rows) = frozen.first(limit) {
        (state, rows.to_vec(), frozen_etag)
    } else {
        let wanted = i32::try_from(limit).unwrap_or(i32::MAX);
        let Some((state, rows)) = rankings.store.archive_page(meant, archive, 1, wanted).await? else {
            return Ok(None);
        };
        let etag = format!("{}.{limit}", state.etag());
        (state, rows, etag)
    };
    let page = read::page_of(board, read::archive_header(&meant.period, &state), rows);
    Ok(Some(CachedTop {
        body: render(board, &page)?.into(),
        etag: etag.into(),
        coverage,
        answered_by: AnsweredBy::Sql,
        confirmed_at: asked_at,
    }))
}

/// Returns a list with this tag from this process or from the shared cache.
async fn current(
    rankings: &Rankings,
    key: ListKey,
    ranking: RankingRef,
    state: &RankingState,
    etag: String,
    asked_at: Instant,
) -> Option<CachedTop> {
    let limit = key.2;
    if let Some(kept) = rankings.tops.lists.get(&key).filter(|kept| *kept.etag == *etag) {
        telemetry::count_read("top", Origin::Here);
        return Some(CachedTop { answered_by: state.answered_by, confirmed_at: asked_at, ..kept });
    }
    let bytes = rankings.cache.get(&cache_key(ranking, state, limit)).await?;
    let shared: Shared<'_> = serde_json::from_slice(&bytes).ok()?;
    if shared.etag != etag {
        return None;
    }
    telemetry::count_read("top", Origin::Shared);
    Some(CachedTop {
        body: shared.body.into(),
        etag: etag.into(),
        coverage: Coverage::from(state),
        answered_by: state.answered_by,
        confirmed_at: asked_at,
    })
}

/// Reads a list and stores it in the shared cache. `None` if the ranking has been replaced.
async fn read(open: &Open<'_>, limit: u32, render: fn(&Board, &Page) -> Result<String>) -> Result<Option<CachedTop>> {
    let Open { rankings, board, meant, ranking, .. } = *open;
    let asked_at = Instant::now();
    let rows = i32::try_from(limit).unwrap_or(i32::MAX);
    let Some((state, rows)) = open.page(1, rows).await? else { return Ok(None) };
    telemetry::count_read("top", Origin::Database);
    let page = read::page_of(board, read::header(&meant.period, &state), rows);
    let kept = CachedTop {
        body: render(board, &page)?.into(),
        etag: etag(meant, ranking, &state, limit).into(),
        coverage: Coverage::from(&state),
        answered_by: state.answered_by,
        confirmed_at: asked_at,
    };
    if let Ok(bytes) = serde_json::to_vec(&Shared { etag: Cow::Borrowed(&kept.etag), body: Cow::Borrowed(&kept.body) })
    {
        rankings.cache.put(&cache_key(ranking, &state, limit), bytes).await;
    }
    Ok(Some(kept))
}

/// Returns the entity tag of a list's bytes: ranking, period state, version, profile revision and
/// size.
fn etag(meant: &MeantPeriod, ranking: RankingRef, state: &RankingState, limit: u32) -> String {
    let period = meant.period.state.name();
    format!("{}.{period}.{}.{}.{limit}", ranking.ranking_id, state.version.text(), state.revision)
}

fn cache_key(ranking: RankingRef, state: &RankingState, limit: u32) -> CacheKey {
    CacheKey::Top { epoch: state.version.epoch.clone(), ranking: ranking.ranking_id, size: limit }
}
