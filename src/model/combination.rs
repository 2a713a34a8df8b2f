//! Combined boards: rankings that are computed from periods of other boards.

use std::{fmt, str::FromStr, time::Duration};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{
        json::{self, as_text},
        period::{PeriodSelector, PeriodText},
        rule::BoardSlug,
    },
};

/// Which players of its sources a combined board has.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Join {
    /// Players of any source. A missing score counts as 0 in a sum, and not at all otherwise.
    #[default]
    Union,
    /// Players of every source.
    Intersection,
}

/// How a score follows from the player's scores in the sources, each times the source's weight.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Aggregate {
    #[default]
    Sum,
    Min,
    Max,
}

/// Maximum absolute weight of a source.
pub const WEIGHT_MAX: i32 = 1_000_000;

/// A period of a board, with its weight. Text form: `arena@week:previous*2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of a board, which may be a combined one.
    #[schema(value_type = String, example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    pub board: BoardSlug,
    /// Whole period of the board. `week:previous` is another week each week.
    #[serde(deserialize_with = "whole_period")]
    #[schema(value_type = PeriodText, example = "week:previous")]
    pub period: PeriodSelector,
    /// Factor of the scores, not 0; 1 when absent.
    #[serde(default = "neutral_weight", deserialize_with = "weight")]
    #[schema(value_type = i32, required = false, minimum = -1_000_000, maximum = 1_000_000, example = 2)]
    pub weight: i32,
}

fn neutral_weight() -> i32 {
    1
}

fn whole_period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PeriodSelector, D::Error> {
    checked_period(PeriodSelector::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.without_field()))
}

fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let weight = json::integer(deserializer)?.unwrap_or_else(neutral_weight);
    checked_weight(weight).map_err(|error| D::Error::custom(error.without_field()))
}

fn checked_period(period: PeriodSelector) -> Result<PeriodSelector> {
    if period.segment().is_some() {
        return Err(Error::invalid("period", "must be a whole period, without a segment"));
    }
    Ok(period)
}

fn checked_weight(weight: i32) -> Result<i32> {
    if weight == 0 || weight.unsigned_abs() > WEIGHT_MAX.unsigned_abs() {
        return Err(Error::invalid("weight", format!("must be from -{WEIGHT_MAX} to {WEIGHT_MAX}, and not 0")));
    }
    Ok(weight)
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, weight) = text.split_once('*').map_or((text, None), |(name, weight)| (name, Some(weight)));
        let Some((board, period)) = name.split_once('@') else {
            return Err(Error::invalid(
                "source",
                format!("{text:?} is not a board, a period and perhaps a weight, such as arena@week:previous*2"),
            ));
        };
        let weight = weight.map_or(Ok(1), |weight| {
            weight.parse().map_err(|_| Error::invalid("weight", format!("{weight:?} is not a whole number")))
        });
        Ok(Self { board: board.parse()?, period: checked_period(period.parse()?)?, weight: checked_weight(weight?)? })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.board, self.period)?;
        if self.weight == 1 { Ok(()) } else { write!(f, "*{}", self.weight) }
    }
}

/// When a combined board is computed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshRule {
    /// Only by command.
    Manual,
    /// After a period of a source was closed, or an archive of a source changed.
    OnClose,
    /// After this many scores in the boards of the sources.
    After(u32),
    /// This long after the last time, if a source has changed.
    Every(Duration),
    /// At the times of this cron expression, in the time zone of the board.
    Cron(String),
}

/// Units of `every=5m`, in seconds.
const UNITS: [(char, u64); 3] = [('s', 1), ('m', 60), ('h', 3_600)];

impl FromStr for RefreshRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |message: String| Err(Error::invalid("refresh", message));
        if let Some(number) = text.strip_prefix("after=") {
            return match number.parse() {
                Ok(number @ 1..=1_000_000_000) => Ok(Self::After(number)),
                _ => refuse(format!("{number:?} is not a number of scores from 1 to 1000000000")),
            };
        }
        if let Some(time) = text.strip_prefix("every=") {
            let seconds = UNITS.iter().find_map(|(unit, seconds)| {
                let number: u64 = time.strip_suffix(*unit)?.parse().ok()?;
                number.checked_mul(*seconds)
            });
            return match seconds {
                Some(seconds @ 1..=31_536_000) => Ok(Self::Every(Duration::from_secs(seconds))),
                _ => refuse(format!("{time:?} is not a time such as 30s, 5m or 2h, of at most a year")),
            };
        }
        match text {
            "manual" => Ok(Self::Manual),
            "on-close" => Ok(Self::OnClose),
            _ if text.split_whitespace().count() != 5 => refuse(format!(
                "{text:?} is not valid; use manual, on-close, after=10000, every=5m or a cron expression of five fields"
            )),
            _ => match cron(text) {
                Ok(_) => Ok(Self::Cron(text.split_whitespace().collect::<Vec<_>>().join(" "))),
                Err(error) => refuse(format!("{text:?} is no cron expression: {error}")),
            },
        }
    }
}

