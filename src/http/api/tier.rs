//! `/v1/boards/{board}/tiers`: players per tier.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Result,
    http::{
        api::{path::BoardPath, query::RankingQuery, ranking::RankingResponse, reply},
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    model::tier::TierCount,
    ranking::read,
};

/// Players per tier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TiersResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The tiers, best first. The other players have none.
    data: &'a [TierCount],
    /// Always null: one response has all tiers.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// Read the players per tier
///
/// Counts the players of each tier of the board. A closed period has the tiers of its closing.
#[utoipa::path(
    get, path = "/v1/boards/{board}/tiers", operation_id = "list_tiers", tag = "reading", security((), ("key" = [])),
    params(BoardPath, RankingQuery),
    responses((status = 200, description = "The tiers, best first.", body = TiersResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let selection = RankingQuery::selection(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let tiers = read::tiers(rankings, &board, &selector).await?;
    let ranking = RankingResponse::new(&board, &tiers.header);
    let response = TiersResponse { ranking, data: &tiers.counts, next_cursor: None };
    reply::ranked(&request, board.reading, &selector, &tiers.header, &response)
}
