//! Seasons: periods with a start and an end of their own.

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::Board,
        season::{Edge, Season},
        user::check_text,
    },
    store::Store,
};

/// Makes a season. [`Error::Invalid`] when it cannot be, [`Error::Conflict`] when its name is taken or scores lie within
/// its bounds already.
pub async fn create(
    store: &Store,
    board: &Board,
    name: &str,
    (starts_at, ends_at): (Edge, Edge),
    by: &Actor,
) -> Result<Season> {
    check_text("name", name, 40)?;
    store.create_season(board, name, starts_at, ends_at, by).await?;
    let season = store.seasons(board, Some(name)).await?.pop();
    season.ok_or_else(|| Error::not_found("season", name))
}

/// The seasons of a board, the first to begin first.
pub async fn list(store: &Store, board: &Board) -> Result<Vec<Season>> {
    store.seasons(board, None).await
}
