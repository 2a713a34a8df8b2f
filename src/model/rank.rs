//! Answers to reads of a ranking.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use crate::model::{
    board::{Board, Order},
    combination::CombinedFrom,
    metadata::Metadata,
    period::Period,
    tier::{Tier, TierCount, Tiers},
};

/// Source of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AnsweredBy {
    /// The rank index of this instance.
    Index,
    /// A SQL statement that reads tables or an archive.
    Sql,
}

/// Common part of all answers about a ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The period that the answer is about.
    pub period: Period,
    /// The state that the answer is exact for. Opaque; equal versions mean equal states.
    pub version: String,
    /// Players in the ranking.
    pub players: u64,
    /// Entity tag of an answer about a closed period, without quotes.
    pub etag: Option<String>,
    /// Source of the answer.
    pub answered_by: AnsweredBy,
    /// Snapshot of the sources of a combined board; none before the first refresh.
    #[serde(skip)]
    pub combined: Option<Arc<CombinedFrom>>,
    /// Tiers of a closed period; none for other periods, which have the tiers of their board.
    #[serde(skip)]
    pub tiers: Option<Tiers>,
}

impl Header {
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        use crate::model::{board::PeriodKind, period::PeriodState};
        let (kind, label, state) = (PeriodKind::AllTime, "all_time".to_owned(), PeriodState::Open);
        Self {
            period: Period { kind, label, starts_at: None, ends_at: None, state, segment: None },
            version: String::new(),
            players: 0,
            etag: None,
            answered_by: AnsweredBy::Sql,
            combined: None,
            tiers: None,
        }
    }

    /// Returns what decides the tiers of the players.
    #[must_use]
    pub fn tiering<'a>(&'a self, board: &'a Board) -> Tiering<'a> {
        Tiering { tiers: self.tiers.as_ref().unwrap_or(&board.tiers), ..Tiering::open(board, self.players) }
    }
}

/// Tiers of a ranking in one state.
#[derive(Debug, Clone, Copy)]
pub struct Tiering<'a> {
    tiers: &'a Tiers,
    order: Order,
    players: u64,
}

impl<'a> Tiering<'a> {
    /// Returns the tiering of a ranking that is not closed.
    pub fn open(board: &'a Board, players: u64) -> Self {
        Self { tiers: &board.tiers, order: board.order, players }
    }

    /// Returns the name of a player's tier, or an inner `None` for a player in none. `None` if the
    /// ranking has no tiers.
    pub fn tier(self, score: i64, rank: u64) -> Option<Option<&'a str>> {
        (!self.tiers.is_empty()).then(|| self.tiers.of(self.order, score, rank, self.players).map(Tier::name))
    }
}

/// A player's rank after an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankChange {
    /// The rank; none if the player has none any more.
    pub rank: Option<u64>,
    /// The rank that the score before the event would have.
    pub previous_rank: Option<u64>,
    /// The score that has this rank.
    pub score: Option<i64>,
    /// Number of players in the ranking. Only tiers need it: may be absent without tiers.
    pub players: Option<u64>,
}

/// One player's row in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Position in the total order, from 1, never shared.
    pub position: u64,
    /// Rank, shared among equals on `shared` boards.
    pub rank: u64,
    /// The caller's own id of the player.
    pub user_id: String,
    /// Name of the player.
    pub user_name: String,
    /// URL of the player's picture; `None` without one.
    pub avatar: Option<String>,
    /// Score of the player.
    pub score: i64,
    /// Time at which the score was reached; `None` with ties `second`.
    pub reached_at: Option<DateTime<Utc>>,
    /// Second number, with ties `second`.
    pub tiebreak: Option<i64>,
    /// Metadata of the event that decides the score; an inner `None` if it has none. `None` if not
    /// requested.
    #[serde(skip)]
    pub metadata: Option<Option<Metadata>>,
    /// Public members of the player's profile; an inner `None` if it has none. `None` if not requested.
    #[serde(skip)]
    pub profile: Option<Option<Metadata>>,
}

/// A page of a ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Period, version, players.
    pub header: Header,
    /// The rows, best first.
    pub rows: Vec<Row>,
    /// Cursor of the next page; absent after the last player.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// This position, from 1.
    Position(u64),
    /// After the last row of an earlier page, by its cursor.
    Cursor(String),
}

/// One player's standing, with the players around.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayerStanding {
    pub header: Header,
    pub player: Row,
    /// 100 × players strictly worse ÷ max(players − 1, 1).
    pub percentile: f64,
    /// Up to n players above, best first.
    pub above: Vec<Row>,
    /// Up to n players below, best first.
    pub below: Vec<Row>,
}

impl PlayerStanding {
    /// Returns the player and the neighbours, best first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.above.iter().chain([&self.player]).chain(&self.below)
    }
}

/// Chosen players, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub header: Header,
    pub rows: Vec<Row>,
    /// Rank of each row among the chosen players, from 1. Players with equal ranks share it.
    pub local_ranks: Vec<u64>,
    /// Requested ids without an entry, in the order of the request.
    pub missing: Vec<String>,
}

/// Start of a page of a player's friends, ranked among each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalStart {
    /// As a page of a ranking. Positions count only the player and the friends.
    Page(PageStart),
    /// The page has the player in the middle, and its limit on each side.
    Around,
}

/// A page of a player and the player's friends, ranked among each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPage {
    pub header: Header,
    /// How many of them have a score.
    pub local_players: u64,
    /// The rows, best first.
    pub rows: Vec<Row>,
    /// Rank of each row among all of them, from 1. Players with equal ranks share it.
    pub local_ranks: Vec<u64>,
    /// Cursor of the next page; absent after the last player.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    pub header: Header,
    /// (percentile, score) at 0, 10, …, 100, worst to best, as `percentile_disc` computes them;
    /// empty without players.
    pub percentiles: Vec<(u8, i64)>,
    /// Histogram: up to 20 ranges of equal width from the worst score to the best.
    pub histogram: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierCounts {
    pub header: Header,
    /// The tiers, best first.
    pub counts: Vec<TierCount>,
}

/// A range of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = BarResponse)]
pub struct Bar {
    /// Worst score of the range.
    #[schema(example = 1_000)]
    pub from_score: i64,
    /// Best score of the range.
    #[schema(example = 1_250)]
    pub to_score: i64,
    /// Players in the range.
    #[schema(example = 412)]
    pub players: u64,
}
