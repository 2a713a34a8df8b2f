//! The integration tests: one binary, real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is to stop right there")]

mod cli_commands;
mod cli_demo;
mod cli_import;
mod cli_migrate;
mod local_servers;
mod sql_contract;
mod real_data;
mod support;
