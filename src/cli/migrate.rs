//! `centile migrate`: brings a database to this program's schema.
#![allow(clippy::print_stdout, reason = "what a command prints is its result")]

use crate::{Result, store};

/// Migrates the database at `database_url` and prints what was done. Any number may run at once.
pub async fn run(database_url: &str) -> Result<()> {
    let report = store::migrate::migrate_url(database_url).await?;
    println!("{report}");
    Ok(())
}
