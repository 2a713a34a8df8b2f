//! Access: rights, request signatures, secrets.

pub mod rights;
pub mod secrets;
pub mod signing;
