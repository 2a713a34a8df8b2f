//! Periods: slices of a board's time, and the selectors that name them.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Datelike, NaiveDate, Utc, Weekday};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{
        json::as_text,
        name::Named as _,
        rule::{PeriodKind, SnapshotKind, WindowLength},
        segment::Segment,
    },
};

/// A caller's choice of a period. Text forms: `all_time`, `day`, `week:previous`, `day:-7`,
/// `hour:2024-01-15T14`, `week:2024-01-15`, `month:2024-01`, `quarter:2024-Q1`, `year:2024`,
/// `season:spring`, `rolling:7d`; with a segment, `week@country:DE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeriodSelector {
    /// The current period, by the database's clock.
    Current(PeriodKind),
    /// The period before the current one, by the database's clock, closed or not.
    Previous(PeriodKind),
    /// The current rolling window of this length, by the database's clock.
    Window(WindowLength),
    /// The period this many periods before the current one, from 1 to [`BACK_MAX`].
    Back(PeriodKind, u16),
    /// The period with this label, or the season with this name.
    Labelled(PeriodKind, String),
    /// A segment of a period. The inner selector has no segment.
    InSegment(Box<PeriodSelector>, Segment),
}

impl PeriodSelector {
    /// Returns the kind of the period.
    #[must_use]
    pub fn kind(&self) -> PeriodKind {
        match self {
            Self::Current(kind) | Self::Previous(kind) | Self::Back(kind, _) | Self::Labelled(kind, _) => *kind,
            Self::Window(_) => PeriodKind::Rolling,
            Self::InSegment(whole, _) => whole.kind(),
        }
    }

    /// Returns the selector without its segment.
    #[must_use]
    pub fn whole(&self) -> &Self {
        match self {
            Self::InSegment(whole, _) => whole,
            _ => self,
        }
    }

    /// Returns the segment, if the selector names one.
    #[must_use]
    pub fn segment(&self) -> Option<&Segment> {
        match self {
            Self::InSegment(_, segment) => Some(segment),
            _ => None,
        }
    }

    /// Returns the selector of a segment of this period.
    #[must_use]
    pub fn in_segment(self, segment: Segment) -> Self {
        Self::InSegment(Box::new(self), segment)
    }
}

impl Default for PeriodSelector {
    fn default() -> Self {
        Self::Current(PeriodKind::AllTime)
    }
}

as_text!(PeriodSelector);

/// `all_time`, `hour`, `day`, `week`, `month`, `quarter` or `year` for the current period.
/// `week:previous` is the one before, and `day:-7` the day seven days ago (up to 366).
///
/// `hour:2024-01-15T14`, `day:2024-01-15`, `week:2024-01-15` (a Monday), `month:2024-01`,
/// `quarter:2024-Q1` and `year:2024` name one period. `season:spring` names a season, and
/// `snapshot:week-2024-01-15` the all-time ranking at the end of that week. `rolling:7d`
/// names the seven days that end with the current day (2d to 366d), and `rolling:24h` the 24 hours
/// that end with the current hour; `rolling:7d-2024-01-15` names the window of another day.
#[derive(Debug, ToSchema)]
#[schema(
    as = Period,
    example = "week",
    pattern = r"^(all_time|(hour|day|week|month|quarter|year)(:previous|:-([1-9][0-9]?|[12][0-9]{2}|3[0-5][0-9]|36[0-6]))?|(day|week):[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|hour:[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])|month:[0-9]{4}-(0[1-9]|1[0-2])|quarter:[0-9]{4}-Q[1-4]|year:[0-9]{4}|season:[a-z0-9][a-z0-9_-]{0,39}|snapshot:((day|week)-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|month-[0-9]{4}-(0[1-9]|1[0-2]))|rolling:(24h(-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]))?|([2-9]|[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])d(-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?))$"
)]
#[expect(dead_code, reason = "describes a valid period selector")]
pub(crate) struct PeriodText(String);

