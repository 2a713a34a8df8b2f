//! `/v1/boards/{board}/seasons`: periods with their own name, start and end.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Error, Result, boards,
    http::{
        api::{body, path::BoardPath, period::PeriodResponse, query, reply},
        auth::caller,
        server::{Api, problem::WriteProblems},
    },
    model::{period::Period, season::SeasonBound},
    periods::season,
};

/// A new season.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSeason {
    /// Name of the season on its board.
    #[schema(example = "spring", min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    name: String,
    /// Start: a time (RFC 3339), or a date for the beginning of that day in the board's time zone.
    #[schema(value_type = EdgeText, example = "2030-03-01")]
    starts_at: String,
    /// End, in the same forms. It is exclusive: a date means the beginning of that day.
    #[schema(value_type = EdgeText, example = "2030-06-01T12:00:00Z")]
    ends_at: String,
}

/// Start or end of a season: a date (`2030-03-01`) for the beginning of that day in the board's time
/// zone, or a time (RFC 3339).
#[derive(Debug, ToSchema)]
#[schema(as = SeasonEdge, example = "2030-03-01", pattern = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?$")]
#[expect(dead_code, reason = "describes what `Edge` reads")]
struct EdgeText(String);

/// Parses the start or end of a season from `field`.
fn season_bound(field: &str, text: &str) -> Result<SeasonBound> {
    text.parse().map_err(|error: Error| error.in_field(field))
}

/// A season of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeasonResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The season.
    period: PeriodResponse<'a>,
}

/// Create a season
///
/// Needs an admin key. Create a season before its first score. Seasons may overlap other periods
/// and seasons.
#[utoipa::path(
    post, path = "/v1/boards/{board}/seasons", operation_id = "create_season", tag = "boards", security(("key" = [])),
    params(BoardPath), request_body = CreateSeason,
    responses(
        (status = 201, description = "The season was created.", body = SeasonResponse,
            headers(("Location" = String, description = "Path of the season's ranking."))),
        WriteProblems,
    ),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    query::none(&request)?;
    let new: CreateSeason = body::json(&api, &request, payload).await?;
    let (starts_at, ends_at) = (season_bound("starts_at", &new.starts_at)?, season_bound("ends_at", &new.ends_at)?);
    let board = boards::find(&api.instance.boards, &path.board).await?;
    let season = season::create(&api.instance.store.admin, &board, &new.name, (starts_at, ends_at), &by).await?;
    let period = Period::from(season);
    let path = format!("/v1/boards/{}/scores?period={}", board.slug, period.name());
    reply::created(&path, &SeasonResponse { board: board.slug.as_str(), period: PeriodResponse::from(&period) })
}
