//! Values and rules without I/O.

pub mod act;
pub mod board;
pub mod closing;
pub mod encryption;
pub mod error;
pub mod explain;
pub mod export;
pub mod file_format;
pub mod hidden;
pub mod key;
pub mod layout;
pub mod name;
pub mod operation;
pub mod outbox;
pub mod period;
pub mod quarantine;
pub mod rank;
pub mod score;
pub mod season;
pub mod secret;
pub mod settings;
pub mod signing;
pub mod user;
pub mod verification;
pub mod webhook;
