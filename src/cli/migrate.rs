//! `centile migrate`: brings a database to this program's schema.
#![allow(clippy::print_stdout, reason = "what a command prints is its result")]

use std::time::Duration;

use clap::Args;

use crate::{Result, store::migrate};

/// How to migrate.
#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Seconds after which to give up when other transactions keep a lock that is needed; nobody waits behind it meanwhile
    #[arg(long, value_name = "SECONDS", default_value_t = migrate::LOCK_WAIT.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lock_wait: u64,
}

/// Migrates the database at `database_url` and prints what was done. Any number may run at once.
pub(super) async fn run(database_url: &str, Migrate { lock_wait }: Migrate) -> Result<()> {
    let report = migrate::migrate_within(database_url, Duration::from_secs(lock_wait)).await?;
    println!("{report}");
    Ok(())
}