impl FromStr for PeriodSelector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some((whole, segment)) = text.split_once('@') {
            return Ok(whole.parse::<Self>()?.in_segment(segment.parse()?));
        }
        let (name, label) = text.split_once(':').map_or((text, None), |(name, label)| (name, Some(label)));
        let kind = name.parse().map_err(|_| {
            Error::invalid(
                "period",
                format!(
                    "{text:?} is not a period; use all_time, hour, day, week, month, quarter or year, with :previous, :-7 or a label such as :2024-01-15 after it, or season:NAME, snapshot:NAME or rolling:7d"
                ),
            )
        })?;
        match (kind, label) {
            (PeriodKind::Snapshot, None | Some("previous")) => Err(Error::invalid(
                "period",
                format!("{text:?} has no name of a snapshot; use snapshot:NAME, such as snapshot:week-2024-01-15"),
            )),
            (PeriodKind::Season, None | Some("previous" | "current" | "next")) => {
                Err(Error::invalid("period", format!("{text:?} has no name of a season; use season:NAME")))
            }
            (PeriodKind::Rolling, None | Some("previous")) => Err(Error::invalid(
                "period",
                format!("{text:?} has no length of a window; use rolling:7d, or a name such as rolling:7d-2024-01-15"),
            )),
            (PeriodKind::Rolling, Some(length)) if !length.contains('-') => {
                length.parse().map(Self::Window).map_err(|error: Error| error.in_field("period"))
            }
            (_, None) => Ok(Self::Current(kind)),
            (PeriodKind::AllTime, Some(_)) => Err(Error::invalid("period", "all_time has no label")),
            (PeriodKind::Season | PeriodKind::Snapshot | PeriodKind::Rolling, Some(label)) => {
                check_label(kind, label).map(|()| Self::Labelled(kind, label.to_owned()))
            }
            (_, Some("previous" | "-1")) => Ok(Self::Previous(kind)),
            (_, Some(label)) if label.starts_with('-') => back(label).map(|back| Self::Back(kind, back)),
            (_, Some(label)) => check_label(kind, label).map(|()| Self::Labelled(kind, label.to_owned())),
        }
    }
}

impl fmt::Display for PeriodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current(kind) => f.write_str(kind.name()),
            Self::Previous(kind) => write!(f, "{}:previous", kind.name()),
            Self::Window(length) => write!(f, "{}:{length}", PeriodKind::Rolling.name()),
            Self::Back(kind, back) => write!(f, "{}:-{back}", kind.name()),
            Self::Labelled(kind, label) => write!(f, "{}:{label}", kind.name()),
            Self::InSegment(whole, segment) => write!(f, "{whole}@{segment}"),
        }
    }
}

/// Largest number of periods before the current one that a selector may name.
pub const BACK_MAX: u16 = 366;

/// Parses a number of periods before the current one, such as `-7`.
fn back(label: &str) -> Result<u16> {
    let digits = label.trim_start_matches('-');
    let is_canonical = label.len() == digits.len() + 1 && !digits.starts_with(['0', '+']);
    let number = digits.parse().ok().filter(|number| is_canonical && (1..=BACK_MAX).contains(number));
    number.ok_or_else(|| Error::invalid("period", format!("{label:?} is not from -1 to -{BACK_MAX}")))
}

