//! Reading a ranking: pages, ranks, neighbours, friends, the distribution.
//!
//! Every answer is exact for the version it names.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    board::Board,
    period::{Period, PeriodSelector},
    service::Service,
    user::UserId,
};

/// What every answer about a ranking carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The period that is meant.
    pub period: Period,
    /// The state that the answer is exact for; opaque, equal means equal state.
    pub version: String,
    /// Players in the ranking.
    pub players: u64,
}

/// One player's line in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Row {
    /// Place in the total order, from 1, never shared.
    pub position: u64,
    /// Rank, shared among equals on `shared` boards.
    pub rank: u64,
    /// The caller's id of the player.
    pub user_id: String,
    /// Name.
    pub user_name: String,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// Score.
    pub score: i64,
    /// When the score was reached.
    pub reached_at: DateTime<Utc>,
}

/// A page of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Period, version, players.
    pub header: Header,
    /// The rows, best first.
    pub rows: Vec<Row>,
    /// Cursor of the next page; absent after the last player.
    pub next: Option<String>,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// At this position, from 1.
    Position(u64),
    /// After the last row of an earlier page.
    Cursor(String),
}

/// A page, at any depth, for the cost of the first.
pub async fn page(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    start: PageStart,
    limit: u32,
) -> Result<Page> {
    let _ = (service, board, selector, start, limit);
    Err(Error::Internal("unwritten".into()))
}

/// A top list as it is cached: the rendered body and what its `ETag` is made of.
#[derive(Debug, Clone)]
pub struct Top {
    /// The JSON body, rendered once by the function given to [`top`].
    pub body: Arc<str>,
    /// Entity tag without quotes: version, profile revision and size.
    pub etag: String,
    /// How old the state is, when PostgreSQL could not be reached to renew it; `None` when it is fresh.
    pub stale_for: Option<std::time::Duration>,
}

/// The first `limit` players, from the cache: lags by at most 250 ms, never behind a score this instance acknowledged.
pub async fn top(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    render: fn(&Board, &Page) -> String,
) -> Result<Top> {
    let _ = (service, board, selector, limit, render);
    Err(Error::Internal("unwritten".into()))
}

/// One player's standing with the players around.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Period, version, players.
    pub header: Header,
    /// The player's own line.
    pub player: Row,
    /// 100 × players strictly worse ÷ max(players − 1, 1).
    pub percentile: f64,
    /// Up to n players above, best first.
    pub above: Vec<Row>,
    /// Up to n players below, best first.
    pub below: Vec<Row>,
}

/// A player's standing and the `around` players above and below. [`Error::NotFound`] when the player has no entry.
pub async fn standing(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    user_id: &UserId,
    around: u32,
) -> Result<Standing> {
    let _ = (service, board, selector, user_id, around);
    Err(Error::Internal("unwritten".into()))
}

/// Chosen players, best first, with their place among each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Period, version, players.
    pub header: Header,
    /// Their lines, best first; the n-th has place n among them (equals share on `shared` boards: see `places`).
    pub rows: Vec<Row>,
    /// Place of each row among the chosen ones.
    pub places: Vec<u64>,
    /// Ids asked for that have no entry, in the order asked.
    pub missing: Vec<String>,
}

/// Just these players: friends.
pub async fn chosen(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    user_ids: &[UserId],
) -> Result<Chosen> {
    let _ = (service, board, selector, user_ids);
    Err(Error::Internal("unwritten".into()))
}

/// The rank that a newcomer with this score would have now, behind equals except on `shared` boards.
pub async fn newcomer(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    score: i64,
) -> Result<(Header, u64)> {
    let _ = (service, board, selector, score);
    Err(Error::Internal("unwritten".into()))
}

/// How scores are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Period, version, players.
    pub header: Header,
    /// (percentile, score) at 0, 10, …, 100, by `percentile_disc`, worst to best; empty without players.
    pub percentiles: Vec<(u8, i64)>,
    /// Histogram by stripes, worst to best: (score at the lower end of the range, players in it).
    pub histogram: Vec<Bar>,
}

/// One range of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Bar {
    /// Score of the worst player in the range.
    pub from_score: i64,
    /// Score of the best player in the range.
    pub to_score: i64,
    /// Players in the range.
    pub players: u64,
}

/// Percentiles and histogram.
pub async fn distribution(service: &Service, board: &Board, selector: &PeriodSelector) -> Result<Distribution> {
    let _ = (service, board, selector);
    Err(Error::Internal("unwritten".into()))
}
