//! `/v1/boards/{board}/scores`: the top, or a page at any depth. `/scores/query`: chosen players.

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
        api::{
            body,
            path::{BoardPath, UserIdText},
            query::{self, PeriodText, SegmentText, Selection},
            ranking::{Extras, PageResponse, RankingResponse, RowResponse},
            reply, top,
        },
        auth::caller,
        server::{
            Api,
            problem::{QueryProblems, ReadProblems},
        },
    },
    model::{
        board::Board,
        friend::FriendsOf,
        json,
        rank::{Chosen, LocalStart, PageStart, PlayerStanding, Row},
        user::UserId,
    },
    ranking::{local, period, read},
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

/// Selects the top, or a page from `from` or `cursor`.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub(crate) struct ScoreListQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    limit: Option<u64>,
    // No `default`: generated clients send the defaults of the document even with a cursor.
    /// Position of the first row; 1 when this and `cursor` are absent. Cannot be combined with
    /// `cursor`.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// `next_cursor` of an earlier page. Players whose rank key has not changed are neither repeated
    /// nor skipped.
    #[param(min_length = 1)]
    cursor: Option<String>,
    /// Whether rows say how far players have moved since the last snapshot. Only for `all_time`; then
    /// the top is not cached.
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
    /// Id of a player. The response then has only this player and the player's friends, ranked among
    /// each other, and `from` counts only them.
    #[param(value_type = Option<UserIdText>)]
    friends_of: Option<String>,
    /// Whether to return only mutual friends, who also have the player as a friend. Only with
    /// `friends_of`.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    mutual: bool,
    /// Id of a player. The response then has the player's standing in `me`, at the same version. Cannot be
    /// combined with `from`, `cursor` or `friends_of`.
    #[param(value_type = Option<UserIdText>)]
    me: Option<String>,
    /// With `me`: number of players to return on each side, 4 by default. With `friends_of`: number of
    /// friends on each side; it then cannot be combined with `from`, `cursor` or `limit`.
    #[param(minimum = 0, maximum = 100)]
    around: Option<u64>,
}

impl ScoreListQuery {
    /// Returns the player whose friends are selected.
    fn friends(&self) -> Result<Option<FriendsOf>> {
        match &self.friends_of {
            Some(user_id) => {
                let user_id = user_id.parse().map_err(|error: Error| error.in_field("friends_of"))?;
                Ok(Some(FriendsOf { user_id, mutual: self.mutual }))
            }
            None if self.mutual => Err(Error::invalid("mutual", "needs friends_of")),
            None => Ok(None),
        }
    }

    /// Returns the player `me`, and the number of neighbours.
    fn own(&self) -> Result<Option<(UserId, u32)>> {
        let Some(me) = &self.me else { return Ok(None) };
        let given = [
            ("from", self.from.is_some()),
            ("cursor", self.cursor.is_some()),
            ("friends_of", self.friends_of.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Error::invalid(name, "cannot be combined with me"));
        }
        let user_id = me.parse().map_err(|error: Error| error.in_field("me"))?;
        Ok(Some((user_id, query::bounded("around", self.around, 4, 0, 100)?)))
    }

    /// Returns the start of the page, and its limit.
    fn start(&self) -> Result<(LocalStart, u32)> {
        if let Some(around) = self.around.filter(|_| self.me.is_none()) {
            let given =
                [("from", self.from.is_some()), ("cursor", self.cursor.is_some()), ("limit", self.limit.is_some())];
            if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Error::invalid(name, "cannot be combined with around"));
            }
            return Ok((LocalStart::Around, query::bounded("around", Some(around), 0, 0, 100)?));
        }
        let start = match (self.from, &self.cursor) {
            (Some(_), Some(_)) => return Err(Error::invalid("from", "cannot be combined with cursor")),
            (None, Some(cursor)) => PageStart::Cursor(cursor.clone()),
            (from, None) => PageStart::Position(query::bounded("from", from, 1, 1, i64::MAX.unsigned_abs())?),
        };
        Ok((LocalStart::Page(start), limit(self.limit)?))
    }
}

/// Selects players by id.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChosenQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Id of a player. Repeat the parameter for up to 500 players.
    #[serde(default)]
    #[param(value_type = Vec<UserIdText>, min_items = 1, max_items = 500, required = true, example = json!(["ada", "bob"]))]
    user_id: Vec<String>,
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

