//! Differences that an audit finds.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;

/// Something that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Difference {
    /// The kind of thing: `entry missing`, `bucket row misplaced`, `bucket count`, …
    pub kind: String,
    /// Which player, bucket or lane.
    pub subject: String,
    /// The expected value; absent if there should be none.
    pub expected: Option<Value>,
    /// The value found; absent if there is none.
    pub found: Option<Value>,
    /// How many of the kind there are in the period, those that are not listed included.
    pub total: u64,
}

/// A bucket whose count does not agree with its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountDifference {
    pub(crate) bucket: i16,
    /// Rows.
    pub(crate) expected: i64,
    /// The count.
    pub(crate) found: i64,
}

/// A period that has been looked at.
#[derive(Debug)]
pub struct Checked {
    /// The board's name.
    pub board: String,
    /// The period's name.
    pub period: String,
    /// Players in it, by its counts.
    pub players: u64,
    /// What differs, in the order of kinds; not all of it when there is much.
    pub differences: Vec<Difference>,
}

impl Checked {
    /// One that could not be compared at all.
    pub(crate) fn unreadable(board: String, period: String, error: &Error) -> Self {
        let (kind, subject) = ("unreadable".to_owned(), error.to_string());
        let difference = Difference { kind, subject, expected: None, found: None, total: 1 };
        Self { board, period, players: 0, differences: vec![difference] }
    }

    /// How many differences there are, those that are not listed included.
    #[must_use]
    pub fn total(&self) -> u64 {
        let by_kind: BTreeMap<&str, u64> =
            self.differences.iter().map(|found| (found.kind.as_str(), found.total)).collect();
        by_kind.values().sum()
    }
}
