//! `/v1/boards/{board}/scores` as a list: the top, a page at any depth, or chosen players.

use std::collections::HashSet;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        Api,
        api::{
            problem::{QueryProblems, ReadProblems},
            ranking::{RankingResponse, RowResponse},
            reply, top,
        },
        extract::{
            body, caller,
            path::{BoardPath, UserIdText},
            query::{self, PeriodText},
        },
    },
    model::{
        board::Board,
        rank::{Chosen, Page, PageStart},
        user::UserId,
    },
    ranking::read,
};

/// Maximum rows of a page.
const LIMIT_MAX: u32 = 1_000;

/// Default rows of a page.
pub(crate) const LIMIT_DEFAULT: u32 = 10;

/// Maximum players that one call may choose.
const CHOSEN_MAX: usize = 500;

/// Maximum body of a query, in bytes. It fits ids of 128 bytes with every byte escaped by the
/// client (`\u0061`, six characters), and 9 KB of other text.
const QUERY_BYTES: usize = CHOSEN_MAX * 6 * 128 + 9_216;

/// Selects the top, a page from `from` or `cursor`, or just `users`.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// `all_time`, `day`, `week` or `month` for the current period; `all_time` when absent.
    /// `week:previous` is the one before. `week:2024-01-15` (a Monday), `month:2024-01` and
    /// `day:2024-01-15` name one period, open or closed. `season:spring` names a season.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    // No `default` here or in `from`: generated clients send the defaults of the document even
    // where they are not allowed.
    /// Maximum rows of the page; 10 when absent. Cannot be combined with `users`.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Position of the first row; 1 when this and `cursor` are absent. Cannot be combined with
    /// `cursor` or `users`.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// `next` of an earlier page. Players whose rank key has not changed are neither repeated nor
    /// skipped.
    #[param(min_length = 1)]
    cursor: Option<String>,
    /// Only these players: 1 to 500 ids. Repeat the parameter for each. Can be combined only with
    /// `period`.
    #[serde(default)]
    #[param(value_type = Vec<UserIdText>, max_items = 500, example = json!(["ada", "bob"]))]
    users: Vec<String>,
}

/// Selects players by id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChosenRequest {
    /// Ids of the players.
    #[schema(value_type = Vec<UserIdText>, min_items = 1, max_items = 500, example = json!(["ada", "bob"]))]
    users: Vec<String>,
    /// Period, as in the query of a list; `all_time` when absent.
    #[schema(value_type = Option<PeriodText>)]
    period: Option<String>,
}

/// A page of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageResponse<'a> {
    /// True if the database cannot be reached and the top may be out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// Age of a stale top, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_for_seconds: Option<u64>,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The players, best first.
    scores: Vec<RowResponse<'a>>,
    /// `cursor` of the next page; null after the last player.
    #[schema(required = true)]
    next: Option<&'a str>,
}

impl<'a> PageResponse<'a> {
    /// Builds the response for a fresh `page`. The module `top` adds the members that mark a stale
    /// one.
    pub(crate) fn new(board: &'a Board, page: &'a Page) -> Self {
        Self {
            stale: None,
            stale_for_seconds: None,
            ranking: RankingResponse::new(board, &page.header),
            scores: page.rows.iter().map(RowResponse::from).collect(),
            next: page.next.as_deref(),
        }
    }
}

/// The row of a chosen player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChosenRowResponse<'a> {
    /// Rank among the chosen players, shared like ranks.
    #[schema(example = 1, minimum = 1)]
    local_rank: u64,
    #[serde(flatten)]
    row: RowResponse<'a>,
}

/// Chosen players.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChosenResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The chosen players with a score, best first.
    scores: Vec<ChosenRowResponse<'a>>,
    /// Ids of the chosen players without a score, in the order of the request.
    missing: &'a [String],
}

impl<'a> ChosenResponse<'a> {
    fn new(board: &'a Board, chosen: &'a Chosen) -> Self {
        let rows = chosen.local_ranks.iter().zip(&chosen.rows);
        Self {
            ranking: RankingResponse::new(board, &chosen.header),
            scores: rows
                .map(|(local_rank, row)| ChosenRowResponse { local_rank: *local_rank, row: RowResponse::from(row) })
                .collect(),
            missing: &chosen.missing,
        }
    }
}

