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
            event::{EventRequest, parse_event, parse_events, parse_form},
            list::limit,
            path::UserPath,
            query::{self, PeriodText, Selection},
            reply,
            submit::{BatchResponse, QuarantinedResponse, response, write_many, write_one},
            top,
        },
        auth::caller,
        server::{
            Api,
            problem::{self, ClassicWriteProblems, ReadProblems},
            version,
        },
    },
    model::{name::Named as _, rank::Row},
    ranking::read,
    scoring::batch::EventOutcome,
};

/// Selects the period and the number of rows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClassicListQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default period when
    /// absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Maximum rows.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    limit: Option<u64>,
}

/// Selects the period and the number of neighbours.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClassicUserQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default period when
    /// absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Number of players to return on each side; without it, the response has no `above` and `below`.
    #[param(minimum = 0, maximum = 100)]
    around: Option<u64>,
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

fn rows(rows: &[Row]) -> Vec<ClassicRow<'_>> {
    rows.iter().map(ClassicRow::from).collect()
}

/// The top of the default board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicListResponse<'a> {
    /// True if the database cannot be reached and the top may be out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stale: Option<bool>,
    /// Age of a stale top, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stale_for_seconds: Option<u64>,
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
    /// Score in the requested period or, in the response to a write, in the board's default period. Null if
    /// the player has no score there.
    #[schema(example = 1_234, required = true)]
    score: Option<i64>,
    /// Rank in the same period; null as for `score`.
    #[schema(example = 1, minimum = 1, required = true)]
    rank: Option<u64>,
}

/// A player of the default board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassicUserResponse<'a> {
    /// The player.
    user_info: ClassicUser<'a>,
    /// The players just above, best first. Present with `around`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    above: Option<Vec<ClassicRow<'a>>>,
    /// The players just below, best first. Present with `around`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    below: Option<Vec<ClassicRow<'a>>>,
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
/// Needs a server key for the board, or an admin key. Accepts one event or an array of events. One event
/// may also be a form (`application/x-www-form-urlencoded`): `user_id=ada&points=50`. Responds with 400
/// where other calls respond with 413, 415 or 422. Each event of an array has its own status.
#[utoipa::path(
    post, path = "/v1/scores", operation_id = "submit_classic_scores", tag = "classic", security(("key" = [])),
    request_body = ClassicSubmitRequest,
    responses(
        (status = 200, description = "The player's new score and rank.", body = ClassicSubmitAnswer),
        (status = 202, description = "The event was quarantined.", body = QuarantinedResponse),
        ClassicWriteProblems,
    ),
)]
pub(crate) async fn submit(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    match write(&api, &request, payload).await {
        Err(error) if INVALID.contains(&error.code().status()) => Ok(problem::bad_request(&error)),
        other => other,
    }
}

/// Statuses that this call replaces with 400.
const INVALID: [u16; 3] = [413, 415, 422];

async fn write(api: &Api, request: &HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let _admission =
        api.instance.writers.admit(api.instance.boards.last_seen(&api.settings.default_board).as_deref())?;
    let key = caller::authenticated(api, request).await?;
    key.may_write(&api.settings.default_board)?;
    query::none(request)?;
    let board = boards::find(&api.instance.boards, &api.settings.default_board).await?;
    let (text, is_form) = body::text_or_form(api, request, payload).await?;
    // A list of events.
    if !is_form && text.trim_ascii_start().starts_with('[') {
        let events: Vec<&RawValue> = body::parse(&text)?;
        let events = parse_events(body::WHOLE, &events)?;
        let results = write_many(&api.instance, &board, events, true, "").await?;
        version::record_write(request, &board);
        return Ok(reply::written(StatusCode::OK, &results));
    }
    // One event.
    let event = if is_form { parse_form(&text)? } else { parse_event(&text)? };
    let user_id = event.user_id.clone();
    let answer = write_one(&api.instance, &board, event, true).await?;
    version::record_write(request, &board);
    let EventOutcome::Accepted { accepted, ranks, .. } = answer else {
        return Ok(response(&board, answer));
    };
    let kind = board.default_period.name();
    let place = accepted.standings.iter().position(|standing| standing.period.split(':').next() == Some(kind));
    let user_info = ClassicUser {
        user_id: user_id.as_str(),
        score: place.map(|place| accepted.standings[place].score),
        rank: place.and_then(|place| ranks.get(place)?.rank),
    };
    Ok(reply::written(StatusCode::OK, &ClassicUserResponse { user_info, above: None, below: None }))
}

/// Read the top of the default board
///
/// Comes from the same cache as `GET /v1/boards/{board}/scores`.
#[utoipa::path(
    get, path = "/v1/scores", operation_id = "list_classic_scores", tag = "classic",
    security((), ("key" = [])), params(ClassicListQuery),
    responses(
        (status = 200, description = "The top of the period.", body = ClassicListResponse,
            headers(("Age" = u64, description = "Age of a stale top, in seconds."))),
        ReadProblems,
    )
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let query: ClassicListQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), None)?;
    let limit = limit(query.limit)?;
    let board = caller::readable(&api, &request, &api.settings.default_board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    top::answer_as(rankings, &request, &board, &selector, limit, |page| {
        let data = rows(&page.rows);
        top::json(&ClassicListResponse { stale: None, stale_for_seconds: None, total: data.len(), data })
    })
    .await
}

/// Read a player of the default board
#[utoipa::path(
    get, path = "/v1/scores/{user_id}", operation_id = "show_classic_score", tag = "classic",
    security((), ("key" = [])), params(UserPath, ClassicUserQuery),
    responses((status = 200, description = "The player's score and rank.", body = ClassicUserResponse), ReadProblems),
)]
pub(crate) async fn standing(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let query: ClassicUserQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), None)?;
    let around = query::bounded("around", query.around, 0, 0, 100)?;
    let board = caller::readable(&api, &request, &api.settings.default_board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let standing = read::standing(rankings, &board, &selector, &user_id, around).await;
    let standing = caller::listed(&api, &request, &user_id, standing, |_| true).await?;
    let player = &standing.player;
    let response = ClassicUserResponse {
        user_info: ClassicUser { user_id: &player.user_id, score: Some(player.score), rank: Some(player.rank) },
        above: query.around.map(|_| rows(&standing.above)),
        below: query.around.map(|_| rows(&standing.below)),
    };
    reply::ranked(&request, board.reading, &selector, &standing.header, &response)
}
