//! `centile migrate`: creates or upgrades the database schema.

use std::time::Duration;

use clap::Args;

use crate::{Result, cli::output, store::migrate};

/// Options of the migration.
#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Timeout for locks held by other transactions, in seconds
    ///
    /// Migration requests locks in short attempts, so that other statements do not queue behind it.
    #[arg(long, value_name = "SECONDS", default_value_t = migrate::LOCK_WAIT.as_secs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lock_wait: u64,
}

/// Migrates the database at `database_url` and prints a summary. Safe to run concurrently.
pub(super) async fn run(database_url: &str, Migrate { lock_wait }: Migrate) -> Result<()> {
    let report = migrate::migrate_within(database_url, Duration::from_secs(lock_wait)).await?;
    output::print(report)
}
