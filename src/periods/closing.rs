//! Work on periods that have ended: closing, corrections, refreshes, and removal of old archives
//! and rankings.
//!
//! Commands and the service's timer call the same functions. Each may be run repeatedly,
//! concurrently, or killed at any point.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use crate::{
    Code, Error, Resource, Result,
    cache::Cache,
    model::{
        act::Act,
        board::Board,
        closing::ClosedPeriod,
        period::{PeriodSelector, PeriodState},
    },
    ranking::frozen,
    store::{
        Administrator,
        closing::{Closer, DuePeriod, NamedPeriod},
    },
    telemetry,
};

/// Result of an attempt to close a period.
#[derive(Debug)]
pub enum CloseOutcome {
    Closed(ClosedPeriod),
    /// There is nothing to close: the period was already closed, or has no scores.
    Nothing {
        board: String,
        period: String,
        was_closed: bool,
    },
    /// The period stays open, because an import into its board has not ended.
    Waits {
        board: String,
        period: String,
        source: String,
        /// Whether the import is running; otherwise it was interrupted.
        is_running: bool,
    },
    /// The period could not be closed.
    Failed {
        board: String,
        period: String,
        error: Error,
    },
}

/// Maximum periods to close before the due ones are looked up again. A whole period that becomes due
/// waits for at most this number of segments.
const DUE_AT_ONCE: usize = 20;

/// Takes due snapshots, releases former rolling windows, closes all due periods one by one, and
/// reports each result at once. Closes the segments of a period after it.
///
/// Returns `false`, and does nothing, while another process is closing periods.
pub async fn close_due(admin: &Administrator, cache: &Cache, report: impl FnMut(CloseOutcome)) -> Result<bool> {
    admin.open_snapshots().await?;
    while admin.release_unused_windows().await? {}
    // Continues what a killed process has left.
    admin.place_waiting().await?;
    // Usually nothing is due, and the lock is not needed.
    if admin.due_periods(None).await?.is_empty() {
        return Ok(true);
    }
    // Then looks them up again under the lock: another process may have closed some.
    let Some(mut closer) = admin.closer().await? else { return Ok(false) };
    close_all(admin, cache, &mut closer, None, report).await?;
    closer.end().await;
    Ok(true)
}

/// Closes all due periods, or one whole period and its segments. If one of them cannot be closed, the
/// others are closed nevertheless.
async fn close_all(
    admin: &Administrator,
    cache: &Cache,
    closer: &mut Closer,
    whole_id: Option<i64>,
    mut report: impl FnMut(CloseOutcome),
) -> Result<()> {
    let (mut due, mut tried) = (VecDeque::new(), HashSet::new());
    // Segments of periods that end meanwhile are left to the next run. Otherwise a run would not end
    // if segments became due faster than it closes them.
    let began = admin.now().await?;
    loop {
        if due.is_empty() {
            // Closing a period makes its segments due.
            let found = admin.due_periods(whole_id).await?.into_iter();
            let is_for_this_run = |due: &DuePeriod| !due.is_segment || whole_id.is_some() || due.ends_at <= began;
            due.extend(found.filter(|due| !tried.contains(&due.period_id) && is_for_this_run(due)).take(DUE_AT_ONCE));
        }
        let Some(DuePeriod { period_id, board, period, import_source, import_is_running, .. }) = due.pop_front() else {
            return Ok(());
        };
        tried.insert(period_id);
        if let Some(source) = import_source {
            report(CloseOutcome::Waits { board, period, source, is_running: import_is_running == Some(true) });
            continue;
        }
        report(close(admin, cache, closer, period_id, &board, &period).await.unwrap_or_else(|error| {
            tracing::error!(board, period, %error, "a period could not be closed");
            CloseOutcome::Failed { board, period, error }
        }));
    }
}

