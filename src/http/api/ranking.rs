//! The parts that all responses about a ranking share.

use std::{borrow::Cow, collections::HashMap};

use actix_web::HttpRequest;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Result,
    http::{
        api::{period::PeriodResponse, timestamp},
        auth::caller,
        server::Api,
    },
    model::{
        board::{Board, Mode},
        combination::{CombinedFrom, SourceState},
        key::short_digest,
        metadata::Metadata,
        presentation::ScoreFormat,
        rank::{Header, LocalPage, Page, PlayerStanding, Row, Tiering},
    },
    ranking::{metadata, rankings::Rankings},
    store::user::PublicMembers,
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
    /// When the score was reached. Absent on `second` boards, which do not store it.
    #[serde(serialize_with = "timestamp::serialize_some", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reached_at: Option<DateTime<Utc>>,
    /// Second number, which orders equal scores. Present on `second` boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 73)]
    tiebreak: Option<i64>,
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
    /// Public members of the player's metadata, which the operator of the service chooses; null if the
    /// player has none, or a private profile that the caller may not read. Present with `profile=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, example = json!({"clan": "Lovelace"}))]
    profile: Option<Option<&'a Metadata>>,
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
            tiebreak: row.tiebreak,
            moved: None,
            tier: tiering.tier(row.score, row.rank),
            metadata: row.metadata.as_ref().map(Option::as_ref),
            profile: row.profile.as_ref().map(Option::as_ref),
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

/// The standing of a player, with the players around.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnStandingResponse<'a> {
    #[serde(flatten)]
    row: RowResponse<'a>,
    /// 100 × players strictly worse ÷ max(players − 1, 1).
    #[schema(example = 99.4, minimum = 0, maximum = 100)]
    percentile: f64,
    /// The players just above, best first.
    above: Vec<RowResponse<'a>>,
    /// The players just below, best first.
    below: Vec<RowResponse<'a>>,
}

impl<'a> OwnStandingResponse<'a> {
    pub(crate) fn new(board: &'a Board, standing: &'a PlayerStanding) -> Self {
        let tiering = standing.header.tiering(board);
        let row = |row| RowResponse::new(row, tiering);
        Self {
            row: row(&standing.player),
            percentile: standing.percentile,
            above: standing.above.iter().map(row).collect(),
            below: standing.below.iter().map(row).collect(),
        }
    }

    /// Returns the rows, best first.
    pub(crate) fn rows(&mut self) -> impl Iterator<Item = &mut RowResponse<'a>> {
        self.above.iter_mut().chain([&mut self.row]).chain(&mut self.below)
    }
}

/// Optional members of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// The score in the format of the board.
    pub(crate) text: bool,
    /// Metadata of the event that decides the score.
    pub(crate) metadata: bool,
    /// Public members of the player's profile.
    pub(crate) profile: bool,
}

impl Extras {
    /// Reads the requested metadata and profiles, and adds them to `rows`.
    pub(crate) async fn add<'a>(
        self,
        (api, request): (&Api, &HttpRequest),
        rankings: &Rankings,
        board: &Board,
        header: &Header,
        rows: impl IntoIterator<Item = &'a mut Row>,
    ) -> Result<()> {
        let mut rows: Vec<&mut Row> = rows.into_iter().collect();
        if self.metadata {
            metadata::add(rankings, board, header, rows.iter_mut().map(|row| &mut **row)).await?;
        }
        if self.profile {
            let public = PublicMembers {
                names: &api.settings.public_profile,
                default: api.settings.profiles,
                reads_private: caller::has_key(api, request).await,
            };
            metadata::add_profiles(rankings, &public, rows).await?;
        }
        Ok(())
    }

    /// Returns the header of a response with these rows. With texts, the entity tag includes the format of
    /// scores. With profiles there is none: a profile can change without a change of the version.
    pub(crate) fn header<'a>(self, header: &'a Header, board: &Board) -> Cow<'a, Header> {
        match &header.etag {
            Some(_) if self.profile => Cow::Owned(Header { etag: None, ..header.clone() }),
            Some(etag) if self.text => Cow::Owned(Header { etag: Some(text_etag(etag, board)), ..header.clone() }),
            _ => Cow::Borrowed(header),
        }
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
    /// The standing of the player `me`; null for a player without one. Present with `me`.
    #[serde(skip_serializing_if = "Option::is_none")]
    me: Option<Option<OwnStandingResponse<'a>>>,
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
            me: None,
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
            me: None,
        }
    }

    /// Adds the standing of the player `me`.
    pub(crate) fn add_own(&mut self, board: &'a Board, standing: Option<&'a PlayerStanding>) {
        self.me = Some(standing.map(|standing| OwnStandingResponse::new(board, standing)));
    }

    /// Returns all rows.
    fn rows(&mut self) -> impl Iterator<Item = &mut RowResponse<'a>> {
        let own = self.me.iter_mut().flatten().flat_map(OwnStandingResponse::rows);
        self.data.iter_mut().map(|row| &mut row.row).chain(own)
    }

    /// Adds the positions gained since those `before`.
    pub(crate) fn add_moves(&mut self, before: &HashMap<String, u64>) {
        self.rows().for_each(|row| row.add_move(before));
    }

    pub(crate) fn add_text(&mut self, format: &ScoreFormat) {
        self.rows().for_each(|row| row.add_text(format));
    }
}
