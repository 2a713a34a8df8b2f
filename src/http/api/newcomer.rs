//! `/v1/boards/{board}/rank`: the rank that a score would have.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result,
    http::{
        api::{
            path::BoardPath,
            query::{self, PeriodText, SegmentText, Selection},
            ranking::RankingResponse,
            reply,
        },
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    ranking::read,
};

/// Selects a score and a period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NewcomerQuery {
    /// The score to rank.
    #[param(example = 1_234, minimum = -9_223_372_036_854_775_807i64)]
    score: i64,
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
}

/// The rank of a score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewcomerResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The score of the request.
    #[schema(example = 1_234)]
    score: i64,
    /// The rank that a new player with this score would have.
    #[schema(example = 6, minimum = 1)]
    rank: u64,
}

/// Read the rank of a score
///
/// Returns the rank that a new player with this score would have now: behind equal scores, except
/// on `shared` boards. For a closed period, the rank that it would have had.
#[utoipa::path(
    get, path = "/v1/boards/{board}/rank", operation_id = "show_rank_of_score", tag = "reading", security((), ("key" = [])),
    params(BoardPath, NewcomerQuery),
    responses((status = 200, description = "The rank of the score.", body = NewcomerResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let query: NewcomerQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), query.segment.as_deref())?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let (header, rank) = read::newcomer(rankings, &board, &selector, query.score).await?;
    let answer = NewcomerResponse { ranking: RankingResponse::new(&board, &header), score: query.score, rank };
    reply::ranked(&request, board.reading, &selector, &header, &answer)
}
