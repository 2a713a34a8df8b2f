//! `/v1/boards/{board}/distribution`: the distribution of scores.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result,
    http::{
        api::{
            path::BoardPath,
            query::{self, PeriodText, SegmentText},
            ranking::RankingResponse,
            reply,
        },
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    model::{board::Board, rank::Distribution},
    ranking::read,
};

/// Selects the period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DistributionQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; `all_time` when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
}

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

/// A range of the histogram.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BarResponse {
    /// Worst score of the range.
    #[schema(example = 1_000)]
    from_score: i64,
    /// Best score of the range.
    #[schema(example = 1_250)]
    to_score: i64,
    /// Players in the range.
    #[schema(example = 412)]
    players: u64,
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
    histogram: Vec<BarResponse>,
}

impl<'a> DistributionResponse<'a> {
    fn new(board: &'a Board, distribution: &'a Distribution) -> Self {
        let percentiles = distribution.percentiles.iter();
        let bars = distribution.histogram.iter();
        Self {
            ranking: RankingResponse::new(board, &distribution.header),
            percentiles: percentiles.map(|&(percentile, score)| PercentileResponse { percentile, score }).collect(),
            histogram: bars
                .map(|bar| BarResponse { from_score: bar.from_score, to_score: bar.to_score, players: bar.players })
                .collect(),
        }
    }
}

/// Read the distribution of scores
#[utoipa::path(
    get, path = "/v1/boards/{board}/distribution", operation_id = "show_distribution", tag = "reading", security((), ("key" = [])),
    params(BoardPath, DistributionQuery),
    responses(
        (status = 200, description = "Percentiles and histogram.", body = DistributionResponse),
        ReadProblems,
    ),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    let query: DistributionQuery = query::parse(&request)?;
    let selector = query::selector_in(query.period.as_deref(), query.segment.as_deref())?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let rankings = api.reads(&request).await?;
    let distribution = read::distribution(rankings, &board, &selector).await?;
    reply::ranked(
        &request,
        board.reading,
        &selector,
        &distribution.header,
        &DistributionResponse::new(&board, &distribution),
    )
}
