//! Periods: which slice of a board's time is meant.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Datelike, NaiveDate, Utc, Weekday};

use crate::{
    Error, Result,
    board::{Board, PeriodKind},
    service::Service,
};

/// Which period of a board a caller means. Text forms: `all_time`, `day`, `week:previous`, `week:2024-01-15`,
/// `month:2024-01`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeriodSelector {
    /// The one that holds now, by the database's clock.
    Current(PeriodKind),
    /// The one before it, by the database's clock, closed or not.
    Previous(PeriodKind),
    /// The one with this label.
    Labelled(PeriodKind, String),
}

impl PeriodSelector {
    /// The kind of period that is meant.
    #[must_use]
    pub fn kind(&self) -> PeriodKind {
        match self {
            Self::Current(kind) | Self::Previous(kind) | Self::Labelled(kind, _) => *kind,
        }
    }
}

impl Default for PeriodSelector {
    fn default() -> Self {
        Self::Current(PeriodKind::AllTime)
    }
}

impl FromStr for PeriodSelector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, label) = text.split_once(':').map_or((text, None), |(name, label)| (name, Some(label)));
        let kind = PeriodKind::from_name(name).ok_or_else(|| {
            Error::invalid(
                "period",
                format!("{text:?} is not a period: all_time, day, week, month, with :previous, :2024-01-15 or :2024-01"),
            )
        })?;
        match (kind, label) {
            (_, None) => Ok(Self::Current(kind)),
            (PeriodKind::AllTime, Some(_)) => Err(Error::invalid("period", "all_time has no label")),
            (_, Some("previous")) => Ok(Self::Previous(kind)),
            (_, Some(label)) => check_label(kind, label).map(|()| Self::Labelled(kind, label.to_owned())),
        }
    }
}

impl fmt::Display for PeriodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current(kind) => f.write_str(kind.name()),
            Self::Previous(kind) => write!(f, "{}:previous", kind.name()),
            Self::Labelled(kind, label) => write!(f, "{}:{label}", kind.name()),
        }
    }
}

/// The label must be one that the kind can have; which labels exist is for the database to say.
fn check_label(kind: PeriodKind, label: &str) -> Result<()> {
    let canonical = |text: &str| text.len() == 10 && text.is_ascii();
    match kind {
        PeriodKind::Month => {
            let first = format!("{label}-01");
            if !canonical(&first) || NaiveDate::parse_from_str(&first, "%Y-%m-%d").is_err() {
                return Err(Error::invalid("period", format!("{label:?} is not a month such as 2024-01")));
            }
        }
        PeriodKind::Day | PeriodKind::Week => {
            let date = NaiveDate::parse_from_str(label, "%Y-%m-%d").ok().filter(|_| canonical(label));
            let Some(date) = date else {
                return Err(Error::invalid("period", format!("{label:?} is not a date such as 2024-01-15")));
            };
            if kind == PeriodKind::Week && date.weekday() != Weekday::Mon {
                let monday = date.week(Weekday::Mon).checked_first_day().unwrap_or(date);
                return Err(Error::invalid("period", format!("weeks are named by their Monday: week:{monday}")));
            }
        }
        PeriodKind::AllTime => {}
    }
    Ok(())
}

impl PeriodKind {
    /// The kind's name in selectors and in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllTime => "all_time",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::AllTime, Self::Day, Self::Week, Self::Month].into_iter().find(|kind| kind.name() == name)
    }
}

/// A period of a board, as answers name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// Its kind.
    pub kind: PeriodKind,
    /// Its label: `2024-01-15`, `2024-01`, or `all_time`.
    pub label: String,
    /// First instant; absent for `all_time`.
    pub starts_at: Option<DateTime<Utc>>,
    /// First instant after it; absent for `all_time`.
    pub ends_at: Option<DateTime<Utc>>,
    /// `open` while scores can enter, `due` once it is over but not closed, `closed`.
    pub state: PeriodState,
}

/// How far a period is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodState {
    /// Holds now.
    Open,
    /// Over, and still answered by its live ranking.
    Due,
    /// Closed: an archive answers for it.
    Closed,
}

impl Period {
    /// Its name as a selector: `week:2024-01-15`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.kind {
            PeriodKind::AllTime => "all_time".to_owned(),
            kind => format!("{}:{}", kind.name(), self.label),
        }
    }
}

/// The periods of a board that have been opened so far, newest first, at most `limit` of each kind.
pub async fn list(service: &Service, board: &Board, limit: u32) -> Result<Vec<Period>> {
    let _ = (service, board, limit);
    Err(Error::Internal("unwritten".into()))
}
