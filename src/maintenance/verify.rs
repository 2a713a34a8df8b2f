//! Whether what is derived is what the ledger gives. The full comparison reads all of a period; the light one counts, and is done
//! all the time by the instance's timer.
//!
//! Each look is one statement, and so one snapshot: scores may come in, layouts change, and rankings be swapped meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    cache::Cache,
    model::{
        audit::{Checked, CountDifference, Difference},
        board::Board,
        period::PeriodSelector,
    },
    periods::closing,
    ranking::counts,
    store::{
        Store,
        audit::{AuditedPeriod, Auditor, PeriodLook},
    },
    telemetry,
};

/// How often a period is looked at again whose archive goes just then.
const MOST_LOOKS: u32 = 3;

/// Buckets of a ranking.
const BUCKETS: i16 = 100;

/// The timer does not count the rows of a bucket of more players.
const MOST_ROWS: i64 = 1_000_000;

/// No look of the timer takes longer by much; the next goes on where it stopped.
const MOST_TIME: Duration = Duration::from_secs(1);

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything, against the ledger: up to so many differences of each kind are listed.
    Everything {
        /// How many.
        limit: u32,
    },
    /// Counts against each other and against the bucket rows, of rankings only.
    Counts,
}

/// Looks at all periods that have a ranking or an archive (or those of a board, or one of them), and tells of each as soon as it is known.
pub async fn verify(
    store: &Store,
    cache: &Cache,
    board: Option<&Board>,
    selector: Option<&PeriodSelector>,
    depth: Depth,
    mut tell: impl FnMut(Checked),
) -> Result<()> {
    let mut period_id = None;
    if let (Some(board), Some(selector)) = (board, selector) {
        let named = closing::named(store, board, selector).await?;
        // Nobody has scored in it: there is nothing to compare.
        let Some(id) = named.period_id else { return Ok(()) };
        period_id = Some(id);
    }
    let mut auditor = store.auditor().await?;
    for period in store.audited_periods(board.map(|board| board.id), period_id).await? {
        let (board, name) = (period.board.clone(), period.period.clone());
        let checked = match depth {
            Depth::Everything { limit } => everything(cache, &mut auditor, period, limit).await,
            Depth::Counts => counted(&mut auditor, period).await,
        };
        let checked = match checked {
            // What is damaged beyond reading says so, and keeps the others from nothing.
            Err(error @ Error::Internal(_)) => Some(Checked::unreadable(board, name, &error)),
            other => other?,
        };
        if let Some(checked) = checked {
            tell(checked);
        }
    }
    Ok(())
}

/// `None` when the period's archive has gone since.
async fn everything(
    cache: &Cache,
    auditor: &mut Auditor,
    period: AuditedPeriod,
    limit: u32,
) -> Result<Option<Checked>> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let mut looks = 1;
    let look = loop {
        // An archive is dropped behind the back of a snapshot: the next one knows that it is not kept any more.
        match auditor.look(period.period_id, limit).await {
            Ok(Some(look))
                if looks < MOST_LOOKS && look.differences.iter().any(|found| found.kind == "archive missing") => {}
            Err(Error::Unavailable { .. }) if looks < MOST_LOOKS && period.ranking_id.is_none() => {}
            other => break other?,
        }
        looks += 1;
    };
    let Some(look) = look else { return Ok(None) };
    let cached = cached_differences(cache, &look, limit).await;
    let PeriodLook { players, mut differences, .. } = look;
    differences.extend(cached);
    // Those of a kind together, in the order in which they came.
    differences.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(Some(Checked { board: period.board, period: period.period, players, differences }))
}

/// Counts in the cache that bear the snapshot's version, and are not those of the snapshot.
async fn cached_differences(cache: &Cache, look: &PeriodLook, limit: i32) -> Vec<Difference> {
    let Some((ranking_id, version, stored)) = &look.ranking else { return Vec::new() };
    let Some(cached) = counts::cached(cache, *ranking_id, version).await else { return Vec::new() };
    let different: Vec<(usize, Option<&i64>, Option<&i64>)> = (0..stored.len().max(cached.len()))
        .map(|index| (index + 1, stored.get(index), cached.get(index)))
        .filter(|(_, stored, cached)| stored != cached)
        .collect();
    let total = different.len() as u64;
    different
        .into_iter()
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .map(|(place, stored, cached)| Difference {
            kind: "cached count".to_owned(),
            subject: format!("place {place} at version {}", version.text()),
            expected: stored.map(|players| (*players).into()),
            found: cached.map(|players| (*players).into()),
            total,
        })
        .collect()
}

