//! What the tests stand on: one PostgreSQL and one Redis per test process, a database per test, the real binary.
//!
//! Nothing here needs tidying up: the servers end with the test process, however it ends, and take their folders along.

#![allow(dead_code, unused_imports, reason = "each helper is here for whichever test needs it")]

pub mod audit;
pub mod boundary;
mod command;
pub mod cutting;
mod database;
pub mod freshness;
mod import;
pub mod layout;
pub mod load;
pub mod markup;
pub mod oracle;
pub mod pooler;
pub mod proxy;
pub mod random;
pub mod record;
pub mod replay;
pub mod sender;
mod serve;
pub mod spoiler;
pub mod verdict;

pub use command::{Ran, make_key, run, run_at, spawn};
pub use database::{TestDb, own_postgres, own_redis, redis_connection, redis_url};
pub use import::{Files, Imported, import, import_stdin, spawn_import};
pub use serve::{Serve, spawn_serve};

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A number that no other call in this process gets.
pub fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A folder inside the project for one server of this test process; `make test` waits for all of these to be gone.
pub fn folder(what: &str) -> PathBuf {
    let name = format!(".centile/test-{}-{what}-{}", std::process::id(), next_number());
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A client that gives a connection up before the service does (after 75 seconds): a request that crosses with the service's
/// closing is lost.
pub fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().timeout(Duration::from_mins(1)).pool_idle_timeout(Duration::from_secs(30));
    builder.build().expect("a client")
}

/// The `centile` binary, with none of the settings of the environment that the tests run in.
pub fn centile() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_centile"));
    command.env_clear();
    for kept in ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
}
