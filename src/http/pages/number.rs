//! Numbers and times for people. What is written here is English; the page's script writes it again as the reader's browser has it.

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::model::{board::PeriodKind, period::Period};

/// A whole number with its digits in groups of three.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if number < 0 {
        text.push('\u{2212}');
    }
    for (n, digit) in digits.char_indices() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A whole number that the script finds.
pub(crate) fn number(number: i64) -> Markup {
    html! { data value=(number) { (grouped(number)) } }
}

/// A count that the script finds.
pub(crate) fn count(count: u64) -> Markup {
    number(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A percentile, to two decimals and rounded down: whoever is behind somebody is not better than 100 %.
pub(crate) fn percentile(percentile: f64) -> String {
    let text = format!("{:.2}", (percentile * 100.0).floor() / 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An instant in the board's time zone, which is named.
pub(crate) fn instant(at: DateTime<Utc>, time_zone: &str) -> Markup {
    let zone = zone(time_zone);
    html! { (time(at, zone)) " (" (zone.name()) ")" }
}

/// From one instant to another in the board's time zone, which is named once.
pub(crate) fn span(from: DateTime<Utc>, to: DateTime<Utc>, time_zone: &str) -> Markup {
    html! { (time(from, zone(time_zone))) " – " (instant(to, time_zone)) }
}

/// The zone of this name; UTC for one that only PostgreSQL knows.
fn zone(name: &str) -> Tz {
    name.parse().unwrap_or(Tz::UTC)
}

/// An instant that the script finds.
fn time(at: DateTime<Utc>, zone: Tz) -> Markup {
    let text = at.with_timezone(&zone).format("%-d %b %Y, %H:%M");
    html! { time datetime=(at.to_rfc3339()) data-zone=(zone.name()) { (text) } }
}

/// What a period is called.
pub(crate) fn period_title(period: &Period) -> String {
    let date = || NaiveDate::parse_from_str(&period.label, "%Y-%m-%d").ok();
    let day = |date: NaiveDate| format!("{} {} {}", date.day(), date.format("%B"), date.year());
    match period.kind {
        PeriodKind::AllTime => "All time".to_owned(),
        PeriodKind::Day => date().map_or_else(|| period.label.clone(), day),
        PeriodKind::Week => date().map_or_else(|| period.label.clone(), |date| format!("Week of {}", day(date))),
        PeriodKind::Month => NaiveDate::parse_from_str(&format!("{}-01", period.label), "%Y-%m-%d")
            .map_or_else(|_| period.label.clone(), |date| date.format("%B %Y").to_string()),
        PeriodKind::Season => format!("Season {}", period.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
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
    fn nobody_behind_another_is_better_than_all() {
        for (value, text) in
            [(100.0, "100"), (99.999, "99.99"), (50.0, "50"), (12.34, "12.34"), (12.3, "12.3"), (0.0, "0")]
        {
            assert_eq!(percentile(value), text);
        }
    }

    #[test]
    fn times_are_the_boards_and_their_zone_is_named() {
        let at = DateTime::from_timestamp(1_705_276_800, 0).unwrap_or_default();
        let text = instant(at, "America/New_York").into_string();
        assert!(text.ends_with(">14 Jan 2024, 19:00</time> (America/New_York)"), "{text}");
        let text = instant(at, "Nowhere/Else").into_string();
        assert!(text.ends_with(">15 Jan 2024, 00:00</time> (UTC)"), "{text}");
    }
}
