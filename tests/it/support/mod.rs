//! Shared test support: one PostgreSQL and one Redis per test process, a database per test, the
//! real binary.
//!
//! Tests need no clean-up: the servers and their folders go when the test process ends, however it
//! ends.

#![allow(dead_code, unused_imports, reason = "not every test binary uses every helper")]

pub mod audit;
pub mod balancer;
pub mod boundary;
pub mod cluster;
mod command;
pub mod corrupter;
pub mod cutting;
mod database;
pub mod demo;
pub mod faults;
pub mod freshness;
mod import;
pub mod killing;
pub mod layout;
pub mod leagues;
pub mod load;
pub mod markup;
pub mod oracle;
pub mod pooler;
pub mod proxy;
pub mod random;
pub mod record;
pub mod replay;
pub mod replica;
pub mod sender;
mod serve;
pub mod verdict;
pub mod wait;

pub use command::{Ran, run, run_at, spawn};
pub use database::{TESTING, TestDb, is_cluster, make_key, own_postgres, own_redis, redis_connection, redis_url};
pub use import::{Files, Imported, import, import_stdin, spawn_import};
pub use serve::{PATIENT, Serve, spawn_serve};

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// Free kilobytes of [`MEMORY`] that the servers need; a run of the whole suite takes about a
/// third.
const MIN_FREE_KILOBYTES: u64 = 6 << 20;

/// Returns a number that is unique in this process.
pub fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Creates a folder for one server of this test process: in memory (`/dev/shm`) if there is enough
/// space, otherwise inside the project. `make test` waits until those in the project are gone.
pub fn folder(what: &str) -> PathBuf {
    static IN_MEMORY: LazyLock<bool> =
        LazyLock::new(|| free_kilobytes(MEMORY).is_some_and(|free| free >= MIN_FREE_KILOBYTES));
    if *IN_MEMORY { new_folder(Path::new(MEMORY), "centile-test", what) } else { folder_on_disk(what) }
}

/// Creates a folder inside the project, for a server whose data must be on disk.
pub fn folder_on_disk(what: &str) -> PathBuf {
    new_folder(Path::new(env!("CARGO_MANIFEST_DIR")), ".centile/test", what)
}

fn new_folder(base: &Path, prefix: &str, what: &str) -> PathBuf {
    base.join(format!("{prefix}-{}-{what}-{}", std::process::id(), next_number()))
}

/// Returns the free space of the file system that holds `folder`, as `df` prints it.
fn free_kilobytes(folder: &str) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// Selects the amount of random work: `quick` in `make test`, `full` in `make torture`, which sets
/// `CENTILE_FULL=1`. A quick amount keeps a test within seconds. If it leaves out kinds of cases, they
/// are chosen at random from a printed seed, or a comment gives the reason.
pub fn amount<T>(quick: T, full: T) -> T {
    if std::env::var_os("CENTILE_FULL").is_some_and(|flag| flag == "1") { full } else { quick }
}

/// Reads of a ranking with this player, below `/v1/boards/{board}/`. A parameter can be appended.
pub fn ranking_reads(user: &str) -> [String; 10] {
    [
        "scores?",
        "scores?limit=5&",
        "scores?from=3&limit=1000&",
        "scores/query?user_id=USER&user_id=p2&",
        "scores/USER?",
        "scores/USER?around=0&",
        "scores/USER?around=5&",
        "rank?score=7&",
        "distribution?",
        "tiers?",
    ]
    .map(|read| read.replace("USER", user))
}

/// Returns a client that closes an idle connection before the service does (after 75 seconds).
/// Otherwise a request could be lost because the service closes the connection at the same moment.
pub fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().timeout(Duration::from_mins(1)).pool_idle_timeout(Duration::from_secs(30));
    builder.build().expect("a client")
}

/// Returns the `centile` binary, without Centile's settings from the test's environment.
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
