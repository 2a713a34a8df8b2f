//! Refreshes of combined boards: by command, and those that are due.
//!
//! One process refreshes at a time. A refresh may be killed at any point: until its second
//! transaction commits, the last ranking answers, and the next refresh starts again.

use std::time::{Duration, Instant};

use crate::{
    Code, Error, Result,
    cache::Cache,
    model::{
        act::Actor,
        board::Board,
        combination::{Due, RefreshRule},
    },
    ranking::frozen,
    store::{
        Administrator,
        combination::{CombinedBoard, Refresher},
    },
};

/// How long a command waits for another process that refreshes.
const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// The result of a refresh of a combined board.
#[derive(Debug)]
pub struct RefreshedBoard {
    pub board: String,
    /// Revision of the ranking, from 1.
    pub revision: i32,
    pub players: u64,
    pub time: Duration,
}

/// Refreshes a combined board now.
///
/// Returns [`Error::Conflict`] if a source cannot be read, [`Error::Retry`] while another
/// process refreshes. The last ranking then still answers.
pub async fn refresh(admin: &Administrator, cache: &Cache, board: &Board, by: &Actor) -> Result<RefreshedBoard> {
    let Some(combined) = admin.combined(Some(board.id)).await?.pop() else {
        return Err(Error::invalid(
            "period",
            format!("name a closed period of board {}; only a combined board is refreshed as a whole", board.slug),
        ));
    };
    let another = || Error::retry(Code::ConcurrentChange, "another process is refreshing combined boards; retry later");
    let mut refresher = admin.refresher(LOCK_TIMEOUT).await?.ok_or_else(another)?;
    let done = combine(admin, cache, &mut refresher, &combined, Some(by)).await;
    refresher.end().await;
    done
}

/// Refreshes all combined boards that are due, one by one, and reports each result at once.
///
/// Returns `false`, and does nothing, while another process refreshes.
pub async fn refresh_due(
    admin: &Administrator,
    cache: &Cache,
    mut report: impl FnMut(&str, Result<RefreshedBoard>),
) -> Result<bool> {
    // Usually nothing is due, and the lock is not needed.
    let mut has_work = false;
    for combined in admin.combined(None).await? {
        // The second look reports errors.
        has_work = has_work || combined.has_old_views || is_due(admin, &combined).await.unwrap_or(true);
    }
    if !has_work {
        return Ok(true);
    }
    let Some(mut refresher) = admin.refresher(Duration::ZERO).await? else { return Ok(false) };
    // A board comes after those that it is computed from, so that their changes count.
    for CombinedBoard { board_id, .. } in admin.combined(None).await? {
        // Another process may have refreshed it, and the rules may have changed.
        let Some(combined) = admin.combined(Some(board_id)).await?.pop() else { continue };
        if combined.has_old_views
            && let Err(error) = refresher.drop_old_views(board_id).await
        {
            let board = combined.board.as_str();
            tracing::warn!(board, %error, "a replaced ranking could not be dropped; the next run retries it");
        }
        match is_due(admin, &combined).await {
            Ok(true) => report(&combined.board, combine(admin, cache, &mut refresher, &combined, None).await),
            Ok(false) => {}
            Err(error) => report(&combined.board, Err(error)),
        }
    }
    refresher.end().await;
    Ok(true)
}

async fn is_due(admin: &Administrator, combined: &CombinedBoard) -> Result<bool> {
    Ok(match combined.refresh.due(&combined.state) {
        Due::Now => true,
        Due::Later => false,
        Due::IfChanged => {
            let scores = if let RefreshRule::After(scores) = combined.refresh { scores } else { 0 };
            combined.refresh.is_met(&admin.source_changes(combined.board_id, scores).await?)
        }
    })
}

/// Runs both steps of a refresh. Records a failure with the board.
async fn combine(
    admin: &Administrator,
    cache: &Cache,
    refresher: &mut Refresher,
    combined: &CombinedBoard,
    by: Option<&Actor>,
) -> Result<RefreshedBoard> {
    let (begin, board) = (Instant::now(), combined.board.as_str());
    let built = refresher.build(combined.board_id).await;
    let done = match built {
        Ok(()) => refresher.finish(combined.board_id, by, begin.elapsed()).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(done) => {
            frozen::put_shared(admin, cache, done.period_id).await;
            let (time, players) = (begin.elapsed(), done.players.unsigned_abs());
            tracing::info!(board, players, duration_ms = time.as_millis(), "combined board refreshed");
            Ok(RefreshedBoard { board: combined.board.clone(), revision: done.revision, players, time })
        }
        Err(error) => {
            if let Err(error) = admin.fail_combination(combined.board_id, &error.to_string()).await {
                tracing::warn!(board, %error, "the failure of a refresh could not be recorded");
            }
            Err(error)
        }
    }
}
