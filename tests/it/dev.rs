//! The demo and the local servers.

pub mod demo;
pub mod local;
