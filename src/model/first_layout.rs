//! The bounds of the first buckets of a new board's rankings.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::json;

/// Source of the bucket bounds of a ranking without players.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FirstLayout {
    /// Scores that separate the buckets: 1 to 99, strictly ascending.
    Bounds(#[serde(deserialize_with = "json::integer_list")] Vec<i64>),
    /// 100 buckets of equal width from 0 to this score, which is at least 100.
    ExpectedPoints(#[serde(deserialize_with = "json::whole_number")] i64),
}

/// Bounds of the first buckets of a ranking.
#[derive(Debug, ToSchema)]
#[schema(as = FirstLayout)]
#[expect(
    dead_code,
    reason = "describes `FirstLayout`: derived from that type, the schema would not require exactly one member"
)]
#[serde(untagged)]
pub(super) enum FirstLayoutObject {
    /// Given scores.
    Bounds(LayoutByBounds),
    /// Buckets of equal width.
    ExpectedPoints(LayoutByPoints),
}

/// Scores that separate the buckets.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
pub(super) struct LayoutByBounds {
    /// 1 to 99 scores, strictly ascending.
    #[schema(min_items = 1, max_items = 99, example = json!([100, 1_000]))]
    bounds: BTreeSet<LayoutBound>,
}

/// A score that separates two buckets.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(minimum = -9_223_372_036_854_775_807i64)]
pub(super) struct LayoutBound(i64);

/// 100 buckets of equal width, from 0 to a score.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
pub(super) struct LayoutByPoints {
    /// Upper end of the buckets.
    #[schema(minimum = 100, example = 5_000)]
    expected_points: i64,
}
