//! The commands.

pub mod commands;
pub mod configuration;
pub mod explain;
pub mod migrate;
