//! `centile correct`: a score of the past, with a reason and a name.

use chrono::{DateTime, Utc};
use clap::Args;

use crate::{
    Result, boards,
    cli::{act::reason, by::By, output, with_instance},
    config::{Config, value},
    model::{act::Act, board::BoardSlug, user::UserId},
    periods::closing::{self, ScoreCorrection},
};

/// What to correct.
#[derive(Debug, Args)]
pub(super) struct Correct {
    /// The game's own id of the player
    #[arg(value_name = "USER", value_parser = value::<UserId>)]
    user_id: UserId,
    /// Points to add; fewer than none take away
    #[arg(value_name = "POINTS", allow_negative_numbers = true)]
    points: i64,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// The time that the points count for, such as `2024-01-16T12:00:00Z`
    #[arg(long, value_name = "TIME")]
    at: DateTime<Utc>,
    /// Why; kept in the ledger, up to 256 bytes
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// On boards with ties by tiebreak: larger wins, -2048 to 2047
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tiebreak: Option<i16>,
    #[command(flatten)]
    by: By,
}

/// Writes the correction, and says which archives have to be refreshed for it.
pub(super) async fn run(config: &Config, correct: Correct) -> Result<()> {
    let board_slug = correct.board;
    let correction = ScoreCorrection {
        user_id: correct.user_id,
        points: correct.points,
        tiebreak: correct.tiebreak,
        at: correct.at,
        act: Act::new(correct.by.actor()?, Some(correct.reason))?,
    };
    let (transaction_id, to_refresh) = with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &board_slug).await?;
        closing::correct(&instance.store, &board, &correction).await
    })
    .await?;
    output::print(format!("score transaction {transaction_id} of board {board_slug} corrects {}", correction.user_id))?;
    for period in to_refresh {
        output::print(format!("not in its archive yet: centile refresh --board {board_slug} --period {period}"))?;
    }
    Ok(())
}
