//! Players found by the beginning of their id or name.

use crate::{
    Result,
    model::{
        board::Board,
        period::PeriodSelector,
        rank::Chosen,
        user::{self, UserId},
    },
    ranking::{rankings::Rankings, read},
};

/// Maximum ids, and maximum names, that a search looks at: together as many players as the API
/// ranks in one request.
pub(crate) const CANDIDATES_MAX: u32 = 250;

/// Bytes of the text that count. Ids and names are not longer.
const TEXT_MAX: usize = 128;

#[derive(Debug)]
pub(crate) enum SearchResult {
    /// A player has the text as the id.
    Id(UserId),
    /// The players of the ranking whose id or name begins with the text.
    Players {
        /// Their rows, best first.
        chosen: Box<Chosen>,
        /// Whether more ids or names may begin with the text than a search looks at.
        is_cut: bool,
    },
}

/// Searches players in a ranking. Accents and case of names do not count.
///
/// [`Error::Invalid`](crate::Error::Invalid) if the text is empty or contains control characters.
pub(crate) async fn players(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    text: &str,
) -> Result<SearchResult> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    user::check_text("search", text, TEXT_MAX)?;
    let ids = rankings.reader.users_named(text, CANDIDATES_MAX).await?;
    if ids.iter().any(|id| id == text) {
        return Ok(SearchResult::Id(text.parse()?));
    }
    let is_cut = ids.len() >= CANDIDATES_MAX as usize;
    let users: Vec<UserId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
    Ok(SearchResult::Players { chosen: Box::new(read::chosen(rankings, board, selector, &users).await?), is_cut })
}
