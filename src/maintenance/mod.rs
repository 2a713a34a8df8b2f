//! Maintenance of rankings and the ledger: rebalancing, verification, rebuilding, rolling windows,
//! secrets, and their timer.

pub(crate) mod rebalance;
pub(crate) mod rebuild;
pub(crate) mod scheduler;
pub(crate) mod secrets;
pub(crate) mod verify;
pub(crate) mod window;
