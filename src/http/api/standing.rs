//! `/v1/boards/{board}/scores/{user_id}`: one player on a board.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result, boards,
    http::{
        api::{
            path::{BoardPath, UserPath},
            query::{self, PeriodText, SegmentText, Selection},
            ranking::{Extras, OwnStandingResponse, RankingResponse},
            reply,
            user::ActRequest,
        },
        auth::caller,
        server::{
            Api,
            problem::{ReadProblems, WriteProblems},
            version,
        },
    },
    model::rank::PlayerStanding,
    ranking::{period, read},
    scoring,
};

/// Selects a period and the number of neighbours.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub(crate) struct StandingQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Number of players to return on each side.
    #[param(minimum = 0, maximum = 100, default = 4)]
    around: Option<u64>,
    /// Whether rows say how far players have moved since the last snapshot. Only for `all_time`.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    moved: bool,
    /// Whether rows have the score as text, in the format of the board.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    score_text: bool,
    /// Whether rows have the metadata of the event that decides the score.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    metadata: bool,
    /// Whether rows have the public members of the players' metadata.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    profile: bool,
}

/// A player's standing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StandingResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    #[serde(flatten)]
    standing: OwnStandingResponse<'a>,
}

/// Read a player's standing
///
/// Returns score, rank, position and percentile, with the players just above and below.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores/{user_id}", operation_id = "show_standing", tag = "reading", security((), ("key" = [])),
    params(BoardPath, UserPath, StandingQuery),
    responses((status = 200, description = "The player's standing.", body = StandingResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let query: StandingQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), query.segment.as_deref())?;
    let around = query::bounded("around", query.around, 4, 0, 100)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let standing = read::standing(rankings, &board, &selector, &user_id, around).await;
    let mut standing = caller::listed(&api, &request, &user_id, standing, |_| true).await?;
    let extras = Extras { text: query.score_text, metadata: query.metadata, profile: query.profile };
    let PlayerStanding { header, player, above, below, .. } = &mut standing;
    let rows = above.iter_mut().chain([player]).chain(below);
    extras.add((&api, &request), rankings, &board, header, rows).await?;
    let ranking = RankingResponse::new(&board, &standing.header);
    let mut response = StandingResponse { ranking, standing: OwnStandingResponse::new(&board, &standing) };
    if query.moved {
        let users = standing.rows().map(|row| &*row.user_id);
        let before = period::positions_before(rankings, &board, &selector, users).await?;
        response.standing.rows().for_each(|row| row.add_move(&before));
    }
    if query.score_text {
        response.standing.rows().for_each(|row| row.add_text(&board.presentation.score_format));
    }
    reply::ranked(&request, board.reading, &selector, &extras.header(&standing.header, &board), &response)
}

/// Reset a player
///
/// Needs an admin key. The player starts again in the current periods. The ledger keeps all earlier
/// transactions. A repeated call resets the player again, and with it scores since the first call.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores/{user_id}/reset", operation_id = "reset_player", tag = "administration",
    security(("key" = [])), params(BoardPath, UserPath), request_body = Option<ActRequest>,
    responses((status = 204, description = "The player's scores in the current periods were reset."), WriteProblems),
)]
pub(crate) async fn reset(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let board = boards::find(&api.instance.boards, &path.board).await?;
    scoring::reset(&api.instance.store.admin, &api.instance.rankings, &board, &user_id, &act).await?;
    version::record_write(&request, &board);
    Ok(reply::done())
}
