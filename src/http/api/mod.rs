//! Resources of the API, a file for each.

pub(crate) mod board;
pub(crate) mod classic;
pub(crate) mod distribution;
pub(crate) mod docs;
pub(crate) mod endpoint;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod key;
pub(crate) mod list;
mod names;
pub(crate) mod newcomer;
pub(crate) mod openapi;
pub(crate) mod period;
pub(crate) mod problem;
pub(crate) mod quarantine;
pub(crate) mod ranking;
pub(crate) mod reply;
pub(crate) mod season;
pub(crate) mod standing;
pub(crate) mod submit;
pub(crate) mod text;
pub(crate) mod timestamp;
pub(crate) mod top;
pub(crate) mod transaction;
pub(crate) mod user;
pub(crate) mod webhook;
