//! Boards: one thing that is ranked, with its rules.

use std::{collections::BTreeMap, fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Error, Result};

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

impl Mode {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Best => "best",
            Self::Latest => "latest",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sum, Self::Best, Self::Latest].into_iter().find(|it| it.name() == name)
    }
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

impl Order {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Desc => "desc",
            Self::Asc => "asc",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Desc, Self::Asc].into_iter().find(|it| it.name() == name)
    }
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

impl Ties {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::First => "first",
            Self::Tiebreak => "tiebreak",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Shared, Self::First, Self::Tiebreak].into_iter().find(|it| it.name() == name)
    }
}

/// Who may read a board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Everybody.
    #[default]
    Public,
    /// Whoever has a key for the board.
    Key,
}

impl Reading {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Key => "key",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Public, Self::Key].into_iter().find(|it| it.name() == name)
    }
}

/// What becomes of an event that breaks one of its board's rules against cheating.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    /// It is refused.
    #[default]
    Refuse,
    /// It is kept apart until an administrator accepts or rejects it.
    Quarantine,
}

impl OnViolation {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Quarantine => "quarantine",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Refuse, Self::Quarantine].into_iter().find(|it| it.name() == name)
    }
}

/// The kinds of period that a board may keep.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema, clap::ValueEnum,
)]
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
    /// A named slice with a beginning and an end of its own. Made one by one: no board keeps them by itself.
    #[value(skip)]
    Season,
}

/// The kinds of period that end, and so leave an archive when they are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArchivedKind {
    /// Days.
    Day,
    /// Weeks.
    Week,
    /// Months.
    Month,
    /// Seasons.
    Season,
}

impl ArchivedKind {
    /// Its name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Season => "season",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Day, Self::Week, Self::Month, Self::Season].into_iter().find(|it| it.name() == name)
    }
}

/// How many closed periods of a kind keep their archive, newest first; of a kind that is absent, all do.
pub type KeptArchives = BTreeMap<ArchivedKind, i32>;

/// Changes to [`KeptArchives`]: the new number of a kind, or `None` to keep all again; kinds that are absent stay.
pub type KeptArchivesChange = BTreeMap<ArchivedKind, Option<i32>>;

/// The most that a player may gain in a period, by its kind; of a kind that is absent, anything. See `centile_store.broken_rules` for
/// what a gain is.
pub type GainMax = BTreeMap<PeriodKind, i64>;

/// Changes to [`GainMax`]: the new limit of a kind, or `None` to take it off; kinds that are absent stay.
pub type GainMaxChange = BTreeMap<PeriodKind, Option<i64>>;

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

/// Where the bounds of a new ranking's buckets come from, while it has no players to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstLayout {
    /// One range between each two of these scores: 1 to 99 scores, strictly ascending.
    Bounds(Vec<i64>),
    /// 100 ranges of equal width from 0 to this score.
    ExpectedPoints(i64),
}

/// Largest points either way when a board sets no bounds: what every JSON reader keeps exactly (RFC 8259, section 6).
pub const DEFAULT_POINTS_BOUND: i64 = 9_007_199_254_740_991;

/// Players in the frozen top of a closed period when a board does not say how many.
pub const DEFAULT_FROZEN_TOP_SIZE: i32 = 100;

/// Most players in a frozen top.
pub const FROZEN_TOP_MAX: i32 = 1_000;

/// Most archives of a kind that a board can say it keeps; to keep more is to keep all.
pub const KEPT_ARCHIVES_MAX: i32 = 1_000_000;

/// Most events of a player per minute that a board can name; to allow more is to allow any number.
pub const EVENTS_PER_MINUTE_MAX: i32 = 10_000;

/// The kinds of period that a board keeps when it does not say which.
pub const DEFAULT_PERIODS: [PeriodKind; 4] =
    [PeriodKind::AllTime, PeriodKind::Day, PeriodKind::Week, PeriodKind::Month];

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
    /// First layout of new rankings; one bucket when absent.
    pub first_layout: Option<FirstLayout>,
    /// Players in the top that is kept for good of each closed period, 1 to [`FROZEN_TOP_MAX`].
    pub frozen_top_size: i32,
    /// How many closed periods keep their archive.
    pub kept_archives: KeptArchives,
    /// Who may read.
    pub reading: Reading,
    /// Most events of a player in any 60 seconds, 1 to [`EVENTS_PER_MINUTE_MAX`]; any number when absent.
    pub events_per_minute: Option<i32>,
    /// The most that a player may gain in a period.
    pub gain_max: GainMax,
    /// What becomes of an event that breaks a rule.
    pub on_violation: OnViolation,
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
    /// New size of the tops that are kept of periods closed from now on.
    pub frozen_top_size: Option<i32>,
    /// Changes to how many closed periods keep their archive.
    pub kept_archives: KeptArchivesChange,
    /// Who may read from now on.
    pub reading: Option<Reading>,
    /// New limit of events of a player in any 60 seconds; `Some(None)` takes it off.
    pub events_per_minute: Option<Option<i32>>,
    /// Changes to what a player may gain in a period.
    pub gain_max: GainMaxChange,
    /// What becomes of an event that breaks a rule from now on.
    pub on_violation: Option<OnViolation>,
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
    /// Players in the top that is kept for good of each closed period.
    pub frozen_top_size: i32,
    /// How many closed periods keep their archive.
    pub kept_archives: KeptArchives,
    /// Who may read.
    pub reading: Reading,
    /// Most events of a player in any 60 seconds; any number when absent.
    pub events_per_minute: Option<i32>,
    /// The most that a player may gain in a period.
    pub gain_max: GainMax,
    /// What becomes of an event that breaks a rule.
    pub on_violation: OnViolation,
    /// When the board was made.
    pub created_at: DateTime<Utc>,
}
