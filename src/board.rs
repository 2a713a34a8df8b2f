//! Boards: one thing that is ranked, with its rules.

use std::{fmt, str::FromStr, sync::Arc};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Error, Result, service::Service};

/// How a player's score in a period follows from the player's score transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The sum of all points.
    Sum,
    /// The best single event.
    Best,
    /// The latest event.
    Latest,
}

/// Which scores are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Larger scores are better.
    Desc,
    /// Smaller scores are better (lap times).
    Asc,
}

/// What becomes of equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// They share a rank: 1, 2, 2, 4.
    Shared,
    /// Whoever reached the score first is ahead.
    First,
    /// The event's `tiebreak` decides, larger wins; then whoever was first.
    Tiebreak,
}

/// The kinds of period that a board may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum PeriodKind {
    /// The whole life of the board.
    AllTime,
    /// A calendar day in the board's time zone.
    Day,
    /// An ISO week, from Monday, in the board's time zone.
    Week,
    /// A calendar month in the board's time zone.
    Month,
}

/// A board's name in URLs: 1 to 40 characters, lower-case letters, digits, `-` and `_`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BoardSlug(String);

impl BoardSlug {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BoardSlug {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let tail_is_good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if tail_is_good && text.len() <= 40 && text.starts_with(|c: char| c.is_ascii_lowercase()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(
                "board",
                "a board's name has 1 to 40 characters: lower-case letters, digits, '-' and '_', beginning with a letter",
            ))
        }
    }
}

impl fmt::Display for BoardSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the bounds of a new ranking's stripes come from, while it has no players to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FirstLayout {
    /// One range between each two of these scores: 1 to 99 scores, strictly ascending.
    Bounds(Vec<i64>),
    /// 100 ranges of equal width from 0 to this score.
    ExpectedPoints(i64),
}

/// The rules of a board that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewBoard {
    /// Name in URLs.
    pub slug: BoardSlug,
    /// Title for people; the slug when absent.
    pub title: Option<String>,
    /// How scores add up.
    pub mode: Mode,
    /// Which scores are better.
    pub order: Order,
    /// What becomes of equal scores.
    pub ties: Ties,
    /// The kinds of period kept; at least one, each once.
    pub periods: Vec<PeriodKind>,
    /// Writer lanes, 1 to 64; by the number of cores when absent.
    pub lanes: Option<i16>,
    /// IANA time zone in which days, weeks and months begin.
    pub time_zone: String,
    /// Least points an event may carry.
    pub points_min: i64,
    /// Most points an event may carry.
    pub points_max: i64,
    /// First layout of new rankings; one stripe when absent.
    pub first_layout: Option<FirstLayout>,
}

/// Changes to a board. What would change the meaning of its scores is refused once events exist.
#[derive(Debug, Clone, Default)]
pub struct BoardChange {
    /// New title.
    pub title: Option<String>,
    /// New mode (refused once events exist).
    pub mode: Option<Mode>,
    /// New order (refused once events exist).
    pub order: Option<Order>,
    /// New rule for ties (refused once events exist).
    pub ties: Option<Ties>,
    /// New time zone (refused once events exist).
    pub time_zone: Option<String>,
    /// New number of lanes (refused once events exist).
    pub lanes: Option<i16>,
    /// New least points per event.
    pub points_min: Option<i64>,
    /// New most points per event.
    pub points_max: Option<i64>,
}

/// A board as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// Internal id.
    pub id: i32,
    /// Name in URLs.
    pub slug: BoardSlug,
    /// Title for people.
    pub title: String,
    /// How scores add up.
    pub mode: Mode,
    /// Which scores are better.
    pub order: Order,
    /// What becomes of equal scores.
    pub ties: Ties,
    /// The kinds of period kept.
    pub periods: Vec<PeriodKind>,
    /// Writer lanes.
    pub lanes: i16,
    /// IANA time zone.
    pub time_zone: String,
    /// Least points an event may carry.
    pub points_min: i64,
    /// Most points an event may carry.
    pub points_max: i64,
    /// When the board was made.
    pub created_at: DateTime<Utc>,
}

/// Makes a board. [`Error::Conflict`] when the slug is taken, [`Error::Invalid`] for rules that contradict each other.
pub async fn create(service: &Service, new: NewBoard) -> Result<Board> {
    let _ = (service, new);
    Err(Error::Internal("unwritten".into()))
}

/// All boards, by slug.
pub async fn list(service: &Service) -> Result<Vec<Board>> {
    let _ = service;
    Err(Error::Internal("unwritten".into()))
}

/// The board of this name, from the cache where it is known. [`Error::NotFound`] when there is none.
pub async fn find(service: &Service, slug: &BoardSlug) -> Result<Arc<Board>> {
    let _ = (service, slug);
    Err(Error::Internal("unwritten".into()))
}

/// Changes a board. [`Error::Conflict`] when a rule cannot change any more.
pub async fn update(service: &Service, slug: &BoardSlug, change: BoardChange) -> Result<Board> {
    let _ = (service, slug, change);
    Err(Error::Internal("unwritten".into()))
}
