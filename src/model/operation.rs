//! Values that operators see at `/ops` and `/metrics`.

use chrono::{DateTime, Utc};

/// How a period is.
#[derive(Debug)]
pub(crate) struct PeriodStatus {
    pub(crate) board: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    /// `open`, `due`, `closing` or `closed`.
    pub(crate) state: String,
    /// First instant after it; absent for `all_time`.
    pub(crate) ends_at: Option<DateTime<Utc>>,
    pub(crate) players: i64,
    /// Absent once its archive is dropped.
    pub(crate) version: Option<String>,
    /// Players of whom live ranking and ledger said different things when it was closed.
    pub(crate) differences: i64,
    /// Whether its archive lacks a correction.
    pub(crate) needs_refresh: bool,
}

/// How far the ledger goes.
#[derive(Debug)]
pub(crate) struct LedgerAhead {
    /// Months that are still to come.
    pub(crate) months: i64,
    /// Whether the last month begins within a month, or there is none.
    pub(crate) ends_soon: bool,
}

/// A bucket of an open ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketStatus {
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) bucket: i16,
    pub(crate) players: i64,
    /// Worst score at which it begins, and where the next better one does; absent where there is no end, and in buckets without a range.
    pub(crate) from_score: Option<i64>,
    pub(crate) to_score: Option<i64>,
}

/// An act of an administrator.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) happened_at: DateTime<Utc>,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) board: Option<String>,
    pub(crate) subject: Option<String>,
}
