//! Seasons: periods with an explicit start and end.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};

use crate::{
    Error, Result,
    model::{
        period::{Period, PeriodState},
        rule::PeriodKind,
    },
};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Season {
    /// Name, unique on the board: 1 to 40 lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// First instant of the season.
    pub starts_at: DateTime<Utc>,
    /// First instant after the season.
    pub ends_at: DateTime<Utc>,
    /// `open` from its creation until its end, then `due`, then `closed`.
    pub state: PeriodState,
}

impl From<Season> for Period {
    fn from(season: Season) -> Self {
        Self {
            kind: PeriodKind::Season,
            label: season.name,
            starts_at: Some(season.starts_at),
            ends_at: Some(season.ends_at),
            state: season.state,
            segment: None,
        }
    }
}

/// Start or end of a season: an instant, or the first instant of a date in the board's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeasonBound {
    Instant(DateTime<Utc>),
    /// A date. PostgreSQL computes its first instant.
    Date(NaiveDate),
}

impl FromStr for SeasonBound {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Accept only the canonical form. chrono would also accept +2030-3-1.
        let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if let Some(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| is_date) {
            return Ok(Self::Date(date));
        }
        DateTime::parse_from_rfc3339(text).map(|at| Self::Instant(at.to_utc())).map_err(|_| {
            Error::invalid(
                "time",
                format!("{text:?} must be a time such as 2030-03-01T12:00:00Z or a date such as 2030-03-01"),
            )
        })
    }
}

impl SeasonBound {
    /// Returns the instant or the date, whichever it is.
    pub(crate) fn parts(self) -> (Option<DateTime<Utc>>, Option<NaiveDate>) {
        match self {
            Self::Instant(at) => (Some(at), None),
            Self::Date(date) => (None, Some(date)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_an_instant_or_a_date() {
        let date = NaiveDate::from_ymd_opt(2030, 3, 1).map(SeasonBound::Date);
        assert_eq!("2030-03-01".parse().ok(), date);
        for text in ["2030-03-01T00:30:00+01:00", "2030-02-28T23:30:00Z", "2030-02-28t23:30:00.0z"] {
            let at = DateTime::from_timestamp(1_898_551_800, 0).map(SeasonBound::Instant);
            assert_eq!(text.parse().ok(), at, "{text}");
        }
        for text in
            ["", "2030-3-1", "2030-02-30", "+2030-3-01", "20300301", "2030-03-01T00:00:00", "2030-03-01 00:00", "now"]
        {
            assert!(text.parse::<SeasonBound>().is_err(), "{text}");
        }
    }
}