/// Selects players by id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChosenRequest {
    /// Ids of the players. A whole number is read as its decimal text: `7` means `"7"`.
    #[serde(deserialize_with = "json::ids")]
    #[schema(value_type = Vec<UserIdText>, min_items = 1, max_items = 500, example = json!(["ada", "bob"]))]
    user_ids: Vec<String>,
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[schema(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[schema(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Whether rows have the score as text, in the format of the board.
    #[serde(default)]
    #[schema(value_type = Option<bool>, default = false)]
    score_text: bool,
    /// Whether rows have the metadata of the event that decides the score.
    #[serde(default)]
    #[schema(value_type = Option<bool>, default = false)]
    metadata: bool,
    /// Whether rows have the public members of the players' metadata.
    #[serde(default)]
    #[schema(value_type = Option<bool>, default = false)]
    profile: bool,
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
    data: Vec<ChosenRowResponse<'a>>,
    /// Always null: one response has all chosen players.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
    /// Ids of the chosen players without a score, in the order of the request.
    missing: &'a [String],
}

impl<'a> ChosenResponse<'a> {
    /// Describes `chosen`; with texts of scores if `has_text`.
    fn new(board: &'a Board, chosen: &'a Chosen, has_text: bool) -> Self {
        let rows = chosen.local_ranks.iter().zip(&chosen.rows);
        let tiering = chosen.header.tiering(board);
        let row = |(local_rank, row): (&u64, &'a Row)| {
            let mut row = RowResponse::new(row, tiering);
            if has_text {
                row.add_text(&board.presentation.score_format);
            }
            ChosenRowResponse { local_rank: *local_rank, row }
        };
        Self {
            ranking: RankingResponse::new(board, &chosen.header),
            data: rows.map(row).collect(),
            next_cursor: None,
            missing: &chosen.missing,
        }
    }
}

/// Read a ranking
///
/// Without `from` and `cursor` this is the top. It is cached and lags by at most 250 ms.
/// While the database cannot be reached, the cached top is served with `stale` and
/// `stale_for_seconds` in the body and its age in `Age`. Every other response is exact for the
/// version that it names.
///
/// The top of a closed period is frozen (100 players, unless the board says otherwise): a list of
/// no more players shows the same players and names as at the closing. Longer lists, and other
/// responses about a closed period, show current names. A closed period requested by name
/// (`week:2024-01-15`) may be cached for a minute. Revalidate all other responses, with
/// `If-None-Match` where there is an `ETag`.
///
/// With `me`, the response also has this player's standing and neighbours, all at one version. The service
/// reads such a response from the ranking, not from the cache: the top does not lag, and a closed period
/// shows current names.
///
/// With `friends_of`, the response has only a player and the player's friends. Rows then have
/// `local_rank`. Friends without a score in the period are left out, and so are banned ones in open
/// periods. The response has no `ETag`, because friends can change.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores", operation_id = "list_scores", tag = "reading", security((), ("key" = [])),
    params(BoardPath, ScoreListQuery),
    responses(
        (status = 200, description = "A page of the ranking.", body = PageResponse,
            headers(
                ("Age" = u64, description = "Age of a stale top, in seconds."),
            )),
        ReadProblems,
    ),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let query: ScoreListQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), query.segment.as_deref())?;
    let friends = query.friends()?;
    let own = query.own()?;
    let (start, limit) = query.start()?;
    let extras = Extras { text: query.score_text, metadata: query.metadata, profile: query.profile };
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    // A player and the player's friends, ranked among each other.
    if let Some(friends) = friends {
        let page = local::page(rankings, &board, &selector, &friends, &start, limit).await;
        // The page may begin below the player.
        let is_shown = read::has_standing(rankings, &board, &selector, &friends.user_id).await?;
        let mut page = caller::listed(&api, &request, &friends.user_id, page, |_| is_shown).await?;
        extras.add((&api, &request), rankings, &board, &page.header, &mut page.rows).await?;
        let mut response = PageResponse::of_friends(&board, &page);
        if query.moved {
            let users = page.rows.iter().map(|row| &*row.user_id);
            let before = period::positions_before(rankings, &board, &selector, users).await?;
            response.add_moves(&before);
        }
        if query.score_text {
            response.add_text(&board.presentation.score_format);
        }
        return reply::untagged(page.header.answered_by, &response);
    }
    let LocalStart::Page(start) = start else { return Err(Error::invalid("around", "needs me or friends_of")) };
    // The first page comes from the cached top list, which has no moves.
    if start == PageStart::Position(1) && !query.moved && own.is_none() {
        return top::answer(&api, rankings, &request, &board, &selector, limit, extras).await;
    }
    // Any other page is read for this request.
    let (mut page, mut standing) = match &own {
        Some((me, around)) => read::top_and_standing(rankings, &board, &selector, limit, me, *around).await?,
        None => (read::page(rankings, &board, &selector, start, limit).await?, None),
    };
    let around = standing
        .iter_mut()
        .flat_map(|PlayerStanding { player, above, below, .. }| above.iter_mut().chain([player]).chain(below));
    extras.add((&api, &request), rankings, &board, &page.header, page.rows.iter_mut().chain(around)).await?;
    let mut response = PageResponse::new(&board, &page);
    if own.is_some() {
        response.add_own(&board, standing.as_ref());
    }
    if query.moved {
        let users = page.rows.iter().chain(standing.iter().flat_map(PlayerStanding::rows)).map(|row| &*row.user_id);
        let before = period::positions_before(rankings, &board, &selector, users).await?;
        response.add_moves(&before);
    }
    if query.score_text {
        response.add_text(&board.presentation.score_format);
    }
    reply::ranked(&request, board.reading, &selector, &extras.header(&page.header, &board), &response)
}

