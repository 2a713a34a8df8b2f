//! Rebalancing, verifying and rebuilding.

pub mod killed_rebuild;
pub mod killed_window;
pub mod layout;
pub mod rebalance;
pub mod verify;
