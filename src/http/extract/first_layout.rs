//! Where a new board's first score ranges lie, as its request says it.

use std::collections::BTreeSet;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{http::extract::body::Integer, model::board::FirstLayout};

/// Where the first score ranges of a ranking lie.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FirstLayoutRequest {
    /// 1 to 99 scores.
    Bounds(Vec<Integer>),
    /// A score.
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

/// Where the first score ranges of a ranking lie.
#[derive(Debug, ToSchema)]
#[schema(as = FirstLayout)]
#[expect(
    dead_code,
    reason = "describes `FirstLayoutRequest`, of which the document would not say that it has one member"
)]
#[serde(untagged)]
pub(crate) enum FirstLayoutObject {
    /// Between given scores.
    Bounds(LayoutByBounds),
    /// In equal ranges.
    ExpectedPoints(LayoutByPoints),
}

/// One range between each two of these scores.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes what the checks of the domain allow")]
pub(crate) struct LayoutByBounds {
    /// 1 to 99 scores, strictly ascending.
    #[schema(min_items = 1, max_items = 99, example = json!([100, 1_000]))]
    bounds: BTreeSet<LayoutBound>,
}

/// A score at which a ranking is cut.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(minimum = -9_223_372_036_854_775_807i64)]
pub(crate) struct LayoutBound(i64);

/// 100 ranges of equal width from 0 to a score.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes what the checks of the domain allow")]
pub(crate) struct LayoutByPoints {
    /// That score.
    #[schema(minimum = 100, example = 5_000)]
    expected_points: i64,
}
