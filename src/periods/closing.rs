//! What happens to periods once they are over: closing them, correcting and refreshing what is closed, letting archives and old
//! rankings go. Commands and the service's timer call the same functions; each may be run twice, at once, or killed half-way.

use std::time::Instant;

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    cache::{Cache, CacheKey},
    model::{
        act::{Act, Actor},
        board::Board,
        closing::ClosedPeriod,
        period::{PeriodSelector, PeriodState},
        user::UserId,
    },
    store::{
        Store,
        closing::{Closer, Correction, DuePeriod, NamedPeriod},
    },
    telemetry,
};

/// What became of a period that was to be closed.
#[derive(Debug)]
pub enum Outcome {
    /// It is closed now.
    Closed(ClosedPeriod),
    /// There is nothing to close: it was closed before, or nobody has scored in it.
    Nothing {
        /// The board's name.
        board: String,
        /// The period's name.
        period: String,
        /// Which of both.
        was_closed: bool,
    },
    /// It stays as it is, because an import into its board has not ended.
    Waits {
        /// The board's name.
        board: String,
        /// The period's name.
        period: String,
        /// What is imported.
        source: String,
        /// Whether the import goes on; otherwise it was cut short.
        is_running: bool,
    },
    /// It could not be closed.
    Failed {
        /// The board's name.
        board: String,
        /// The period's name.
        period: String,
        /// Why.
        error: Error,
    },
}

/// Closes every period that is over, one after the other, and tells what became of each as soon as it is known. `false`
/// when another process is closing just now; then nothing was done.
pub async fn close_due(store: &Store, cache: &Cache, mut tell: impl FnMut(Outcome)) -> Result<bool> {
    // Most of the time nothing is due, and nobody need hold the lock.
    if store.due_periods(None).await?.is_empty() {
        return Ok(true);
    }
    let Some(mut closer) = store.closer().await? else { return Ok(false) };
    // Looked up again: whoever held the lock may have closed them.
    for due in store.due_periods(None).await? {
        let outcome = match due {
            DuePeriod { board, period, import_source: Some(source), import_is_running, .. } => {
                Outcome::Waits { board, period, source, is_running: import_is_running == Some(true) }
            }
            DuePeriod { period_id, board, period, .. } => {
                match close(store, cache, &mut closer, period_id, &board, &period).await {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        tracing::error!(board, period, %error, "a period could not be closed");
                        Outcome::Failed { board, period, error }
                    }
                }
            }
        };
        tell(outcome);
    }
    closer.end().await;
    Ok(true)
}

