//! `/v1/boards/{board}/scores/{user_id}/progress`: a player in the snapshots of a board.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Result,
    http::{
        api::{
            path::{BoardPath, UserPath},
            period::PeriodResponse,
            query, reply,
        },
        auth::caller,
        server::{Api, problem::ReadProblems},
    },
    model::period::{PeriodSelector, Progress},
    ranking::read,
};

/// Maximum snapshots of a response. Each is an archive to look up in.
const SNAPSHOTS_MAX: u64 = 100;

/// Selects the newest snapshots.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProgressQuery {
    /// Maximum snapshots.
    #[param(minimum = 1, maximum = 100, default = 30)]
    snapshots: Option<u64>,
    /// Whether rows have the score as text, in the format of the board.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    score_text: bool,
}

/// A player's standing in one snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgressRowResponse<'a> {
    /// The snapshot.
    period: PeriodResponse<'a>,
    /// Players in the snapshot.
    #[schema(example = 1_000_000)]
    players: i64,
    /// Position in the total order; null if the player had no score.
    #[schema(required = true, example = 7, minimum = 1)]
    position: Option<i64>,
    /// Rank; null if the player had no score.
    #[schema(required = true, example = 6, minimum = 1)]
    rank: Option<i64>,
    /// Score; null if the player had none.
    #[schema(required = true, example = 1_234)]
    score: Option<i64>,
    /// The score in the format of the board; null if the player had none. Present with
    /// `score_text=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "1234")]
    score_text: Option<Option<String>>,
    /// When the score was reached; null if the player had none, and on `second` boards.
    #[schema(required = true)]
    reached_at: Option<DateTime<Utc>>,
    /// Second number. Present on `second` boards, if the player had a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 73)]
    tiebreak: Option<i64>,
    /// Tier at the time of the snapshot; null for a player without one. Absent if the player had
    /// none and the board has no tiers now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "gold")]
    tier: Option<Option<&'a str>>,
}

impl<'a> From<&'a Progress> for ProgressRowResponse<'a> {
    fn from(progress: &'a Progress) -> Self {
        Self {
            period: PeriodResponse::from(&progress.period),
            players: progress.players,
            position: progress.position,
            rank: progress.rank,
            score: progress.score,
            score_text: None,
            reached_at: progress.reached_at,
            tiebreak: progress.tiebreak,
            tier: progress.tier.as_deref().map(Some),
        }
    }
}

/// A player's standings over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgressResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// The snapshots, newest first.
    data: Vec<ProgressRowResponse<'a>>,
    /// Always null: one response has all snapshots that the request asks for.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

/// Read a player's progress
///
/// Lists the player's rank and score in the newest snapshots of the board. A board takes snapshots
/// if its rules say so: see `snapshots` of a board.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores/{user_id}/progress", operation_id = "list_progress", tag = "reading",
    security((), ("key" = [])), params(BoardPath, UserPath, ProgressQuery),
    responses((status = 200, description = "The player's standings.", body = ProgressResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let UserPath { user_id } = UserPath::from_request(&request)?;
    let query: ProgressQuery = query::parse(&request)?;
    let snapshots = query::bounded("snapshots", query.snapshots, 30, 1, SNAPSHOTS_MAX)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let rankings = api.rankings_for(&request).await?;
    let rows = rankings.reader.progress(&board, user_id.as_str(), snapshots).await;
    // A player of the ranking need not be in a snapshot.
    let is_ranked = async || read::has_standing(rankings, &board, &PeriodSelector::default(), &user_id).await;
    let is_in_snapshot = |rows: &Vec<Progress>| rows.iter().any(|row| row.rank.is_some());
    let is_shown = rows.as_ref().is_ok_and(is_in_snapshot) || is_ranked().await?;
    let rows = caller::listed(&api, &request, &user_id, rows, |_| is_shown).await?;
    let row = |progress| {
        let mut row = ProgressRowResponse::from(progress);
        if !board.tiers.is_empty() {
            row.tier.get_or_insert(None);
        }
        row.score_text = query.score_text.then(|| row.score.map(|score| board.presentation.score_format.plain(score)));
        row
    };
    Ok(reply::read_response(&ProgressResponse {
        board: board.slug.as_str(),
        user_id: user_id.as_str(),
        data: rows.iter().map(row).collect(),
        next_cursor: None,
    }))
}
