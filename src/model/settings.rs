//! Servers and limits of an instance.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::model::{encryption::MasterKeys, hidden::Hidden};

/// Servers and limits of an instance.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database_url: Hidden,
    /// The replica that answers reads, if any.
    pub replica: Option<ReplicaSettings>,
    /// URL of Redis, if instances share a cache.
    pub redis_url: Option<Hidden>,
    /// PEM file with the certificate authorities trusted for Redis over TLS; the system's by
    /// default.
    pub redis_ca: Option<PathBuf>,
    pub redis_prefix: String,
    pub read_connections: u32,
    /// Connections for writes. A quarter, at least one, is for writes other than scores.
    pub write_connections: u32,
    pub statement_timeout: Duration,
    /// Timeout for the wait for a connection, or for another caller's read where reads are shared.
    pub pool_wait: Duration,
    /// Bytes that rank indexes and the user directory may take; 0 turns them off.
    pub index_memory: u64,
    /// Maximum wait of queued scores. Beyond it, new scores are refused.
    pub write_wait: Duration,
    /// Keys that encrypt secrets in the database. Without them, no key can sign requests, and
    /// webhook secrets are stored unencrypted.
    pub master_keys: Option<Arc<MasterKeys>>,
    /// Interval of background maintenance, such as closing due periods; none when absent.
    pub maintenance_every: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct ReplicaSettings {
    pub url: Hidden,
    /// The lag beyond which the primary answers instead.
    pub max_lag: Duration,
}

impl Settings {
    pub const DEFAULT_POOL_WAIT: Duration = Duration::from_secs(2);
    pub const DEFAULT_WRITE_WAIT: Duration = Duration::from_millis(400);

    /// Settings of unit tests: no server listens on this port.
    #[cfg(test)]
    pub(crate) fn without_server() -> Self {
        Self {
            database_url: "postgres://nobody:nothing@127.0.0.1:1/none".into(),
            replica: None,
            redis_url: None,
            redis_ca: None,
            redis_prefix: "p".to_owned(),
            read_connections: 1,
            write_connections: 1,
            statement_timeout: Duration::from_secs(1),
            pool_wait: Duration::from_millis(100),
            write_wait: Duration::from_millis(100),
            index_memory: 0,
            master_keys: None,
            maintenance_every: None,
        }
    }
}
