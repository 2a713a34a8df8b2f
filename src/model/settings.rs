//! How an instance reaches its servers, and its limits.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::model::{hidden::Hidden, seal::MasterKeys};

/// How to reach the servers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// PostgreSQL, as a URL.
    pub database_url: Hidden,
    /// Redis, as a URL; an in-process cache without.
    pub redis_url: Option<Hidden>,
    /// Certificates of the authorities that vouch for it over TLS; the machine's own without.
    pub redis_ca: Option<PathBuf>,
    /// What every key in Redis begins with.
    pub redis_prefix: String,
    /// Connections for reading.
    pub read_connections: u32,
    /// Connections for writing: at least one per lane that is busy at the same time.
    pub write_connections: u32,
    /// How long a statement may run.
    pub statement_timeout: Duration,
    /// How long a call waits for a connection, or for its turn where a read is shared, before it is told that there is none.
    pub pool_wait: Duration,
    /// Bytes that rank indexes and the user directory may take; 0 turns them off.
    pub index_memory: u64,
    /// How long scores may have to wait for their turn before those that come are refused.
    pub write_wait: Duration,
    /// What secrets are sealed with in the database; without, there are no keys that sign, and secrets of webhooks are in clear.
    pub master_keys: Option<Arc<MasterKeys>>,
    /// How often to look in the background whether a period is to be closed; nothing is done in the background without.
    pub maintenance_every: Option<Duration>,
}

impl Settings {
    /// How long a call waits for a connection unless configured otherwise.
    pub const DEFAULT_POOL_WAIT: Duration = Duration::from_secs(2);
    /// How long scores may have to wait unless configured otherwise.
    pub const DEFAULT_WRITE_WAIT: Duration = Duration::from_millis(400);
}
