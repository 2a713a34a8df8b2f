//! `/v1/boards/{board}/quarantine`: events that broke a rule of the board and wait for a decision.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result, boards,
    http::{
        api::{
            path::{BoardPath, QuarantinePath},
            query, reply,
            user::ActRequest,
        },
        auth::caller,
        server::{
            Api,
            problem::{ReadProblems, WriteProblems},
            version,
        },
    },
    model::{
        act::Act,
        board::Board,
        name,
        quarantine::{QuarantinedEvent, State},
    },
    scoring::quarantine,
};

/// Selects events of the quarantine.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct QuarantineQuery {
    /// State of the events; `waiting` when absent.
    #[param(value_type = Option<State>)]
    state: Option<String>,
    /// Maximum rows.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier response.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A page of a board's quarantine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantineResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The events, oldest first.
    data: &'a [QuarantinedEvent],
    /// `cursor` of the next events; null after the last.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// List the events in quarantine
///
/// Needs an admin key. Lists events that broke a rule of the board, oldest first. Accepted and
/// rejected events are listed for 90 days. An event submitted while you read the pages may be
/// missing from them; list again later.
#[utoipa::path(
    get, path = "/v1/boards/{board}/quarantine", operation_id = "list_quarantine", tag = "administration",
    security(("key" = [])), params(BoardPath, QuarantineQuery),
    responses((status = 200, description = "The events.", body = QuarantineResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::admin(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    let query: QuarantineQuery = query::parse(&request)?;
    let limit = query::bounded("limit", query.limit, 50, 1, 1_000)?;
    let state = query.state.as_deref().map_or(Ok(State::Waiting), |text| name::parse("state", text))?;
    let board = boards::find(&api.instance.boards, &path.board).await?;
    let (events, next) =
        quarantine::list(&api.instance.store.reader, &board, state, limit, query.cursor.as_deref()).await?;
    Ok(reply::written(
        StatusCode::OK,
        &QuarantineResponse { board: board.slug.as_str(), data: &events, next_cursor: next.as_deref() },
    ))
}

/// A decision on an event in quarantine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecisionResponse {
    /// Id in the quarantine.
    #[schema(example = 7)]
    quarantine_id: i64,
    /// `accepted` or `rejected`.
    #[schema(value_type = String, example = "accepted")]
    state: State,
    /// Id of the score transaction of an accepted event.
    #[schema(required = true, example = 1_042)]
    transaction_id: Option<i64>,
}

/// Accept an event
///
/// Needs an admin key. Writes the event to the ledger with the current time, whatever rules it
/// breaks. It counts in the current periods. Repeating the call changes nothing.
#[utoipa::path(
    post, path = "/v1/boards/{board}/quarantine/{quarantine_id}/accept", operation_id = "accept_event",
    tag = "administration", security(("key" = [])), params(BoardPath, QuarantinePath),
    request_body = Option<ActRequest>,
    responses((status = 200, description = "The event is in the ledger.", body = DecisionResponse), WriteProblems),
)]
pub(crate) async fn accept(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let (board, quarantine_id, act) = decision(&api, &request, payload).await?;
    let transaction_id =
        quarantine::accept(&api.instance.store.admin, &api.instance.rankings, &board, quarantine_id, &act).await?;
    version::record_write(&request, &board);
    let decision = DecisionResponse { quarantine_id, state: State::Accepted, transaction_id: Some(transaction_id) };
    Ok(reply::written(StatusCode::OK, &decision))
}

/// Reject an event
///
/// Needs an admin key. The event never enters the ledger. Repeating the call changes nothing.
#[utoipa::path(
    post, path = "/v1/boards/{board}/quarantine/{quarantine_id}/reject", operation_id = "reject_event",
    tag = "administration", security(("key" = [])), params(BoardPath, QuarantinePath),
    request_body = Option<ActRequest>,
    responses((status = 200, description = "The event is rejected.", body = DecisionResponse), WriteProblems),
)]
pub(crate) async fn reject(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let (board, quarantine_id, act) = decision(&api, &request, payload).await?;
    api.instance.store.admin.reject_event(board.slug.as_str(), quarantine_id, &act).await?;
    let decision = DecisionResponse { quarantine_id, state: State::Rejected, transaction_id: None };
    Ok(reply::written(StatusCode::OK, &decision))
}

/// Reads an administrator's decision on an event: its board and id, with author and reason.
async fn decision(api: &Api, request: &HttpRequest, payload: Payload) -> Result<(Arc<Board>, i64, Act)> {
    let by = caller::admin(api, request).await?;
    let path = BoardPath::from_request(request)?;
    let QuarantinePath { quarantine_id } = QuarantinePath::from_request(request)?;
    query::none(request)?;
    let act = ActRequest::read(api, request, payload, by).await?;
    let board = boards::find(&api.instance.boards, &path.board).await?;
    Ok((board, quarantine_id, act))
}
