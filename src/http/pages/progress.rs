//! Chart of a player's rank and score in the snapshots of a board, as SVG with axes.
//!
//! The chart keeps its proportions, so that its text is not stretched. A table has the same values.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, Utc};
use maud::{Markup, html};

use crate::{
    http::pages::{
        figure::decimal,
        number::{self, count, dated, grouped, number},
    },
    model::{board::Board, period::Progress, presentation::ScoreFormat},
};

/// Size of the chart in its own units. A unit is about a pixel.
const WIDTH: f64 = 360.0;

const HEIGHT: f64 = 270.0;

/// Heights at which the two panels begin, below their names.
const TOPS: [f64; 2] = [26.0, 160.0];

const PANEL_HEIGHT: f64 = 84.0;

/// Distance of a panel's name from the panel.
const NAME_DISTANCE: f64 = 14.0;

/// Distance of a label from its line.
const LABEL_DISTANCE: f64 = 6.0;

/// Distance of a label's baseline from its line.
const LABEL_BASELINE: f64 = 4.0;

/// Maximum distances between the labels of a logarithmic axis.
const INTERVALS_MAX: u32 = 4;

/// Height of the dates' baseline.
const DATES: f64 = 264.0;

/// Width of a digit.
const DIGIT_WIDTH: f64 = 7.0;

/// Half the width of a date.
const HALF_DATE: f64 = 38.0;

/// Minimum distance between the centres of two dates.
const DATE_DISTANCE: f64 = 80.0;

/// Snapshots above which dots are small.
const LARGE_DOTS_MAX: usize = 30;

/// A worst rank of this many times the best gets a logarithmic axis. Otherwise the best ranks of a
/// player who came from far below would look the same.
const LOGARITHMIC_FROM: i64 = 100;

/// A player in one snapshot.
struct Point {
    ends_at: DateTime<Utc>,
    /// The last date before the snapshot.
    date: NaiveDate,
    standing: Option<Standing>,
}

#[derive(Clone, Copy)]
struct Standing {
    rank: i64,
    score: i64,
}

