//! Labelled axes of charts. Charts keep their proportions, so that their text is not stretched.

use maud::{Markup, html};

use crate::{
    http::pages::number::{self, decimal},
    model::presentation::ScoreFormat,
};

/// Width of a chart in its own units. A unit is about a pixel.
pub(super) const WIDTH: f64 = 360.0;

pub(super) const PANEL_HEIGHT: f64 = 84.0;

/// Distance of a panel's name from the panel.
pub(super) const NAME_DISTANCE: f64 = 14.0;

/// Distance of a label from its line.
const LABEL_DISTANCE: f64 = 6.0;

/// Distance of a label's baseline from its line.
const LABEL_BASELINE: f64 = 4.0;

/// Maximum distances between the labels of a logarithmic axis.
const INTERVALS_MAX: u32 = 4;

const DIGIT_WIDTH: f64 = 7.0;

/// A worst rank of this many times the best gets a logarithmic axis. Otherwise the best ranks of a
/// player who came from far below would look the same.
const LOGARITHMIC_FROM: i64 = 100;

/// The labelled values beside a panel, from top to bottom.
#[derive(Debug)]
pub(super) struct Axis {
    ticks: Vec<i64>,
    is_logarithmic: bool,
}

impl Axis {
    /// Chooses labels for these ranks: the best at the top.
    pub(super) fn of_ranks(best: i64, worst: i64) -> Self {
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
    pub(super) fn of_scores(lowest: i64, highest: i64) -> Self {
        let mut ticks = even(lowest, highest, i64::MIN);
        ticks.reverse();
        Self { ticks, is_logarithmic: false }
    }

    /// Returns the height of a value in a panel that begins at `top`.
    pub(super) fn y(&self, top: f64, value: i64) -> f64 {
        top + PANEL_HEIGHT * self.relative_position(value)
    }

    /// Returns the width of the longest label, with its distance.
    pub(super) fn label_width(&self, format: &ScoreFormat) -> f64 {
        let longest = self.ticks.iter().map(|tick| format.english(*tick).chars().count()).max().unwrap_or(0);
        longest as f64 * DIGIT_WIDTH + LABEL_DISTANCE
    }

    /// Draws a line with a label at each of its values.
    pub(super) fn lines(&self, top: f64, left: f64, format: &ScoreFormat) -> Markup {
        html! {
            @for tick in &self.ticks {
                @let y = self.y(top, *tick);
                line x1=(decimal(left)) x2=(WIDTH) y1=(decimal(y)) y2=(decimal(y)) {}
                text x=(decimal(left - LABEL_DISTANCE)) y=(decimal(y + LABEL_BASELINE)) text-anchor="end" data-value=(tick)
                    data-format=[number::for_script(format)] { (format.english(*tick)) }
            }
        }
    }

    /// Chooses labels for counts up to this one: 0 at the bottom.
    pub(super) fn of_counts(highest: i64) -> Self {
        let mut ticks = even(0, highest.max(1), 0);
        ticks.reverse();
        Self { ticks, is_logarithmic: false }
    }

    /// Returns the place of a value, from 0 at the top to 1.
    fn relative_position(&self, value: i64) -> f64 {
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

/// Returns the lowest and the highest value, or `None` without values.
pub(super) fn range(values: impl Iterator<Item = i64> + Clone) -> Option<(i64, i64)> {
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
        assert_eq!(Axis::of_counts(0).ticks, [1, 0]);
        assert_eq!(Axis::of_counts(17).ticks, [20, 10, 0]);
        let widest = Axis::of_scores(i64::MIN, i64::MAX);
        assert_eq!((widest.ticks.first(), widest.ticks.last()), (Some(&i64::MAX), Some(&i64::MIN)));
        assert!(widest.relative_position(i64::MAX).abs() < 0.01 && (widest.relative_position(0) - 0.5).abs() < 0.01);
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
            assert!(
                axis.relative_position(best) >= 0.0
                    && axis.relative_position(best) <= axis.relative_position(worst)
                    && axis.relative_position(worst) <= 1.0
            );
        }
        // Ten times the rank is always the same distance.
        let axis = Axis::of_ranks(1, 10_000);
        assert!(
            (axis.relative_position(100) - 0.5).abs() < 0.001 && (axis.relative_position(1_000) - 0.75).abs() < 0.001
        );
    }
}
