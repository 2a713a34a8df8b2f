//! Remaking what is derived from the ledger: a new ranking is built beside the live one, which goes on answering and taking scores,
//! catches up with what was written meanwhile, and takes its place in one short transaction.
//!
//! May be killed at any moment: nobody reads what was begun, and the rows of it go with the next upkeep.

use std::time::{Duration, Instant};

use crate::{
    Error, Result,
    maintenance::rebalance::{self, Moves},
    model::{
        act::Act,
        board::Board,
        period::{PeriodSelector, PeriodState},
    },
    periods::closing,
    store::{Store, audit::AuditedPeriod, rebuild::Rebuilder},
};

/// Rows of the ledger that are taken in while writers wait: a few tens of milliseconds.
const LAST_ROWS: i32 = 500;

/// Rounds of catching up that may pass without fewer players than in the one before, until writers have to wait for more rows.
const PATIENT_ROUNDS: u32 = 3;

/// What has been done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All entries are written, from the ledger.
    Entries(u64),
    /// Players have their bucket rows and counts.
    LaidOut(u64),
    /// What was written meanwhile was taken in, of so many players.
    CaughtUp(u64),
}

/// A period that has been rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// The board's name.
    pub board: String,
    /// The period's name.
    pub period: String,
    /// The ranking that answered before.
    pub before: i64,
    /// The ranking that answers now.
    pub after: i64,
    /// Players in it when it was laid out.
    pub players: u64,
    /// What was done to the layout since.
    pub kept: Moves,
    /// How long it took.
    pub time: Duration,
}

/// An open period of a board, to be rebuilt.
#[derive(Debug, Clone)]
pub struct OpenPeriod(AuditedPeriod);

impl OpenPeriod {
    /// Its name as a selector.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.period
    }
}

/// The period that a selector means, or all of a board that are not closed. [`Error::Conflict`] when the one is closed, or nobody has
/// scored in it.
pub async fn open_periods(store: &Store, board: &Board, selector: Option<&PeriodSelector>) -> Result<Vec<OpenPeriod>> {
    let mut period_id = None;
    if let Some(selector) = selector {
        let named = closing::named(store, board, selector).await?;
        if named.state == PeriodState::Closed {
            return Err(Error::Conflict(format!(
                "{0} of board {1} is closed: `centile refresh --board {1} --period {0}` makes its archive from the ledger",
                named.name, board.slug
            )));
        }
        period_id = named.period_id;
        if period_id.is_none() {
            return Err(Error::Conflict(format!("nobody has scored in {} of board {}", named.name, board.slug)));
        }
    }
    let periods = store.audited_periods(Some(board.id), period_id).await?;
    Ok(periods.into_iter().filter(|period| period.ranking_id.is_some()).map(OpenPeriod).collect())
}

/// Rebuilds a period, and tells of each step. [`Error::Conflict`] when it is closed meanwhile, or being rebuilt by another process.
pub async fn rebuild(
    store: &Store,
    OpenPeriod(period): &OpenPeriod,
    act: &Act,
    mut tell: impl FnMut(Step),
) -> Result<Rebuilt> {
    let begin = Instant::now();
    let mut rebuilder = store.rebuilder(period.board_id, period.period_id).await?;
    tell(Step::Entries(rebuilder.fill_entries().await?));
    let players = rebuilder.fill_buckets().await?;
    tell(Step::LaidOut(players));
    let before = swap(&mut rebuilder, act, &mut tell).await?;
    let after = rebuilder.ranking_id;
    rebuilder.end().await;
    let kept = rebalance::rebalance(store, after).await?;
    let time = begin.elapsed();
    let AuditedPeriod { board, period, .. } = period.clone();
    tracing::info!(board, period, before, after, players, duration_ms = time.as_millis(), "period rebuilt");
    Ok(Rebuilt { board, period, before, after, players, kept, time })
}

/// Catches up until the rest is small enough to be taken in while writers wait, and swaps. Where scores come faster than rounds
/// get shorter, the writers wait for longer.
async fn swap(rebuilder: &mut Rebuilder, act: &Act, tell: &mut impl FnMut(Step)) -> Result<i64> {
    let (mut limit, mut fewest, mut patience) = (LAST_ROWS, u64::MAX, PATIENT_ROUNDS);
    loop {
        let caught = rebuilder.catch_up().await?;
        tell(Step::CaughtUp(caught));
        if let Some(before) = rebuilder.swap(limit, act).await? {
            return Ok(before);
        }
        if caught < fewest {
            fewest = caught;
        } else if patience > 0 {
            patience -= 1;
        } else {
            limit = limit.saturating_mul(2);
        }
    }
}
