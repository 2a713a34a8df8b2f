//! For `benches/computation` only: pure functions that requests run, otherwise private.

use crate::{
    Result, http,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
        rank::Page,
        user::UserId,
    },
    ranking::cursor::Cursor,
    scoring,
    store::rank::StoredKey,
};

/// Returns the lane of a player.
#[must_use]
pub fn lane_of(user_id: &UserId, board: &Board) -> i16 {
    scoring::lane_of(user_id, board)
}

/// Packs a rank key into the cursor of the next page.
#[must_use]
pub fn pack_key(board: &Board, period: &Period, [rank_key, tie_key, internal_id]: [i64; 3]) -> String {
    Cursor::text(board, period, StoredKey { rank_key, tie_key, internal_id })
}

/// Unpacks the rank key of a cursor.
pub fn unpack_key(text: &str, board: &Board, selector: &PeriodSelector) -> Result<[i64; 3]> {
    let StoredKey { rank_key, tie_key, internal_id } = Cursor::parse(text, board, selector)?.key;
    Ok([rank_key, tie_key, internal_id])
}

/// Renders the body of a top list.
pub fn top_body(board: &Board, page: &Page) -> Result<String> {
    http::render_top(board, page)
}