impl fmt::Display for RefreshRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manual => f.write_str("manual"),
            Self::OnClose => f.write_str("on-close"),
            Self::After(scores) => write!(f, "after={scores}"),
            Self::Every(time) => {
                let seconds = time.as_secs();
                let whole = UNITS.iter().rev().find(|(_, unit)| seconds % unit == 0).unwrap_or(&UNITS[0]);
                write!(f, "every={}{}", seconds / whole.1, whole.0)
            }
            Self::Cron(text) => f.write_str(text),
        }
    }
}

as_text!(RefreshRule);

fn cron(text: &str) -> Result<Cron, croner::errors::CronError> {
    CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build().parse(text)
}

/// Values that decide whether a refresh is due, apart from the sources.
#[derive(Debug, Clone)]
pub struct RefreshState {
    /// The database's time.
    pub now: DateTime<Utc>,
    pub time_zone: String,
    /// When the sources, or how they are combined, last changed.
    pub defined_at: DateTime<Utc>,
    /// Time of the snapshot of the ranking; `None` before the first refresh.
    pub as_of: Option<DateTime<Utc>>,
    /// Whether the database has been restored, or has failed over, since.
    pub is_restored: bool,
    /// Failures since the last success.
    pub failures: u32,
    /// Time of the last of these failures, if any.
    pub failed_at: Option<DateTime<Utc>>,
}

/// Changes of the sources since the ranking was computed.
#[derive(Debug, Clone, Copy)]
pub struct SourceChanges {
    /// Whether any source has changed.
    pub any: bool,
    /// Whether a source period was closed, or its archive changed.
    pub closed: bool,
    /// New scores in the boards of the sources, counted up to the number of the rule.
    pub scores: u64,
}

/// Whether a refresh is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Now,
    Later,
    /// If the sources have changed as [`RefreshRule::is_met`] says.
    IfChanged,
}

/// First wait after a failure. It doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_mins(1);

/// Longest wait after a failure.
const RETRY_MAX: Duration = Duration::from_hours(1);

impl RefreshRule {
    /// Decides by the clock.
    ///
    /// A new definition is due at once, and so is every board of a restored database. After a
    /// failure, the next attempt waits a minute, then twice as long each time, at most an hour.
    #[must_use]
    pub fn due(&self, state: &RefreshState) -> Due {
        if let Some(failed_at) = state.failed_at {
            let wait = RETRY_FIRST.saturating_mul(1 << state.failures.saturating_sub(1).min(6)).min(RETRY_MAX);
            if state.now < failed_at + wait {
                return Due::Later;
            }
        }
        let Some(as_of) = state.as_of.filter(|as_of| *as_of >= state.defined_at && !state.is_restored) else {
            return Due::Now;
        };
        let by_time = |is_due| if is_due { Due::Now } else { Due::Later };
        match self {
            Self::Manual => Due::Later,
            Self::Every(time) if state.now < as_of + *time => Due::Later,
            Self::Every(_) | Self::OnClose | Self::After(_) => Due::IfChanged,
            Self::Cron(text) => by_time(next(text, &state.time_zone, as_of).is_some_and(|next| next <= state.now)),
        }
    }

    /// Returns whether the changes of the sources make a refresh due.
    #[must_use]
    pub fn is_met(&self, changes: &SourceChanges) -> bool {
        match self {
            Self::OnClose => changes.closed,
            Self::After(scores) => changes.scores >= u64::from(*scores),
            Self::Every(_) => changes.any,
            Self::Manual | Self::Cron(_) => false,
        }
    }

    /// Checks that the times of a schedule can be computed in this time zone, and that there are
    /// some.
    pub fn check(&self, time_zone: &str) -> Result<()> {
        let Self::Cron(text) = self else { return Ok(()) };
        if time_zone.parse::<Tz>().is_err() {
            return Err(Error::invalid(
                "time_zone",
                format!("{time_zone:?} is not an IANA time zone, such as Europe/Berlin"),
            ));
        }
        match next(text, time_zone, Utc::now()) {
            Some(_) => Ok(()),
            None => Err(Error::invalid("refresh", format!("{text:?} has no future time"))),
        }
    }
}

