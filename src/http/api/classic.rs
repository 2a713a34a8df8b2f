//! `/v1/scores`: the default board, in the response shapes of common leaderboard clients.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result, boards,
    http::{
        api::{
            body,
            event::{EventRequest, parse_event, parse_events},
            list::limit,
            path::UserPath,
            query, reply,
            submit::{BatchResponse, QuarantinedResponse, response, write_many, write_one},
        },
        auth::caller,
        server::{
            Api,
            problem::{ReadProblems, WriteProblems},
            version,
        },
    },
    model::{
        board::PeriodKind,
        name::Named as _,
        period::PeriodSelector,
        rank::{PageStart, Row},
    },
    ranking::read,
    scoring::batch::EventOutcome,
};

/// Selects the number of rows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClassicListQuery {
    /// Maximum rows.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    limit: Option<u64>,
}

/// A player's row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicRow<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Name.
    #[schema(example = "Ada")]
    user_name: &'a str,
    /// Rank.
    #[schema(example = 1, minimum = 1)]
    rank: u64,
    /// Score.
    #[schema(example = 1_234)]
    score: i64,
}

impl<'a> From<&'a Row> for ClassicRow<'a> {
    fn from(row: &'a Row) -> Self {
        Self { user_id: &row.user_id, user_name: &row.user_name, rank: row.rank, score: row.score }
    }
}

/// The top of the default board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicListResponse<'a> {
    /// The players, best first.
    data: Vec<ClassicRow<'a>>,
    /// Number of rows in `data`.
    #[schema(example = 10)]
    total: usize,
}

/// A player's score and rank.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicUser<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// All-time score; null on a board without the period `all_time`.
    #[schema(example = 1_234, required = true)]
    score: Option<i64>,
    /// All-time rank; null on a board without the period `all_time`.
    #[schema(example = 1, minimum = 1, required = true)]
    rank: Option<u64>,
}

/// A player of the default board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicUserResponse<'a> {
    /// The player.
    user_info: ClassicUser<'a>,
}

/// The result of one event, or of each event of a list.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the two bodies, which the handler writes")]
#[serde(untagged)]
pub(crate) enum ClassicSubmitAnswer<'a> {
    /// Result of a single event.
    One(ClassicUserResponse<'a>),
    /// Results of a list.
    Many(BatchResponse),
}

/// One event, or a list of 1 to 1,000. A refused event does not affect the others of its list.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"user_id": "ada", "points": 50}))]
#[expect(dead_code, reason = "describes the body, which is parsed event by event")]
#[serde(untagged)]
pub(crate) enum ClassicSubmitRequest {
    /// One event.
    One(EventRequest),
    /// A list of events.
    Many(ClassicEvents),
}

/// 1 to 1,000 events.
#[derive(Debug, ToSchema)]
#[schema(min_items = 1, max_items = 1000)]
#[expect(dead_code, reason = "describes the list, which is parsed event by event")]
pub(crate) struct ClassicEvents(Vec<EventRequest>);

/// Write scores on the default board
///
/// Needs a server key for the board, or an admin key. Accepts one event or an array of events.
#[utoipa::path(
    post, path = "/v1/scores", operation_id = "submit_classic_scores", tag = "classic", security(("key" = [])),
    request_body = ClassicSubmitRequest,
    responses(
        (status = 200, description = "The player's new score and rank.", body = ClassicSubmitAnswer),
        (status = 202, description = "The event was quarantined.", body = QuarantinedResponse),
        WriteProblems,
    ),
)]
pub(crate) async fn submit(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let _admission =
        api.instance.writers.admit(api.instance.boards.last_seen(&api.settings.default_board).as_deref())?;
    let key = caller::authenticated(&api, &request).await?;
    key.may_write(&api.settings.default_board)?;
    query::none(&request)?;
    let board = boards::find(&api.instance.boards, &api.settings.default_board).await?;
    let text = body::text(&api, &request, payload).await?;
    if text.trim_ascii_start().starts_with('[') {
        let events: Vec<&RawValue> = body::parse(&text)?;
        let events = parse_events(body::WHOLE, &events)?;
        let results = write_many(&api.instance, &board, events, true, "").await?;
        version::record_write(&request, &board);
        return Ok(reply::written(StatusCode::OK, &results));
    }
    let event = parse_event(&text)?;
    let user_id = event.user_id.clone();
    let answer = write_one(&api.instance, &board, event, true).await?;
    version::record_write(&request, &board);
    let EventOutcome::Accepted { accepted, ranks, .. } = answer else {
        return Ok(response(&board, answer));
    };
    let all_time = accepted.standings.iter().position(|standing| standing.period == PeriodKind::AllTime.name());
    let user_info = ClassicUser {
        user_id: user_id.as_str(),
        score: all_time.map(|place| accepted.standings[place].score),
        rank: all_time.and_then(|place| ranks.get(place)?.rank),
    };
    Ok(reply::written(StatusCode::OK, &ClassicUserResponse { user_info }))
}

/// Read the top of the default board
#[utoipa::path(
    get, path = "/v1/scores", operation_id = "list_classic_scores", tag = "classic",
    security((), ("key" = [])), params(ClassicListQuery),
    responses((status = 200, description = "The top of the period `all_time`.", body = ClassicListResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let query: ClassicListQuery = query::parse(&request)?;
    let limit = limit(query.limit)?;
    let board = caller::readable(&api, &request, &api.settings.default_board).await?;
    let rankings = api.rankings_for(&request).await?;
    let start = PageStart::Position(1);
    let page = read::page(rankings, &board, &PeriodSelector::default(), start, limit).await?;
    let data: Vec<_> = page.rows.iter().map(ClassicRow::from).collect();
    Ok(reply::read_response(&ClassicListResponse { total: data.len(), data }))
}

/// Read a player of the default board
#[utoipa::path(
    get, path = "/v1/scores/{user_id}", operation_id = "show_classic_score", tag = "classic",
    security((), ("key" = [])), params(UserPath),
    responses((status = 200, description = "The player's all-time score and rank.", body = ClassicUserResponse), ReadProblems),
)]
pub(crate) async fn standing(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let UserPath { user_id } = UserPath::from_request(&request)?;
    query::none(&request)?;
    let board = caller::readable(&api, &request, &api.settings.default_board).await?;
    let rankings = api.rankings_for(&request).await?;
    let standing = read::standing(rankings, &board, &PeriodSelector::default(), &user_id, 0).await;
    let standing = caller::listed(&api, &request, &user_id, standing, |_| true).await?;
    let player = &standing.player;
    let user_info = ClassicUser { user_id: &player.user_id, score: Some(player.score), rank: Some(player.rank) };
    Ok(reply::read_response(&ClassicUserResponse { user_info }))
}
