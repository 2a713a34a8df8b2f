//! `/v1/boards/{board}/scores` read as a list: the top, a page at any depth, chosen players.

use std::collections::HashSet;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        Api,
        api::{
            period::PeriodResponse,
            problem::{QueryProblems, ReadProblems},
            reply, timestamp, top,
        },
        extract::{
            body, caller,
            path::{BoardPath, UserIdText},
            query::{self, PeriodText},
        },
    },
    model::{
        board::Board,
        rank::{Chosen, Header, Page, PageStart, Row},
        user::UserId,
    },
    ranking::read,
};

/// Most rows of a page.
const LIMIT_MAX: u32 = 1_000;

/// Rows of a page when the caller does not say.
pub(crate) const LIMIT_DEFAULT: u32 = 10;

/// Most players that one call may choose.
const CHOSEN_MAX: usize = 500;

/// Longest body of a query, in bytes: ids of 128 bytes each, six letters for each byte where a client escapes them all (`\u0061`), and
/// 9 KB for what stands around them.
const QUERY_BYTES: usize = CHOSEN_MAX * 6 * 128 + 9_216;

/// Which players are wanted: the top, a page from `from` or `cursor`, or just `users`.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// `all_time`, `day`, `week` or `month`; one of the past as `week:2024-01-15` (its Monday), `month:2024-01`,
    /// `day:2024-01-15`, or `week:previous`; a season as `season:spring`. `all_time` when absent. Closed or not, periods
    /// are read in the same way.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    // No `default` here or in `from`: clients made from the document send its defaults, even beside what they do not go with.
    /// Most rows of the page; 10 when absent. Does not go with `users`.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Position of the first row; 1 when this and `cursor` are absent. Does not go with `cursor` or `users`.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// `next` of an earlier page: no player who stays put is repeated or skipped.
    #[param(min_length = 1)]
    cursor: Option<String>,
    /// Just these players, once for each; 1 to 500. Goes with `period` alone.
    #[serde(default)]
    #[param(value_type = Vec<UserIdText>, max_items = 500, example = json!(["ada", "bob"]))]
    users: Vec<String>,
}

/// Just these players.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChosenRequest {
    /// Ids of the players.
    #[schema(value_type = Vec<UserIdText>, min_items = 1, max_items = 500, example = json!(["ada", "bob"]))]
    users: Vec<String>,
    /// Which period, as in the query of a list; `all_time` when absent.
    #[schema(value_type = Option<PeriodText>)]
    period: Option<String>,
}

/// What every answer about a ranking begins with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankingResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The period that was meant.
    period: PeriodResponse<'a>,
    /// The state that the answer is exact for; opaque: equal versions mean equal states.
    version: &'a str,
    /// Players in the ranking.
    #[schema(example = 1_000_000)]
    players: u64,
}

impl<'a> RankingResponse<'a> {
    /// The beginning of an answer about `board`.
    pub(crate) fn new(board: &'a Board, header: &'a Header) -> Self {
        Self {
            board: board.slug.as_str(),
            period: PeriodResponse::from(&header.period),
            version: &header.version,
            players: header.players,
        }
    }
}

/// A player's line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowResponse<'a> {
    /// Place in the total order, from 1, never shared.
    #[schema(example = 7, minimum = 1)]
    position: u64,
    /// Rank, shared among equals on `shared` boards.
    #[schema(example = 6, minimum = 1)]
    rank: u64,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Name.
    #[schema(example = "Ada")]
    user_name: &'a str,
    /// Address of a picture.
    #[schema(required = true)]
    avatar: Option<&'a str>,
    /// Score.
    #[schema(example = 1_234)]
    score: i64,
    /// When the score was reached.
    #[serde(serialize_with = "timestamp::serialize")]
    reached_at: DateTime<Utc>,
}

