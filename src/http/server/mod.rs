//! Connections and requests as such: TLS, timeouts, limits, addresses, errors, and the shared state.

pub(crate) mod access_log;
pub(crate) mod activity;
pub(crate) mod address;
pub(crate) mod body_memory;
pub(crate) mod broken_body;
pub(crate) mod chunks;
pub(crate) mod connection;
pub(crate) mod cors;
pub(crate) mod endpoint;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod problem;
pub(crate) mod rate;
pub(crate) mod slots;
mod state;
pub(crate) mod tls;
pub(crate) mod version;

pub(crate) use state::Api;
pub use state::Settings;
