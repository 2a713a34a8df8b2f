//! Top lists, cached whole and already rendered.
//!
//! They may lag by 250 ms, and never behind a score that this instance acknowledged. One refill at a time per list,
//! however many callers wait. Those of closed periods come from the frozen tops; all that is asked then is whether the
//! archive is still the same.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

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
    single_flight::SingleFlight,
    store::{
        period::{ArchiveRef, MeantPeriod, RankingRef, Source},
        rank::RankingState,
    },
    telemetry::{self, Origin},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// For how long a list may go on being served after its state was last seen to be current.
const MAY_LAG: Duration = Duration::from_millis(250);

/// How long a list that nobody asks for is kept: whoever asks to be forgotten is in none any more after it, on whichever instance.
pub(crate) const NAMES_KEPT_FOR: Duration = Duration::from_hours(24);

/// Clocks of instances and of the database agree to this at least. So long before an alias such as `week:previous` comes to
/// mean another period, what was kept under it is no longer taken to be right without asking.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(1);

/// A top list as it is cached: the rendered body and what its `ETag` is made of.
#[derive(Debug, Clone)]
pub struct Top {
    /// The JSON body, rendered once by the function given to [`top`].
    pub body: Arc<str>,
    /// Entity tag without quotes: version, size, and the profile revision unless the names are frozen.
    pub etag: String,
    /// Whether the period is closed.
    pub is_closed: bool,
    /// Source of the last renewal.
    pub answered_by: AnsweredBy,
    /// How old the state is, when PostgreSQL could not be reached to renew it; `None` when it is fresh.
    pub stale_for: Option<Duration>,
}

/// A list in this process.
#[derive(Debug, Clone)]
struct Kept {
    body: Arc<str>,
    etag: Arc<str>,
    holds: Holds,
    answered_by: AnsweredBy,
    /// When the question was asked whose answer showed this state to be current.
    confirmed_at: Instant,
}

/// What a list is known to hold.
#[derive(Debug, Clone)]
enum Holds {
    /// All of the board's scores up to these batches.
    Batches(Arc<[i64]>),
    /// All that will ever be in the period, which is closed, while the selector means it.
    Everything {
        /// When the selector ceases to mean it, by the database's clock.
        until: Option<DateTime<Utc>>,
    },
}

impl Holds {
    /// Whether nothing that was acknowledged is missing.
    fn covers(&self, acknowledged: &[i64]) -> bool {
        match self {
            Self::Batches(batches) => covers(batches, acknowledged),
            Self::Everything { until } => until.is_none_or(|until| Utc::now() + CLOCKS_DIFFER < until),
        }
    }
}

impl From<&RankingState> for Holds {
    fn from(state: &RankingState) -> Self {
        Self::Batches(state.version.batches.as_slice().into())
    }
}

/// A list in the cache that instances share; the key names epoch, ranking and size.
#[derive(Serialize, Deserialize)]
struct Shared<'a> {
    #[serde(borrow)]
    etag: Cow<'a, str>,
    /// JSON within JSON: hardly ever without an escape.
    #[serde(borrow)]
    body: Cow<'a, str>,
}

type ListKey = (i32, PeriodSelector, u32);

/// The lists of this process, and who is renewing each.
#[derive(Debug)]
pub(crate) struct TopCache {
    pub(crate) frozen: FrozenCache,
    lists: moka::sync::Cache<ListKey, Kept>,
    refills: SingleFlight<ListKey, Kept>,
}

impl TopCache {
    /// Creates an empty cache. A caller waits up to `patience` for another caller's refill.
    pub(crate) fn new(patience: Duration) -> Self {
        let bytes = |_: &ListKey, kept: &Kept| u32::try_from(kept.body.len() + 256).unwrap_or(u32::MAX);
        Self {
            frozen: FrozenCache::default(),
            lists: moka::sync::Cache::builder()
                .weigher(bytes)
                .max_capacity(64 << 20)
                .time_to_live(NAMES_KEPT_FOR)
                .build(),
            refills: SingleFlight::new(patience),
        }
    }

