//! Runs a command with a temporary PostgreSQL that has Centile's schema, for `make prepare`:
//!
//! ```text
//! devdb COMMAND …    runs COMMAND with DATABASE_URL and SQLX_OFFLINE=false
//! ```
#![allow(clippy::print_stderr, reason = "a command-line tool")]

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
};

use centile::{
    Error, Result,
    dev::local::{LocalPostgres, PostgresOptions},
    store::migrate::{Files, LOCK_WAIT, migrate_to},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("devdb: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next().ok_or_else(|| Error::invalid("arguments", "give a command"))?;
    // The repository root if run by cargo, otherwise the working directory.
    let root = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let dir = root.join(format!(".centile/dev-{}", std::process::id()));
    let server = LocalPostgres::start(&dir, PostgresOptions::ephemeral())?;
    // Read the current files, not those embedded in this build: see CONTRIBUTING.md on new queries.
    migrate_to(&server.url("postgres"), &Files::read(&root)?, LOCK_WAIT).await?;
    let status = Command::new(&command)
        .args(arguments)
        .env("DATABASE_URL", server.url("postgres"))
        .env("SQLX_OFFLINE", "false")
        .status()
        .map_err(|error| Error::Internal(format!("cannot run {}: {error}", command.display())))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
