//! `centile secrets`: what keys sign with, and what the events of webhooks are signed with, as the database keeps them.

use clap::Subcommand;

use crate::{
    Result,
    cli::{
        output::{self, thousands},
        with_instance,
    },
    config::Config,
    maintenance::secrets,
};

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
    let secrets = with_instance(config, async |instance| {
        secrets::seal_all(&instance.store, instance.master_keys.as_deref()).await
    })
    .await?;
    output::print(format!(
        "{} secrets sealed with the first master key, {} of them just now",
        thousands(secrets.kept),
        thousands(secrets.sealed)
    ))
}
