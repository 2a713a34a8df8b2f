//! Private PostgreSQL and Redis servers for the demo, tests and benches, from locally installed
//! programs.
//!
//! The servers listen on a free loopback port and keep all files in one folder. They stop when the
//! process that started them ends, even by SIGKILL. All functions block: a start takes about a
//! second, a stop less.
//!
//! Existing crates do not fit: `postgresql_embedded` downloads programs and refuses root; `pgtemp`
//! needs sudo as root and cannot keep its data.

mod account;
mod cluster;
mod postgres;
mod process;
mod program;
mod redis;

pub use cluster::LocalCluster;
pub use postgres::{LocalPostgres, PostgresOptions};
pub use process::{Watchdog, signal};
pub use redis::LocalRedis;

use std::{net::TcpListener, path::Path};

use crate::{Result, dev::local::process::failed};

/// Returns a free loopback port. Another process may take it before the caller does, so retry.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed("bind a port on 127.0.0.1"))?;
    Ok(listener.local_addr().map_err(failed("read a bound address"))?.port())
}

/// Returns the last lines of a server's log, to explain a failed start.
fn log_tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
