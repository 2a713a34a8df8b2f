//! Writes of scores and their rules.

pub mod cluster;
pub mod cluster_copy;
pub mod failover;
pub mod kill;
pub mod lane;
pub mod moved_rows;
pub mod rules;
