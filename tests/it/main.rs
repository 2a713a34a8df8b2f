//! The integration tests: one binary, real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test must stop at once")]

mod access;
mod cache;
mod cli;
mod cluster;
mod delivery;
mod dependencies;
mod dev;
mod docs;
mod fuzz_seeds;
mod http;
mod import;
mod layers;
mod maintenance;
mod periods;
mod ranking;
mod scoring;
mod store;
mod support;
