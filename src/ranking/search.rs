//! Players found by the beginning of their id or name.

use crate::{
    Result,
    model::{
        board::Board,
        period::PeriodSelector,
        rank::Chosen,
        user::{self, UserId},
    },
    ranking::{Rankings, read},
};

/// Maximum ids, and maximum names, that a search looks at.
const CANDIDATES_MAX: u32 = 500;

/// Result of a search.
#[derive(Debug)]
pub(crate) enum Found {
    /// A player has the text as the id.
    Id(UserId),
    /// The players of the ranking whose id or name begins with the text.
    Players {
        /// Their rows, best first.
        chosen: Chosen,
        /// Whether more ids or names begin with the text than a search looks at.
        is_cut: bool,
    },
}

/// Searches players in a ranking. Accents and case of names do not count.
///
/// [`Error::Invalid`](crate::Error::Invalid) if the text is empty, longer than 128 bytes, or
/// contains control characters.
pub(crate) async fn players(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    text: &str,
) -> Result<Found> {
    let text = text.trim();
    user::check_text("search", text, 128)?;
    let ids = rankings.store.users_named(text, CANDIDATES_MAX).await?;
    if ids.iter().any(|id| id == text) {
        return Ok(Found::Id(text.parse()?));
    }
    let is_cut = ids.len() >= CANDIDATES_MAX as usize;
    let users: Vec<UserId> = ids.iter().map(|id| id.parse()).collect::<Result<_>>()?;
    Ok(Found::Players { chosen: read::chosen(rankings, board, selector, &users).await?, is_cut })
}
