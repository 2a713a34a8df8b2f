//! `/v1/boards/{board}/periods`: the periods of a board.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result,
    http::{
        api::{
            path::BoardPath,
            query::{self, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX},
            reply,
        },
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    model::{
        board::PeriodKind,
        name,
        period::{Period, PeriodState},
        segment::Segment,
    },
    ranking::period,
};

/// Selects a page of periods.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PeriodsQuery {
    /// Only periods of this kind.
    #[param(value_type = Option<PeriodKind>)]
    kind: Option<String>,
    /// Maximum periods of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A period of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PeriodResponse<'a> {
    /// Name of the period in parameters named `period`.
    #[schema(example = "week:2024-01-15")]
    name: String,
    /// Kind of period, such as `all_time`, `week`, `season`, `snapshot` or `rolling`.
    #[schema(value_type = String, example = "week")]
    kind: PeriodKind,
    /// The name without its kind, such as `2024-01-15`; `all_time` for `all_time`.
    #[schema(example = "2024-01-15")]
    label: &'a str,
    /// `upcoming` (a season before its start), `open`, `due` (ended, and not closed) or `closed`.
    /// Unless it is a season, an ended period without scores stays `due`: there is nothing to close.
    #[schema(value_type = String, example = "open")]
    state: PeriodState,
    /// First instant; null for `all_time`.
    #[schema(required = true)]
    starts_at: Option<DateTime<Utc>>,
    /// First instant after the period; null for `all_time`.
    #[schema(required = true)]
    ends_at: Option<DateTime<Utc>>,
    /// Segment of the ranking, such as `country:DE`. Absent in responses about all players.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false, example = "country:DE")]
    segment: Option<&'a Segment>,
}

impl<'a> From<&'a Period> for PeriodResponse<'a> {
    fn from(period: &'a Period) -> Self {
        Self {
            name: period.name(),
            kind: period.kind,
            label: &period.label,
            state: period.state,
            starts_at: period.starts_at,
            ends_at: period.ends_at,
            segment: period.segment.as_ref(),
        }
    }
}

/// A page of a board's periods.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PeriodsResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The periods, newest first.
    data: Vec<PeriodResponse<'a>>,
    /// `cursor` of the next page; null after the oldest period.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// List the periods of a board
///
/// Lists the periods with scores and all seasons, newest first; `all_time` is the last.
#[utoipa::path(
    get, path = "/v1/boards/{board}/periods", operation_id = "list_periods", tag = "boards",
    security((), ("key" = [])), params(BoardPath, PeriodsQuery),
    responses((status = 200, description = "The periods.", body = PeriodsResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let query: PeriodsQuery = query::parse(&request)?;
    let limit = query::bounded("limit", query.limit, LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX)?;
    let only = query.kind.as_deref().map(|text| name::parse("kind", text)).transpose()?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let rankings = api.rankings_for(&request).await?;
    let cursor = query.cursor.as_deref();
    let (periods, next) = period::list_page(rankings, &board, only, limit, cursor).await?;
    let data = periods.iter().map(PeriodResponse::from).collect();
    Ok(reply::read_response(&PeriodsResponse { board: board.slug.as_str(), data, next_cursor: next }))
}