/// Read chosen players
///
/// Ranks up to 500 players, such as friends, among each other and in the whole ranking. A player
/// whose id is `query` is read here too: `?user_id=query`.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores/query", operation_id = "list_chosen_scores", tag = "reading",
    security((), ("key" = [])), params(BoardPath, ChosenQuery),
    responses(
        (status = 200, description = "The chosen players.", body = ChosenResponse),
        (status = 400, description = "Path and query are longer than 65,534 bytes. The response has no body. \
            Send that many ids with `POST`."),
        ReadProblems,
    ),
)]
pub(crate) async fn chosen(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let query: ChosenQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), query.segment.as_deref())?;
    let users = chosen_ids("user_id", &query.user_id)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let rankings = api.rankings_for(&request).await?;
    let mut chosen = read::chosen(rankings, &board, &selector, &users).await?;
    let extras = Extras { text: query.score_text, metadata: query.metadata, profile: query.profile };
    extras.add((&api, &request), rankings, &board, &chosen.header, &mut chosen.rows).await?;
    let response = ChosenResponse::new(&board, &chosen, query.score_text);
    reply::ranked(&request, board.reading, &selector, &extras.header(&chosen.header, &board), &response)
}

/// Read chosen players, with their ids in the body
///
/// Does the same as `GET`, for more ids than fit into a URL.
#[utoipa::path(
    post, path = "/v1/boards/{board}/scores/query", operation_id = "query_scores", tag = "reading",
    security((), ("key" = [])), params(BoardPath), request_body = ChosenRequest,
    responses((status = 200, description = "The chosen players.", body = ChosenResponse), QueryProblems),
)]
pub(crate) async fn query(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    query::none(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let wanted: ChosenRequest = body::object(&body::open_text(&api, QUERY_BYTES, &request, payload).await?)?;
    let selector = Selection::parse(wanted.period.as_deref(), wanted.segment.as_deref())?.on(&board);
    let users = chosen_ids("user_ids", &wanted.user_ids)?;
    let rankings = api.rankings_for(&request).await?;
    let mut chosen = read::chosen(rankings, &board, &selector, &users).await?;
    let extras = Extras { text: wanted.score_text, metadata: wanted.metadata, profile: wanted.profile };
    extras.add((&api, &request), rankings, &board, &chosen.header, &mut chosen.rows).await?;
    reply::untagged(chosen.header.answered_by, &ChosenResponse::new(&board, &chosen, wanted.score_text))
}

/// Parses the chosen ids and drops repeated ones.
fn chosen_ids(field: &str, users: &[String]) -> Result<Vec<UserId>> {
    if users.is_empty() || users.len() > CHOSEN_MAX {
        return Err(Error::invalid(field, format!("must have 1 to {CHOSEN_MAX} ids, not {}", users.len())));
    }
    let mut seen = HashSet::new();
    let mut ids = Vec::with_capacity(users.len());
    for (index, user) in users.iter().enumerate() {
        let id: UserId = user.parse().map_err(|error: Error| error.in_field(format!("{field}[{index}]")))?;
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
