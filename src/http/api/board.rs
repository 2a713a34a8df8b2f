//! `/v1/boards`, `/v1/boards/{board}`: boards and their rules.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result, boards,
    http::{
        api::{
            body,
            path::BoardPath,
            query::{self, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX},
            reply,
        },
        auth::{caller, rate},
        server::{
            Api,
            problem::{ActProblems, ListProblems, ReadProblems, WriteProblems},
        },
    },
    model::{
        board::{Board, BoardFilter, BoardSettings, Limits},
        combination::Combination,
        tag::Tag,
    },
};

/// A board. Only holders of a server or admin key for the board see its limits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardResponse<'a> {
    #[serde(flatten)]
    board: &'a Board,
    /// How a combined board is computed. Absent for other boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    combination: Option<Combination>,
    #[serde(flatten)]
    limits: Option<&'a Limits>,
}

impl<'a> BoardResponse<'a> {
    /// Describes a board to a holder of a server or admin key, or to everyone.
    fn of(board: &'a Board, is_server: bool) -> Self {
        if is_server {
            return Self::from(board);
        }
        let combination = board.combination.clone().map(|combination| Combination { failure: None, ..combination });
        Self { board, combination, limits: None }
    }
}

impl<'a> From<&'a Board> for BoardResponse<'a> {
    /// Describes a board to a holder of a server or admin key.
    fn from(board: &'a Board) -> Self {
        Self { board, combination: board.combination.clone(), limits: Some(&board.limits) }
    }
}

/// Selects boards, and a page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BoardsQuery {
    /// Only boards with this tag.
    #[param(value_type = Option<Tag>)]
    tag: Option<String>,
    /// Only boards of this template. Without it, the list has no boards of templates.
    #[param(min_length = 1, max_length = 40)]
    template: Option<String>,
    /// Only boards whose name begins with this text.
    #[param(min_length = 1, max_length = 40)]
    prefix: Option<String>,
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A page of boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardsResponse<'a> {
    /// The boards, by slug.
    data: Vec<BoardResponse<'a>>,
    /// `cursor` of the next page; null after the last board.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Create a board
///
/// Needs an admin key.
#[utoipa::path(
    post, path = "/v1/boards", operation_id = "create_board", tag = "boards", security(("key" = [])),
    request_body(content = ref("#/components/schemas/CreateBoard")),
    responses(
        (status = 201, description = "The board was created.", body = BoardResponse,
            headers(("Location" = String, description = "Path of the board."))),
        WriteProblems,
    ),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    query::none(&request)?;
    let mut rules: BoardSettings = body::json(&api, &request, payload).await?;
    let missing = |field: &str| Error::invalid(field, format!("missing field `{field}`"));
    let slug = rules.slug.take().ok_or_else(|| missing("slug"))?;
    if rules.mode.is_none() {
        return Err(missing("mode"));
    }
    let board = boards::create(&api.instance.store.admin, &api.instance.boards, slug, rules, &by).await?;
    reply::created(&format!("/v1/boards/{}", board.slug), &BoardResponse::from(&board))
}

/// List the boards
///
/// Lists the boards that everyone may read and, with a key, the boards of the key.
#[utoipa::path(
    get, path = "/v1/boards", operation_id = "list_boards", tag = "boards", security((), ("key" = [])),
    params(BoardsQuery),
    responses((status = 200, description = "The boards, by slug.", body = BoardsResponse), ListProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let BoardsQuery { tag, template, prefix, limit, cursor } = query::parse(&request)?;
    let tag = query::tag(tag.as_deref())?;
    let limit = query::bounded("limit", limit, LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX)?;
    let key = caller::optional_key(&api, &request).await?;
    let reader = &api.instance.store.reader;
    if let Some(template) = &template {
        boards::template(reader, template).await?;
    }
    let filter = BoardFilter {
        tag: tag.as_ref(),
        template: template.as_deref(),
        prefix: prefix.as_deref().unwrap_or_default(),
        limit: Some(limit),
        ..BoardFilter::default()
    };
    let (boards, next) = boards::readable(reader, key.as_deref(), filter, cursor.as_deref()).await?;
    rate::charge(&request, boards.len())?;
    let is_server = |board: &Board| key.as_ref().is_some_and(|key| key.may_write(&board.slug).is_ok());
    let data = boards.iter().map(|board| BoardResponse::of(board, is_server(board))).collect();
    Ok(reply::read_response(&BoardsResponse { data, next_cursor: next }))
}

/// Show a board
#[utoipa::path(
    get, path = "/v1/boards/{board}", operation_id = "show_board", tag = "boards",
    security((), ("key" = [])), params(BoardPath),
    responses((status = 200, description = "The board.", body = BoardResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    query::none(&request)?;
    let path = BoardPath::from_request(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let is_server = caller::is_server(&api, &request, Some(&path.board)).await?;
    Ok(reply::read_response(&BoardResponse::of(&board, is_server)))
}

/// Delete a board
///
/// Needs an admin key. Nobody finds the board from then on, and another one may take its name. The
/// service removes its scores, players and archives in the background; they cannot be restored.
#[utoipa::path(
    delete, path = "/v1/boards/{board}", operation_id = "delete_board", tag = "boards", security(("key" = [])),
    params(BoardPath), responses((status = 204, description = "The board was deleted."), ActProblems),
)]
pub(crate) async fn delete(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    query::none(&request)?;
    boards::delete(&api.instance.store.admin, &api.instance.boards, &path.board, &by).await?;
    Ok(reply::done())
}

/// Change a board
///
/// Needs an admin key. Mode, order, ties, time zone, lanes and segments cannot change once events
/// exist.
#[utoipa::path(
    patch, path = "/v1/boards/{board}", operation_id = "update_board", tag = "boards", security(("key" = [])),
    params(BoardPath), request_body(content = ref("#/components/schemas/UpdateBoard")),
    responses((status = 200, description = "The changed board.", body = BoardResponse), WriteProblems),
)]
pub(crate) async fn update(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    query::none(&request)?;
    let change: BoardSettings = body::json(&api, &request, payload).await?;
    if change.slug.is_some() {
        return Err(Error::invalid("slug", "cannot change"));
    }
    let board = boards::update(&api.instance.store.admin, &api.instance.boards, &path.board, &change, &by).await?;
    Ok(reply::written(StatusCode::OK, &BoardResponse::from(&board)))
}
