//! The periods of a board, their segments, and the distribution of their scores, for web pages.
//!
//! None of these contains ranks or names, so all may be some seconds old. They are cached, so that a
//! page costs the database only its ranks.

use std::sync::Arc;

use crate::{
    Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
        rank::Distribution,
    },
    ranking::{rankings::Rankings, read},
};

/// Periods of each kind in the list.
const PERIODS_PER_KIND: u32 = 12;

/// Maximum segments in the list.
const SEGMENTS: i64 = 1_000;

/// Returns the newest periods of each kind, newest first.
pub(crate) async fn periods(rankings: &Rankings, board: &Board) -> Result<Arc<[Period]>> {
    let read = || async { rankings.reader.periods(board, PERIODS_PER_KIND).await.map(Arc::from) };
    rankings.overviews.periods.read(board.id, read).await
}

/// Returns up to [`SEGMENTS`] opened segments of a period, in order.
pub(crate) async fn segments(rankings: &Rankings, board: &Board, period: &Period) -> Result<Arc<[String]>> {
    let read = || async { rankings.reader.segments(board.id, period, SEGMENTS).await.map(Arc::from) };
    rankings.overviews.segments.read((board.id, period.kind, period.label.clone()), read).await
}

pub(crate) async fn distribution(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<Arc<Distribution>> {
    let read = || async { read::distribution(rankings, board, selector).await.map(Arc::new) };
    rankings.overviews.distributions.read((board.id, selector.clone()), read).await
}
