//! Compares derived data with the ledger.
//!
//! The full comparison reads all of a period. The light one compares counts, and runs continuously
//! on the instance's timer. Each comparison is one statement and so one snapshot: scores may
//! arrive, layouts change, and rankings be swapped meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    cache::Cache,
    model::{
        board::Board,
        id::RankingId,
        period::PeriodSelector,
        verification::{CountDifference, Difference, VerifiedPeriod},
    },
    periods::closing,
    ranking::counts,
    store::{
        Administrator,
        verification::{PeriodComparison, SettledPoint, VerifiablePeriod, Verifier},
    },
    telemetry,
};

/// Maximum attempts to compare a period whose archive is dropped meanwhile.
const MAX_ATTEMPTS: u32 = 3;

const BUCKETS: i16 = 100;

/// Largest bucket whose rows the timer counts.
const MAX_ROWS: i64 = 1_000_000;

/// Approximate maximum time of a timer run. The next run continues where it stopped.
const MAX_RUN_TIME: Duration = Duration::from_secs(1);

/// Scope of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything, against the ledger.
    Everything {
        /// Maximum differences listed of each kind.
        limit: u32,
        /// Whether to read the whole ledger and all archives, also what was verified.
        whole: bool,
    },
    /// Counts against each other and against the bucket rows, for rankings only.
    Counts,
}

/// Compares all periods that have a ranking or an archive, those of a board, or one. Reports each
/// as soon as it is compared.
pub async fn verify(
    admin: &Administrator,
    cache: &Cache,
    board: Option<&Board>,
    selector: Option<&PeriodSelector>,
    depth: Depth,
    mut report: impl FnMut(VerifiedPeriod),
) -> Result<()> {
    let mut period_id = None;
    if let (Some(board), Some(selector)) = (board, selector) {
        let named = closing::named(admin, board, selector).await?;
        // The period has no scores, so there is nothing to compare.
        let Some(id) = named.period_id else { return Ok(()) };
        period_id = Some(id);
    }
    let mut verifier = admin.verifier().await?;
    let mut begun = None;
    for period in admin.verifiable_periods(board.map(|board| board.id), period_id).await? {
        let (board, name) = (period.board.clone(), period.period.clone());
        let (id, ranking_id) = (period.period_id, period.ranking_id);
        let checked = match depth {
            Depth::Everything { limit, whole } => {
                // Once for all rankings of a board, whose periods follow each other.
                begun = begun.filter(|(board_id, _)| *board_id == period.board_id);
                if begun.is_none() && period.ranking_id.is_some() {
                    begun = Some((period.board_id, verifier.begin(period.board_id).await?));
                }
                let point = begun.as_ref().map(|(_, point)| point);
                everything(cache, &mut verifier, period, point, limit, whole).await
            }
            Depth::Counts => counted(&mut verifier, period).await,
        };
        let checked = match checked {
            // Damage that prevents reading is reported, and does not stop the other comparisons.
            Err(error @ Error::Internal(_)) => {
                match ranking_id.zip(begun.as_ref()) {
                    Some((ranking_id, (_, point))) => verifier.end(ranking_id, false, None, point).await?,
                    None => verifier.end_archive(id, 0, None).await?,
                }
                Some(VerifiedPeriod::unreadable(board, name, &error))
            }
            other => other?,
        };
        if let Some(checked) = checked {
            report(checked);
        }
    }
    Ok(())
}

/// Returns `None` when the period's archive was dropped meanwhile.
async fn everything(
    cache: &Cache,
    verifier: &mut Verifier,
    period: VerifiablePeriod,
    point: Option<&SettledPoint>,
    limit: u32,
    whole: bool,
) -> Result<Option<VerifiedPeriod>> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let mut attempts = 1;
    let comparison = loop {
        // The archive may be dropped during the comparison, as the next snapshot shows. Reads retry
        // differently (`ranking::period`): they resolve the period again.
        match verifier.compare(period.period_id, limit, whole).await {
            Ok(Some(comparison))
                if attempts < MAX_ATTEMPTS
                    && comparison.differences.iter().any(|found| found.kind == "archive missing") => {}
            Err(error) if error.is_temporary() && attempts < MAX_ATTEMPTS && period.ranking_id.is_none() => {}
            other => break other?,
        }
        attempts += 1;
    };
    let Some(comparison) = comparison else { return Ok(None) };
    let agrees = comparison.differences.is_empty();
    if let Some((ranking_id, point)) = comparison.ranking_id.zip(point) {
        verifier.end(ranking_id, agrees, comparison.damaged_at, point).await?;
    } else {
        let revision = if agrees { comparison.revision } else { 0 };
        if comparison.verified != Some(revision) {
            verifier.end_archive(period.period_id, revision, comparison.verified).await?;
        }
    }
    let cached = cached_differences(cache, &period, &comparison, limit).await;
    let PeriodComparison { players, mut differences, .. } = comparison;
    differences.extend(cached);
    // Groups the differences by kind; the sort is stable.
    differences.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(Some(VerifiedPeriod { board: period.board, period: period.period, players, differences }))
}

