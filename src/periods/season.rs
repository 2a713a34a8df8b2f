//! Seasons: periods with explicit start and end.

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::Board,
        season::{Season, SeasonBound},
        user::check_text,
    },
    store::Administrator,
};

/// Creates a season.
///
/// Returns [`Error::Invalid`] for an invalid name or bounds, [`Error::Conflict`] when the name is
/// taken or there are scores within the bounds.
pub async fn create(
    admin: &Administrator,
    board: &Board,
    name: &str,
    (starts_at, ends_at): (SeasonBound, SeasonBound),
    by: &Actor,
) -> Result<Season> {
    check_text("name", name, 40)?;
    admin.create_season(board, name, starts_at, ends_at, by).await?;
    let season = admin.reader.seasons(board, Some(name)).await.map_err(Error::after_write)?.pop();
    season.ok_or_else(|| Error::not_found(Resource::Period, name))
}
