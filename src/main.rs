//! The `centile` binary.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    centile::cli::main().await
}