    /// Has everything read anew, also while PostgreSQL cannot be reached.
    pub(crate) fn forget_all(&self) {
        self.lists.invalidate_all();
        self.frozen.forget_all();
    }
}

/// The first `limit` players, from the cache: lags by at most 250 ms, never behind a score this instance acknowledged.
/// While PostgreSQL cannot be reached, the last list known, marked with its age.
pub async fn top(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Top> {
    let key = (board.id, selector.clone(), limit);
    // What this call must not be behind; what happens while it waits is for later calls.
    let (came_at, acknowledged_before) = (Instant::now(), rankings.acknowledged.of(board.id));
    let is_fresh = |kept: &Kept| {
        came_at.saturating_duration_since(kept.confirmed_at) < MAY_LAG && kept.holds.covers(&acknowledged_before)
    };
    if let Some(kept) = rankings.tops.lists.get(&key).filter(is_fresh) {
        telemetry::count_read("top", Origin::Here);
        return Ok(answer(&kept, None));
    }
    let refill = || async {
        // Another caller's refill may be recent enough.
        match rankings.tops.lists.get(&key) {
            Some(kept) if is_fresh(&kept) => {
                telemetry::count_read("top", Origin::Here);
                Ok(kept)
            }
            _ => {
                let kept = renew(rankings, board, selector, limit, render).await?;
                rankings.tops.lists.insert(key.clone(), kept.clone());
                Ok(kept)
            }
        }
    };
    match rankings.tops.refills.read(key.clone(), refill).await {
        Ok(kept) => Ok(answer(&kept, None)),
        Err(error @ Error::Unavailable { .. }) => {
            let last = rankings.tops.lists.get(&key);
            telemetry::count_read("top", Origin::Stale);
            last.map(|kept| answer(&kept, Some(kept.confirmed_at.elapsed()))).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

fn answer(kept: &Kept, stale_for: Option<Duration>) -> Top {
    telemetry::note_top_age(kept.confirmed_at.elapsed());
    let is_closed = matches!(kept.holds, Holds::Everything { .. });
    let answered_by = kept.answered_by;
    Top { body: Arc::clone(&kept.body), etag: kept.etag.to_string(), is_closed, answered_by, stale_for }
}

/// Returns the current list: the cached one if its state is still current, another instance's, or a new one.
async fn renew(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Kept> {
    let key = &(board.id, selector.clone(), limit);
    period::read_current(rankings, board, selector, |meant| async move {
        let asked_at = Instant::now();
        match meant {
            Meant::Players(meant, Source::Live(ranking)) => {
                let open = Open { rankings, board, meant: &meant, ranking, is_shared: true };
                let Some(state) = open.state().await? else { return Ok(None) };
                let tag = etag(&meant, ranking, &state, limit);
                match current(rankings, key, ranking, &state, tag, asked_at).await {
                    Some(kept) => Ok(Some(kept)),
                    None => read(&open, limit, render).await,
                }
            }
            Meant::Players(meant, Source::Archive(archive)) => {
                closed(rankings, board, key, &meant, archive, render).await
            }
            Meant::Empty(period, state) => {
                let page = read::page_of(board, read::header(&period, &state), Vec::new());
                Ok(Some(Kept {
                    body: render(board, &page)?.into(),
                    etag: format!("{}.{}", period.name().replace(':', "."), state.version.text()).into(),
                    holds: Holds::from(&state),
                    answered_by: state.answered_by,
                    confirmed_at: asked_at,
                }))
            }
        }
    })
    .await
}

/// The list of a closed period: the one at hand if the archive is still the same, the frozen one, or, where that is too
/// short, the first page of the archive with the names of now. `None` when the archive is no longer the one that was meant.
async fn closed(
    rankings: &Rankings,
    board: &Board,
    key: &ListKey,
    meant: &MeantPeriod,
    archive: ArchiveRef,
    render: fn(&Board, &Page) -> Result<String>,
) -> Result<Option<Kept>> {
    let asked_at = Instant::now();
    let limit = key.2;
    let Some((state, size)) = rankings.store.archive_state(meant, archive).await? else { return Ok(None) };
    let holds = Holds::Everything { until: meant.meant_until };
    let frozen_etag = format!("{}.{limit}", state.version());
    let named_etag = format!("{}.{limit}", state.etag());
    if let Some(kept) = rankings.tops.lists.get(key).filter(|kept| [&*frozen_etag, &*named_etag].contains(&&*kept.etag))
    {
        telemetry::count_read("top", Origin::Here);
        return Ok(Some(Kept { holds, confirmed_at: asked_at, ..kept }));
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
    Ok(Some(Kept {
        body: render(board, &page)?.into(),
        etag: etag.into(),
        holds,
        answered_by: AnsweredBy::Sql,
        confirmed_at: asked_at,
    }))
}

/// A list that is known already and has this tag.
async fn current(
    rankings: &Rankings,
    key: &ListKey,
    ranking: RankingRef,
    state: &RankingState,
    etag: String,
    asked_at: Instant,
) -> Option<Kept> {
    let limit = key.2;
    if let Some(kept) = rankings.tops.lists.get(key).filter(|kept| *kept.etag == *etag) {
        telemetry::count_read("top", Origin::Here);
        return Some(Kept { answered_by: state.answered_by, confirmed_at: asked_at, ..kept });
    }
    let bytes = rankings.cache.get(&cache_key(ranking, state, limit)).await?;
    let shared: Shared<'_> = serde_json::from_slice(&bytes).ok()?;
    if shared.etag != etag {
        return None;
    }
    telemetry::count_read("top", Origin::Shared);
    Some(Kept {
        body: shared.body.into(),
        etag: etag.into(),
        holds: Holds::from(state),
        answered_by: state.answered_by,
        confirmed_at: asked_at,
    })
}

/// A new list, put into the cache for the other instances. `None` when the ranking is no longer the one that was meant.
async fn read(open: &Open<'_>, limit: u32, render: fn(&Board, &Page) -> Result<String>) -> Result<Option<Kept>> {
    let Open { rankings, board, meant, ranking, .. } = *open;
    let asked_at = Instant::now();
    let rows = i32::try_from(limit).unwrap_or(i32::MAX);
    let Some((state, rows)) = open.page(1, rows).await? else { return Ok(None) };
    telemetry::count_read("top", Origin::Database);
    let page = read::page_of(board, read::header(&meant.period, &state), rows);
    let kept = Kept {
        body: render(board, &page)?.into(),
        etag: etag(meant, ranking, &state, limit).into(),
        holds: Holds::from(&state),
        answered_by: state.answered_by,
        confirmed_at: asked_at,
    };
    if let Ok(bytes) = serde_json::to_vec(&Shared { etag: Cow::Borrowed(&kept.etag), body: Cow::Borrowed(&kept.body) })
    {
        rankings.cache.put(&cache_key(ranking, &state, limit), bytes).await;
    }
    Ok(Some(kept))
}

/// Names a list's bytes: the period through its ranking, whether it is over, the state, the names shown, the size.
fn etag(meant: &MeantPeriod, ranking: RankingRef, state: &RankingState, limit: u32) -> String {
    let period = meant.period.state.name();
    format!("{}.{period}.{}.{}.{limit}", ranking.ranking_id, state.version.text(), state.revision)
}

fn cache_key(ranking: RankingRef, state: &RankingState, limit: u32) -> CacheKey {
    CacheKey::Top { epoch: state.version.epoch.clone(), ranking: ranking.ranking_id, size: limit }
}
