//! Private servers and simulated games for development.

pub mod demo;
pub mod local;
