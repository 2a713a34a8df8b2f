//! Connections: TLS, timeouts, limits, addresses.

pub(crate) mod access_log;
pub(crate) mod activity;
pub(crate) mod address;
pub(crate) mod body_memory;
pub(crate) mod broken_body;
pub(crate) mod chunks;
pub(crate) mod connection;
pub(crate) mod cors;
pub(crate) mod observe;
pub(crate) mod rate;
pub(crate) mod slots;
pub(crate) mod subscriber;
pub(crate) mod tls;
pub(crate) mod version;
