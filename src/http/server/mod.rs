//! Connections: TLS, timeouts, limits, addresses.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod cors;
pub(crate) mod listener;
pub(crate) mod observe;
pub(crate) mod pieces;
pub(crate) mod rate;
pub(crate) mod room;
pub(crate) mod seats;
pub(crate) mod tls;