/// Closes one period and its segments, including those that an interrupted run has left open, and
/// reports each result at once.
///
/// Returns [`Error::Conflict`] when the period has not ended, and for a segment. Returns `false`, and
/// does nothing, while another process is closing periods.
pub async fn close_one(
    admin: &Administrator,
    cache: &Cache,
    board: &Board,
    selector: &PeriodSelector,
    mut report: impl FnMut(CloseOutcome),
) -> Result<bool> {
    let named = named(admin, board, selector).await?;
    if selector.segment().is_some() {
        return Err(Error::other_conflict(format!("{} is closed together with {}", named.name, selector.whole())));
    }
    if matches!(named.state, PeriodState::Open | PeriodState::Upcoming) {
        let end = named.ends_at.map_or_else(|| "never ends".to_owned(), |at| format!("ends at {}", at.to_rfc3339()));
        return Err(Error::other_conflict(format!("{} of board {} is not over yet: it {end}", named.name, board.slug)));
    }
    let is_due = named.period_id.is_some() && !admin.due_periods(named.period_id).await?.is_empty();
    let mut has_reported = false;
    if is_due {
        admin.place_waiting().await?;
        let Some(mut closer) = admin.closer().await? else { return Ok(false) };
        let report = |outcome| {
            has_reported = true;
            report(outcome);
        };
        close_all(admin, cache, &mut closer, named.period_id, report).await?;
        closer.end().await;
    }
    if !has_reported {
        // If it was due, the previous holder of the lock has closed it.
        let was_closed = is_due || named.state == PeriodState::Closed;
        report(CloseOutcome::Nothing { board: board.slug.to_string(), period: named.name, was_closed });
    }
    Ok(true)
}

/// Runs the steps of closing, each in a separate transaction. After a crash the next run starts
/// again.
async fn close(
    admin: &Administrator,
    cache: &Cache,
    closer: &mut Closer,
    period_id: i64,
    board: &str,
    period: &str,
) -> Result<CloseOutcome> {
    let begin = Instant::now();
    // Take the cut-off. An import of the board must end first.
    let Some(cut_off_at) = closer.cut_off(period_id).await? else {
        return waiting_import(admin, period_id, board, period).await;
    };
    // Build the archive from the ledger, and compare the live ranking with it.
    let checked = match closer.build(period_id).await {
        Ok(()) => closer.compare(period_id).await,
        Err(error) => Err(error),
    };
    let (players, differences) = match checked {
        Ok(checked) => checked,
        // An import that has started meanwhile has cancelled the closing.
        Err(error @ Error::Conflict { .. }) => {
            return waiting_import(admin, period_id, board, period).await.map_err(|_| error);
        }
        Err(error) => return Err(error),
    };
    // Close the period. From here on, the archive answers.
    if !closer.finish(period_id, cut_off_at).await? {
        return waiting_import(admin, period_id, board, period).await;
    }
    if differences > 0 {
        tracing::error!(
            board,
            period,
            differences,
            "the live ranking did not agree with the ledger; the archive has the ledger's values; see centile.archive_differences"
        );
    }
    frozen::put_shared(admin, cache, period_id).await;
    // Players of a league who have scored in its next period get their cohorts.
    admin.place_waiting().await?;
    let time = begin.elapsed();
    tracing::info!(board, period, players, differences, duration_ms = time.as_millis(), "period closed");
    let done = ClosedPeriod { board: board.to_owned(), period: period.to_owned(), players, differences, time };
    telemetry::count_closed(&done);
    Ok(CloseOutcome::Closed(done))
}

/// Returns the import that a period waits for. Returns [`Error::Conflict`] when there is
/// none.
async fn waiting_import(admin: &Administrator, period_id: i64, board: &str, period: &str) -> Result<CloseOutcome> {
    let due = admin.due_periods(Some(period_id)).await?.pop();
    let import = due.and_then(|due| due.import_source.zip(due.import_is_running));
    let (source, is_running) =
        import.ok_or_else(|| Error::other_conflict(format!("closing {period} was cancelled; retry")))?;
    Ok(CloseOutcome::Waits { board: board.to_owned(), period: period.to_owned(), source, is_running })
}

pub(crate) async fn named(admin: &Administrator, board: &Board, selector: &PeriodSelector) -> Result<NamedPeriod> {
    let named = admin.named_period(board.owner, selector).await?;
    let named = named.ok_or_else(|| Error::NotFound {
        what: Resource::Period,
        name: selector.to_string(),
        hint: Some(format!("board {} has no period of this name", board.slug)),
    })?;
    if named.state == PeriodState::Preparing {
        return Err(Error::preparing(&named.name));
    }
    Ok(named)
}

/// A closed period whose archive was refreshed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshedPeriod {
    pub period: String,
    pub revision: i32,
    pub players: u64,
}