/// Returns the first time of a cron expression after `after`.
fn next(text: &str, time_zone: &str, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let zone: Tz = time_zone.parse().ok()?;
    let next = cron(text).ok()?.find_next_occurrence(&after.with_timezone(&zone), false).ok()?;
    Some(next.with_timezone(&Utc))
}

/// How callers set the computation of a combined board. A part that is absent has its default, or
/// stays as it is. Only a new board requires sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CombinationSettings {
    /// All sources.
    #[schema(min_items = 1, max_items = 366)]
    pub sources: Option<Vec<Source>>,
    /// Players of any source (`union`, the default) or of every source (`intersection`).
    pub join: Option<Join>,
    /// `sum` (the default), `min` or `max` of a player's scores, each times the weight of its source. A
    /// missing score counts as 0 in a sum, and not at all otherwise.
    pub aggregate: Option<Aggregate>,
    /// When to compute the board again: `manual` (the default), `on-close` (a period of a source was
    /// closed, or an archive changed), `after=10000` scores in the boards of the sources, `every=5m`
    /// while they change (`s`, `m` or `h`), or a cron expression of five fields in the board's time
    /// zone. A new board is computed at once.
    #[schema(value_type = Option<String>, example = "on-close", min_length = 1, max_length = 128)]
    pub refresh: Option<RefreshRule>,
}

/// How a combined board is computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Combination {
    /// `union` or `intersection`.
    #[serde(rename(deserialize = "join_rule"))]
    #[schema(value_type = String, example = "union")]
    pub join: Join,
    /// `sum`, `min` or `max`.
    #[schema(value_type = String, example = "sum")]
    pub aggregate: Aggregate,
    /// The sources.
    pub sources: Vec<Source>,
    /// When the board is computed again.
    #[serde(deserialize_with = "refresh_or_manual")]
    #[schema(value_type = String, example = "on-close")]
    pub refresh: RefreshRule,
    /// Time of the snapshot from which the ranking was computed; null if it has not been yet.
    #[schema(required = true)]
    pub as_of: Option<DateTime<Utc>>,
    /// The last failure since the last successful refresh. Only shown to server and admin keys of the board;
    /// absent if there was none.
    #[serde(rename(deserialize = "last_failure"), skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<CombinationFailure>,
}

/// A failure to compute a combined board. The last ranking answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CombinationFailure {
    /// When it happened.
    pub at: DateTime<Utc>,
    /// The reason of the failure.
    #[schema(example = "board arena has no period season:spring")]
    pub detail: String,
}

/// Reads a stored rule. Only a caller in SQL can have stored an invalid one.
fn refresh_or_manual<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RefreshRule, D::Error> {
    String::deserialize(deserializer).map(|text| text.parse().unwrap_or(RefreshRule::Manual))
}

/// The snapshot from which a ranking was computed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CombinedFrom {
    /// Time of the snapshot.
    pub as_of: DateTime<Utc>,
    /// The state of each source in it.
    pub sources: Vec<SourceState>,
}