/// Checks that a label is possible for the kind. The database decides whether the period exists.
fn check_label(kind: PeriodKind, label: &str) -> Result<()> {
    let refuse = |what: &str| Err(Error::invalid("period", format!("{label:?} is not {what}")));
    match kind {
        PeriodKind::Hour => {
            let parts = label.split_once('T').and_then(|(day, hour)| Some((date(day)?, number(hour, 2)?)));
            if parts.is_none_or(|(_, hour)| hour > 23) {
                return refuse("an hour such as 2024-01-15T14");
            }
        }
        PeriodKind::Month => {
            if date(&format!("{label}-01")).is_none() {
                return refuse("a month such as 2024-01");
            }
        }
        PeriodKind::Quarter => {
            let parts =
                label.split_once("-Q").and_then(|(year, quarter)| Some((number(year, 4)?, number(quarter, 1)?)));
            if parts.is_none_or(|(_, quarter)| !(1..=4).contains(&quarter)) {
                return refuse("a quarter such as 2024-Q1");
            }
        }
        PeriodKind::Year => {
            if number(label, 4).is_none() {
                return refuse("a year such as 2024");
            }
        }
        PeriodKind::Day | PeriodKind::Week => {
            let Some(date) = date(label) else { return refuse("a date such as 2024-01-15") };
            if kind == PeriodKind::Week && date.weekday() != Weekday::Mon {
                let monday = date.week(Weekday::Mon).checked_first_day().unwrap_or(date);
                return Err(Error::invalid("period", format!("weeks are named by their Monday: {monday}")));
            }
        }
        PeriodKind::Season => {
            let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
            let mut bytes = label.bytes();
            let begins_well = bytes.next().is_some_and(is_plain);
            if !begins_well || label.len() > 40 || !bytes.all(|b| is_plain(b) || b == b'_' || b == b'-') {
                return Err(Error::invalid(
                    "period",
                    "a season's name must have 1 to 40 lower-case letters, digits, '-' and '_', and start with a letter or a digit",
                ));
            }
        }
        PeriodKind::Snapshot => {
            let parts =
                label.split_once('-').and_then(|(kind, label)| Some((kind.parse::<SnapshotKind>().ok()?, label)));
            let Some((kind, label)) = parts else { return refuse("a snapshot such as week-2024-01-15") };
            return check_label(kind.into(), label);
        }
        PeriodKind::Rolling => {
            let parts = label.split_once('-').and_then(|(length, label)| Some((length.parse().ok()?, label)));
            return match parts {
                Some((WindowLength::DayOfHours, last)) => check_label(PeriodKind::Hour, last),
                Some((WindowLength::Days(_), last)) => check_label(PeriodKind::Day, last),
                None => refuse("a window such as 7d-2024-01-15"),
            };
        }
        PeriodKind::AllTime => {}
    }
    Ok(())
}

/// Parses a number of this many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Parses a date exactly like 2024-01-15. chrono would also accept signs, spaces and single digits:
/// ` 2024-1-01`.
fn date(text: &str) -> Option<NaiveDate> {
    let is_canonical = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(place, byte)| if matches!(place, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    is_canonical.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()).flatten()
}

/// A period of a board, as answers show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Kind of the period.
    pub kind: PeriodKind,
    /// Label, such as `2024-01-15` or `2024-Q1`; `all_time`; or a season's name.
    pub label: String,
    /// First instant of the period; absent for `all_time`.
    pub starts_at: Option<DateTime<Utc>>,
    /// First instant after the period; absent for `all_time`.
    pub ends_at: Option<DateTime<Utc>>,
    /// State of the period.
    pub state: PeriodState,
    /// Segment of the ranking; `None` for the ranking of all players.
    #[serde(default)]
    pub segment: Option<Segment>,
}

/// A player's standing in one snapshot; without values if the player had no score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The snapshot.
    pub period: Period,
    /// Players in the snapshot.
    pub players: i64,
    /// Position in the total order.
    pub position: Option<i64>,
    pub rank: Option<i64>,
    pub score: Option<i64>,
    pub reached_at: Option<DateTime<Utc>>,
    pub tiebreak: Option<i64>,
    /// Tier, with the tiers of the snapshot.
    pub tier: Option<String>,
}

/// State of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PeriodState {
    /// A season that has not begun.
    Upcoming,
    /// A rolling window that is being filled from the ledger. It cannot be read yet.
    Preparing,
    /// The period has begun and has not ended.
    Open,
    /// The period has ended but is not closed. Its live ranking answers.
    Due,
    /// The period is closed. Its archive answers.
    Closed,
}

impl Period {
    /// Returns the period's name without its segment, such as `week:2024-01-15`.
    #[must_use]
    pub fn name(&self) -> String {
        self.kind.period_name(&self.label)
    }

    /// Returns the name as a selector, with the segment.
    #[must_use]
    pub fn full_name(&self) -> String {
        match &self.segment {
            None => self.name(),
            Some(segment) => format!("{}@{segment}", self.name()),
        }
    }
}
