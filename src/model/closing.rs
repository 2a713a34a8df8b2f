//! Closed periods.

use std::time::Duration;

/// A period that has been closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPeriod {
    pub board: String,
    pub period: String,
    /// Players in its archive.
    pub players: u64,
    /// Players whose entry in the live ranking differed from the ledger.
    pub differences: u64,
    pub time: Duration,
}
