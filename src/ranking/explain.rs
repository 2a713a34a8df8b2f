//! Explanation of a rank.

use crate::{
    Result,
    model::{board::BoardSlug, explain::ExplainStep, period::PeriodSelector, user::UserId},
    ranking::rankings::Rankings,
};

/// Returns the steps that compute a player's rank, in order, from one snapshot. `period` defaults to
/// the default period of the board.
///
/// [`crate::Error::NotFound`] if the board, user or period does not exist, or if the player has no
/// entry.
pub async fn explain(
    rankings: &Rankings,
    board: &BoardSlug,
    user_id: &UserId,
    period: Option<&PeriodSelector>,
) -> Result<Vec<ExplainStep>> {
    if let Some(board) = rankings.primary.board(board).await? {
        rankings.indexes.apply(board.owner).await?;
    }
    rankings.primary.explain_rank(board.as_str(), user_id.as_str(), period.map(ToString::to_string).as_deref()).await
}
