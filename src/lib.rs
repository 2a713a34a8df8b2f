//! Centile: a leaderboard service with PostgreSQL as its only source of truth.
//!
//! The modules stand in the order of their layers, lowest first. A module imports only from
//! layers that precede its own in this list; `tests/it/layers.rs` checks that.

mod model;
mod rules;

mod background;
mod single_flight;
mod telemetry;

pub mod cache;
mod queue;
pub mod store;

mod boards;
mod ranking;
mod scoring;
mod users;

mod friends;

mod periods;

mod access;
mod delivery;

mod maintenance;

mod import;

mod instance;

mod http;

mod config;

pub mod dev;

pub mod cli;

#[doc(hidden)]
pub mod fuzzed;
#[doc(hidden)]
pub mod tested;
#[doc(hidden)]
pub mod timed;

pub use http::openapi;
pub use model::{
    code::Code,
    error::{Error, Resource, Result},
};
