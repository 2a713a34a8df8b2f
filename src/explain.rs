//! How a rank is made up, for whoever asks why.

use crate::{Result, board::BoardSlug, period::PeriodSelector, service::Service, user::UserId};

/// A step on the way to a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is found out.
    pub what: String,
    /// What it is.
    pub value: Option<String>,
    /// Milliseconds that its statement took, planning included.
    pub time_ms: f64,
    /// The statement that gives it, for psql.
    pub statement: Option<String>,
}

/// The steps on the way to a player's rank, in their order, in one snapshot. [`crate::Error::NotFound`] when there is no such board,
/// user or period, or when the player has no entry.
pub async fn explain(
    service: &Service,
    board: &BoardSlug,
    user_id: &UserId,
    period: &PeriodSelector,
) -> Result<Vec<Step>> {
    service.store.explain_rank(board.as_str(), user_id.as_str(), &period.to_string()).await
}
