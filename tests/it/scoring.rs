//! Writes of scores and their rules.

pub mod apply;
pub mod failover;
pub mod inbox;
pub mod kill;
pub mod lane;
pub mod moved_rows;
pub mod rules;
