//! Charts, as SVG: the distribution of scores, the history of a player's score, and other values
//! over time.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::{
    http::pages::{
        axis::{Axis, NAME_DISTANCE, PANEL_HEIGHT, WIDTH, range},
        number::{self, count, decimal, grouped},
    },
    model::{
        board::{Board, Mode, Order},
        period::Period,
        presentation::ScoreFormat,
        rank::Bar,
        score::HistoryRow,
    },
};

/// Size of a histogram in its own units. It scales with the page.
const BARS_WIDTH: f64 = 400.0;

const HEIGHT: f64 = 120.0;

/// Height above the bars, for the label of the player's mark.
const LABEL_HEIGHT: f64 = 18.0;

/// Minimum height of a bar that is not empty.
const BAR_MIN_HEIGHT: f64 = 1.5;

/// Height at which lines begin, below their name.
const LINES_TOP: f64 = 26.0;

/// Height of a chart of lines, with the times.
const LINES_HEIGHT: f64 = LINES_TOP + PANEL_HEIGHT + 30.0;

/// Distance of the times from the bottom.
const TIMES_DISTANCE: f64 = 6.0;

/// Space to the right of lines.
const MARGIN: f64 = 4.0;

/// Draws the distribution of scores, worst to the left, with a mark at `score` if there is one.
pub(crate) fn histogram(bars: &[Bar], board: &Board, score: Option<i64>) -> Markup {
    let format = &board.presentation.score_format;
    let most = bars.iter().map(|bar| bar.players).max().unwrap_or(0).max(1);
    let width = BARS_WIDTH / bars.len().max(1) as f64;
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return html! {} };
    let place = score.map(|score| bar_position(bars, board.order, score) * width);
    html! {
        figure.histogram {
            svg viewBox={ "0 0 " (BARS_WIDTH) " " (HEIGHT + LABEL_HEIGHT) } role="img" preserveAspectRatio="none"
                aria-label={
                    "Players by score, from " (format.english(first.from_score)) " to " (format.english(last.to_score))
                    @if let Some(score) = score { ". This player has " (format.english(score)) "." }
                } {
                @for (n, bar) in bars.iter().enumerate() {
                    @let height = if bar.players == 0 { 0.0 } else { (HEIGHT * bar.players as f64 / most as f64).max(BAR_MIN_HEIGHT) };
                    rect x=(decimal(n as f64 * width + width * 0.06)) y=(decimal(LABEL_HEIGHT + HEIGHT - height)) width=(decimal(width * 0.88))
                        height=(decimal(height)) data-from=(bar.from_score) data-to=(bar.to_score) {
                        title { (format.english(bar.from_score)) " to " (format.english(bar.to_score)) ": " (grouped(signed(bar.players))) }
                    }
                }
                @if let Some(x) = place {
                    line.here x1=(decimal(x)) x2=(decimal(x)) y1=(decimal(LABEL_HEIGHT * 0.4)) y2=(decimal(LABEL_HEIGHT + HEIGHT)) {}
                }
            }
            figcaption {
                span { (number::score(format, first.from_score)) }
                @if score.is_some() { span.here { "this player" } } @else { span { "players by score, tallest bar " (count(most)) } }
                span { (number::score(format, last.to_score)) }
            }
        }
    }
}

/// Returns the position of a score among the bars, in bars from the left.
fn bar_position(bars: &[Bar], order: Order, score: i64) -> f64 {
    let is_within = |bar: &&Bar| match order {
        Order::Desc => score <= bar.to_score,
        Order::Asc => score >= bar.to_score,
    };
    let at = bars.iter().position(|bar| is_within(&bar)).unwrap_or(bars.len().saturating_sub(1));
    let Some(bar) = bars.get(at) else { return 0.0 };
    let span = (bar.to_score as f64 - bar.from_score as f64).abs();
    let into = (score as f64 - bar.from_score as f64).abs() / if span > 0.0 { span } else { f64::INFINITY };
    let into = if span > 0.0 { into.clamp(0.0, 1.0) } else { 0.5 };
    at as f64 + into
}

/// Draws the history of a player's score in a period. `transactions` are newest first. Draws
/// nothing for fewer than two scores.
pub(crate) fn curve(transactions: &[HistoryRow], board: &Board, period: &Period, score: i64) -> Markup {
    let is_within = |transaction: &&HistoryRow| {
        period.starts_at.is_none_or(|starts_at| starts_at <= transaction.occurred_at)
            && period.ends_at.is_none_or(|ends_at| transaction.occurred_at < ends_at)
    };
    let transactions: Vec<HistoryRow> = transactions.iter().filter(is_within).cloned().collect();
    let points = course(&transactions, board.mode, board.order, score);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return html! {} };
    if points.len() < 2 {
        return html! {};
    }
    let format = &board.presentation.score_format;
    let written = |time| number::short_time(time, &board.time_zone);
    let Some((lowest, highest)) = range(points.iter().map(|(_, value)| *value)) else { return html! {} };
    let text = format!(
        "Score in this period: {} on {} to {} on {}",
        format.english(first.1),
        written(first.0),
        format.english(last.1),
        written(last.0)
    );
    html! {
        figure.chart.curve {
            (lines("Score", &text, &points, &Axis::of_scores(lowest, highest), format, true, written))
            figcaption { span { "Score in this period, last " (count(points.len() as u64)) " scores" } }
        }
    }
}

