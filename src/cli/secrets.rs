//! `centile secrets`: encrypts the secrets of webhooks in the database.

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

/// Subcommands of `centile secrets`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Encrypt the secrets of all webhooks with the first master key
    ///
    /// Afterwards the other master keys are no longer needed. Safe to interrupt and to run again.
    /// Instances may keep running if they have all of the master keys.
    Encrypt,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    let Command::Encrypt = command;
    let secrets = with_instance(config, async |instance| {
        secrets::encrypt_all(&instance.store.admin, instance.master_keys.as_deref()).await
    })
    .await?;
    output::print(format!(
        "{} secrets encrypted with the first master key, {} of them by this run",
        thousands(secrets.stored),
        thousands(secrets.encrypted)
    ))
}