/// Rebuilds archive and frozen top of a closed period from the current ledger, and those of its
/// segments that lack a correction, ban or unban. Readers see either the old or the new ones.
///
/// Returns [`Error::Conflict`] when the period is not closed or its archive was dropped, and for a
/// segment; [`Error::Retry`] while another process is closing or refreshing periods.
pub async fn refresh(
    admin: &Administrator,
    cache: &Cache,
    board: &Board,
    selector: &PeriodSelector,
    act: &Act,
) -> Result<RefreshedPeriod> {
    let named = named(admin, board, selector).await?;
    if selector.segment().is_some() {
        return Err(Error::other_conflict(format!("{} is refreshed together with {}", named.name, selector.whole())));
    }
    let Some(period_id) = named.period_id.filter(|_| named.state == PeriodState::Closed) else {
        return Err(Error::other_conflict(format!("{} of board {} is not closed", named.name, board.slug)));
    };
    let another =
        || Error::retry(Code::ConcurrentChange, "another process is closing or refreshing periods; retry later");
    let mut closer = admin.closer().await?.ok_or_else(another)?;
    let refreshed = refresh_archive(admin, cache, &mut closer, period_id, named.name, Some(act)).await?;
    closer.end().await;
    Ok(refreshed)
}

/// Refreshes the archives that have lacked a correction for this time, on boards with the rule
/// `refresh_corrected`, and reports the board and the result of each at once. After a failure, an
/// archive counts as just corrected. Without an act, the audit log names the role of the session.
///
/// Returns `false`, and leaves the rest, while another process is closing or refreshing periods.
pub async fn refresh_due(
    admin: &Administrator,
    cache: &Cache,
    age: Duration,
    act: Option<&Act>,
    mut report: impl FnMut(&str, &str, Result<RefreshedPeriod>),
) -> Result<bool> {
    for (period_id, board, period) in admin.corrected_archives(age).await? {
        // For each archive, so that periods are closed in between.
        let Some(mut closer) = admin.closer().await? else { return Ok(false) };
        // Another process may have refreshed it meanwhile.
        if !admin.corrected_archives(age).await?.iter().any(|(id, ..)| *id == period_id) {
            closer.end().await;
            continue;
        }
        let result = refresh_archive(admin, cache, &mut closer, period_id, period.clone(), act).await;
        closer.end().await;
        if result.is_err() {
            admin.defer_refresh(period_id).await?;
        }
        report(&board, &period, result);
    }
    Ok(true)
}

/// Refreshes an archive and then its outdated segments, each in a transaction. If a segment cannot be
/// refreshed, the others are refreshed nevertheless, and [`Error::Conflict`] is returned.
async fn refresh_archive(
    admin: &Administrator,
    cache: &Cache,
    closer: &mut Closer,
    period_id: i64,
    period: String,
    act: Option<&Act>,
) -> Result<RefreshedPeriod> {
    let (revision, players) = closer.refresh(period_id, act).await?;
    frozen::put_shared(admin, cache, period_id).await;
    let mut failed = Vec::new();
    for segment in admin.outdated_segments(period_id).await? {
        match closer.refresh(segment, act).await {
            Ok(_) => frozen::put_shared(admin, cache, segment).await,
            Err(error) => failed.push(error.to_string()),
        }
    }
    if failed.is_empty() {
        return Ok(RefreshedPeriod { period, revision, players });
    }
    let reasons = failed.join("; ");
    Err(Error::other_conflict(format!("{period} is refreshed, but not all of its segments: {reasons}")))
}

/// An archive that exceeds its board's retention.
#[derive(Debug)]
pub struct ExpiredArchive {
    pub board: String,
    pub period: String,
    /// Whether it was dropped. An archive in use is no longer served, and is dropped by a later
    /// run.
    pub dropped: Result<()>,
}

/// Drops the archives that exceed their boards' retention; returns the result for each.
///
/// Returns `None` while another process is closing periods.
pub async fn drop_expired(admin: &Administrator) -> Result<Option<Vec<ExpiredArchive>>> {
    if admin.expired_archives().await?.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let Some(mut closer) = admin.closer().await? else { return Ok(None) };
    let mut expired = Vec::new();
    for (period_id, board, period) in admin.expired_archives().await? {
        let dropped = closer.drop_archive(period_id).await;
        match &dropped {
            Ok(()) => tracing::info!(board, period, "archive dropped, beyond the board's retention"),
            Err(error) => {
                tracing::warn!(board, period, %error, "an archive could not be dropped; the next run retries it");
            }
        }
        expired.push(ExpiredArchive { board, period, dropped });
    }
    closer.end().await;
    Ok(Some(expired))
}

/// Removes the rows of released and abandoned rankings in steps; returns how many.
pub async fn remove_released(admin: &Administrator) -> Result<u64> {
    while admin.release_abandoned().await? > 0 {}
    let mut removed = 0;
    loop {
        match admin.remove_released().await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}
