//! A private cluster: servers with Citus.

use std::{
    iter::once,
    path::{Path, PathBuf},
};

use crate::{
    Error, Result,
    dev::local::{LocalPostgres, PostgresOptions, process::failed},
};

const SETTINGS: [(&str, &str); 10] = [
    ("shared_preload_libraries", "citus"),
    ("wal_level", "logical"),
    ("max_connections", "1000"),
    ("max_prepared_transactions", "200"),
    ("max_worker_processes", "500"),
    ("max_replication_slots", "30"),
    ("max_wal_senders", "30"),
    // Completes transactions that a crash has left prepared.
    ("citus.recover_2pc_interval", "500ms"),
    // Otherwise Citus creates a certificate, which clients do not know.
    ("ssl", "off"),
    ("citus.node_conninfo", "sslmode=disable"),
];

/// A private coordinator and its workers.
#[derive(Debug)]
pub struct LocalCluster {
    /// The coordinator.
    pub coordinator: LocalPostgres,
    /// The workers.
    pub workers: Vec<LocalPostgres>,
}

impl LocalCluster {
    /// Starts the servers with their data in folders beside `dir`, whose names begin with its name. The
    /// newest installed PostgreSQL must have Citus; of equal versions, the first in `PATH`.
    pub fn start(dir: &Path, workers: usize, options: &PostgresOptions) -> Result<Self> {
        let mut options = options.clone();
        options.settings.extend(SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let folder = |name: &str| PathBuf::from(format!("{}-{name}", dir.display()));
        let coordinator = LocalPostgres::start(&folder("coordinator"), options.clone())?;
        let workers = (1..=workers)
            .map(|n| LocalPostgres::start_beside(&folder(&format!("worker-{n}")), options.clone(), &coordinator))
            .collect::<Result<_>>()?;
        Ok(Self { coordinator, workers })
    }

    /// Creates a database on all servers, and registers the workers. Returns its URL on the
    /// coordinator.
    pub fn create_database(&self, name: &str) -> Result<String> {
        for server in once(&self.coordinator).chain(&self.workers) {
            run(server, "postgres", &format!("CREATE DATABASE {name}"))?;
            run(server, name, "CREATE EXTENSION citus")?;
        }
        let port = self.coordinator.port();
        run(&self.coordinator, name, &format!("SELECT citus_set_coordinator_host('127.0.0.1', {port})"))?;
        for worker in &self.workers {
            run(&self.coordinator, name, &format!("SELECT citus_add_node('127.0.0.1', {})", worker.port()))?;
        }
        let property = format!("SELECT citus_set_node_property('127.0.0.1', {port}, 'shouldhaveshards', false)");
        run(&self.coordinator, name, &property)?;
        Ok(self.coordinator.url(name))
    }
}

/// Runs a statement with psql.
fn run(server: &LocalPostgres, database: &str, statement: &str) -> Result<()> {
    let mut command = std::process::Command::new(server.program("psql"));
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement]).arg(server.url(database));
    let output = command.output().map_err(failed("run psql"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Internal(format!("{statement}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
