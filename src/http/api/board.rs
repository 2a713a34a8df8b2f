//! `/v1/boards`, `/v1/boards/{board}`: boards and their rules.

pub(crate) mod first_layout;
pub(crate) mod request;

use std::collections::BTreeSet;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result, boards,
    http::{
        api::{
            board::request::{CreateBoard, TagText, UpdateBoard},
            body,
            combination::CombinationResponse,
            path::BoardPath,
            query::{self, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX},
            reply,
        },
        auth::{caller, rate},
        server::{
            Api,
            problem::{ListProblems, ReadProblems, WriteProblems},
        },
    },
    model::{
        board::{
            Board, Buckets, GainMax, KeptArchives, Mode, OnViolation, Order, PeriodKind, Reading, SnapshotKind, Ties,
            WindowLength,
        },
        segment::Attribute,
        tag::Tag,
    },
};

/// A board. Only holders of a server or admin key for the board see its limits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardResponse {
    /// Name in URLs.
    #[schema(example = "arena")]
    slug: String,
    /// Title shown to people.
    #[schema(example = "Arena")]
    title: String,
    /// How scores combine: `sum`, `best` or `latest`; `combined` for a board that is computed from
    /// others.
    #[schema(value_type = String, example = "sum")]
    mode: Mode,
    /// Which scores are better: `desc` for high ones, `asc` for low ones.
    #[schema(value_type = String, example = "desc")]
    order: Order,
    /// How equal scores are ranked: `shared`, `first` or `tiebreak`.
    #[schema(value_type = String, example = "shared")]
    ties: Ties,
    /// Kinds of period that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["all_time", "week"]))]
    periods: Vec<PeriodKind>,
    /// IANA time zone in which periods begin.
    #[schema(example = "UTC")]
    time_zone: String,
    /// Players in the frozen top of each closed period.
    #[schema(example = 100)]
    frozen_top_size: i32,
    /// Number of newest closed periods that keep their archive, by kind. A kind that is absent
    /// keeps all, except that rolling windows keep none.
    #[schema(value_type = BTreeMap<String, i32>, example = json!({"day": 30, "week": 52}))]
    kept_archives: KeptArchives,
    /// Readers of the board: `public` for everyone, `key` for holders of a key for it.
    #[schema(value_type = String, example = "public")]
    reading: Reading,
    /// `day`, `week` or `month` if the all-time ranking is archived at the end of each; null if not.
    #[schema(required = true, value_type = Option<String>, example = "week")]
    snapshots: Option<SnapshotKind>,
    /// Lengths of the rolling windows that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["7d"]))]
    rolling: Vec<WindowLength>,
    /// Names that group boards, in alphabetical order.
    #[schema(value_type = Vec<String>, example = json!(["moba", "operability"]))]
    tags: BTreeSet<Tag>,
    /// How scores are written for people, such as `number`, `decimal:2`, `number points` or
    /// `duration:ms`. Calls that return scores add `score_text` on request.
    #[schema(example = "number points")]
    score_format: String,
    /// Text about the board.
    #[schema(required = true, example = "Kills per match")]
    description: Option<String>,
    /// Picture of the board: an https URL, or a path on the host of the service.
    #[schema(required = true, example = "https://example.com/arena.png")]
    icon_url: Option<String>,
    /// Colour of the board, in lower case.
    #[schema(required = true, example = "#1f6feb")]
    colour: Option<String>,
    /// Named parts of the rankings, best first. A player has the first tier whose rule holds.
    #[schema(example = json!(["gold: top 10 %", "silver: rank 5000"]))]
    tiers: Vec<String>,
    /// Attributes of players by which each period also has separate rankings.
    #[schema(value_type = Vec<String>, example = json!(["country"]))]
    segments: Vec<Attribute>,
    /// Which new rankings have bucket rows: `all`, or only those of `all_time`.
    #[schema(value_type = String, example = "all")]
    buckets: Buckets,
    /// How a combined board is computed. Absent for other boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    combination: Option<CombinationResponse>,
    /// When the board was created.
    created_at: DateTime<Utc>,
    #[serde(flatten)]
    limits: Option<LimitsResponse>,
}

/// Limits of the events of a board, and its lanes. Absent without a server or admin key for the board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsResponse {
    /// Number of writer lanes.
    #[schema(required = false)]
    lanes: i16,
    /// Minimum points of an event.
    #[schema(required = false)]
    points_min: i64,
    /// Maximum points of an event.
    #[schema(required = false)]
    points_max: i64,
    /// Maximum events of a player in any 60 seconds; null for no limit.
    #[schema(required = false, example = 60)]
    events_per_minute: Option<i32>,
    /// Maximum gain of a player in a period, by kind of period. A kind that is absent is unlimited.
    #[schema(required = false, value_type = BTreeMap<String, i64>, example = json!({"day": 5_000}))]
    gain_max: GainMax,
    /// How the board treats an event that breaks a rule: `refuse` or `quarantine`.
    #[schema(required = false, value_type = String, example = "refuse")]
    on_violation: OnViolation,
}

