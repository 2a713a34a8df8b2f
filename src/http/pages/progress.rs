//! Chart of a player's rank and score in the snapshots of a board, as SVG with axes.
//!
//! The chart keeps its proportions, so that its text is not stretched. A table has the same values.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, Utc};
use maud::{Markup, html};

use crate::{
    http::pages::{
        axis::{Axis, NAME_DISTANCE, WIDTH, range},
        number::{self, count, dated, decimal, grouped, number},
    },
    model::{board::Board, period::Progress, presentation::ScoreFormat},
};

const HEIGHT: f64 = 270.0;

/// Heights at which the two panels begin, below their names.
const TOPS: [f64; 2] = [26.0, 160.0];

/// Height of the dates' baseline.
const DATES: f64 = 264.0;

/// Half the width of a date.
const HALF_DATE: f64 = 38.0;

/// Minimum distance between the centres of two dates.
const DATE_DISTANCE: f64 = 80.0;

/// Snapshots above which dots are small.
const LARGE_DOTS_MAX: usize = 30;

/// A player in one snapshot.
struct Point {
    ends_at: DateTime<Utc>,
    /// The last date before the snapshot.
    date: NaiveDate,
    standing: Option<RankAndScore>,
}

#[derive(Clone, Copy)]
struct RankAndScore {
    rank: i64,
    score: i64,
}

/// Draws a player's progress, newest first, over time. Draws nothing for a player who is in no
/// snapshot.
pub(crate) fn chart(progress: &[Progress], board: &Board) -> Markup {
    let (format, whole) = (&board.presentation.score_format, &ScoreFormat::default());
    // The chart shows the oldest snapshot first.
    let points: Vec<Point> = progress
        .iter()
        .rev()
        .filter_map(|progress| {
            let ends_at = progress.period.ends_at?;
            let standing = progress.rank.zip(progress.score).map(|(rank, score)| RankAndScore { rank, score });
            Some(Point { ends_at, date: number::date_before(ends_at, &board.time_zone), standing })
        })
        .collect();
    let standings = || points.iter().filter_map(|point| point.standing);
    let Some((best, worst)) = range(standings().map(|standing| standing.rank)) else { return html! {} };
    let Some((lowest, highest)) = range(standings().map(|standing| standing.score)) else { return html! {} };
    // Ranks and scores have a panel each, with a common time axis.
    let ranks = Panel {
        name: "Rank",
        top: TOPS[0],
        axis: Axis::of_ranks(best, worst),
        format: whole,
        value: |standing| standing.rank,
    };
    let scores = Panel {
        name: "Score",
        top: TOPS[1],
        axis: Axis::of_scores(lowest, highest),
        format,
        value: |standing| standing.score,
    };
    let left = ranks.axis.label_width(whole).max(scores.axis.label_width(format)).clamp(HALF_DATE, WIDTH / 2.0);
    let across = Across::new(&points, left);
    html! {
        figure.chart.progress {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby="progress-title" aria-describedby="progress-text" {
                title #progress-title { "Rank and score in the last snapshots of all time" }
                desc #progress-text { (description(&points, best, format)) }
                @for panel in [&ranks, &scores] { (drawn(panel, &across, &points, format)) }
                @for (x, date) in across.dates(&points) {
                    text x=(decimal(x)) y=(decimal(DATES)) text-anchor="middle" { (dated(date)) }
                }
            }
            figcaption { span { "All time, last " (count(points.len() as u64)) " snapshots" } }
            details {
                summary { "Show as a table" }
                (table(&points, format))
            }
        }
    }
}

struct Panel<'a> {
    name: &'static str,
    /// How its values are written.
    format: &'a ScoreFormat,
    /// Height at which it begins.
    top: f64,
    axis: Axis,
    value: fn(RankAndScore) -> i64,
}

impl Panel<'_> {
    /// Returns the height of a value.
    fn y(&self, value: i64) -> f64 {
        self.axis.y(self.top, value)
    }
}

