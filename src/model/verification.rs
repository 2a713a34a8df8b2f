//! Differences that verification finds.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;

/// A difference between expected and stored data.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Difference {
    /// Kind of difference: `entry missing`, `bucket row misplaced`, `bucket count`, …
    pub kind: String,
    /// Player, bucket or lane.
    pub subject: String,
    /// The expected value; absent if there should be none.
    pub expected: Option<Value>,
    /// The value found; absent if there is none.
    pub found: Option<Value>,
    /// Number of differences of this kind in the period, including those not listed.
    pub total: u64,
}

/// A bucket whose count differs from its number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountDifference {
    pub(crate) bucket: i16,
    pub(crate) expected: i64,
    pub(crate) found: i64,
}

/// Result of checking a period.
#[derive(Debug)]
pub struct VerifiedPeriod {
    pub board: String,
    pub period: String,
    /// Players in the period, by its bucket counts.
    pub players: u64,
    /// Differences, ordered by kind; a limited number of each.
    pub differences: Vec<Difference>,
}

impl VerifiedPeriod {
    /// Creates the result for a period that could not be checked.
    pub(crate) fn unreadable(board: String, period: String, error: &Error) -> Self {
        let (kind, subject) = ("unreadable".to_owned(), error.to_string());
        let difference = Difference { kind, subject, expected: None, found: None, total: 1 };
        Self { board, period, players: 0, differences: vec![difference] }
    }

    /// Returns the number of differences, including those not listed.
    pub fn total(&self) -> u64 {
        let by_kind: BTreeMap<&str, u64> =
            self.differences.iter().map(|found| (found.kind.as_str(), found.total)).collect();
        by_kind.values().sum()
    }
}