/// Draws a player's progress, newest first, over time. Draws nothing for a player who is in no
/// snapshot.
pub(crate) fn chart(progress: &[Progress], board: &Board) -> Markup {
    let (format, whole) = (&board.presentation.score_format, &ScoreFormat::default());
    let points: Vec<Point> = progress
        .iter()
        .rev()
        .filter_map(|progress| {
            let ends_at = progress.period.ends_at?;
            let standing = progress.rank.zip(progress.score).map(|(rank, score)| Standing { rank, score });
            Some(Point { ends_at, date: number::date_before(ends_at, &board.time_zone), standing })
        })
        .collect();
    let standings = || points.iter().filter_map(|point| point.standing);
    let Some((best, worst)) = range(standings().map(|standing| standing.rank)) else { return html! {} };
    let Some((lowest, highest)) = range(standings().map(|standing| standing.score)) else { return html! {} };
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
    let left = ranks.label_width().max(scores.label_width()).clamp(HALF_DATE, WIDTH / 2.0);
    let across = Across::new(&points, left);
    html! {
        figure.progress {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby="progress-title" aria-describedby="progress-text" {
                title #progress-title { "Rank and score in the last snapshots of all time" }
                desc #progress-text { (description(&points, best, format)) }
                @for panel in [&ranks, &scores] { (drawn(panel, &across, &points, format)) }
                @for (x, date) in across.dates(&points) {
                    text x=(decimal(x)) y=(decimal(DATES)) text-anchor="middle" data-date=(date) { (dated(date)) }
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

/// One value over time.
struct Panel<'a> {
    name: &'static str,
    /// How its values are written.
    format: &'a ScoreFormat,
    /// Height at which it begins.
    top: f64,
    axis: Axis,
    value: fn(Standing) -> i64,
}

impl Panel<'_> {
    /// Returns the height of a value.
    fn y(&self, value: i64) -> f64 {
        self.top + PANEL_HEIGHT * self.axis.place(value)
    }

    /// Returns the width of the longest label, with its distance.
    fn label_width(&self) -> f64 {
        let longest = self.axis.ticks.iter().map(|tick| self.format.english(*tick).chars().count()).max().unwrap_or(0);
        longest as f64 * DIGIT_WIDTH + LABEL_DISTANCE
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
            @for tick in &panel.axis.ticks {
                @let y = panel.y(*tick);
                line x1=(decimal(across.left)) x2=(WIDTH) y1=(decimal(y)) y2=(decimal(y)) {}
                text x=(decimal(across.left - LABEL_DISTANCE)) y=(decimal(y + LABEL_BASELINE)) text-anchor="end" data-value=(tick)
                    data-format=[number::for_script(panel.format)] { (panel.format.english(*tick)) }
            }
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
    let text = |(date, standing): &(NaiveDate, Standing)| {
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

/// The labelled values beside a panel, from top to bottom.
#[derive(Debug)]
struct Axis {
    ticks: Vec<i64>,
    is_logarithmic: bool,
}

impl Axis {
    /// Chooses labels for these ranks: the best at the top.
    fn of_ranks(best: i64, worst: i64) -> Self {
        if worst / LOGARITHMIC_FROM < best {
            return Self { ticks: even(best, worst, 1), is_logarithmic: false };
        }
        let first = best.max(1).ilog10();
        let last = worst.max(1).ilog10() + u32::from(worst > 10_i64.pow(worst.max(1).ilog10()));
        let step = (last - first).div_ceil(INTERVALS_MAX);
        let ticks = (0..=(last - first).div_ceil(step)).map(|n| 10_i64.saturating_pow(first + n * step)).collect();
        Self { ticks, is_logarithmic: true }
    }

    /// Chooses labels for these scores: the highest at the top.
    fn of_scores(lowest: i64, highest: i64) -> Self {
        let mut ticks = even(lowest, highest, i64::MIN);
        ticks.reverse();
        Self { ticks, is_logarithmic: false }
    }

    /// Returns the place of a value, from 0 at the top to 1.
    fn place(&self, value: i64) -> f64 {
        let (Some(first), Some(last)) = (self.ticks.first(), self.ticks.last()) else { return 0.0 };
        let from = |other: i64, value: i64| {
            if self.is_logarithmic {
                (value.max(1) as f64 / other as f64).ln()
            } else {
                // Doubles would lose the differences between large scores.
                (i128::from(value) - i128::from(other)) as f64
            }
        };
        from(*first, value) / from(*first, *last)
    }
}

/// Returns round values at equal distances that enclose these two, ascending. None is below `floor`,
/// which replaces the first value if necessary.
fn even(lowest: i64, highest: i64, floor: i64) -> Vec<i64> {
    let (mut from, mut to) = (i128::from(lowest), i128::from(highest));
    if from == to {
        (from, to) = ((from - 1).max(i128::from(floor)), to + 1);
    }
    let mut power = 1;
    let step = loop {
        let steps = [1, 2, 5].map(|factor| factor * power);
        if let Some(step) = steps.into_iter().find(|step| step * 3 >= to - from) {
            break step;
        }
        power *= 10;
    };
    let (first, last) = (from.div_euclid(step), -(-to).div_euclid(step));
    let value = |n: i128| {
        let value = (n * step).max(i128::from(floor));
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    };
    let mut values: Vec<i64> = (first..=last).map(value).collect();
    // The replaced value may be too near to the next one.
    if values.len() > 2 && i128::from(values[1]) - i128::from(values[0]) <= step / 2 {
        values.remove(1);
    }
    values
}

/// The horizontal axis: time.
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

/// Returns the lowest and the highest value, or `None` without values.
fn range(values: impl Iterator<Item = i64> + Clone) -> Option<(i64, i64)> {
    Some((values.clone().min()?, values.max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_scores_are_round_and_enclose_them() {
        for (lowest, highest, wanted) in [
            (0, 10, vec![10, 5, 0]),
            (7, 7, vec![8, 7, 6]),
            (-120, 350, vec![400, 200, 0, -200]),
            (
                9_007_199_254_740_993,
                9_007_199_254_740_996,
                vec![9_007_199_254_740_996, 9_007_199_254_740_995, 9_007_199_254_740_994, 9_007_199_254_740_993],
            ),
        ] {
            assert_eq!(Axis::of_scores(lowest, highest).ticks, wanted);
        }
        let widest = Axis::of_scores(i64::MIN, i64::MAX);
        assert_eq!((widest.ticks.first(), widest.ticks.last()), (Some(&i64::MAX), Some(&i64::MIN)));
        assert!(widest.place(i64::MAX).abs() < 0.01 && (widest.place(0) - 0.5).abs() < 0.01);
    }

    #[test]
    fn rank_one_is_at_the_top() {
        for (best, worst, wanted) in [
            (1, 1, vec![1, 2]),
            (1, 7, vec![1, 4, 6, 8]),
            (3, 12, vec![1, 5, 10, 15]),
            (999_950, 1_000_000, vec![999_940, 999_960, 999_980, 1_000_000]),
            (1, 100, vec![1, 10, 100]),
            (3, 2_500_000, vec![1, 100, 10_000, 1_000_000, 100_000_000]),
            (1, i64::MAX, vec![1, 100_000, 10_000_000_000, 1_000_000_000_000_000, i64::MAX]),
        ] {
            let axis = Axis::of_ranks(best, worst);
            assert_eq!(axis.ticks, wanted, "{best} to {worst}");
            assert!(axis.place(best) >= 0.0 && axis.place(best) <= axis.place(worst) && axis.place(worst) <= 1.0);
        }
        // Ten times the rank is always the same distance.
        let axis = Axis::of_ranks(1, 10_000);
        assert!((axis.place(100) - 0.5).abs() < 0.001 && (axis.place(1_000) - 0.75).abs() < 0.001);
    }
}
