//! The bounds of a new board's first score ranges, as a request gives them.

use std::collections::BTreeSet;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{http::api::body::Integer, model::board::FirstLayout};

/// Bounds of a ranking's first score ranges.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FirstLayoutRequest {
    /// 1 to 99 scores that separate the ranges.
    Bounds(Vec<Integer>),
    /// A score for ranges of equal width.
    ExpectedPoints(Integer),
}

impl From<FirstLayoutRequest> for FirstLayout {
    fn from(request: FirstLayoutRequest) -> Self {
        match request {
            FirstLayoutRequest::Bounds(bounds) => {
                Self::Bounds(bounds.into_iter().map(|Integer(bound)| bound).collect())
            }
            FirstLayoutRequest::ExpectedPoints(Integer(points)) => Self::ExpectedPoints(points),
        }
    }
}

/// Bounds of a ranking's first score ranges.
#[derive(Debug, ToSchema)]
#[schema(as = FirstLayout)]
#[expect(
    dead_code,
    reason = "describes `FirstLayoutRequest`: derived from that type, the schema would not require exactly one member"
)]
#[serde(untagged)]
pub(crate) enum FirstLayoutObject {
    /// Given bounds.
    Bounds(LayoutByBounds),
    /// Ranges of equal width.
    ExpectedPoints(LayoutByPoints),
}

/// Scores that separate the ranges.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
pub(crate) struct LayoutByBounds {
    /// 1 to 99 scores, strictly ascending.
    #[schema(min_items = 1, max_items = 99, example = json!([100, 1_000]))]
    bounds: BTreeSet<LayoutBound>,
}

/// A score that separates two ranges.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(minimum = -9_223_372_036_854_775_807i64)]
pub(crate) struct LayoutBound(i64);

/// 100 ranges of equal width, from 0 to a score.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
pub(crate) struct LayoutByPoints {
    /// Upper end of the ranges.
    #[schema(minimum = 100, example = 5_000)]
    expected_points: i64,
}
