//! How a rank comes about.

use crate::{
    Result,
    model::{board::BoardSlug, explain::Step, period::PeriodSelector, user::UserId},
    ranking::Rankings,
};

/// The steps on the way to a player's rank, in their order, in one snapshot. [`crate::Error::NotFound`] when there is no such board,
/// user or period, or when the player has no entry.
pub async fn explain(
    rankings: &Rankings,
    board: &BoardSlug,
    user_id: &UserId,
    period: &PeriodSelector,
) -> Result<Vec<Step>> {
    rankings.store.explain_rank(board.as_str(), user_id.as_str(), &period.to_string()).await
}