impl<'a> From<&'a Row> for RowResponse<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            position: row.position,
            rank: row.rank,
            user_id: &row.user_id,
            user_name: &row.user_name,
            avatar: row.avatar.as_deref(),
            score: row.score,
            reached_at: row.reached_at,
        }
    }
}

/// A page of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageResponse<'a> {
    /// True in a top that could not be renewed because the database cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// How long ago a stale top was right.
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
    /// What is answered with `page` while it is fresh; `top` marks a body that has become stale.
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

/// The line of a chosen player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChosenRowResponse<'a> {
    /// Place among the chosen players, shared like ranks.
    #[schema(example = 1, minimum = 1)]
    place: u64,
    #[serde(flatten)]
    row: RowResponse<'a>,
}

/// Chosen players.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChosenResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The chosen players who have a score, best first.
    scores: Vec<ChosenRowResponse<'a>>,
    /// Ids of those who have none, in the order asked.
    missing: &'a [String],
}

impl<'a> ChosenResponse<'a> {
    fn new(board: &'a Board, chosen: &'a Chosen) -> Self {
        let rows = chosen.places.iter().zip(&chosen.rows);
        Self {
            ranking: RankingResponse::new(board, &chosen.header),
            scores: rows.map(|(place, row)| ChosenRowResponse { place: *place, row: RowResponse::from(row) }).collect(),
            missing: &chosen.missing,
        }
    }
}

/// A page, or, with `users`, the chosen players.
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
/// Without `from`, `cursor` and `users` this is the top, which is cached: it lags by at most 250 ms. While the database
/// cannot be reached the top goes on being served, with `stale` and `stale_for_seconds` at the beginning of the body and
/// the age in `Age`. Every other answer is exact for the version that it names.
///
/// The top of a closed period is frozen, as far as its board has tops frozen (100 players as a rule): the same players
/// under the names that they had when it closed. Every other answer about a closed period shows the names of now. What is
/// asked for by name (`week:2024-01-15`) may be used for a minute once the period is closed; all else has to be asked for
/// again, with `If-None-Match` where there is an `ETag`.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores", operation_id = "list_scores", tag = "reading",
    params(BoardPath, ListQuery),
    responses(
        (status = 200, description = "A page of the ranking, or the chosen players.", body = ListResponse,
            headers(
                ("ETag" = String, description = "Of the top, and of everything in a closed period: for `If-None-Match`."),
                ("X-Centile-Source" = String, description = "`index` if the rank index in memory answered, else `sql`."),
                ("Cache-Control" = String, description = "`max-age=60, must-revalidate` for a closed period that is asked for by name; else `no-cache`."),
                ("Age" = u64, description = "Of a stale top: seconds since it was right."),
            )),
        (status = 304, description = "The answer is still the one that `If-None-Match` names."),
        (status = 400, description = "Path and query have more than 65,534 bytes, which is no longer read; the answer has no body. \
            `POST /v1/boards/{board}/scores/query` takes that many players."),
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
                return Err(Error::invalid(name, "does not go with users"));
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
        (Some(_), Some(_)) => return Err(Error::invalid("from", "does not go with cursor")),
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
/// What a list with `users` answers, for more ids than fit a URL.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores/query", operation_id = "query_scores", tag = "reading",
    params(BoardPath), request_body = ChosenRequest,
    responses(
        (status = 200, description = "The chosen players.", body = ChosenResponse,
            headers(("X-Centile-Source" = String, description = "`index` if the rank index in memory answered, else `sql`."))),
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

/// The ids asked for, each once.
fn chosen_ids(users: &[String]) -> Result<Vec<UserId>> {
    if users.is_empty() || users.len() > CHOSEN_MAX {
        return Err(Error::invalid("users", format!("must be 1 to {CHOSEN_MAX} ids, not {}", users.len())));
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

/// The number of rows wanted.
pub(crate) fn limit(given: Option<u64>) -> Result<u32> {
    query::bounded("limit", given, LIMIT_DEFAULT, 1, LIMIT_MAX)
}