/// Finds cached counts that have the snapshot's version but differ from the snapshot's counts.
async fn cached_differences(
    cache: &Cache,
    period: &VerifiablePeriod,
    comparison: &PeriodComparison,
    limit: i32,
) -> Vec<Difference> {
    let Some((ranking_id, version, stored)) = &comparison.ranking else { return Vec::new() };
    let shared = counts::shared_counts(cache, &period.board, &period.period, *ranking_id).await;
    let Some(shared) = shared.filter(|shared| shared.version == *version) else { return Vec::new() };
    let cached = shared.counts;
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
            subject: format!("place {place}"),
            expected: stored.map(|players| (*players).into()),
            found: cached.map(|players| (*players).into()),
            total,
        })
        .collect()
}

/// Compares only the counts of a ranking: all buckets in turn.
async fn counted(verifier: &mut Verifier, period: VerifiablePeriod) -> Result<Option<VerifiedPeriod>> {
    let Some(ranking_id) = period.ranking_id else { return Ok(None) };
    let players = verifier.players(ranking_id).await?;
    let mut found = Vec::new();
    for bucket in 0..BUCKETS {
        found.extend(verifier.count_difference(ranking_id, bucket).await?);
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
    Ok(Some(VerifiedPeriod { board: period.board, period: period.period, players, differences }))
}

/// State of the timer's count checks.
#[derive(Debug, Default)]
pub(crate) struct CountFindings(Mutex<Findings>);

#[derive(Debug, Default)]
struct Findings {
    /// The bucket to check next.
    bucket: i16,
    /// The ranking after which to continue; 0 for the first.
    after: i64,
    skew: BTreeMap<RankingId, f64>,
    /// Rankings and buckets with a wrong count.
    wrong: BTreeSet<(RankingId, i16)>,
}

impl CountFindings {
    /// Returns the number of counts known to be wrong.
    pub(crate) fn wrong(&self) -> usize {
        lock(self).wrong.len()
    }
}

/// Checks counts on the timer: one bucket of each current ranking, another bucket in each run.
///
/// Logs a difference when it first appears, and counts it until it is gone. Returns the number of
/// known differences. A ranking that cannot be checked does not stop the others; returns the last error.
pub async fn check_counts(admin: &Administrator, known: &CountFindings) -> Result<usize> {
    let begin = Instant::now();
    let rankings: Vec<RankingId> =
        admin.reader.current_rankings().await?.into_iter().map(|ranking| ranking.ranking_id).collect();
    let (bucket, after) = {
        let mut findings = lock(known);
        findings.wrong.retain(|(ranking_id, _)| rankings.contains(ranking_id));
        findings.skew.retain(|ranking_id, _| rankings.contains(ranking_id));
        (findings.bucket, findings.after)
    };
    let (mut reached, mut failed) = (0, None);
    for &ranking_id in rankings.iter().filter(|ranking_id| ranking_id.0 > after) {
        if begin.elapsed() > MAX_RUN_TIME {
            reached = ranking_id.0 - 1;
            break;
        }
        let checked = async {
            let found = admin.count_difference(ranking_id, bucket, MAX_ROWS).await?;
            record(known, ranking_id, bucket, found.as_ref());
            admin.reader.bucket_skew(ranking_id).await
        };
        match checked.await {
            Ok(skew) => drop(lock(known).skew.insert(ranking_id, skew)),
            Err(error) => failed = Some(error),
        }
    }
    let mut findings = lock(known);
    findings.after = reached;
    if reached == 0 {
        findings.bucket = (bucket + 1) % BUCKETS;
    }
    let count = findings.wrong.len();
    telemetry::set_count_differences(count);
    telemetry::set_bucket_skew(findings.skew.values().copied().fold(0.0, f64::max));
    failed.map_or(Ok(count), Err)
}

/// Records the result of a check; logs and counts a new difference.
fn record(known: &CountFindings, ranking_id: RankingId, bucket: i16, found: Option<&CountDifference>) {
    let mut findings = lock(known);
    let Some(found) = found else {
        findings.wrong.remove(&(ranking_id, bucket));
        return;
    };
    if findings.wrong.insert((ranking_id, bucket)) {
        telemetry::count_count_differences(1);
        tracing::error!(
            ranking_id = ranking_id.0,
            bucket,
            expected = found.expected,
            found = found.found,
            "a count of players is wrong: run `centile verify`, then `centile rebuild`; the ledger is not affected"
        );
    }
}

fn lock(known: &CountFindings) -> std::sync::MutexGuard<'_, Findings> {
    known.0.lock().unwrap_or_else(PoisonError::into_inner)
}
