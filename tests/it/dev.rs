//! The demo and the local servers.

pub mod compose;
pub mod demo;
pub mod kubernetes;
pub mod local;
