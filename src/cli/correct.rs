//! `centile correct`: adds a score at a past time.

use chrono::{DateTime, Utc};
use clap::Args;

use crate::{
    Result,
    cli::{act::reason, by::By, output, with_board},
    config::{Config, time, value},
    model::{act::Act, board::BoardSlug, score::Correction, user::UserId},
};

/// A correction.
#[derive(Debug, Args)]
pub(super) struct Correct {
    /// Player id
    #[arg(value_name = "USER", value_parser = value::<UserId>)]
    user_id: UserId,
    /// Points to add; negative points subtract
    #[arg(value_name = "POINTS", allow_negative_numbers = true)]
    points: i64,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Time of the score, such as `2024-01-16T12:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: DateTime<Utc>,
    /// Reason recorded in the ledger, up to 256 bytes
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Tiebreak on `tiebreak` boards, -2048 to 2047, larger wins; second number on `second` boards
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tiebreak: Option<i64>,
    #[command(flatten)]
    by: By,
}

/// Writes the correction and lists the archives to refresh.
pub(super) async fn run(config: &Config, correct: Correct) -> Result<()> {
    let board_slug = correct.board;
    let correction = Correction {
        user_id: correct.user_id,
        points: correct.points,
        tiebreak: correct.tiebreak,
        at: correct.at,
        act: Act::new(correct.by.actor()?, Some(correct.reason))?,
    };
    let (transaction_id, to_refresh) = with_board(config, &board_slug, async |instance, board| {
        instance.store.admin.correct_score(board.slug.as_str(), &correction).await
    })
    .await?;
    output::print(format!("score transaction {transaction_id} of board {board_slug} corrects {}", correction.user_id))?;
    for period in to_refresh {
        output::print(format!("archive outdated; run: centile refresh --board {board_slug} --period {period}"))?;
    }
    Ok(())
}
