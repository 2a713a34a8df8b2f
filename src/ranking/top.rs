//! Top lists, cached with their rendered bodies.
//!
//! A list may lag by 250 ms, but never behind a score that this instance acknowledged. One caller
//! at a time refills a list; the others wait for it. Lists of closed periods come from the frozen
//! tops, and each read only checks that the archive has not been replaced.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    cache::{CacheKey, CacheKind},
    model::{
        board::Board,
        id::Batch,
        name::Named as _,
        period::PeriodSelector,
        rank::{AnsweredBy, Page},
        segment::Segment,
    },
    ranking::{
        acknowledged::covers,
        caches::{CachedTop, Coverage, ListKey},
        frozen,
        rankings::Rankings,
        read,
        source::{self, RankSource},
    },
    store::{
        period::{ArchiveRef, PeriodSource, RankingRef},
        rank::{RankingState, StateOf},
    },
    telemetry::{self, ReadSource},
};

/// Maximum age of a list since its state was last confirmed to be current.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Maximum difference between the clocks of instances and database. When an alias such as
/// `week:previous` is about to change its period, its cached list is checked again from this time
/// on.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// A cached top list: its page, the rendered body, and its entity tag.
#[derive(Debug, Clone)]
pub struct Top {
    pub page: Arc<Page>,
    /// The page as JSON, rendered once by the function given to [`top`].
    pub body: Arc<str>,
    /// Entity tag without quotes: version, size, and the profile revision unless the names are
    /// frozen.
    pub etag: String,
    pub is_closed: bool,
    /// Source of the last refill.
    pub answered_by: AnsweredBy,
    /// Age of the state if PostgreSQL is unreachable; `None` for a current list.
    pub stale_for: Option<Duration>,
}

impl Coverage {
    /// Returns the coverage of a list of an open period in this state.
    fn from_state(state: &RankingState) -> Self {
        Self::Batches(match &state.of {
            StateOf::Batches(batches) => batches.as_slice().into(),
            StateOf::Archive(_) => Arc::default(),
        })
    }

    /// Returns whether the list contains every acknowledged score.
    fn covers(&self, acknowledged: &[Batch]) -> bool {
        match self {
            Self::Batches(batches) => covers(batches, acknowledged),
            Self::Closed { until } => until.is_none_or(|until| Utc::now() + MAX_CLOCK_SKEW < until),
        }
    }
}

/// A list in the shared cache. Its entity tag identifies the ranking and its state.
#[derive(Serialize, Deserialize)]
struct SharedTop {
    etag: String,
    page: Page,
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
    let key = (board.id, selector.clone(), limit, board.tiers.clone());
    let fresh = || {
        // The list must contain these scores. Later ones concern later calls.
        let (now, acknowledged) = (Instant::now(), rankings.acknowledged.batches(board.owner));
        let cached = rankings.tops.lists.get(&key)?;
        let lag = now.saturating_duration_since(cached.confirmed_at);
        if lag >= MAX_LAG || !cached.coverage.covers(&acknowledged) {
            return None;
        }
        telemetry::count_read("top", ReadSource::Here);
        Some(cached)
    };
    if let Some(cached) = fresh() {
        return Ok(answer(&cached, None));
    }
    let refill = async || {
        // A refill that ended while this caller waited may be recent enough, for all callers that
        // share this one.
        if let Some(cached) = fresh() {
            return Ok(cached);
        }
        let cached = refill_list(rankings, board, selector, limit, render).await?;
        rankings.tops.lists.insert(key.clone(), cached.clone());
        Ok(cached)
    };
    match rankings.tops.refills.read(key.clone(), refill).await {
        Ok(cached) => Ok(answer(&cached, None)),
        Err(error) if rankings.reader.servers.is_outage(&error).await => {
            let cached = rankings.tops.lists.get(&key).ok_or(error)?;
            telemetry::count_read("top", ReadSource::Stale);
            Ok(answer(&cached, Some(cached.confirmed_at.elapsed())))
        }
        Err(error) => Err(error),
    }
}

fn answer(cached: &CachedTop, stale_for: Option<Duration>) -> Top {
    telemetry::record_top_age(cached.confirmed_at.elapsed());
    let is_closed = matches!(cached.coverage, Coverage::Closed { .. });
    let answered_by = cached.answered_by;
    let (page, body) = (Arc::clone(&cached.page), Arc::clone(&cached.body));
    Top { page, body, etag: cached.etag.to_string(), is_closed, answered_by, stale_for }
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
    let key = &(board.id, selector.clone(), limit, board.tiers.clone());
    // Before the state is read, so that the list is at most as old as it says.
    let asked_at = Instant::now();
    let acknowledged = &rankings.acknowledged.batches(board.owner);
    source::with_source(rankings, board, selector, true, |source| async move {
        match source.resolved.source {
            Some(PeriodSource::Live(ranking)) => {
                let state = source.state().await?;
                if let Some(cached) = current_list(&source, ranking, key, &state, asked_at, render).await? {
                    return Ok(cached);
                }
                read_list(&source, ranking, limit, asked_at, render).await
            }
            Some(PeriodSource::Archive(archive)) => closed_list(&source, archive, key, render).await,
            None => {
                let state = source.state().await?;
                let (page, period) = (read::page_of(board, source.header(&state), Vec::new()), &source.resolved.period);
                let segment = period.segment.as_ref().map(Segment::digest).unwrap_or_default();
                let etag = format!("{}{segment}.{}", period.name().replace(':', "."), state.version());
                // On a cluster, the snapshot without a ranking may be older than that of the batches.
                let coverage = Coverage::Batches(acknowledged.as_slice().into());
                CachedTop::new(board, page, etag, coverage, asked_at, render)
            }
        }
    })
    .await
}