/// Draws a panel: lines with labels, and the values.
fn drawn(panel: &Panel<'_>, across: &Across, points: &[Point], format: &ScoreFormat) -> Markup {
    let at = |point: &Point| {
        let value = (panel.value)(point.standing?);
        Some((decimal(across.x(point.ends_at)), decimal(panel.y(value))))
    };
    let mut path = String::new();
    let mut is_connected = false;
    for point in points {
        if let Some((x, y)) = at(point) {
            // Writing to a String cannot fail.
            let _ = write!(path, "{}{x} {y}", if is_connected { 'L' } else { 'M' });
        }
        // A snapshot without the player interrupts the line.
        is_connected = point.standing.is_some();
    }
    let radius = if points.len() > LARGE_DOTS_MAX { 1.75 } else { 2.5 };
    html! {
        g data-panel=(panel.name) {
            text y=(decimal(panel.top - NAME_DISTANCE)) { (panel.name) }
            (panel.axis.lines(panel.top, across.left, panel.format))
            path d=(path) {}
            @for point in points {
                @if let (Some((x, y)), Some(standing)) = (at(point), point.standing) {
                    circle cx=(x) cy=(y) r=(radius) {
                        title { (dated(point.date)) ": rank " (grouped(standing.rank)) ", score " (format.english(standing.score)) }
                    }
                }
            }
        }
    }
}

/// Describes the chart in words.
fn description(points: &[Point], best: i64, format: &ScoreFormat) -> String {
    let shown: Vec<_> = points.iter().filter_map(|point| Some((point.date, point.standing?))).collect();
    let text = |(date, standing): &(NaiveDate, RankAndScore)| {
        format!("{}: rank {}, score {}.", dated(*date), grouped(standing.rank), format.english(standing.score))
    };
    let ends = [shown.first(), shown.last().filter(|_| shown.len() > 1)];
    let ends: Vec<String> = ends.into_iter().flatten().map(text).collect();
    format!("In {} of {} snapshots. {} Best rank: {}.", shown.len(), points.len(), ends.join(" "), grouped(best))
}

/// Renders the same values as a table, newest first.
fn table(points: &[Point], format: &ScoreFormat) -> Markup {
    html! {
        table {
            caption.unseen { "Rank and score in the last snapshots of all time" }
            thead {
                tr {
                    th.name scope="col" { "End of" }
                    th.rank scope="col" { "Rank" }
                    th.score scope="col" { "Score" }
                }
            }
            tbody {
                @for point in points.iter().rev() {
                    tr {
                        th.name scope="row" { (number::date(point.date)) }
                        @if let Some(standing) = point.standing {
                            td.rank { (number(standing.rank)) }
                            td.score { (number::score(format, standing.score)) }
                        } @else {
                            td.rank { "none" }
                            td.score { "none" }
                        }
                    }
                }
            }
        }
    }
}

struct Across {
    left: f64,
    from: DateTime<Utc>,
    seconds: f64,
}

impl Across {
    fn new(points: &[Point], left: f64) -> Self {
        let from = points.first().map(|point| point.ends_at).unwrap_or_default();
        let to = points.last().map(|point| point.ends_at).unwrap_or_default();
        Self { left, from, seconds: (to - from).as_seconds_f64() }
    }

    /// Returns the place of an instant. A single snapshot is in the middle.
    fn x(&self, at: DateTime<Utc>) -> f64 {
        let part = if self.seconds > 0.0 { (at - self.from).as_seconds_f64() / self.seconds } else { 0.5 };
        self.left + (WIDTH - HALF_DATE - self.left) * part
    }

    /// Returns the dates to label: the first, the last, and as many between as there is room for.
    fn dates(&self, points: &[Point]) -> Vec<(f64, NaiveDate)> {
        let mut all = points.iter().map(|point| (self.x(point.ends_at), point.date));
        let Some(first) = all.next() else { return Vec::new() };
        let last = all.clone().next_back();
        let mut dates = vec![first];
        for date in all {
            let is_last = Some(date) == last;
            let has_room = date.0 - dates.last().map_or(0.0, |date| date.0) >= DATE_DISTANCE
                && (is_last || last.is_none_or(|last| last.0 - date.0 >= DATE_DISTANCE));
            if has_room {
                dates.push(date);
            }
        }
        dates
    }
}
