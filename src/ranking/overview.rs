//! What pages show beside ranks: which periods a board has, and how the scores of one are spread.
//!
//! Neither tells anybody a rank, or names anybody. So both are kept for some seconds: a page then costs the database no more than the ranks on it.

use std::{sync::Arc, time::Duration};

use crate::{
    Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
        rank::Distribution,
    },
    ranking::{Rankings, period, read},
    single_flight::SingleFlightCache,
};

/// How old either may be.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Past periods of each kind that are listed.
const PERIODS: u32 = 12;

/// Recent reads of this process.
#[derive(Debug)]
pub(crate) struct Overviews {
    periods: SingleFlightCache<i32, Arc<[Period]>>,
    distributions: SingleFlightCache<(i32, PeriodSelector), Arc<Distribution>>,
}

impl Overviews {
    /// Nothing yet; whoever waits for somebody else's read waits for so long at most.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            periods: SingleFlightCache::new(patience, KEPT_FOR),
            distributions: SingleFlightCache::new(patience, KEPT_FOR),
        }
    }
}

/// The newest periods of each kind, newest first.
pub(crate) async fn periods(rankings: &Rankings, board: &Board) -> Result<Arc<[Period]>> {
    let read = || async { period::list(rankings, board, PERIODS).await.map(Arc::from) };
    rankings.overviews.periods.read(board.id, read).await
}

/// How the scores of a period are spread.
pub(crate) async fn distribution(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<Arc<Distribution>> {
    let read = || async { read::distribution(rankings, board, selector).await.map(Arc::new) };
    rankings.overviews.distributions.read((board.id, selector.clone()), read).await
}
