//! `centile secrets`: what keys sign with, and what the events of webhooks are signed with, as the database keeps them.

use clap::Subcommand;

use super::{
    output::{self, thousands},
    with_service,
};
use crate::{Result, config::Config, secret};

/// What can be done with secrets.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Seal all of them with the first of the master keys; the others are not needed any more then
    ///
    /// Again is harmless, and so is being killed. Instances go on meanwhile, given that they know all of the master keys.
    Seal,
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    let Command::Seal = command;
    let secrets = with_service(config, async |service| secret::seal_all(service).await).await?;
    output::print(format!(
        "{} secrets sealed with the first master key, {} of them just now",
        thousands(secrets.kept),
        thousands(secrets.sealed)
    ))
}
