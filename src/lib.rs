//! Centile: a leaderboard service whose only truth is PostgreSQL.
//!
//! Read the modules in the order in which they stand here.

pub mod config;
pub mod error;

pub mod board;
pub mod explain;
pub mod export;
pub mod key;
pub mod period;
pub mod quarantine;
pub mod rank;
pub mod score;
mod scoring;

pub mod seal;
pub mod season;
pub mod signing;
pub mod top;
pub mod user;

pub mod act;

pub mod audit;
pub mod closing;
pub mod outbox;
pub mod rebuild;
pub mod secret;
pub mod webhook;

mod acknowledged;
mod counts;
mod cursor;
mod frozen;
mod known_board;
mod known_key;
pub mod layout;
mod live;
mod operation;
mod overview;
mod pace;
mod ranking;
pub mod service;
mod shared_reads;
pub mod telemetry;
pub mod upkeep;
mod writer;

pub mod import;

pub mod cache;
pub mod store;

pub mod http;
mod page;

pub mod local;

pub mod cli;
pub mod demo;

#[doc(hidden)]
pub mod fuzzed;
#[doc(hidden)]
pub mod tested;
#[doc(hidden)]
pub mod timed;

pub use error::{Error, Result};
