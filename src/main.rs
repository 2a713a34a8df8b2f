//! The `centile` binary: one program, one command per job.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    centile::cli::main().await
}
