//! Closed periods.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPeriod {
    pub board: String,
    pub period: String,
    /// Players in the archive.
    pub players: u64,
    /// Players whose entry in the live ranking differed from the ledger.
    pub differences: u64,
    pub time: Duration,
}
