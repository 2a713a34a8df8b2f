//! `/v1/leagues` and `/v1/boards/{board}/league`: leagues, their cohorts and results.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        api::{
            body,
            path::{BoardPath, CohortPath, LeaguePath, UserIdText},
            query::{self, PeriodText},
            reply,
        },
        auth::caller,
        server::{
            Api,
            problem::{ActProblems, ReadProblems, WriteProblems},
        },
    },
    model::{
        league::{League, LeagueOverview, LeagueResult, LeagueSettings, LeagueState},
        period::PeriodSelector,
        user::UserId,
    },
    ranking::cohort,
};

/// All leagues.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaguesResponse {
    /// The leagues, by name.
    data: Vec<League>,
}

/// Create or change a league
///
/// Needs an admin key. `promote`, `relegate`, `fill`, `idle` and `ties` may change. A league starts in
/// the current period if nobody has scored in it yet, and otherwise in the next one: see `starts_at`.
#[utoipa::path(
    put, path = "/v1/leagues/{league}", operation_id = "set_league", tag = "leagues", security(("key" = [])),
    params(LeaguePath), request_body = LeagueSettings,
    responses((status = 200, description = "The league.", body = League), WriteProblems),
)]
pub(crate) async fn set(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = LeaguePath::from_request(&request)?;
    query::none(&request)?;
    let settings: LeagueSettings = body::json(&api, &request, payload).await?;
    let league = api.instance.store.admin.set_league(&path.league, &settings, &by).await?;
    api.instance.boards.forget_all();
    Ok(reply::written(StatusCode::OK, &league))
}

/// Delete a league
///
/// Needs an admin key. Its history is deleted, too.
#[utoipa::path(
    delete, path = "/v1/leagues/{league}", operation_id = "delete_league", tag = "leagues",
    security(("key" = [])), params(LeaguePath),
    responses((status = 204, description = "The league was deleted."), ActProblems),
)]
pub(crate) async fn delete(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = LeaguePath::from_request(&request)?;
    query::none(&request)?;
    api.instance.store.admin.delete_league(&path.league, &by).await?;
    api.instance.boards.forget_all();
    Ok(reply::done())
}

/// Show a league
///
/// Needs a server or admin key.
#[utoipa::path(
    get, path = "/v1/leagues/{league}", operation_id = "show_league", tag = "leagues", security(("key" = [])),
    params(LeaguePath),
    responses((status = 200, description = "The league.", body = League), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::server(&api, &request).await?;
    query::none(&request)?;
    let path = LeaguePath::from_request(&request)?;
    Ok(reply::read_response(&api.instance.store.reader.league(&path.league).await?))
}

/// List the leagues
///
/// Needs a server or admin key.
#[utoipa::path(
    get, path = "/v1/leagues", operation_id = "list_leagues", tag = "leagues", security(("key" = [])),
    responses((status = 200, description = "The leagues, by name.", body = LeaguesResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::server(&api, &request).await?;
    query::none(&request)?;
    Ok(reply::read_response(&LeaguesResponse { data: api.instance.store.reader.leagues(None).await? }))
}

/// Selects a player of a league.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LeagueQuery {
    /// The player. Without one, the response has the rules and the number of players of each division.
    #[param(value_type = Option<UserIdText>)]
    pub(crate) user_id: Option<String>,
    /// Period of the league, such as `week:previous`; the period that holds now when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
}

/// A league, or a player's place in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LeagueResponse {
    Overview(LeagueOverview),
    Player(LeagueState),
}

/// Read a board's league
///
/// With a player: division and cohort, with the members and their ranks among each other. Ranks of an
/// open period include every acknowledged score. With a closed period, the response has its results.
#[utoipa::path(
    get, path = "/v1/boards/{board}/league", operation_id = "read_league", tag = "leagues",
    security((), ("key" = [])), params(BoardPath, LeagueQuery),
    responses((status = 200, description = "The league, or the player's place in it.", body = LeagueResponse), ReadProblems),
)]
pub(crate) async fn read(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let LeagueQuery { user_id, period } = query::parse(&request)?;
    let user_id: Option<UserId> = user_id.map(|id| id.parse()).transpose()?;
    let period: Option<PeriodSelector> = period.map(|period| period.parse()).transpose()?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let reader = &api.instance.store.reader;
    let Some(user_id) = user_id else {
        if period.is_some() {
            return Err(Error::invalid("period", "needs user_id"));
        }
        return Ok(reply::read_response(&LeagueResponse::Overview(reader.league_overview(&board).await?)));
    };
    let found = match period {
        None => cohort::current(&api.instance.rankings, &board, &user_id).await,
        Some(period) => reader.league_state(&board, Some(&user_id), Some(&period.to_string()), None).await,
    };
    let state = caller::listed(&api, &request, &user_id, found, |state| state.state != "none").await?;
    Ok(reply::read_response(&LeagueResponse::Player(state)))
}

/// Read a cohort
///
/// In the current period of the league or an earlier one.
#[utoipa::path(
    get, path = "/v1/boards/{board}/league/cohorts/{cohort_id}", operation_id = "read_cohort", tag = "leagues",
    security((), ("key" = [])), params(BoardPath, CohortPath),
    responses((status = 200, description = "The cohort.", body = LeagueState), ReadProblems),
)]
pub(crate) async fn cohort(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let CohortPath { cohort_id } = CohortPath::from_request(&request)?;
    query::none(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    Ok(reply::read_response(&api.instance.store.reader.league_state(&board, None, None, Some(cohort_id)).await?))
}

/// Selects results of a player.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultsQuery {
    /// The player.
    #[param(value_type = UserIdText)]
    user_id: String,
    /// Maximum rows.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier response.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A player's results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultsResponse {
    /// The results, newest first.
    data: Vec<LeagueResult>,
    /// `cursor` of the next, older results; null after the oldest.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Read a player's league results
///
/// Lists the closed periods of the league in which the player had a cohort, or was relegated without a
/// score.
#[utoipa::path(
    get, path = "/v1/boards/{board}/league/history", operation_id = "list_league_results", tag = "leagues",
    security((), ("key" = [])), params(BoardPath, ResultsQuery),
    responses((status = 200, description = "The results.", body = ResultsResponse), ReadProblems),
)]
pub(crate) async fn history(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let ResultsQuery { user_id, limit, cursor } = query::parse(&request)?;
    let user_id: UserId = user_id.parse()?;
    let limit = query::bounded("limit", limit, 50, 1, 1_000)?;
    let before: Option<DateTime<Utc>> = cursor
        .map(|cursor| cursor.parse())
        .transpose()
        .map_err(|_| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let reader = &api.instance.store.reader;
    reader.league_overview(&board).await?;
    let found = reader.league_results(&board, &user_id, before, limit + 1).await;
    let mut data = caller::listed(&api, &request, &user_id, found, |rows| !rows.is_empty()).await?;
    let has_more = data.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    data.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = data.last().filter(|_| has_more).map(|row| row.ends_at.to_rfc3339());
    Ok(reply::read_response(&ResultsResponse { data, next_cursor }))
}
