//! Values that operators see at `/ops` and `/metrics`.

use chrono::{DateTime, Utc};

#[derive(Debug)]
pub(crate) struct PeriodStatus {
    pub(crate) board: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    /// `open`, `due`, `closing` or `closed`.
    pub(crate) state: String,
    /// First instant after the period; absent for `all_time`.
    pub(crate) ends_at: Option<DateTime<Utc>>,
    pub(crate) players: i64,
    /// Absent after the archive has been dropped.
    pub(crate) version: Option<String>,
    /// Players whose entries in live ranking and ledger differed at closing.
    pub(crate) differences: i64,
    /// Whether the archive lacks a correction.
    pub(crate) needs_refresh: bool,
}

#[derive(Debug)]
pub(crate) struct LedgerAhead {
    pub(crate) months: i64,
    /// Whether the last month begins within a month, or no future month exists.
    pub(crate) ends_soon: bool,
    /// Number of months that are over and whose rows maintenance has not frozen.
    pub(crate) to_freeze: i64,
}

/// A bucket of an open ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketStatus {
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) bucket: i16,
    pub(crate) players: i64,
    /// Worst score of the bucket, and of the next better bucket. Absent for an open end, and for a
    /// bucket without a range.
    pub(crate) from_score: Option<i64>,
    pub(crate) to_score: Option<i64>,
}

/// An act of an administrator in the audit log.
#[derive(Debug)]
pub(crate) struct AuditEntry {
    pub(crate) happened_at: DateTime<Utc>,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) board: Option<String>,
    pub(crate) subject: Option<String>,
}
