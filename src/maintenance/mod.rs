//! Upkeep of rankings and of the ledger: rebalancing, verification, rebuilding, and the timer for them.

pub(crate) mod rebalance;
pub(crate) mod rebuild;
pub(crate) mod scheduler;
pub(crate) mod secrets;
pub(crate) mod verify;