impl BoardResponse {
    /// Describes `board` to everyone.
    fn public(board: &Board) -> Self {
        Self {
            slug: board.slug.to_string(),
            title: board.title.clone(),
            mode: board.mode,
            order: board.order,
            ties: board.ties,
            periods: board.periods.clone(),
            time_zone: board.time_zone.clone(),
            frozen_top_size: board.frozen_top_size,
            kept_archives: board.kept_archives.clone(),
            reading: board.reading,
            snapshots: board.snapshots,
            rolling: board.rolling.clone(),
            tags: board.tags.clone(),
            score_format: board.presentation.score_format.to_string(),
            description: board.presentation.description.as_ref().map(ToString::to_string),
            icon_url: board.presentation.icon_url.as_ref().map(ToString::to_string),
            colour: board.presentation.colour.as_ref().map(ToString::to_string),
            tiers: board.tiers.iter().map(ToString::to_string).collect(),
            segments: board.segments.clone(),
            buckets: board.buckets,
            combination: board.combination.as_ref().map(CombinationResponse::public),
            created_at: board.created_at,
            limits: None,
        }
    }
}

impl From<&Board> for BoardResponse {
    /// Describes `board` to a holder of a server or admin key.
    fn from(board: &Board) -> Self {
        let limits = LimitsResponse {
            lanes: board.lanes,
            points_min: board.points_min,
            points_max: board.points_max,
            events_per_minute: board.events_per_minute,
            gain_max: board.gain_max.clone(),
            on_violation: board.on_violation,
        };
        let combination = board.combination.as_ref().map(CombinationResponse::from);
        Self { limits: Some(limits), combination, ..Self::public(board) }
    }
}

/// Selects boards, and a page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BoardsQuery {
    /// Only boards with this tag.
    #[param(value_type = Option<TagText>)]
    tag: Option<String>,
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A page of boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardsResponse {
    /// The boards, by slug.
    data: Vec<BoardResponse>,
    /// `cursor` of the next page; null after the last board.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Create a board
///
/// Needs an admin key.
#[utoipa::path(
    post, path = "/v1/boards", operation_id = "create_board", tag = "boards", security(("key" = [])),
    request_body = CreateBoard,
    responses(
        (status = 201, description = "The board was created.", body = BoardResponse,
            headers(("Location" = String, description = "Path of the board."))),
        WriteProblems,
    ),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    query::none(&request)?;
    let new: CreateBoard = body::json(&api, &request, payload).await?;
    let board = boards::create(&api.instance.boards, new.try_into()?, &by).await?;
    let location = header::HeaderValue::try_from(format!("/v1/boards/{}", board.slug))
        .map_err(|error| Error::Internal(format!("cannot build the path of board {}: {error}", board.slug)))?;
    let mut response = reply::written(StatusCode::CREATED, &BoardResponse::from(&board));
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
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
    let BoardsQuery { tag, limit, cursor } = query::parse(&request)?;
    let tag = query::tag(tag.as_deref())?;
    let limit = query::bounded("limit", limit, LIST_LIMIT_DEFAULT, 1, LIST_LIMIT_MAX)?;
    let key = caller::given(&api, &request).await?;
    let store = &api.instance.store;
    let (boards, next) = boards::readable(store, key.as_deref(), tag.as_ref(), limit, cursor.as_deref()).await?;
    rate::charge(&request, boards.len())?;
    let shown = |board: &Board| {
        let is_server = key.as_ref().is_some_and(|key| key.may_write(&board.slug).is_ok());
        if is_server { BoardResponse::from(board) } else { BoardResponse::public(board) }
    };
    let data = boards.iter().map(shown).collect();
    Ok(reply::read(&BoardsResponse { data, next_cursor: next }))
}

/// Show a board
#[utoipa::path(
    get, path = "/v1/boards/{board}", operation_id = "show_board", tag = "boards",
    security((), ("key" = [])), params(BoardPath),
    responses((status = 200, description = "The board.", body = BoardResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    query::none(&request)?;
    let path = BoardPath::of(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let is_server = caller::is_server(&api, &request, Some(&path.board)).await?;
    Ok(reply::read(&if is_server { BoardResponse::from(&*board) } else { BoardResponse::public(&board) }))
}

/// Change a board
///
/// Needs an admin key. Mode, order, ties, time zone, lanes and segments cannot change once events
/// exist.
#[utoipa::path(
    patch, path = "/v1/boards/{board}", operation_id = "update_board", tag = "boards", security(("key" = [])),
    params(BoardPath), request_body = UpdateBoard,
    responses((status = 200, description = "The changed board.", body = BoardResponse), WriteProblems),
)]
pub(crate) async fn update(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::of(&request)?;
    query::none(&request)?;
    let change: UpdateBoard = body::json(&api, &request, payload).await?;
    let board = boards::update(&api.instance.boards, &path.board, change.try_into()?, &by).await?;
    Ok(reply::written(StatusCode::OK, &BoardResponse::from(&board)))
}
