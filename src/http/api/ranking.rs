//! The parts that all responses about a ranking share.

use std::{borrow::Cow, collections::HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::api::{period::PeriodResponse, timestamp},
    model::{
        board::{Board, Mode},
        combination::{CombinedFrom, SourceState},
        key::short_digest,
        metadata::Metadata,
        presentation::ScoreFormat,
        rank::{Header, LocalPage, Page, Row, Tiering},
    },
};

/// The common first members of every response about a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankingResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The period of the ranking.
    period: PeriodResponse<'a>,
    /// Version of the ranking that the response is exact for. It is opaque; equal versions mean
    /// equal states.
    version: &'a str,
    /// Players in the ranking.
    #[schema(example = 1_000_000)]
    players: u64,
    /// Snapshot from which a combined board was computed. Absent for other boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    combination: Option<CombinedFromResponse<'a>>,
}

/// The snapshot from which a combined board was computed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CombinedFromResponse<'a> {
    /// Time of the snapshot; null if the board has not been computed yet.
    #[schema(required = true)]
    as_of: Option<DateTime<Utc>>,
    /// The sources in the snapshot.
    sources: Vec<SourceStateResponse<'a>>,
}

/// The state of a source in a snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceStateResponse<'a> {
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// Name of the period.
    #[schema(example = "week:2024-01-15")]
    period: &'a str,
    /// Version of its ranking; null if it had no scores.
    #[schema(required = true)]
    version: Option<&'a str>,
}

impl<'a> CombinedFromResponse<'a> {
    fn new(board: &Board, combined: Option<&'a CombinedFrom>) -> Option<Self> {
        let source = |source: &'a SourceState| SourceStateResponse {
            board: &source.board,
            period: &source.period,
            version: source.version.as_deref(),
        };
        (board.mode == Mode::Combined).then(|| Self {
            as_of: combined.map(|combined| combined.as_of),
            sources: combined.into_iter().flat_map(|combined| &combined.sources).map(source).collect(),
        })
    }
}

impl<'a> RankingResponse<'a> {
    pub(crate) fn new(board: &'a Board, header: &'a Header) -> Self {
        Self {
            board: board.slug.as_str(),
            period: PeriodResponse::from(&header.period),
            version: &header.version,
            players: header.players,
            combination: CombinedFromResponse::new(board, header.combined.as_deref()),
        }
    }
}

/// Returns the header of a response that may have texts of scores. With them, its entity tag depends
/// on the format, which may change.
pub(crate) fn with_text<'a>(header: &'a Header, has_text: bool, board: &Board) -> Cow<'a, Header> {
    match &header.etag {
        Some(etag) if has_text => Cow::Owned(Header { etag: Some(text_etag(etag, board)), ..header.clone() }),
        _ => Cow::Borrowed(header),
    }
}

/// Returns the entity tag of a response with texts of scores.
pub(crate) fn text_etag(etag: &str, board: &Board) -> String {
    format!("{etag}-{}", short_digest(&board.presentation.score_format.to_string()))
}

/// A player's row in a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowResponse<'a> {
    /// Position in the total order, from 1; never shared.
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
    name: &'a str,
    /// URL of the player's avatar.
    #[schema(required = true)]
    avatar_url: Option<&'a str>,
    /// Score.
    #[schema(example = 1_234)]
    score: i64,
    /// The score in the format of its board, such as `1234 points` or `1:23.456`. Present with
    /// `score_text=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1234")]
    score_text: Option<String>,
    /// When the score was reached.
    #[serde(serialize_with = "timestamp::serialize")]
    reached_at: DateTime<Utc>,
    /// Positions gained since the last snapshot; negative if lost, and null for a player who was not
    /// in it or if there is none. Present with `moved=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, example = 3)]
    moved: Option<Option<i64>>,
    /// Tier; null for a player in none. Present on boards with tiers. A closed period has the tiers of
    /// its closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "gold")]
    tier: Option<Option<&'a str>>,
    /// Metadata of the event that decides the score: the latest one, or on `best` boards the best one;
    /// null if it has none. Present with `metadata=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, example = json!({"character": "mage"}))]
    metadata: Option<Option<&'a Metadata>>,
}

impl<'a> RowResponse<'a> {
    /// Describes a row of a ranking with this tiering.
    pub(crate) fn new(row: &'a Row, tiering: Tiering<'a>) -> Self {
        Self {
            position: row.position,
            rank: row.rank,
            user_id: &row.user_id,
            name: &row.user_name,
            avatar_url: row.avatar.as_deref(),
            score: row.score,
            score_text: None,
            reached_at: row.reached_at,
            moved: None,
            tier: tiering.tier(row.score, row.rank),
            metadata: row.metadata.as_ref().map(Option::as_ref),
        }
    }

    pub(crate) fn add_text(&mut self, format: &ScoreFormat) {
        self.score_text = Some(format.plain(self.score));
    }

    /// Adds the positions gained since those `before`.
    pub(crate) fn add_move(&mut self, before: &HashMap<String, u64>) {
        let gained = |before: &u64| before.checked_signed_diff(self.position);
        self.moved = Some(before.get(self.user_id).and_then(gained));
    }
}

/// A player's row in a page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListRowResponse<'a> {
    /// Rank among the player and the friends, shared like ranks. Present with `friends_of`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 1, minimum = 1)]
    local_rank: Option<u64>,
    #[serde(flatten)]
    row: RowResponse<'a>,
}

impl<'a> ListRowResponse<'a> {
    fn new(local_rank: Option<u64>, row: &'a Row, tiering: Tiering<'a>) -> Self {
        Self { local_rank, row: RowResponse::new(row, tiering) }
    }
}

/// A page of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageResponse<'a> {
    /// True if the database cannot be reached and the top may be out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stale: Option<bool>,
    /// Age of a stale top, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stale_for_seconds: Option<u64>,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// How many of the player and the friends have a score. Present with `friends_of`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    local_players: Option<u64>,
    /// The players, best first.
    data: Vec<ListRowResponse<'a>>,
    /// `cursor` of the next page; null after the last player.
    #[schema(required = true)]
    next_cursor: Option<&'a str>,
}

impl<'a> PageResponse<'a> {
    /// Builds the response for a fresh `page`. The module `top` adds the members that mark a stale
    /// one.
    pub(crate) fn new(board: &'a Board, page: &'a Page) -> Self {
        let tiering = page.header.tiering(board);
        Self {
            stale: None,
            stale_for_seconds: None,
            ranking: RankingResponse::new(board, &page.header),
            local_players: None,
            data: page.rows.iter().map(|row| ListRowResponse::new(None, row, tiering)).collect(),
            next_cursor: page.next.as_deref(),
        }
    }

    pub(crate) fn of_friends(board: &'a Board, page: &'a LocalPage) -> Self {
        let (rows, tiering) = (page.local_ranks.iter().zip(&page.rows), page.header.tiering(board));
        Self {
            stale: None,
            stale_for_seconds: None,
            ranking: RankingResponse::new(board, &page.header),
            local_players: Some(page.local_players),
            data: rows.map(|(rank, row)| ListRowResponse::new(Some(*rank), row, tiering)).collect(),
            next_cursor: page.next.as_deref(),
        }
    }

    /// Adds the positions gained since those `before`.
    pub(crate) fn add_moves(&mut self, before: &HashMap<String, u64>) {
        self.data.iter_mut().for_each(|row| row.row.add_move(before));
    }

    pub(crate) fn add_text(&mut self, format: &ScoreFormat) {
        self.data.iter_mut().for_each(|row| row.row.add_text(format));
    }
}
