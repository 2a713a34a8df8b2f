//! `centile score`: submits, voids and resets scores.

use std::collections::BTreeMap;

use clap::{Args, Subcommand, value_parser};

use crate::{
    Error, Result,
    cli::{act::ActFlags, output, with_board},
    config::{Config, value},
    model::{
        board::BoardSlug,
        metadata::Metadata,
        score::Event,
        user::{UserId, check_text},
    },
    rules::AcceptedEvent,
    scoring::{self, batch::EventOutcome},
};

/// Subcommands of `centile score`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Submit a score event
    Submit {
        /// Player id; an unknown player is created
        #[arg(value_name = "USER", value_parser = value::<UserId>)]
        user_id: UserId,
        /// Points earned (`sum`), or the score itself (`best`, `latest`)
        #[arg(value_name = "POINTS", allow_negative_numbers = true)]
        points: i64,
        /// The board
        #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
        board: BoardSlug,
        /// Event id, up to 128 bytes; an event with the same id counts once
        #[arg(long, value_name = "TEXT", value_parser = text::<128>)]
        id: Option<String>,
        /// Reason recorded in the ledger, up to 256 bytes
        #[arg(long, value_name = "TEXT", value_parser = text::<256>)]
        reason: Option<String>,
        /// Tiebreak on `tiebreak` boards, -2048 to 2047, larger wins; second number on `second` boards
        #[arg(long, allow_negative_numbers = true)]
        tiebreak: Option<i64>,
        /// Metadata of the game: a JSON object of up to 1,024 bytes without spaces
        #[arg(long, value_name = "JSON", value_parser = value::<Metadata>)]
        metadata: Option<Metadata>,
    },
    /// Void a score in all open periods
    Void {
        /// Id of the score transaction, as shown in the player's history
        #[arg(value_name = "TRANSACTION_ID", value_parser = value_parser!(i64).range(1..))]
        transaction_id: i64,
        #[command(flatten)]
        on: On,
    },
    /// Reset a player's score in the current periods
    Reset {
        /// Player id
        #[arg(value_name = "USER", value_parser = value::<UserId>)]
        user_id: UserId,
        #[command(flatten)]
        on: On,
    },
}

/// The board, the actor and the reason.
#[derive(Debug, Args)]
pub(super) struct On {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    #[command(flatten)]
    act: ActFlags,
}

/// Validates a text of up to `MAX` bytes. Clap adds the name of the flag to the error.
fn text<const MAX: usize>(text: &str) -> Result<String, String> {
    check_text("", text, MAX).map(|()| text.to_owned()).map_err(Error::without_field)
}

/// Formats the transaction and the player's resulting scores.
fn text_of(accepted: &AcceptedEvent, repeated: bool) -> String {
    let repeated = if repeated { " (repeated)" } else { "" };
    let mut lines = vec![("transaction", format!("{}{repeated}", accepted.transaction_id))];
    let periods: BTreeMap<&str, i64> =
        accepted.standings.iter().map(|standing| (standing.period.as_str(), standing.score)).collect();
    lines.extend(periods.into_iter().map(|(period, score)| (period, score.to_string())));
    output::fields(&lines)
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Submit { user_id, points, board, id, reason, tiebreak, metadata } => {
            let event = Event { user_id, points, reason, id, tiebreak, metadata, occurred_at: None };
            let result = with_board(config, &board, async |instance, board| {
                let answers = scoring::submit(&instance.writers, &instance.rankings, board, vec![event], false);
                match answers.await?.pop() {
                    Some(Ok(EventOutcome::Accepted { accepted, repeated, .. })) => Ok(text_of(&accepted, repeated)),
                    Some(Ok(EventOutcome::Quarantined { quarantine_id, violation, .. })) => {
                        Ok(format!("event {quarantine_id} quarantined: {}", violation.error(board)))
                    }
                    Some(Err(error)) => Err(error),
                    None => Err(Error::Internal("missing answer to an event".to_owned())),
                }
            });
            output::print(result.await?)
        }
        Command::Void { transaction_id, on: On { board, act } } => {
            let act = act.read()?;
            with_board(config, &board, async |instance, board| {
                scoring::void(&instance.store.admin, &instance.rankings, board, transaction_id, &act).await
            })
            .await?;
            output::print(format!("score transaction {transaction_id} of board {board} voided"))
        }
        Command::Reset { user_id, on: On { board, act } } => {
            let act = act.read()?;
            with_board(config, &board, async |instance, board| {
                scoring::reset(&instance.store.admin, &instance.rankings, board, &user_id, &act).await
            })
            .await?;
            output::print(format!("player {user_id} reset on board {board}"))
        }
    }
}