/// The counts of a ranking alone: all buckets, one after the other.
async fn counted(auditor: &mut Auditor, period: AuditedPeriod) -> Result<Option<Checked>> {
    let Some(ranking_id) = period.ranking_id else { return Ok(None) };
    let players = auditor.players(ranking_id).await?;
    let mut found = Vec::new();
    for bucket in 0..BUCKETS {
        found.extend(auditor.count_difference(ranking_id, bucket).await?);
    }
    let total = found.len() as u64;
    let difference = |one: CountDifference| Difference {
        kind: "bucket count".to_owned(),
        subject: format!("bucket {}", one.bucket),
        expected: Some(one.expected.into()),
        found: Some(one.found.into()),
        total,
    };
    let differences = found.into_iter().map(difference).collect();
    Ok(Some(Checked { board: period.board, period: period.period, players, differences }))
}

/// What the timer has found so far, and where it goes on.
#[derive(Debug, Default)]
pub(crate) struct CountAudit(Mutex<Findings>);

#[derive(Debug, Default)]
struct Findings {
    /// The bucket whose rows are counted next.
    bucket: i16,
    /// The ranking after which to go on.
    after: i64,
    /// How uneven each ranking is.
    skew: BTreeMap<i64, f64>,
    /// Rankings and buckets whose count is wrong.
    wrong: BTreeSet<(i64, i16)>,
}

impl CountAudit {
    /// Number of counts that are known to be wrong.
    pub(crate) fn wrong(&self) -> usize {
        lock(self).wrong.len()
    }
}

/// The light form, done by the timer: the rows of one bucket of each current ranking, another each time. A
/// finding is logged when it is new, and counts as long as it is there. Gives how many there are.
pub async fn look_at_counts(store: &Store, audit: &CountAudit) -> Result<usize> {
    let begin = Instant::now();
    let rankings: Vec<i64> = store.current_rankings().await?.into_iter().map(|ranking| ranking.ranking_id).collect();
    let (bucket, after) = {
        let mut findings = lock(audit);
        findings.wrong.retain(|(ranking_id, _)| rankings.contains(ranking_id));
        findings.skew.retain(|ranking_id, _| rankings.contains(ranking_id));
        (findings.bucket, findings.after)
    };
    let mut reached = 0;
    for &ranking_id in rankings.iter().filter(|ranking_id| **ranking_id > after) {
        if begin.elapsed() > MOST_TIME {
            reached = ranking_id - 1;
            break;
        }
        let found = store.count_difference(ranking_id, bucket, MOST_ROWS).await?;
        note(audit, ranking_id, bucket, found.as_ref());
        let skew = store.bucket_skew(ranking_id).await?;
        lock(audit).skew.insert(ranking_id, skew);
    }
    let mut findings = lock(audit);
    findings.after = reached;
    if reached == 0 {
        findings.bucket = (bucket + 1) % BUCKETS;
    }
    let count = findings.wrong.len();
    telemetry::set_count_differences(count);
    telemetry::set_bucket_skew(findings.skew.values().copied().fold(0.0, f64::max));
    Ok(count)
}

/// Takes note of what a look has found; logs and counts it if it is new.
fn note(audit: &CountAudit, ranking_id: i64, bucket: i16, found: Option<&CountDifference>) {
    let mut findings = lock(audit);
    let Some(found) = found else {
        findings.wrong.remove(&(ranking_id, bucket));
        return;
    };
    if findings.wrong.insert((ranking_id, bucket)) {
        telemetry::count_count_differences(1);
        tracing::error!(
            ranking_id,
            bucket,
            expected = found.expected,
            found = found.found,
            "a count of players is wrong: run `centile verify`, then `centile rebuild`; the ledger is not concerned"
        );
    }
}

fn lock(audit: &CountAudit) -> std::sync::MutexGuard<'_, Findings> {
    audit.0.lock().unwrap_or_else(PoisonError::into_inner)
}
