//! `/v1/users/{user_id}/standings`: one player on several boards.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Resource, Result, boards,
    http::{
        api::{
            path::UserPath,
            query::{self, PeriodText, SegmentText, Selection},
            ranking::{RankingResponse, RowResponse},
            reply,
        },
        auth::{caller, rate},
        server::{
            Api,
            problem::{Problem, ReadProblems},
        },
    },
    model::{
        board::{Board, BoardFilter},
        rank::{AnsweredBy, PlayerStanding},
        tag::Tag,
    },
    ranking::{metadata, read},
};

/// Maximum boards of a response: their indexes are read in one round.
const BOARDS_MAX: usize = 100;

/// Default boards of a response.
const BOARDS_DEFAULT: usize = 10;

/// Selects boards and a period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StandingsQuery {
    /// Only boards with this tag; all boards that the caller may read when absent.
    #[param(value_type = Option<Tag>)]
    tag: Option<String>,
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Whether rows have the score as text, in the format of the board.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    score_text: bool,
    /// Whether rows have the metadata of the event that decides the score.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    metadata: bool,
    /// Maximum boards of the page, with or without a standing.
    #[param(minimum = 1, maximum = 100, default = 10)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A player's standing on one of several boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardStandingResponse<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    #[serde(flatten)]
    row: RowResponse<'a>,
    /// 100 × players strictly worse ÷ max(players − 1, 1).
    #[schema(example = 99.4, minimum = 0, maximum = 100)]
    percentile: f64,
}

impl<'a> BoardStandingResponse<'a> {
    fn new(board: &'a Board, standing: &'a PlayerStanding) -> Self {
        Self {
            ranking: RankingResponse::new(board, &standing.header),
            row: RowResponse::new(&standing.player, standing.header.tiering(board)),
            percentile: standing.percentile,
        }
    }
}

/// A board on which the player has no standing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MissingStandingResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// Why there is none: `score_not_found`, `period_not_found`, or why the board cannot be read now.
    error: Problem,
}

/// A player's standings on several boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StandingsResponse<'a> {
    /// The standings, by board.
    data: Vec<BoardStandingResponse<'a>>,
    /// `cursor` of the next page; null after the last board.
    #[schema(required = true)]
    next_cursor: Option<String>,
    /// The boards of the page without a standing, by board.
    missing: Vec<MissingStandingResponse<'a>>,
}

/// Read a player's standings on several boards
///
/// Returns the player's score, rank, position and percentile on each board of the page that the caller
/// may read. Each row is exact for the version that it names. One statement brings all boards that the
/// instance has in memory up to date.
#[utoipa::path(
    get, path = "/v1/users/{user_id}/standings", operation_id = "list_standings", tag = "reading",
    security((), ("key" = [])), params(UserPath, StandingsQuery),
    responses((status = 200, description = "The player's standings.", body = StandingsResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let StandingsQuery { tag, period, segment, score_text, metadata, limit, cursor } = query::parse(&request)?;
    let selection = Selection::parse(period.as_deref(), segment.as_deref())?;
    let limit = query::bounded("limit", limit, BOARDS_DEFAULT, 1, BOARDS_MAX)?;
    let tag = query::tag(tag.as_deref())?;
    // Select the boards that the caller may read, and charge the rate limit for their number.
    let key = caller::optional_key(&api, &request).await?;
    let reader = &api.instance.store.reader;
    let filter = BoardFilter { tag: tag.as_ref(), limit: Some(limit), ..BoardFilter::default() };
    let (boards, next_cursor) = boards::readable(reader, key.as_deref(), filter, cursor.as_deref()).await?;
    rate::charge(&request, boards.len())?;
    // Read the player's standing on each of them.
    let rankings = api.rankings_for(&request).await?;
    let selectors: Vec<_> = boards.iter().map(|board| selection.on(board)).collect();
    let standings = read::standings(rankings, &boards, &selectors, &user_id).await;
    let is_shown = |found: &Vec<Result<PlayerStanding>>| found.is_empty() || found.iter().any(Result::is_ok);
    let mut standings = match caller::listed(&api, &request, &user_id, standings, is_shown).await {
        // An earlier page may have shown a player whose profile is private.
        Err(Error::NotFound { what: Resource::User, .. }) if cursor.is_some() => Vec::new(),
        standings => standings?,
    };
    if metadata {
        let found = boards.iter().zip(&mut standings).filter_map(|(board, standing)| {
            let PlayerStanding { header, player, .. } = standing.as_mut().ok()?;
            Some((board, &*header, player))
        });
        metadata::add_all(rankings, found.collect()).await?;
    }
    // A board without a standing goes into `missing`, with the reason.
    let (mut data, mut missing) = (Vec::with_capacity(boards.len()), Vec::new());
    for (board, standing) in boards.iter().zip(&standings) {
        match standing {
            Ok(standing) => {
                let mut response = BoardStandingResponse::new(board, standing);
                if score_text {
                    response.row.add_text(&board.presentation.score_format);
                }
                data.push(response);
            }
            Err(error) => {
                missing.push(MissingStandingResponse { board: board.slug.as_str(), error: Problem::from_error(error) });
            }
        }
    }
    let is_index = |standing: &PlayerStanding| standing.header.answered_by == AnsweredBy::Index;
    let is_from_indexes = !data.is_empty() && standings.iter().flatten().all(is_index);
    let source = if is_from_indexes { AnsweredBy::Index } else { AnsweredBy::Sql };
    reply::untagged(source, &StandingsResponse { data, next_cursor, missing })
}
