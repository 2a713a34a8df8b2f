//! Rebuilds derived data from the ledger.
//!
//! First, stored standings that differ from the ledger are repaired. Then a new ranking is built from
//! the standings beside the live one, which continues to answer and to accept scores. The new one
//! follows the log of batches, and replaces the live one in a short transaction.
//!
//! A rebuild may be killed at any moment: no reader uses its ranking, and the next maintenance
//! removes its rows.

use std::time::{Duration, Instant};

use crate::{
    Error, Result,
    maintenance::rebalance::{self, Moves},
    model::{
        act::Act,
        board::{Board, Mode},
        id::RankingId,
        period::{PeriodSelector, PeriodState},
    },
    periods::closing,
    store::{Administrator, BucketWriter, rebuild::Rebuilder, verification::VerifiablePeriod},
};

/// Logged changes applied while writers wait for the swap: about 10 ms.
const SWAP_CHANGES: i32 = 500;

/// Upper limit of these changes while scores arrive fast: about 50 ms.
const MOST_SWAP_CHANGES: i32 = 4_000;

/// Attempts without progress before writers wait for more changes.
const STALLED_ATTEMPTS: u32 = 3;

/// A completed step of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildStep {
    /// Number of players whose standings were repaired.
    Repaired(u64),
    /// Number of players when the bounds were set.
    LaidOut(u64),
    /// Number of logged changes applied to the new bucket rows.
    CaughtUp(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    pub board: String,
    pub period: String,
    /// The previous ranking.
    pub before: RankingId,
    /// The new ranking.
    pub after: RankingId,
    /// Players in the new ranking when it was laid out.
    pub players: u64,
    /// Changes made to its layout since.
    pub moves: Moves,
    pub time: Duration,
}

/// An open period of a board, to be rebuilt.
#[derive(Debug, Clone)]
pub struct OpenPeriod(VerifiablePeriod);

impl OpenPeriod {
    /// Returns the period's name as a selector.
    pub fn name(&self) -> &str {
        &self.0.period
    }
}

/// Returns the period that a selector means, or all periods of a board that are not closed.
///
/// Returns [`Error::Conflict`] when the selected period is closed or has no scores.
pub async fn open_periods(
    admin: &Administrator,
    board: &Board,
    selector: Option<&PeriodSelector>,
) -> Result<Vec<OpenPeriod>> {
    let mut period_id = None;
    if let Some(selector) = selector {
        let named = closing::named(admin, board, selector).await?;
        if board.mode == Mode::Combined {
            return Err(Error::other_conflict(format!(
                "board {0} is combined: `centile refresh --board {0}` computes it from its sources",
                board.slug
            )));
        }
        if named.state == PeriodState::Closed {
            return Err(Error::other_conflict(format!(
                "{0} of board {1} is closed: `centile refresh --board {1} --period {0}` makes its archive from the ledger",
                named.name, board.slug
            )));
        }
        period_id = named.period_id;
        if period_id.is_none() {
            return Err(Error::other_conflict(format!("{} of board {} has no scores", named.name, board.slug)));
        }
    }
    let periods = admin.verifiable_periods(Some(board.id), period_id).await?;
    Ok(periods.into_iter().filter(|period| period.ranking_id.is_some()).map(OpenPeriod).collect())
}

/// Rebuilds the periods whose rankings are marked as damaged. Logs each.
pub(crate) async fn rebuild_damaged(admin: &Administrator, bucket_writer: &BucketWriter) -> Result<()> {
    for board_id in bucket_writer.shrink_damaged().await? {
        tracing::warn!(board_id, "a damaged ranking of a template's board was replaced");
    }
    for period_id in bucket_writer.damaged_periods().await? {
        for period in admin.verifiable_periods(None, Some(period_id)).await?.into_iter().map(OpenPeriod) {
            let act = Act::new("maintenance".parse()?, Some("bucket rows did not match the log".to_owned()))?;
            match rebuild(admin, bucket_writer, &period, &act, |_| ()).await {
                Ok(Rebuilt { board, period, .. }) => tracing::warn!(board, period, "a damaged ranking was rebuilt"),
                // Another instance rebuilds it.
                Err(Error::Conflict { .. }) => {}
                Err(error) => tracing::error!(period = period.name(), %error, "a damaged ranking could not be rebuilt"),
            }
        }
    }
    Ok(())
}

/// Rebuilds a period, and reports each step.
///
/// Returns [`Error::Conflict`] when the period is closed meanwhile, or another process is
/// rebuilding it.
pub async fn rebuild(
    admin: &Administrator,
    bucket_writer: &BucketWriter,
    OpenPeriod(period): &OpenPeriod,
    act: &Act,
    mut report: impl FnMut(RebuildStep),
) -> Result<Rebuilt> {
    let begin = Instant::now();
    let mut rebuilder = admin.rebuilder(period.board_id, period.period_id).await?;
    rebuilder.raise_lanes().await?;
    let (players, before) = build(bucket_writer, &mut rebuilder, Some(act), &mut report).await?;
    let after = rebuilder.ranking_id;
    rebuilder.end().await;
    let moves = rebalance::rebalance(bucket_writer, after).await?;
    let time = begin.elapsed();
    let VerifiablePeriod { board, period, .. } = period.clone();
    tracing::info!(
        board,
        period,
        before = before.0,
        after = after.0,
        players,
        duration_ms = time.as_millis(),
        "period rebuilt"
    );
    Ok(Rebuilt { board, period, before, after, players, moves, time })
}

/// Fills a new ranking from the standings of its players, and makes it the current one of its
/// period. Returns the number of players at layout, and the id of the previous ranking (0 for
/// none).
///
/// `act` is recorded in the audit log.
pub(crate) async fn build(
    bucket_writer: &BucketWriter,
    rebuilder: &mut Rebuilder,
    act: Option<&Act>,
    report: &mut impl FnMut(RebuildStep),
) -> Result<(u64, RankingId)> {
    report(RebuildStep::Repaired(rebuilder.repair_players().await?));
    let players = rebuilder.fill_bounds().await?;
    report(RebuildStep::LaidOut(players));
    Ok((players, swap(bucket_writer, rebuilder, act, report).await?))
}

/// Writes the bucket rows until few enough changes remain to apply while writers wait, then swaps the
/// rankings.
///
/// If scores arrive faster than rounds get shorter, the limit grows.
async fn swap(
    bucket_writer: &BucketWriter,
    rebuilder: &mut Rebuilder,
    act: Option<&Act>,
    report: &mut impl FnMut(RebuildStep),
) -> Result<RankingId> {
    let (mut limit, mut fewest, mut retries) = (SWAP_CHANGES, u64::MAX, STALLED_ATTEMPTS);
    loop {
        let changes = rebuilder.fill_rows().await?;
        report(RebuildStep::CaughtUp(changes));
        // The swap applies the rest in one transaction, which no reader sees before its end.
        bucket_writer.apply(rebuilder.board_id, true).await?;
        if let Some(before) = rebuilder.swap(limit, act).await? {
            return Ok(before);
        }
        if changes < fewest {
            fewest = changes;
        } else if retries > 0 {
            retries -= 1;
        } else {
            limit = limit.saturating_mul(2).min(MOST_SWAP_CHANGES);
        }
    }
}
