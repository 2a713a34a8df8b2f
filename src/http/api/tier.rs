//! `/v1/boards/{board}/tiers`: players per tier.

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
    model::{board::Board, rank::TierCounts, tier::TierCount},
    ranking::read,
};

/// Selects the period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TiersQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; `all_time` when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
}

/// A tier and its players.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TierCountResponse<'a> {
    /// Name of the tier.
    #[schema(example = "gold")]
    tier: &'a str,
    /// Its rule.
    #[schema(example = "top 10 %")]
    rule: &'a str,
    /// Players in the tier.
    #[schema(example = 412)]
    players: u64,
}

/// Players per tier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TiersResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The tiers, best first. The other players have none.
    data: Vec<TierCountResponse<'a>>,
    /// Always null: one response has all tiers.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

impl<'a> TiersResponse<'a> {
    fn new(board: &'a Board, tiers: &'a TierCounts) -> Self {
        let count =
            |count: &'a TierCount| TierCountResponse { tier: &count.tier, rule: &count.rule, players: count.players };
        Self {
            ranking: RankingResponse::new(board, &tiers.header),
            data: tiers.counts.iter().map(count).collect(),
            next_cursor: None,
        }
    }
}

/// Read the players per tier
///
/// Counts the players of each tier of the board. A closed period has the tiers of its closing.
#[utoipa::path(
    get, path = "/v1/boards/{board}/tiers", operation_id = "list_tiers", tag = "reading", security((), ("key" = [])),
    params(BoardPath, TiersQuery),
    responses(
        (status = 200, description = "The tiers, best first.", body = TiersResponse),
        ReadProblems,
    ),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    let query: TiersQuery = query::parse(&request)?;
    let selector = query::selector_in(query.period.as_deref(), query.segment.as_deref())?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let rankings = api.reads(&request).await?;
    let tiers = read::tiers(rankings, &board, &selector).await?;
    reply::ranked(&request, board.reading, &selector, &tiers.header, &TiersResponse::new(&board, &tiers))
}
