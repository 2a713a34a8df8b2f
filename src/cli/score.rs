//! `centile score`: undoing scores, by acts in the ledger.

use clap::{Args, Subcommand};

use super::{act::Act, output, with_service};
use crate::{
    Result,
    board::{self, BoardSlug},
    config::{Config, value},
    score,
    user::UserId,
};

/// What can be done with scores.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Undo one score in the periods that are still open
    Void {
        /// The score transaction's id, as a player's history shows it
        #[arg(value_name = "TRANSACTION_ID", value_parser = clap::value_parser!(i64).range(1..))]
        transaction_id: i64,
        #[command(flatten)]
        on: On,
    },
    /// Make a player start anew in the periods that hold now
    Reset {
        /// The game's own id of the player
        #[arg(value_name = "USER", value_parser = value::<UserId>)]
        user_id: UserId,
        #[command(flatten)]
        on: On,
    },
}

/// Where, by whom, and why.
#[derive(Debug, Args)]
pub(super) struct On {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    #[command(flatten)]
    act: Act,
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Void { transaction_id, on: On { board, act } } => {
            let act = act.read()?;
            with_service(config, async |service| {
                let board = board::find(service, &board).await?;
                score::void(service, &board, transaction_id, &act).await
            })
            .await?;
            output::print(format!("score transaction {transaction_id} of board {board} is void"))
        }
        Command::Reset { user_id, on: On { board, act } } => {
            let act = act.read()?;
            with_service(config, async |service| {
                let board = board::find(service, &board).await?;
                score::reset(service, &board, &user_id, &act).await
            })
            .await?;
            output::print(format!("player {user_id} starts anew on board {board}"))
        }
    }
}
