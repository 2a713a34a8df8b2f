//! Values of the rules of a board.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::{
    Error, Result,
    model::{json::as_text, name::Named as _},
};

/// How a player's score in a period follows from the player's score transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Mode {
    /// The sum of all points.
    Sum,
    /// The best single event.
    Best,
    /// The latest event.
    Latest,
    /// Computed from periods of other boards. Such a board has no events.
    Combined,
}

/// Which scores are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Order {
    /// Larger scores are better.
    Desc,
    /// Smaller scores are better (lap times).
    Asc,
}

/// How equal scores are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ties {
    /// Equal scores share a rank: 1, 2, 2, 4.
    Shared,
    /// The player who reached the score first is ahead.
    First,
    /// The larger `tiebreak` of the event is ahead, then the player who reached the score first.
    Tiebreak,
    /// The better second number is ahead: `tiebreak`, combined like the score.
    Second,
}

impl Ties {
    /// Returns the valid tiebreaks of events; `None` if events have none.
    pub(crate) fn tiebreaks(self) -> Option<RangeInclusive<i64>> {
        match self {
            Self::Shared | Self::First => None,
            Self::Tiebreak => Some(-2_048..=2_047),
            Self::Second => Some(-i64::MAX..=i64::MAX),
        }
    }
}

/// How the second numbers of a `sum` board combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TiebreakSum {
    /// They are added, like the points.
    Added,
    /// The latest one replaces those before.
    Replaced,
}

/// Access for readers of a board.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reading {
    #[default]
    Public,
    /// Callers with a key for the board.
    Key,
}

/// Treatment of an event that breaks a rule of its board against cheating.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OnViolation {
    #[default]
    Refuse,
    /// The event stays in quarantine until an administrator accepts or rejects it.
    Quarantine,
}

/// Which rankings have bucket rows, from which SQL reads ranks. A change takes effect for rankings
/// that are created from then on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Buckets {
    #[default]
    All,
    /// Those of all time. Only rank indexes answer for the others over HTTP.
    AllTime,
}

/// Kinds of period.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PeriodKind {
    /// All time, without start or end.
    AllTime,
    /// An hour of the board's time zone.
    Hour,
    /// A calendar day in the board's time zone.
    Day,
    /// An ISO week, from Monday, in the board's time zone.
    Week,
    /// A calendar month in the board's time zone.
    Month,
    /// A calendar quarter in the board's time zone.
    Quarter,
    /// A calendar year in the board's time zone.
    Year,
    /// A named period with an explicit start and end. An administrator creates each season.
    Season,
    /// The all-time ranking as of the end of a day, week or month.
    Snapshot,
    /// A window that ends with the current day or hour, such as the last seven days.
    Rolling,
}

impl PeriodKind {
    /// Returns the name of the period with this label, such as `week:2024-01-15`.
    pub(crate) fn period_name(self, label: &str) -> String {
        match self {
            Self::AllTime => self.name().to_owned(),
            kind => format!("{}:{label}", kind.name()),
        }
    }
}

/// Kinds that are not in a board's list of periods.
pub(crate) const UNLISTED_KINDS: [PeriodKind; 3] = [PeriodKind::Season, PeriodKind::Snapshot, PeriodKind::Rolling];

/// Kinds of period that end, and therefore have an archive after closing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ArchivedKind {
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Season,
    Snapshot,
    Rolling,
}

/// Kinds of period at whose end a board may archive its all-time ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SnapshotKind {
    /// At the end of each day.
    Day,
    /// At the end of each week.
    Week,
    /// At the end of each month.
    Month,
}

impl From<SnapshotKind> for PeriodKind {
    fn from(kind: SnapshotKind) -> Self {
        match kind {
            SnapshotKind::Day => Self::Day,
            SnapshotKind::Week => Self::Week,
            SnapshotKind::Month => Self::Month,
        }
    }
}

/// Length of a rolling window: a number of days from 2 to 366, or 24 hours. Text forms: `7d`, `24h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WindowLength {
    /// The 24 hours up to the end of the current hour.
    DayOfHours,
    /// This many days, the last of which is the current one.
    Days(u16),
}

impl FromStr for WindowLength {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let length = match text.strip_suffix('d').map(|days| (days, days.parse::<u16>())) {
            Some((text, Ok(days))) if (2..=366).contains(&days) && days.to_string() == text => Some(Self::Days(days)),
            None if text == "24h" => Some(Self::DayOfHours),
            _ => None,
        };
        length.ok_or_else(|| {
            Error::invalid("rolling", format!("{text:?} is not the length of a window: use 2d to 366d, or 24h"))
        })
    }
}

impl fmt::Display for WindowLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DayOfHours => f.write_str("24h"),
            Self::Days(days) => write!(f, "{days}d"),
        }
    }
}

/// A board's name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardSlug(String);

impl BoardSlug {
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
                "a board's name must have 1 to 40 lower-case letters, digits, '-' and '_', and start with a letter",
            ))
        }
    }
}

impl fmt::Display for BoardSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A board or, with `*` at its end, all boards of a template: the pattern of their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoardPattern(String);

impl BoardPattern {
    /// Returns whether the name of a board matches.
    #[must_use]
    pub fn matches(&self, slug: &BoardSlug) -> bool {
        self.0.strip_suffix('*').map_or(self.0 == slug.0, |start| slug.0.starts_with(start))
    }
}

impl FromStr for BoardPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.strip_suffix('*').unwrap_or(text).parse::<BoardSlug>().map(|_| Self(text.to_owned()))
    }
}

impl fmt::Display for BoardPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(WindowLength, BoardSlug, BoardPattern);
