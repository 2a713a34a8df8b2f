//! SQL of seasons.

use crate::{
    Result,
    model::{
        act::Actor,
        board::Board,
        season::{Season, SeasonBound},
    },
    store::{Administrator, Reader, error::written, period::state},
};

impl Reader {
    /// Returns the seasons of a board, or the one of this name, by start.
    pub(crate) async fn seasons(&self, board: &Board, name: Option<&str>) -> Result<Vec<Season>> {
        let rows =
            sqlx::query_file!("sql/queries/seasons.sql", board.slug.as_str(), name).fetch_all(&self.readers).await?;
        rows.into_iter()
            .map(|row| {
                Ok(Season { name: row.name, starts_at: row.starts_at, ends_at: row.ends_at, state: state(&row.state)? })
            })
            .collect()
    }
}

impl Administrator {
    pub(crate) async fn create_season(
        &self,
        board: &Board,
        name: &str,
        starts_at: SeasonBound,
        ends_at: SeasonBound,
        by: &Actor,
    ) -> Result<()> {
        let ((start, start_date), (end, end_date)) = (starts_at.parts(), ends_at.parts());
        let query = sqlx::query_file!(
            "sql/queries/create_season.sql",
            board.slug.as_str(),
            name,
            start,
            start_date,
            end,
            end_date,
            by.as_str()
        );
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}
