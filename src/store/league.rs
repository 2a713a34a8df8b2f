//! SQL of leagues.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::Board,
        league::{League, LeagueOverview, LeagueResult, LeagueSettings, LeagueState},
        user::UserId,
    },
    store::{Administrator, Reader, error::written},
};

impl Reader {
    /// Returns all leagues by name, or the one with this name.
    pub(crate) async fn leagues(&self, name: Option<&str>) -> Result<Vec<League>> {
        let query = sqlx::query_as!(
            League,
            r#"SELECT name AS "name!", board AS "board!", period AS "period!", size AS "size!", divisions AS "divisions!",
                      promote AS "promote!", relegate AS "relegate!", fill AS "fill!", idle AS "idle!", ties AS "ties!",
                      starts_at AS "starts_at!", created_at AS "created_at!"
               FROM centile.leagues WHERE $1::text IS NULL OR name = $1 ORDER BY name"#,
            name
        );
        self.servers.read_coordinator(query.fetch_all(&self.readers)).await
    }

    /// Returns a league. [`Error::NotFound`] if there is none.
    pub(crate) async fn league(&self, name: &str) -> Result<League> {
        self.leagues(Some(name)).await?.pop().ok_or_else(|| Error::not_found(Resource::League, name))
    }

    /// Returns the league of a board. [`Error::NotFound`] if it has none.
    pub(crate) async fn league_overview(&self, board: &Board) -> Result<LeagueOverview> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.league_overview($1) AS "overview: Json<LeagueOverview>""#,
            board.id
        );
        let found = self.servers.read_coordinator(query.fetch_one(&self.readers)).await?;
        found.map(|Json(overview)| overview).ok_or_else(|| of_board(board))
    }

    /// Returns the place of a player in the league, in a period or now, or a cohort.
    /// [`Error::NotFound`] without a league, player or cohort.
    pub(crate) async fn league_state(
        &self,
        board: &Board,
        user: Option<&UserId>,
        period: Option<&str>,
        cohort_id: Option<i64>,
    ) -> Result<LeagueState> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.league_state($1, $2, $3, $4) AS "state: Json<LeagueState>""#,
            board.id,
            user.map(UserId::as_str),
            period,
            cohort_id
        );
        let found = self.servers.read_coordinator(query.fetch_one(&self.readers)).await?;
        let missing =
            || cohort_id.map_or_else(|| of_board(board), |id| Error::not_found(Resource::Cohort, id.to_string()));
        found.map(|Json(state)| state).ok_or_else(missing)
    }

    /// Returns a text that changes with every batch of a board, and with its periods.
    pub(crate) async fn league_version(&self, board_id: i32) -> Result<String> {
        let query = sqlx::query_scalar!(
            r#"SELECT (b.structure_revision || ' ' || centile_store.lane_batches(b.id, b.lanes)::text) AS "version!"
               FROM centile_store.boards b WHERE b.id = $1"#,
            board_id
        );
        self.servers.read_coordinator(query.fetch_one(&self.readers)).await
    }

    /// Returns the current places of players by their ids, without those of unknown ids.
    pub(crate) async fn league_states(&self, board_id: i32, users: &[String]) -> Result<HashMap<String, LeagueState>> {
        let query = sqlx::query!(
            r#"SELECT u.external_id, s.state AS "state!: Json<LeagueState>"
               FROM centile_store.users u CROSS JOIN LATERAL centile_store.league_state($1, u.external_id) AS s (state)
               WHERE u.external_id = ANY ($2) AND s.state IS NOT NULL"#,
            board_id,
            users
        );
        let rows = self.servers.read_coordinator(query.fetch_all(&self.readers)).await?;
        Ok(rows.into_iter().map(|row| (row.external_id, row.state.0)).collect())
    }

    /// Returns results of a player in closed periods that end before `before`, newest first.
    pub(crate) async fn league_results(
        &self,
        board: &Board,
        user: &UserId,
        before: Option<DateTime<Utc>>,
        limit: i32,
    ) -> Result<Vec<LeagueResult>> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.league_results($1, $2, $3, $4) AS "results!: Json<Vec<LeagueResult>>""#,
            board.id,
            user.as_str(),
            before,
            limit
        );
        Ok(self.servers.read_coordinator(query.fetch_one(&self.readers)).await?.0)
    }
}

fn of_board(board: &Board) -> Error {
    Error::not_found(Resource::League, format!("of board {}", board.slug))
}

impl Administrator {
    /// Creates or changes a league.
    ///
    /// [`Error::Conflict`] if the board has another league, or for a rule that cannot change.
    pub(crate) async fn set_league(&self, name: &str, settings: &LeagueSettings, by: &Actor) -> Result<League> {
        let query = sqlx::query!(
            "SELECT centile.set_league($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            name,
            settings.board,
            settings.period,
            settings.size,
            &settings.divisions,
            settings.promote,
            settings.relegate,
            settings.fill,
            settings.idle,
            settings.ties,
            by.as_str()
        );
        written(query.fetch_one(&self.writers).await)?;
        self.reader.league(name).await.map_err(Error::after_write)
    }

    /// Deletes a league with its history. Maintenance removes its rows later.
    pub(crate) async fn delete_league(&self, name: &str, by: &Actor) -> Result<()> {
        let query = sqlx::query!("SELECT centile.delete_league($1, $2)", name, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Gives all waiting players of current periods their cohorts, in steps.
    pub(crate) async fn place_waiting(&self) -> Result<()> {
        let step = || sqlx::query_scalar!(r#"SELECT centile_store.place_waiting() AS "placed!""#);
        while step().fetch_one(&self.writers).await? > 0 {}
        Ok(())
    }
}
