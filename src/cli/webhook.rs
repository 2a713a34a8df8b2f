//! `centile webhook`: sets, shows and removes the webhook of a board.

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
    model::{
        board::BoardPattern,
        hidden::Hidden,
        webhook::{Secret, WebhookUrl},
    },
};

/// Subcommands of `centile webhook`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Send future messages of a board to a URL
    ///
    /// Each message is a POST request with a JSON body and the header `Centile-Signature:
    /// t=SECONDS,v1=HEX`. HEX is the HMAC-SHA256 of `SECONDS.BODY`; its key is the base64-decoded
    /// part of the secret after `whsec_`. Without a given secret, the command creates one and
    /// prints it on standard output; it is not shown again. The header `Centile-Message-Id` stays
    /// the same when a message is resent.
    ///
    /// Messages from before the webhook was set are not sent. Use `centile outbox resend` for
    /// these.
    Set(Set),
    /// Show the webhook of a board
    Show {
        #[command(flatten)]
        of: Of,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the webhook of a board
    ///
    /// Its messages remain in the outbox.
    Remove(Remove),
}

/// The board or template of the webhook.
#[derive(Debug, Args)]
pub(super) struct Of {
    /// The board, or the pattern of a template
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardPattern>)]
    board: BoardPattern,
}

/// The webhook to remove.
#[derive(Debug, Args)]
pub(super) struct Remove {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    by: By,
}

/// A new webhook.
#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    of: Of,
    /// URL of the receiver
    #[arg(value_name = "URL", value_parser = value::<WebhookUrl>)]
    url: WebhookUrl,
    // Parsed in `secret`: clap would repeat an invalid value in its error.
    /// Signing secret [default: a new one]
    ///
    /// Prefer the environment variable: flags are visible in the process list.
    #[arg(long, env = "CENTILE_WEBHOOK_SECRET", value_name = "WHSEC", hide_env_values = true)]
    secret: Option<Hidden>,
    /// File that contains the signing secret
    #[arg(long, env = "CENTILE_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    by: By,
}

impl Set {
    fn secret(&self) -> Result<Option<Secret>> {
        // Some tools leave a variable out by setting it to an empty string.
        let given = self.secret.as_ref().map(Hidden::as_str).filter(|text| !text.is_empty());
        let file = match (given, self.secret_file.as_deref().filter(|file| !file.as_os_str().is_empty())) {
            (None, None) => return Ok(None),
            (Some(text), None) => return text.trim().parse().map(Some),
            (None, Some(file)) => file,
            (Some(_), Some(_)) => {
                return Err(Error::invalid("secret_file", "cannot be combined with a secret"));
            }
        };
        let text = fs::read_to_string(file)
            .map_err(|error| Error::invalid("secret_file", format!("cannot read {}: {error}", file.display())))?;
        text.trim().parse().map(Some).map_err(|error: Error| error.in_field("secret_file"))
    }
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Set(set) => {
            let (given, by) = (set.secret()?, set.by.actor()?);
            let secret = given.clone().map_or_else(Secret::random, Ok)?;
            let slug = &set.of.board;
            with_instance(config, async |instance| {
                let master_keys = instance.master_keys.as_deref();
                webhook::set(&instance.store.admin, master_keys, slug, &set.url, &secret, &by).await
            })
            .await?;
            if given.is_some() {
                return output::print(format!("messages of board {slug} are sent to {}", set.url));
            }
            output::print(secret.text())?;
            output::note(format!(
                "messages of board {slug} are sent to {}, signed with this secret. It is not shown again.",
                set.url
            ));
            Ok(())
        }
        Command::Show { of: Of { board: slug }, json } => {
            let webhook = with_instance(config, async |instance| {
                boards::check_pattern(&instance.boards, &slug).await?;
                webhook::find(&instance.store.reader, &slug).await
            })
            .await?;
            if json {
                return output::print_json(&WebhookJson {
                    board: &slug,
                    url: &webhook.url,
                    created_at: webhook.created_at,
                });
            }
            output::print(fields(&[
                ("board", slug.to_string()),
                ("url", webhook.url),
                ("since", output::time(Some(webhook.created_at))),
            ]))
        }
        Command::Remove(Remove { of: Of { board: slug }, by }) => {
            let by = by.actor()?;
            with_instance(config, async |instance| instance.store.admin.remove_webhook(&slug.to_string(), &by).await)
                .await?;
            output::print(format!("webhook of board {slug} removed"))
        }
    }
}

/// A webhook as JSON.
#[derive(Debug, Serialize)]
struct WebhookJson<'a> {
    board: &'a BoardPattern,
    url: &'a str,
    created_at: DateTime<Utc>,
}
