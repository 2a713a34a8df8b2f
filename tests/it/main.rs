//! The integration tests: one binary, real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is to stop right there")]

mod board_rules;
mod cache_redis;
mod cli_close;
mod cli_commands;
mod cli_demo;
mod cli_import;
mod cli_migrate;
mod cli_verify;
mod explain;
mod fault_close;
mod fault_kill;
mod fault_rebuild;
mod fault_redis;
mod http_api;
mod http_closed;
mod http_concurrency;
mod http_errors;
mod http_layout;
mod http_openapi;
mod http_property;
mod local_servers;
mod outbox;
mod real_data;
mod sql_boundary;
mod sql_contract;
mod sql_layout;
mod sql_period;
mod sql_property;
mod sql_roles;
mod sql_rollover;
mod sql_views;
mod support;
