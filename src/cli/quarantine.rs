//! `centile quarantine`: lists, accepts and rejects quarantined events.

use clap::{Args, Subcommand};

use crate::{
    Result,
    cli::{
        act::ActFlags,
        output::{self, table, thousands},
        with_board,
    },
    config::{Config, named, value},
    model::{
        board::BoardSlug,
        name::Named as _,
        quarantine::{QuarantinedEvent, State},
    },
    scoring::quarantine,
};

/// Subcommands of `centile quarantine`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List quarantined events, oldest first
    List(List),
    /// Accept an event into the ledger, at the current time
    Accept(Decision),
    /// Reject an event permanently
    Reject(Decision),
}

/// Which events to list.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// State of the events; decided events are kept for 90 days
    #[arg(long, value_parser = named::<State>(), default_value = "waiting")]
    state: State,
    /// Maximum number of events
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A decision on an event.
#[derive(Debug, Args)]
pub(super) struct Decision {
    /// Event id, as shown by `centile quarantine list`
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    quarantine_id: i64,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    #[command(flatten)]
    act: ActFlags,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::List(List { board, state, limit, json }) => {
            let (events, next) = with_board(config, &board, async |instance, board| {
                quarantine::list(&instance.store.reader, board, state, limit, None).await
            })
            .await?;
            if json {
                return output::print_json(&events);
            }
            if events.is_empty() {
                output::note(format!("No event of board {board} is {}.", state.name()));
            } else if next.is_some() {
                output::note("More events exist; raise --limit to list them.");
            }
            let head = ["ID", "PLAYER", "POINTS", "SUBMITTED", "RULE", "DETAIL", "DECIDED", "BY"];
            output::print(table(head, events.iter().map(row).collect()))
        }
        Command::Accept(Decision { quarantine_id, board, act }) => {
            let act = act.read()?;
            let transaction_id = with_board(config, &board, async |instance, board| {
                quarantine::accept(&instance.store.admin, &instance.rankings, board, quarantine_id, &act).await
            })
            .await?;
            output::print(format!(
                "event {quarantine_id} accepted as score transaction {transaction_id} of board {board}"
            ))
        }
        Command::Reject(Decision { quarantine_id, board, act }) => {
            let act = act.read()?;
            with_board(config, &board, async |instance, board| {
                instance.store.admin.reject_event(board.slug.as_str(), quarantine_id, &act).await
            })
            .await?;
            output::print(format!("event {quarantine_id} of board {board} rejected"))
        }
    }
}

fn row(event: &QuarantinedEvent) -> [String; 8] {
    [
        event.quarantine_id.to_string(),
        event.user_id.clone(),
        thousands(event.points),
        output::time(Some(event.submitted_at)),
        event.rule.clone(),
        event.detail.clone(),
        output::time(event.decided_at),
        event.decided_by.clone().unwrap_or_default(),
    ]
}
