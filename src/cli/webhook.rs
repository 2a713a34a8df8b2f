//! `centile webhook`: where the events of a board are sent.

use std::{fs, path::PathBuf};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    Error, Result, boards,
    cli::{
        by::By,
        output::{self, fields},
        with_instance,
    },
    config::{Config, value},
    delivery::webhook,
    instance::Instance,
    model::{
        board::BoardSlug,
        hidden::Hidden,
        webhook::{Secret, WebhookUrl},
    },
};

/// What can be done with webhooks.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Send the events of a board to an address from now on
    ///
    /// Each event is a POST of JSON with the header `Centile-Signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 over
    /// `SECONDS.BODY`. Its key is what the secret holds in base64 after `whsec_`. A new secret is made unless one is given;
    /// alone on standard output, it is shown this once. `Centile-Event-Id` is the same whenever an event is sent again.
    ///
    /// Events from before a board got its webhook are not sent by themselves: `centile outbox resend`.
    Set(Set),
    /// Show where the events of a board are sent
    Show {
        #[command(flatten)]
        of: Of,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send the events of a board nowhere any more; they can still be read
    Remove(Remove),
}

/// Whose webhook.
#[derive(Debug, Args)]
pub(super) struct Of {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
}

/// Whose webhook to remove, and who does.
#[derive(Debug, Args)]
pub(super) struct Remove {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    by: By,
}

/// A receiver.
#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    of: Of,
    /// Address that takes the events
    #[arg(value_name = "URL", value_parser = value::<WebhookUrl>)]
    url: WebhookUrl,
    // Read further down: what clap refuses, it repeats.
    /// Secret to sign with, in place of a new one; better by the variable, which the list of processes does not show
    #[arg(long, env = "CENTILE_WEBHOOK_SECRET", value_name = "WHSEC", hide_env_values = true)]
    secret: Option<Hidden>,
    /// File that holds the secret to sign with
    #[arg(long, env = "CENTILE_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    by: By,
}

impl Set {
    /// The secret that was given, if one was.
    fn secret(&self) -> Result<Option<Secret>> {
        // A variable that is set to nothing is how some tools leave it out.
        let given = self.secret.as_ref().map(Hidden::as_str).filter(|text| !text.is_empty());
        let file = match (given, self.secret_file.as_deref().filter(|file| !file.as_os_str().is_empty())) {
            (None, None) => return Ok(None),
            (Some(text), None) => return text.trim().parse().map(Some),
            (None, Some(file)) => file,
            (Some(_), Some(_)) => {
                return Err(Error::invalid("secret_file", "and a secret itself cannot both be given"));
            }
        };
        let text = fs::read_to_string(file)
            .map_err(|error| Error::invalid("secret_file", format!("cannot read {}: {error}", file.display())))?;
        text.trim().parse().map(Some).map_err(|error| match error {
            Error::Invalid { message, .. } => Error::invalid("secret_file", message),
            other => other,
        })
    }
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Set(set) => {
            let (given, by) = (set.secret()?, set.by.actor()?);
            let secret = given.clone().map_or_else(Secret::random, Ok)?;
            let slug = &set.of.board;
            with_instance(config, async |instance| {
                webhook::set(
                    &instance.store,
                    instance.master_keys.as_deref(),
                    &*boards::find(&instance.boards, slug).await?,
                    &set.url,
                    &secret,
                    &by,
                )
                .await
            })
            .await?;
            if given.is_some() {
                return output::print(format!("events of board {slug} go to {}", set.url));
            }
            output::print(secret.text())?;
            output::note(format!(
                "events of board {slug} go to {}, signed with this secret. It is shown this once.",
                set.url
            ));
            Ok(())
        }
        Command::Show { of: Of { board: slug }, json } => {
            let find = async |instance: &Instance| {
                webhook::find(&instance.store, &*boards::find(&instance.boards, &slug).await?).await
            };
            let webhook = with_instance(config, find).await?;
            if json {
                return output::print_json(&Line { board: &slug, url: &webhook.url, created_at: webhook.created_at });
            }
            output::print(fields(&[
                ("board", slug.to_string()),
                ("url", webhook.url),
                ("since", output::time(Some(webhook.created_at))),
            ]))
        }
        Command::Remove(Remove { of: Of { board: slug }, by }) => {
            let by = by.actor()?;
            let remove = async |instance: &Instance| {
                webhook::remove(&instance.store, &*boards::find(&instance.boards, &slug).await?, &by).await
            };
            with_instance(config, remove).await?;
            output::print(format!("events of board {slug} are sent nowhere any more"))
        }
    }
}

/// A webhook as JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    board: &'a BoardSlug,
    url: &'a str,
    created_at: DateTime<Utc>,
}
