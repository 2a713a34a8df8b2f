//! Answers about a ranking.

use chrono::{DateTime, Utc};

use crate::model::period::Period;

/// Source of an answer about a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The rank index of this instance.
    Index,
    /// A statement, on the tables or on an archive.
    Sql,
}

impl AnsweredBy {
    /// Its name in the header `X-Centile-Source`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Sql => "sql",
        }
    }
}

/// The common part of every answer about a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The period that is meant.
    pub period: Period,
    /// The state that the answer is exact for; opaque, equal means equal state.
    pub version: String,
    /// Players in the ranking.
    pub players: u64,
    /// Of a closed period: entity tag, without quotes, of what is answered to this question.
    pub etag: Option<String>,
    /// What answered.
    pub answered_by: AnsweredBy,
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

/// How scores are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Period, version, players.
    pub header: Header,
    /// (percentile, score) at 0, 10, …, 100, by `percentile_disc`, worst to best; empty without players.
    pub percentiles: Vec<(u8, i64)>,
    /// Histogram: up to 20 ranges of equal width from the worst score to the best.
    pub histogram: Vec<Bar>,
}

/// One range of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Bar {
    /// Least good score of the range.
    pub from_score: i64,
    /// Best score of the range.
    pub to_score: i64,
    /// Players in the range.
    pub players: u64,
}
