//! Closed periods.

use std::time::Duration;

/// A period that has been closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPeriod {
    /// The board's name.
    pub board: String,
    /// The period's name.
    pub period: String,
    /// Players in its archive.
    pub players: u64,
    /// Players of whom the live ranking said something else than the ledger.
    pub differences: u64,
    /// How long it took.
    pub time: Duration,
}
