//! Access: rights, secrets.

pub mod rights;
pub mod secrets;
