//! Rebalancing, verifying and rebuilding, and the limits of a database.

pub mod filling;
pub mod killed_rebuild;
pub mod killed_window;
pub mod layout;
pub mod limits;
pub mod rebalance;
pub mod verify;