/// A page or, with `users`, the chosen players.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ListResponse<'a> {
    /// Without `users`.
    Page(PageResponse<'a>),
    /// With `users`.
    Chosen(ChosenResponse<'a>),
}

/// Read a ranking
///
/// Without `from`, `cursor` and `users` this is the top. It is cached and lags by at most 250 ms.
/// While the database cannot be reached, the cached top is served with `stale` and
/// `stale_for_seconds` in the body and its age in `Age`. Every other response is exact for the
/// version that it names.
///
/// The top of a closed period is frozen (100 players, unless the board says otherwise): it shows
/// the same players and names as at the closing. Other responses about a closed period show current
/// names. A closed period requested by name (`week:2024-01-15`) may be cached for a minute.
/// Revalidate all other responses, with `If-None-Match` where there is an `ETag`.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores", operation_id = "list_scores", tag = "reading",
    params(BoardPath, ListQuery),
    responses(
        (status = 200, description = "A page of the ranking, or the chosen players.", body = ListResponse,
            headers(
                ("Cache-Control" = String, description = "`max-age=60, must-revalidate` for a closed period requested by name, otherwise `no-cache`."),
                ("Age" = u64, description = "Age of a stale top, in seconds."),
            )),
        (status = 400, description = "Path and query are longer than 65,534 bytes. The response has no body. \
            Send that many ids to `POST /v1/boards/{board}/scores/query`."),
        ReadProblems,
    ),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    let query: ListQuery = query::parse(&request)?;
    let selector = query::selector(query.period.as_deref())?;
    if !query.users.is_empty() {
        for (name, is_given) in
            [("limit", query.limit.is_some()), ("from", query.from.is_some()), ("cursor", query.cursor.is_some())]
        {
            if is_given {
                return Err(Error::invalid(name, "cannot be combined with users"));
            }
        }
        let users = chosen_ids(&query.users)?;
        let board = caller::readable(&api, &request, &path.board).await?;
        let chosen = read::chosen(&api.instance.rankings, &board, &selector, &users).await?;
        let answer = ListResponse::Chosen(ChosenResponse::new(&board, &chosen));
        return reply::ranked(&request, board.reading, &selector, &chosen.header, &answer);
    }
    let limit = limit(query.limit)?;
    let start = match (query.from, query.cursor) {
        (Some(_), Some(_)) => return Err(Error::invalid("from", "cannot be combined with cursor")),
        (None, Some(cursor)) => PageStart::Cursor(cursor),
        (from, None) => PageStart::Position(query::bounded("from", from, 1, 1, i64::MAX.unsigned_abs())?),
    };
    let board = caller::readable(&api, &request, &path.board).await?;
    if start == PageStart::Position(1) {
        return top::answer(&api, &request, &board, &selector, limit).await;
    }
    let page = read::page(&api.instance.rankings, &board, &selector, start, limit).await?;
    reply::ranked(
        &request,
        board.reading,
        &selector,
        &page.header,
        &ListResponse::Page(PageResponse::new(&board, &page)),
    )
}

/// Read chosen players
///
/// Does the same as a list with `users`, for more ids than fit into a URL.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores/query", operation_id = "query_scores", tag = "reading",
    params(BoardPath), request_body = ChosenRequest,
    responses(
        (status = 200, description = "The chosen players.", body = ChosenResponse),
        QueryProblems,
    ),
)]
pub(crate) async fn query(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    query::none(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let wanted: ChosenRequest = body::object(&body::open_text(&api, QUERY_BYTES, &request, payload).await?)?;
    let selector = query::selector(wanted.period.as_deref())?;
    let chosen = read::chosen(&api.instance.rankings, &board, &selector, &chosen_ids(&wanted.users)?).await?;
    reply::untagged(&chosen.header, &ChosenResponse::new(&board, &chosen))
}

/// Parses the chosen ids and drops repeated ones.
fn chosen_ids(users: &[String]) -> Result<Vec<UserId>> {
    if users.is_empty() || users.len() > CHOSEN_MAX {
        return Err(Error::invalid("users", format!("must have 1 to {CHOSEN_MAX} ids, not {}", users.len())));
    }
    let mut seen = HashSet::new();
    let mut ids = Vec::with_capacity(users.len());
    for (index, user) in users.iter().enumerate() {
        let id: UserId = user.parse().map_err(|error: Error| error.in_field(format!("users[{index}]")))?;
        if seen.insert(user) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Returns the number of rows of a page.
pub(crate) fn limit(given: Option<u64>) -> Result<u32> {
    query::bounded("limit", given, LIMIT_DEFAULT, 1, LIMIT_MAX)
}