impl CachedTop {
    fn new(
        board: &Board,
        page: Page,
        etag: String,
        coverage: Coverage,
        confirmed_at: Instant,
        render: fn(&Board, &Page) -> Result<String>,
    ) -> Result<Self> {
        let body = render(board, &page)?.into();
        let answered_by = page.header.answered_by;
        Ok(Self { page: page.into(), body, etag: etag.into(), coverage, answered_by, confirmed_at })
    }
}

/// Returns the list of a closed period: the cached one if the archive is the same, or the frozen
/// top. If the frozen top is too short, reads the first page of the archive with current names.
async fn closed_list(
    source: &RankSource<'_>,
    archive: ArchiveRef,
    key: &ListKey,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<CachedTop> {
    let RankSource { rankings, board, resolved, .. } = source;
    let asked_at = Instant::now();
    let limit = key.2;
    let state = rankings.reader.archive_state(resolved, archive).await?;
    let coverage = Coverage::Closed { until: resolved.valid_until };
    let tag_of = |version: String| format!("{version}.{limit}");
    let (frozen_etag, named_etag) = (tag_of(state.version()), state.etag().map(tag_of));
    let is_same = |cached: &CachedTop| *cached.etag == *frozen_etag || named_etag.as_deref() == Some(&*cached.etag);
    if let Some(cached) = rankings.tops.lists.get(key).filter(is_same) {
        telemetry::count_read("top", ReadSource::Here);
        return Ok(CachedTop { coverage, confirmed_at: asked_at, ..cached });
    }
    let frozen = if archive.has_frozen_top {
        frozen::frozen(source, archive, &state).await?.first(limit).map(<[_]>::to_vec)
    } else {
        None
    };
    let (state, rows, etag) = if let Some(rows) = frozen {
        (state, rows, frozen_etag)
    } else {
        let (state, rows) = source.page(1, i32::try_from(limit).unwrap_or(i32::MAX)).await?;
        let etag = state.etag().map(tag_of).unwrap_or_default();
        (state, rows, etag)
    };
    let page = read::page_of(board, source.header(&state), rows);
    CachedTop::new(board, page, etag, coverage, asked_at, render)
}

/// Returns a list of this state from this process or from the shared cache.
async fn current_list(
    source: &RankSource<'_>,
    ranking: RankingRef,
    key: &ListKey,
    state: &RankingState,
    asked_at: Instant,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Option<CachedTop>> {
    let RankSource { rankings, board, .. } = source;
    let etag = etag(source, ranking, state, key.2);
    if let Some(cached) = rankings.tops.lists.get(key).filter(|cached| *cached.etag == *etag) {
        telemetry::count_read("top", ReadSource::Here);
        return Ok(Some(CachedTop { answered_by: state.answered_by, confirmed_at: asked_at, ..cached }));
    }
    let is_current = |shared: &SharedTop| shared.etag == etag;
    let Some(shared) = rankings.cache.get(&cache_key(source, key.2), is_current).await else { return Ok(None) };
    telemetry::count_read("top", ReadSource::Shared);
    let SharedTop { etag, mut page } = shared;
    page.header.answered_by = state.answered_by;
    CachedTop::new(board, page, etag, Coverage::from_state(state), asked_at, render).map(Some)
}

/// Reads a list and stores it in the shared cache.
async fn read_list(
    source: &RankSource<'_>,
    ranking: RankingRef,
    limit: u32,
    asked_at: Instant,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<CachedTop> {
    let RankSource { rankings, board, .. } = source;
    let (state, rows) = source.page(1, i32::try_from(limit).unwrap_or(i32::MAX)).await?;
    telemetry::count_read("top", ReadSource::Database);
    let page = read::page_of(board, source.header(&state), rows);
    let etag = etag(source, ranking, &state, limit);
    let cached = CachedTop::new(board, page, etag, Coverage::from_state(&state), asked_at, render)?;
    let shared = SharedTop { etag: cached.etag.to_string(), page: Page::clone(&cached.page) };
    rankings.share(cache_key(source, limit), shared);
    Ok(cached)
}

/// Returns the entity tag of a list's bytes: ranking, rules of the order, period state, version, profile
/// revision, size and tiers.
fn etag(source: &RankSource<'_>, ranking: RankingRef, state: &RankingState, limit: u32) -> String {
    let board = source.board;
    let (order, period) = (board.order_tag(), source.resolved.period.state.name());
    format!(
        "{}.{order}.{period}.{}.{}.{limit}{}",
        ranking.ranking_id.0,
        state.version(),
        state.revision,
        board.tiers.digest()
    )
}

fn cache_key(source: &RankSource<'_>, limit: u32) -> CacheKey {
    CacheKind::Top { size: limit }.of(source.board.slug.as_str(), &source.resolved.period.full_name())
}
