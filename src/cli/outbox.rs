//! `centile outbox`: lists, delivers and resends webhook messages.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::{
    Code, Error, Result,
    cli::{
        by::By,
        output::{self, fields, table},
        with_instance,
    },
    config::{Config, value},
    delivery::outbox::{self, DEFAULT_TIMEOUT, TIMEOUT_MAX},
    instance::Instance,
    model::{
        board::BoardPattern,
        outbox::{Message, MessageFilter},
    },
};

/// Subcommands of `centile outbox`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List messages, newest first
    List(List),
    /// Show a message and its payload
    Show {
        #[command(flatten)]
        which: Which,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Schedule a message for delivery, even if it was delivered before
    ///
    /// Resets its attempt counter. The next delivery run sends it.
    Resend {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        by: By,
    },
    /// Deliver all due messages
    ///
    /// Safe to run often and concurrently. A failed attempt is retried after 10 s; the delay
    /// doubles after each further failure, up to an hour. After a failure, the board's other
    /// messages wait for the next run. The command fails if an attempt failed, whereas `centile
    /// maintain` only reports the number of failures.
    Deliver {
        /// Timeout for a response from the receiver, in seconds, 1 to 30
        #[arg(long, env = "CENTILE_WEBHOOK_TIMEOUT", value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs())]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX.as_secs()))]
        timeout: u64,
    },
}

/// Which messages to list.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only messages of this board, or of the template with this pattern
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardPattern>)]
    board: Option<BoardPattern>,
    /// Only messages waiting for delivery
    #[arg(long)]
    waiting: bool,
    /// Maximum number of messages
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The message.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// Message id, as shown by `centile outbox list`
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    message_id: i64,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::List(List { board, waiting, limit, json }) => {
            let filter = MessageFilter { board, waiting, limit };
            let messages =
                with_instance(config, async |instance| outbox::list(&instance.boards, &filter).await).await?;
            if json {
                return output::print_json(&messages);
            }
            if messages.is_empty() {
                output::note(match (&filter.board, waiting) {
                    (None, true) => "No message is waiting.".to_owned(),
                    (None, false) => "There are no messages: no period has been closed.".to_owned(),
                    (Some(board), true) => format!("No message of board {board} is waiting."),
                    (Some(board), false) => {
                        format!("There are no messages of board {board}: no period has been closed.")
                    }
                });
            }
            let head = ["ID", "BOARD", "PERIOD", "KIND", "CREATED", "STATE", "ATTEMPTS", "LAST RESULT"];
            output::print(table(head, messages.iter().map(row).collect()))
        }
        Command::Show { which: Which { message_id }, json } => {
            let message =
                with_instance(config, async |instance| outbox::find(&instance.store.reader, message_id).await).await?;
            if json { output::print_json(&message) } else { output::print(description(&message)) }
        }
        Command::Resend { which: Which { message_id }, by } => {
            let by = by.actor()?;
            with_instance(config, async |instance| instance.store.admin.resend(message_id, &by).await).await?;
            output::print(format!("message {message_id} is due now"))
        }
        Command::Deliver { timeout } => {
            let timeout = Duration::from_secs(timeout);
            let deliver = async |instance: &Instance| {
                outbox::deliver_due(&instance.store.admin, instance.master_keys.as_deref(), timeout).await
            };
            let done = with_instance(config, deliver).await?;
            output::print(format!("{} delivered, {} failed", done.delivered, done.failed))?;
            if done.failed == 0 {
                return Ok(());
            }
            Err(Error::retry(
                Code::Unavailable,
                "not all messages were delivered: `centile outbox list --waiting` shows the errors and the next attempts",
            ))
        }
    }
}

fn state(message: &Message) -> &'static str {
    match (message.delivered_at, message.next_attempt_at) {
        (Some(_), _) => "delivered",
        (None, Some(_)) => "waiting",
        // The board has no webhook, or the message is older than the webhook.
        (None, None) => "kept",
    }
}

/// Returns the status or error of the last attempt.
fn last_result(message: &Message) -> String {
    match (message.last_status, &message.last_error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => String::new(),
    }
}

fn row(message: &Message) -> [String; 8] {
    [
        message.id.to_string(),
        message.board.clone(),
        message.period.clone(),
        message.kind.clone(),
        output::time(Some(message.created_at)),
        state(message).to_owned(),
        message.attempts.to_string(),
        last_result(message),
    ]
}

fn description(message: &Message) -> String {
    fields(&[
        ("id", message.id.to_string()),
        ("board", message.board.clone()),
        ("period", message.period.clone()),
        ("kind", message.kind.clone()),
        ("created", output::time(Some(message.created_at))),
        ("state", state(message).to_owned()),
        ("delivered", output::time(message.delivered_at)),
        ("attempts", message.attempts.to_string()),
        ("next attempt", output::time(message.next_attempt_at)),
        ("last result", last_result(message)),
        ("payload", message.payload.to_string()),
    ])
}