/// Closes one period. [`Error::Conflict`] when it is not over. `None` when another process is closing just now; then nothing
/// was done.
pub async fn close_one(
    store: &Store,
    cache: &Cache,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<Option<Outcome>> {
    let named = named(store, board, selector).await?;
    let nothing =
        |was_closed| Outcome::Nothing { board: board.slug.to_string(), period: named.name.clone(), was_closed };
    if named.state == PeriodState::Closed {
        return Ok(Some(nothing(true)));
    }
    if named.state == PeriodState::Open {
        let end = named.ends_at.map_or_else(|| "never ends".to_owned(), |at| format!("ends at {}", at.to_rfc3339()));
        return Err(Error::Conflict(format!("{} of board {} is not over yet: it {end}", named.name, board.slug)));
    }
    if named.period_id.is_none() {
        return Ok(Some(nothing(false)));
    }
    let Some(mut closer) = store.closer().await? else { return Ok(None) };
    let waiting = store.due_periods(named.period_id).await?.pop();
    let outcome = match waiting {
        // Whoever held the lock has closed it.
        None => nothing(true),
        Some(DuePeriod { board, period, import_source: Some(source), import_is_running, .. }) => {
            Outcome::Waits { board, period, source, is_running: import_is_running == Some(true) }
        }
        Some(DuePeriod { period_id, board, period, .. }) => {
            close(store, cache, &mut closer, period_id, &board, &period).await?
        }
    };
    closer.end().await;
    Ok(Some(outcome))
}

/// The steps, each a transaction of its own. After a crash the next run begins again.
async fn close(
    store: &Store,
    cache: &Cache,
    closer: &mut Closer,
    period_id: i64,
    board: &str,
    period: &str,
) -> Result<Outcome> {
    let begin = Instant::now();
    let Some(cut_off_at) = closer.cut_off(period_id).await? else {
        return waits(store, period_id, board, period).await;
    };
    let checked = match closer.build(period_id).await {
        Ok(()) => closer.compare(period_id).await,
        Err(error) => Err(error),
    };
    let (players, differences) = match checked {
        Ok(checked) => checked,
        // An import that has begun meanwhile has called the closing off.
        Err(error @ Error::Conflict(_)) => return waits(store, period_id, board, period).await.map_err(|_| error),
        Err(error) => return Err(error),
    };
    if !closer.finish(period_id, cut_off_at).await? {
        return waits(store, period_id, board, period).await;
    }
    if differences > 0 {
        tracing::error!(
            board,
            period,
            differences,
            "the live ranking did not agree with the ledger, which is right; see centile.archive_differences"
        );
    }
    cache_top(store, cache, period_id).await;
    let time = begin.elapsed();
    tracing::info!(board, period, players, differences, duration_ms = time.as_millis(), "period closed");
    let done = ClosedPeriod { board: board.to_owned(), period: period.to_owned(), players, differences, time };
    telemetry::count_closed(&done);
    Ok(Outcome::Closed(done))
}

/// The import that a period waits for. [`Error::Conflict`] when there is none.
async fn waits(store: &Store, period_id: i64, board: &str, period: &str) -> Result<Outcome> {
    let due = store.due_periods(Some(period_id)).await?.pop();
    let import = due.and_then(|due| due.import_source.zip(due.import_is_running));
    let (source, is_running) =
        import.ok_or_else(|| Error::Conflict(format!("closing {period} was called off; try again")))?;
    Ok(Outcome::Waits { board: board.to_owned(), period: period.to_owned(), source, is_running })
}

/// Puts a frozen top into the cache, where it stays. Should that not be possible, whoever reads it first will.
async fn cache_top(store: &Store, cache: &Cache, period_id: i64) {
    match store.closed_top(period_id).await {
        Ok(Some(top)) => {
            let key = CacheKey::Closed {
                epoch: top.epoch,
                period: period_id,
                revision: i64::from(top.revision),
                size: top.size.unsigned_abs(),
            };
            cache.put(&key, top.bytes).await;
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(period_id, %error, "a frozen top was not put into the cache"),
    }
}

pub(crate) async fn named(store: &Store, board: &Board, selector: &PeriodSelector) -> Result<NamedPeriod> {
    let named = store.named_period(board.id, &selector.to_string()).await?;
    named.ok_or_else(|| Error::NotFound {
        what: "period",
        name: selector.to_string(),
        hint: Some(format!("board {} keeps none of this name", board.slug)),
    })
}

/// A closed period whose archive holds the ledger of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// The period's name.
    pub period: String,
    /// The archive's revision.
    pub revision: i32,
    /// Players in it.
    pub players: u64,
}

/// Brings the archive and the frozen top of a closed period up to the ledger of now; readers see the old or the new.
/// [`Error::Conflict`] when the period is not closed or its archive was dropped, [`Error::Unavailable`] when another process
/// is closing or refreshing.
pub async fn refresh(
    store: &Store,
    cache: &Cache,
    board: &Board,
    selector: &PeriodSelector,
    act: &Act,
) -> Result<Refreshed> {
    let named = named(store, board, selector).await?;
    let Some(period_id) = named.period_id.filter(|_| named.state == PeriodState::Closed) else {
        return Err(Error::Conflict(format!("{} of board {} is not closed", named.name, board.slug)));
    };
    let another = || Error::unavailable("another process closes or refreshes periods just now; try again after it");
    let mut closer = store.closer().await?.ok_or_else(another)?;
    let (revision, players) = closer.refresh(period_id, act).await?;
    closer.end().await;
    cache_top(store, cache, period_id).await;
    Ok(Refreshed { period: named.name, revision, players })
}

/// A score of the past that an administrator adds.
#[derive(Debug, Clone)]
pub struct ScoreCorrection {
    /// The player.
    pub user_id: UserId,
    /// Points, usually fewer than none.
    pub points: i64,
    /// On boards with ties by tiebreak.
    pub tiebreak: Option<i16>,
    /// The time it counts for.
    pub at: DateTime<Utc>,
    /// Who says so, and why: a correction has a reason.
    pub act: Act,
}

/// Adds a score of the past, also to closed periods. The transaction's id, and the closed periods whose archives do not hold
/// it before they are refreshed.
pub async fn correct(store: &Store, board: &Board, correction: &ScoreCorrection) -> Result<(i64, Vec<String>)> {
    store
        .correct_score(&Correction {
            board: board.slug.as_str(),
            user_id: correction.user_id.as_str(),
            points: correction.points,
            tiebreak: correction.tiebreak,
            at: correction.at,
            act: &correction.act,
        })
        .await
}

/// An archive that its board does not keep any longer.
#[derive(Debug)]
pub struct ExpiredArchive {
    /// The board's name.
    pub board: String,
    /// The period's name.
    pub period: String,
    /// Whether it was dropped. One that somebody is reading just now is no longer served, and dropped the next time.
    pub dropped: Result<()>,
}

/// Drops the archives that their boards do not keep any longer; gives what became of each. `None` when another process is
/// closing just now.
pub async fn drop_expired(store: &Store) -> Result<Option<Vec<ExpiredArchive>>> {
    if store.expired_archives().await?.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let Some(mut closer) = store.closer().await? else { return Ok(None) };
    let mut expired = Vec::new();
    for (period_id, board, period) in store.expired_archives().await? {
        let dropped = closer.drop_archive(period_id).await;
        match &dropped {
            Ok(()) => tracing::info!(board, period, "archive dropped: the board keeps no more of its kind"),
            Err(error) => tracing::warn!(board, period, %error, "an archive could not be dropped; tried again later"),
        }
        expired.push(ExpiredArchive { board, period, dropped });
    }
    closer.end().await;
    Ok(Some(expired))
}

/// Removes the rows of rankings that were let go, or whose building was cut short, in steps; gives how many there were.
pub async fn remove_released(store: &Store) -> Result<u64> {
    while store.release_abandoned().await? > 0 {}
    let mut removed = 0;
    loop {
        match store.remove_released().await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}

/// Gives up the imports of a board that were cut short, so that its periods can be closed; gives their number.
/// [`Error::Conflict`] while one is running.
pub async fn abandon_imports(store: &Store, board: &Board, by: &Actor) -> Result<u64> {
    store.abandon_imports(board.slug.as_str(), by).await
}
