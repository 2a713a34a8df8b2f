//! The commands.

pub mod commands;
pub mod explain;
pub mod migrate;