/// Draws values over time, oldest first, with a labelled axis for the values and the first and the
/// last time below. `is_stepped`: each value holds until the next one.
pub(crate) fn lines(
    name: &str,
    text: &str,
    points: &[(DateTime<Utc>, i64)],
    axis: &Axis,
    format: &ScoreFormat,
    is_stepped: bool,
    written: impl Fn(DateTime<Utc>) -> String,
) -> Markup {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return html! {} };
    let (left, right) = (axis.label_width(format).min(WIDTH / 2.0), WIDTH - MARGIN);
    let seconds = (last.0 - first.0).as_seconds_f64().max(1.0);
    let mut path = String::new();
    for (time, value) in points {
        let x = decimal(left + (right - left) * (*time - first.0).as_seconds_f64() / seconds);
        let y = decimal(axis.y(LINES_TOP, *value));
        // Writing to a String cannot fail.
        let _ = match (path.is_empty(), is_stepped) {
            (true, _) => write!(path, "M{x} {y}"),
            (false, true) => write!(path, "H{x}V{y}"),
            (false, false) => write!(path, "L{x} {y}"),
        };
    }
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (LINES_HEIGHT) } role="img" aria-label=(text) {
            text y=(decimal(LINES_TOP - NAME_DISTANCE)) { (name) }
            (axis.lines(LINES_TOP, left, format))
            path d=(path) {}
            text x=(decimal(left)) y=(decimal(LINES_HEIGHT - TIMES_DISTANCE)) { (written(first.0)) }
            text x=(decimal(right)) y=(decimal(LINES_HEIGHT - TIMES_DISTANCE)) text-anchor="end" { (written(last.0)) }
        }
    }
}

/// Returns the score after each scoring event that counts, oldest first.
///
/// On a `sum` board the last value is the current `score`. The total before the given transactions
/// follows from it.
fn course(transactions: &[HistoryRow], mode: Mode, order: Order, score: i64) -> Vec<(DateTime<Utc>, i64)> {
    let voided: Vec<i64> = transactions.iter().filter_map(|transaction| transaction.voids).collect();
    let since = transactions
        .iter()
        .filter(|transaction| transaction.kind == "reset")
        .map(|transaction| transaction.occurred_at)
        .max();
    let counts = |transaction: &&HistoryRow| {
        transaction.kind == "score"
            && !voided.contains(&transaction.transaction_id)
            && since.is_none_or(|since| transaction.occurred_at > since)
    };
    let mut value: Option<i64> = None;
    let mut course = Vec::new();
    for transaction in transactions.iter().rev().filter(counts) {
        let points = transaction.points.unwrap_or(0);
        let now = match (mode, value) {
            (Mode::Sum, Some(before)) => before.saturating_add(points),
            (Mode::Best, Some(before)) if order == Order::Asc => before.min(points),
            (Mode::Best, Some(before)) => before.max(points),
            (Mode::Sum | Mode::Best, None) | (Mode::Latest | Mode::Combined, _) => points,
        };
        value = Some(now);
        course.push((transaction.occurred_at, now));
    }
    if let (Mode::Sum, Some(last)) = (mode, value) {
        for (_, value) in &mut course {
            *value = value.saturating_add(score.saturating_sub(last));
        }
    }
    course
}

fn signed(players: u64) -> i64 {
    i64::try_from(players).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(id: i64, kind: &str, points: Option<i64>, voids: Option<i64>) -> HistoryRow {
        HistoryRow {
            transaction_id: id,
            kind: kind.into(),
            points,
            tiebreak: None,
            reason: None,
            voids,
            occurred_at: DateTime::from_timestamp(id, 0).unwrap_or_default(),
            metadata: None,
        }
    }

    fn values(transactions: &[HistoryRow], mode: Mode, order: Order) -> Vec<i64> {
        course(transactions, mode, order, 1_013).into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn only_events_that_count_change_the_score() {
        let transactions = [
            transaction(6, "score", Some(7), None),
            transaction(5, "void", None, Some(3)),
            transaction(4, "score", Some(1), None),
            transaction(3, "score", Some(100), None),
            transaction(2, "score", Some(5), None),
        ];
        // Points of 1,000 came before.
        assert_eq!(values(&transactions, Mode::Sum, Order::Desc), [1_005, 1_006, 1_013]);
        assert_eq!(values(&transactions, Mode::Best, Order::Desc), [5, 5, 7]);
        assert_eq!(values(&transactions, Mode::Best, Order::Asc), [5, 1, 1]);
        assert_eq!(values(&transactions, Mode::Latest, Order::Desc), [5, 1, 7]);
        let reset = [
            transaction(9, "score", Some(2), None),
            transaction(8, "reset", None, None),
            transaction(7, "score", Some(50), None),
        ];
        assert_eq!(values(&reset, Mode::Sum, Order::Desc), [1_013]);
    }

    #[test]
    fn a_score_is_placed_among_the_bars() {
        let bars = [Bar { from_score: 0, to_score: 9, players: 1 }, Bar { from_score: 10, to_score: 20, players: 3 }];
        let near = |score: i64, wanted: f64| (bar_position(&bars, Order::Desc, score) - wanted).abs() < 0.01;
        assert!(near(0, 0.0) && near(9, 1.0) && near(10, 1.0) && near(15, 1.5) && near(20, 2.0) && near(99, 2.0));
        let falling =
            [Bar { from_score: 20, to_score: 11, players: 1 }, Bar { from_score: 10, to_score: 0, players: 3 }];
        assert!((bar_position(&falling, Order::Asc, 5) - 1.5).abs() < 0.01);
    }
}
