//! `/v1/boards/{board}/scores/{user_id}/history`: a player's ledger.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Resource, Result,
    http::{
        api::{
            path::{BoardPath, UserPath},
            query, reply,
        },
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    model::score::HistoryRow,
    scoring,
};

/// Selects rows of the ledger.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Maximum rows.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier response.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A player's ledger.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// The rows, newest first.
    data: &'a [HistoryRow],
    /// `cursor` of the next, older rows; null after the oldest.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// Read a player's history
///
/// Lists the scores of the player on the board, newest first. With a server or admin key, lists every
/// transaction: also voids, resets, bans and unbans.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores/{user_id}/history", operation_id = "list_history", tag = "reading", security((), ("key" = [])),
    params(BoardPath, UserPath, HistoryQuery),
    responses((status = 200, description = "Rows of the ledger.", body = HistoryResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let query: HistoryQuery = query::parse(&request)?;
    let limit = query::bounded("limit", query.limit, 50, 1, 1_000)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let is_server = caller::is_server(&api, &request, Some(&path.board)).await?;
    let cursor = query.cursor.as_deref();
    let rows = scoring::history(&api.instance.store.reader, &board, &user_id, limit, cursor, is_server).await;
    let (rows, next) = match caller::listed(&api, &request, &user_id, rows, |(rows, _)| !rows.is_empty()).await {
        // An earlier page may have shown a player whose profile is private.
        Err(Error::NotFound { what: Resource::User, .. }) if cursor.is_some() => (Vec::new(), None),
        page => page?,
    };
    Ok(reply::read_response(&HistoryResponse {
        board: board.slug.as_str(),
        user_id: user_id.as_str(),
        data: &rows,
        next_cursor: next.as_deref(),
    }))
}
