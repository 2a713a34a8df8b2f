//! Numbers and times for people, in English. The page's script reformats numbers for the browser's
//! language.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::model::{
    board::{PeriodKind, WindowLength},
    period::Period,
    presentation::ScoreFormat,
};

/// Formats a whole number with its digits in groups of three.
pub(crate) fn grouped(number: i64) -> String {
    ScoreFormat::default().english(number)
}

/// Renders a score in the format of its board. The script reformats it.
pub(crate) fn score(format: &ScoreFormat, score: i64) -> Markup {
    html! { data value=(score) data-format=[for_script(format)] { (format.english(score)) } }
}

/// Returns the format that the script applies; none for plain numbers.
pub(crate) fn for_script(format: &ScoreFormat) -> Option<String> {
    (*format != ScoreFormat::default()).then(|| format.to_string())
}

/// Renders a whole number that the script reformats.
pub(crate) fn number(number: i64) -> Markup {
    html! { data value=(number) { (grouped(number)) } }
}

/// Renders a count that the script reformats.
pub(crate) fn count(count: u64) -> Markup {
    number(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Formats a number with at most two decimals.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a percentile to two decimals, rounded down: only a player at the top may show 100 %.
pub(crate) fn percentile(percentile: f64) -> String {
    decimal((percentile * 100.0).floor() / 100.0)
}

/// Renders an instant in the board's time zone, with the zone's name.
pub(crate) fn instant(at: DateTime<Utc>, time_zone: &str) -> Markup {
    let zone = zone(time_zone);
    html! { (time(at, zone)) " (" (zone.name()) ")" }
}

/// Renders a span of time in the board's time zone, with the zone's name once.
pub(crate) fn span(from: DateTime<Utc>, to: DateTime<Utc>, time_zone: &str) -> Markup {
    html! { (time(from, zone(time_zone))) " – " (instant(to, time_zone)) }
}

/// Returns the time zone of this name, or UTC for one that only PostgreSQL knows.
fn zone(name: &str) -> Tz {
    name.parse().unwrap_or(Tz::UTC)
}

fn time(at: DateTime<Utc>, zone: Tz) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (written(at, zone)) } }
}

/// Formats an instant in the board's time zone, for a chart.
pub(crate) fn short_time(at: DateTime<Utc>, time_zone: &str) -> String {
    written(at, zone(time_zone))
}

fn written(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%-d %b %Y, %H:%M").to_string()
}

/// Returns the last date before an instant in the board's time zone.
pub(crate) fn date_before(at: DateTime<Utc>, time_zone: &str) -> NaiveDate {
    (at - TimeDelta::microseconds(1)).with_timezone(&zone(time_zone)).date_naive()
}

pub(crate) fn dated(date: NaiveDate) -> String {
    date.format("%-d %b %Y").to_string()
}

pub(crate) fn date(date: NaiveDate) -> Markup {
    html! { time datetime=(date) { (dated(date)) } }
}

/// Formats a number of seconds in the largest unit that is precise enough.
pub(crate) fn age(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

pub(crate) fn period_title(period: &Period) -> String {
    let parse_date = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let date = || parse_date(&period.label);
    match period.kind {
        PeriodKind::AllTime => "All time".to_owned(),
        PeriodKind::Hour => {
            let parts = period.label.split_once('T').and_then(|(date, hour)| Some((parse_date(date)?, hour)));
            parts.map_or_else(|| period.label.clone(), |(date, hour)| format!("{}, {hour}:00", dated(date)))
        }
        PeriodKind::Day => date().map_or_else(|| period.label.clone(), dated),
        PeriodKind::Week => date().map_or_else(|| period.label.clone(), |date| format!("Week of {}", dated(date))),
        PeriodKind::Month => NaiveDate::parse_from_str(&format!("{}-01", period.label), "%Y-%m-%d")
            .map_or_else(|_| period.label.clone(), |date| date.format("%B %Y").to_string()),
        PeriodKind::Quarter => match period.label.split_once('-') {
            Some((year, quarter)) => format!("{quarter} {year}"),
            None => period.label.clone(),
        },
        PeriodKind::Year => period.label.clone(),
        PeriodKind::Season => format!("Season {}", period.label),
        PeriodKind::Snapshot => snapshot_title(period),
        PeriodKind::Rolling => window_title(period),
    }
}

/// Returns the title of a rolling window, with its last day or hour.
fn window_title(period: &Period) -> String {
    let parts = period.label.split_once('-').and_then(|(length, last)| Some((length.parse().ok()?, last.to_owned())));
    let Some((length, label)) = parts else { return period.label.clone() };
    let (kind, length) = match length {
        WindowLength::DayOfHours => (PeriodKind::Hour, "24 hours".to_owned()),
        WindowLength::Days(days) => (PeriodKind::Day, format!("{days} days")),
    };
    format!("{length} to {}", period_title(&Period { kind, label, ..period.clone() }))
}

/// Returns the title of a snapshot, from that of the period whose end it is.
fn snapshot_title(period: &Period) -> String {
    let end = period.label.split_once('-').and_then(|(kind, label)| Some((kind.parse().ok()?, label.to_owned())));
    let title = end
        .map_or_else(|| period.label.clone(), |(kind, label)| period_title(&Period { kind, label, ..period.clone() }));
    format!("All time, at the end of {title}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_that_is_precise_enough() {
        for (seconds, text) in
            [(0.4, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7_200.0, "2 h"), (200_000.0, "2 days")]
        {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-12_345, "\u{2212}12,345"),
            (i64::MIN, "\u{2212}9,223,372,036,854,775,808"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn percentiles_are_rounded_down() {
        for (value, text) in
            [(100.0, "100"), (99.999, "99.99"), (50.0, "50"), (12.34, "12.34"), (12.3, "12.3"), (0.0, "0")]
        {
            assert_eq!(percentile(value), text);
        }
    }

    #[test]
    fn times_are_in_the_boards_time_zone_and_name_it() {
        let at = DateTime::from_timestamp(1_705_276_800, 0).unwrap_or_default();
        let text = instant(at, "America/New_York").into_string();
        assert!(text.ends_with(">14 Jan 2024, 19:00</time> (America/New_York)"), "{text}");
        let text = instant(at, "Nowhere/Else").into_string();
        assert!(text.ends_with(">15 Jan 2024, 00:00</time> (UTC)"), "{text}");
    }
}
