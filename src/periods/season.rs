//! Seasons: periods with explicit start and end.

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::Board,
        season::{Edge, Season},
        user::check_text,
    },
    store::Store,
};

/// Creates a season.
///
/// Returns [`Error::Invalid`] for an invalid name or bounds, [`Error::Conflict`] when the name is
/// taken or there are scores within the bounds.
pub async fn create(
    store: &Store,
    board: &Board,
    name: &str,
    (starts_at, ends_at): (Edge, Edge),
    by: &Actor,
) -> Result<Season> {
    check_text("name", name, 40)?;
    store.create_season(board, name, starts_at, ends_at, by).await?;
    let season = store.seasons(board, Some(name)).await.map_err(Error::after_write)?.pop();
    season.ok_or_else(|| Error::not_found(Resource::Period, name))
}

/// Returns the seasons of a board by start.
pub async fn list(store: &Store, board: &Board) -> Result<Vec<Season>> {
    store.seasons(board, None).await
}
