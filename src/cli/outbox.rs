//! `centile outbox`: lists, delivers and resends outbox events.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

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
        board::BoardSlug,
        outbox::{Event, EventFilter},
    },
};

/// Subcommands of `centile outbox`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List events, newest first
    List(List),
    /// Show an event and its payload
    Show {
        #[command(flatten)]
        which: Which,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Schedule an event for delivery, even if it was delivered before
    ///
    /// Resets its attempt counter. The next delivery run sends it.
    Resend {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        by: By,
    },
    /// Deliver all due events
    ///
    /// Safe to run often and concurrently. A failed attempt is retried after 10 s; the delay
    /// doubles after each further failure, up to an hour. After a failure, the board's other events
    /// wait for the next run. The command fails if an attempt failed, whereas `centile maintain`
    /// only reports the number of failures.
    Deliver {
        /// Timeout for a response from the receiver, in seconds, 1 to 30
        #[arg(long, env = "CENTILE_WEBHOOK_TIMEOUT", value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs())]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX.as_secs()))]
        timeout: u64,
    },
}

/// Which events to list.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only events of this board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: Option<BoardSlug>,
    /// Only events waiting for delivery
    #[arg(long)]
    waiting: bool,
    /// Maximum number of events
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The event.
#[derive(Debug, Args)]
pub(super) struct Which {
    /// Event id, as shown by `centile outbox list`
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    event_id: i64,
}

/// Runs a subcommand.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::List(List { board, waiting, limit, json }) => {
            let filter = EventFilter { board, waiting, limit };
            let events = with_instance(config, async |instance| outbox::list(&instance.boards, &filter).await).await?;
            if json {
                return output::print_json(&events.iter().map(Line::from).collect::<Vec<_>>());
            }
            if events.is_empty() {
                output::note(match (&filter.board, waiting) {
                    (None, true) => "No event is waiting.".to_owned(),
                    (None, false) => "There are no events: no period has been closed.".to_owned(),
                    (Some(board), true) => format!("No event of board {board} is waiting."),
                    (Some(board), false) => {
                        format!("There are no events of board {board}: no period has been closed.")
                    }
                });
            }
            let head = ["ID", "BOARD", "PERIOD", "KIND", "CREATED", "STATE", "ATTEMPTS", "LAST RESULT"];
            output::print(table(head, events.iter().map(row).collect()))
        }
        Command::Show { which: Which { event_id }, json } => {
            let event = with_instance(config, async |instance| outbox::find(&instance.store, event_id).await).await?;
            if json { output::print_json(&Line::from(&event)) } else { output::print(description(&event)) }
        }
        Command::Resend { which: Which { event_id }, by } => {
            let by = by.actor()?;
            with_instance(config, async |instance| outbox::resend(&instance.store, event_id, &by).await).await?;
            output::print(format!("event {event_id} is due now"))
        }
        Command::Deliver { timeout } => {
            let timeout = Duration::from_secs(timeout);
            let deliver = async |instance: &Instance| {
                outbox::deliver_due_within(&instance.store, instance.master_keys.as_deref(), timeout).await
            };
            let done = with_instance(config, deliver).await?;
            output::print(format!("{} delivered, {} failed", done.delivered, done.failed))?;
            if done.failed == 0 {
                return Ok(());
            }
            Err(Error::unavailable(
                Code::Unavailable,
                "not all events were delivered: `centile outbox list --waiting` shows the errors and the next attempts",
            ))
        }
    }
}

/// An event as JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    id: i64,
    board: &'a str,
    period: &'a str,
    kind: &'a str,
    payload: &'a Value,
    created_at: DateTime<Utc>,
    delivered_at: Option<DateTime<Utc>>,
    attempts: i32,
    next_attempt_at: Option<DateTime<Utc>>,
    last_status: Option<i32>,
    last_error: Option<&'a str>,
}

impl<'a> From<&'a Event> for Line<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            id: event.id,
            board: &event.board,
            period: &event.period,
            kind: &event.kind,
            payload: &event.payload,
            created_at: event.created_at,
            delivered_at: event.delivered_at,
            attempts: event.attempts,
            next_attempt_at: event.next_attempt_at,
            last_status: event.last_status,
            last_error: event.last_error.as_deref(),
        }
    }
}

/// Returns the delivery state of an event.
fn state(event: &Event) -> &'static str {
    match (event.delivered_at, event.next_attempt_at) {
        (Some(_), _) => "delivered",
        (None, Some(_)) => "waiting",
        // The board has no webhook, or the event is older than the webhook.
        (None, None) => "kept",
    }
}

/// Returns the status or error of the last attempt.
fn last_result(event: &Event) -> String {
    match (event.last_status, &event.last_error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => String::new(),
    }
}

fn row(event: &Event) -> [String; 8] {
    [
        event.id.to_string(),
        event.board.clone(),
        event.period.clone(),
        event.kind.clone(),
        output::time(Some(event.created_at)),
        state(event).to_owned(),
        event.attempts.to_string(),
        last_result(event),
    ]
}

fn description(event: &Event) -> String {
    fields(&[
        ("id", event.id.to_string()),
        ("board", event.board.clone()),
        ("period", event.period.clone()),
        ("kind", event.kind.clone()),
        ("created", output::time(Some(event.created_at))),
        ("state", state(event).to_owned()),
        ("delivered", output::time(event.delivered_at)),
        ("attempts", event.attempts.to_string()),
        ("next attempt", output::time(event.next_attempt_at)),
        ("last result", last_result(event)),
        ("payload", event.payload.to_string()),
    ])
}
