//! Prepares rolling windows: fills each from the ledger before it becomes current.
//!
//! The window accepts scores as soon as it is filled, so that it is complete at every moment. Until
//! then it has no ranking. A killed run may leave standings behind; the next run computes them again.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    maintenance::rebuild,
    store::{Administrator, BucketWriter, rebuild::WantedWindow},
    telemetry,
};

/// A window, and the result of preparing it.
#[derive(Debug)]
pub struct Prepared {
    pub board: String,
    pub period: String,
    pub result: Result<FilledWindow>,
}

#[derive(Debug)]
pub struct FilledWindow {
    /// Players when the window was filled.
    pub players: u64,
    /// Those of them whose sum lies beyond 64 bits and stopped at its limit.
    pub limited: u64,
    /// Duration of the fill.
    pub time: Duration,
}

/// Prepares all windows whose time has come, one after another, and reports each. Leaves out those that
/// another process is preparing.
pub async fn prepare_due(
    admin: &Administrator,
    bucket_writer: &BucketWriter,
    mut report: impl FnMut(Prepared),
) -> Result<()> {
    let mut tried = HashSet::new();
    loop {
        // Look again each time: preparing a window takes long.
        let mut wanted = admin.wanted_windows().await?.into_iter();
        let Some(window) = wanted.find(|window| tried.insert((window.board_id, window.label.clone()))) else {
            return Ok(());
        };
        let period = format!("rolling:{}", window.label);
        let Some(result) = prepare(admin, bucket_writer, &window).await.transpose() else { continue };
        if let Ok(FilledWindow { players, limited, time }) = &result {
            tracing::info!(board = window.board, period, players, duration_ms = time.as_millis(), "window prepared");
            telemetry::count_limited_sums(*limited);
            if *limited > 0 {
                tracing::error!(
                    board = window.board,
                    period,
                    players = limited,
                    "sums lie beyond 64 bits and stand at the limit: void scores of these players"
                );
            }
        }
        report(Prepared { board: window.board, period, result });
    }
}

/// Fills a window. Returns `None` if there was nothing to do.
async fn prepare(
    admin: &Administrator,
    bucket_writer: &BucketWriter,
    window: &WantedWindow,
) -> Result<Option<FilledWindow>> {
    let begin = Instant::now();
    let Some(period_id) = admin.open_window(window).await? else { return Ok(None) };
    let mut rebuilder = match admin.rebuilder(window.board_id, period_id).await {
        // Another process has begun at the same moment.
        Err(Error::Conflict { .. }) => return Ok(None),
        rebuilder => rebuilder?,
    };
    let (players, _) = rebuild::build(bucket_writer, &mut rebuilder, None, &mut |_| ()).await?;
    let limited = rebuilder.limited_sums().await?;
    rebuilder.end().await;
    Ok(Some(FilledWindow { players, limited, time: begin.elapsed() }))
}
