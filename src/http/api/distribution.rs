//! `/v1/boards/{board}/distribution`: the distribution of scores.

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
    model::rank::{Bar, Distribution},
    ranking::read,
};

/// A percentile of the scores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PercentileResponse {
    /// 0, 10, …, 100.
    #[schema(example = 90, minimum = 0, maximum = 100)]
    percentile: u8,
    /// Score at this percentile, by `percentile_disc`.
    #[schema(example = 1_234)]
    score: i64,
}

/// The distribution of scores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DistributionResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// Scores at every tenth percentile, worst to best; empty without players.
    percentiles: Vec<PercentileResponse>,
    /// Up to 20 ranges of equal width, from the worst score to the best. Both ends belong to their
    /// range.
    histogram: &'a [Bar],
}

/// Read the distribution of scores
#[utoipa::path(
    get, path = "/v1/boards/{board}/distribution", operation_id = "show_distribution", tag = "reading", security((), ("key" = [])),
    params(BoardPath, RankingQuery),
    responses((status = 200, description = "Percentiles and histogram.", body = DistributionResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let selection = RankingQuery::selection(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let Distribution { header, percentiles, histogram } = read::distribution(rankings, &board, &selector).await?;
    let percentile = |(percentile, score)| PercentileResponse { percentile, score };
    let response = DistributionResponse {
        ranking: RankingResponse::new(&board, &header),
        percentiles: percentiles.into_iter().map(percentile).collect(),
        histogram: &histogram,
    };
    reply::ranked(&request, board.reading, &selector, &header, &response)
}