/// State of a source in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SourceState {
    pub board: String,
    /// The period's name.
    pub period: String,
    /// Its version; `None` if it had no scores.
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).map(|at| at.with_timezone(&Utc)).unwrap_or_default()
    }

    #[test]
    fn each_rule_is_due_at_its_time() -> Result<()> {
        // Defined long ago and computed on Monday at 12:00; then the time of the question.
        let computed = "2024-01-15T12:00:00Z";
        for (rule, zone, now, due) in [
            ("manual", "UTC", "2034-01-15T12:00:00Z", Due::Later),
            ("on-close", "UTC", "2024-01-15T12:00:00Z", Due::IfChanged),
            ("after=10000", "UTC", "2024-01-15T12:00:00Z", Due::IfChanged),
            ("every=5m", "UTC", "2024-01-15T12:04:59Z", Due::Later),
            ("every=5m", "UTC", "2024-01-15T12:05:00Z", Due::IfChanged),
            ("every=2h", "UTC", "2024-01-15T13:59:59Z", Due::Later),
            ("0 3 * * *", "UTC", "2024-01-16T02:59:59Z", Due::Later),
            ("0 3 * * *", "UTC", "2024-01-16T03:00:00Z", Due::Now),
            // Late by days: once, not once for each day.
            ("0 3 * * *", "UTC", "2024-01-20T00:00:00Z", Due::Now),
            // 03:00 in New York is 08:00 UTC in winter.
            ("0 3 * * *", "America/New_York", "2024-01-16T07:59:59Z", Due::Later),
            ("0 3 * * *", "America/New_York", "2024-01-16T08:00:00Z", Due::Now),
            ("*/15 * * * *", "UTC", "2024-01-15T12:14:59Z", Due::Later),
            ("*/15 * * * *", "UTC", "2024-01-15T12:15:00Z", Due::Now),
            ("0 0 * * MON", "UTC", "2024-01-21T23:59:59Z", Due::Later),
            ("0 0 * * MON", "UTC", "2024-01-22T00:00:00Z", Due::Now),
            // The clock skips 02:30 on this day; the refresh comes when it has skipped.
            ("30 2 10 3 *", "America/New_York", "2024-03-10T06:59:59Z", Due::Later),
            ("30 2 10 3 *", "America/New_York", "2024-03-10T07:30:00Z", Due::Now),
        ] {
            let rule: RefreshRule = rule.parse()?;
            let state = RefreshState {
                now: at(now),
                time_zone: zone.to_owned(),
                defined_at: at("2023-01-01T00:00:00Z"),
                as_of: Some(at(computed)),
                is_restored: false,
                failures: 0,
                failed_at: None,
            };
            assert_eq!(rule.due(&state), due, "{rule} in {zone} at {now}");
            // A new definition, or another database, is due whatever the rule.
            let changed = RefreshState { defined_at: at("2024-01-15T12:00:01Z"), ..state.clone() };
            let restored = RefreshState { is_restored: true, ..state.clone() };
            let new = RefreshState { as_of: None, ..state.clone() };
            for state in [changed, restored, new] {
                assert_eq!(rule.due(&state), Due::Now, "{rule}: {state:?}");
                let failed = RefreshState { failures: 1, failed_at: Some(state.now - RETRY_FIRST / 2), ..state };
                assert_eq!(rule.due(&failed), Due::Later, "{rule}: {failed:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn failures_are_retried_ever_later() -> Result<()> {
        let rule: RefreshRule = "0 3 * * *".parse()?;
        let failed_at = at("2024-01-16T03:00:00Z");
        for (failures, minutes) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (4_000_000_000, 60)] {
            for (seconds, due) in [(-1, Due::Later), (0, Due::Now)] {
                let state = RefreshState {
                    now: failed_at + chrono::TimeDelta::seconds(minutes * 60 + seconds),
                    time_zone: "UTC".to_owned(),
                    defined_at: at("2023-01-01T00:00:00Z"),
                    as_of: Some(at("2024-01-15T03:00:00Z")),
                    is_restored: false,
                    failures,
                    failed_at: Some(failed_at),
                };
                assert_eq!(rule.due(&state), due, "{failures} failures, {minutes} min {seconds} s");
            }
        }
        Ok(())
    }

    #[test]
    fn each_rule_is_met_by_its_changes() -> Result<()> {
        let none = SourceChanges { any: false, closed: false, scores: 0 };
        for (rule, changes, is_met) in [
            ("on-close", SourceChanges { any: true, scores: 9, ..none }, false),
            ("on-close", SourceChanges { any: true, closed: true, ..none }, true),
            ("after=3", SourceChanges { any: true, scores: 2, closed: true }, false),
            ("after=3", SourceChanges { scores: 3, ..none }, true),
            ("every=5m", none, false),
            ("every=5m", SourceChanges { any: true, ..none }, true),
            ("manual", SourceChanges { any: true, scores: 9, closed: true }, false),
        ] {
            assert_eq!(rule.parse::<RefreshRule>()?.is_met(&changes), is_met, "{rule} {changes:?}");
        }
        Ok(())
    }

    #[test]
    fn rules_and_sources_are_written_as_they_are_read() -> Result<()> {
        for rule in
            ["manual", "on-close", "after=1", "every=90s", "every=5m", "every=2h", "0 3 * * *", "*/5 8-17 * * MON-FRI"]
        {
            assert_eq!(rule.parse::<RefreshRule>()?.to_string(), rule);
        }
        assert_eq!("every=3600s".parse::<RefreshRule>()?.to_string(), "every=1h");
        for bad in [
            "",
            "never",
            "after=",
            "after=0",
            "after=1.5",
            "every=0m",
            "every=5",
            "every=5d",
            "every=9000h",
            "60 * * * *",
            "* * * *",
            "0 0 3 * * *",
            "@daily",
        ] {
            assert!(bad.parse::<RefreshRule>().is_err(), "{bad}");
        }
        for source in ["arena@week:previous", "arena@day:-7*2", "a-b@all_time*-1000000"] {
            assert_eq!(source.parse::<Source>()?.to_string(), source);
        }
        for bad in [
            "",
            "arena",
            "arena@",
            "@week",
            "arena@week*0",
            "arena@week*",
            "arena@week*1.5",
            "arena@week*1000001",
            "arena@day:-0",
        ] {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
        Ok(())
    }
}
