//! Private servers: a PostgreSQL and a Redis of our own, from the programs installed on this machine.
//!
//! For the demo, the tests and the benches. They listen on loopback only, on a port that was free, keep everything in
//! the folder they are given, and end with the process that started them, however it ends. Everything here blocks:
//! a start takes about a second, a stop less.
//!
//! Neither of the crates that do such things fits: `postgresql_embedded` downloads programs and refuses root, `pgtemp`
//! needs sudo as root and cannot keep its data.

mod account;
mod postgres;
mod process;
mod program;
mod redis;

pub use postgres::{LocalPostgres, PostgresOptions};
pub use process::{Watchdog, signal};
pub use redis::LocalRedis;

use std::{net::TcpListener, path::Path};

use crate::{Result, dev::local::process::failed};

/// A loopback port that nobody listens on now. Somebody else may take it before it is used: be ready to try again.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed("bind a port on 127.0.0.1"))?;
    Ok(listener.local_addr().map_err(failed("read a bound address"))?.port())
}

/// The last lines of a server's log, for the message about why it did not start.
fn log_tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
