//! Messages of a live stream.

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::schema::{Object, ObjectBuilder, Type},
};

use crate::{
    Error, Result,
    delivery::subscriptions::{Overtaking, Rendering},
    http::api::ranking::{RankingResponse, RowResponse},
    model::{
        board::Board,
        rank::{Header, PlayerStanding, Row},
    },
};

/// Neighbours on each side of a chosen player.
const AROUND: usize = 4;

/// A chosen player.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveStandingResponse<'a> {
    #[serde(flatten)]
    row: RowResponse<'a>,
    /// 100 × players strictly worse ÷ max(players − 1, 1), to two decimals, rounded down.
    #[schema(example = 99.4, minimum = 0, maximum = 100)]
    percentile: f64,
    /// Up to four players just above, best first.
    above: Vec<RowResponse<'a>>,
    /// Up to four players just below, best first.
    below: Vec<RowResponse<'a>>,
}

impl<'a> LiveStandingResponse<'a> {
    fn new(board: &'a Board, standing: &'a PlayerStanding) -> Self {
        let PlayerStanding { header, player, percentile, above, below } = standing;
        let tiering = header.tiering(board);
        let row = |row| RowResponse::new(row, tiering);
        Self {
            row: row(player),
            percentile: (percentile * 100.0).floor() / 100.0,
            above: above[above.len().saturating_sub(AROUND)..].iter().map(row).collect(),
            below: below.iter().take(AROUND).map(row).collect(),
        }
    }
}

/// Defines a schema for each value of `type`, so that a client can tell the messages apart.
macro_rules! types {
    ($($kind:ident)*) => {$(
        fn $kind() -> Object {
            let name = stringify!($kind);
            let object = ObjectBuilder::new().schema_type(Type::String).description(Some("Kind of message."));
            object.enum_values(Some([name])).build()
        }
    )*};
}

types! { started changed overtaken period continued stale }

/// `started`: the full snapshot. It is the first event of a stream, unless that is `continued`, and
/// it follows `period`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes an event rendered from shared fragments")]
pub(crate) struct StartedMessage<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = started)]
    kind: &'static str,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// Whether events may have been missed since the one in `Last-Event-ID`.
    restarted: bool,
    /// The top, best first.
    scores: Vec<RowResponse<'a>>,
    /// The chosen players with a score, in the order of the request.
    standings: Vec<LiveStandingResponse<'a>>,
    /// Ids of the chosen players without a score.
    missing: Vec<String>,
}

/// `changed`: the changes since the last event. Without scores and standings if only the period's
/// state changed.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes an event rendered from shared fragments")]
pub(crate) struct ChangedMessage<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = changed)]
    kind: &'static str,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The whole top, if anything in it changed.
    scores: Option<Vec<RowResponse<'a>>>,
    /// The chosen players with changes.
    standings: Vec<LiveStandingResponse<'a>>,
    /// Ids of all chosen players without a score.
    missing: Vec<String>,
}

/// A player's id and name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedPlayer<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Name.
    #[schema(example = "Ada")]
    name: &'a str,
}

/// One player who passed another.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OvertakingResponse<'a> {
    /// The player who was passed.
    player: NamedPlayer<'a>,
    /// The player who passed.
    by: NamedPlayer<'a>,
    /// Rank of the passed player before.
    #[schema(example = 6, minimum = 1)]
    old_rank: u64,
    /// Rank of the passed player after.
    #[schema(example = 7, minimum = 1)]
    new_rank: u64,
    /// Tier of the passed player after; null for none. Present on boards with tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "gold")]
    new_tier: Option<Option<&'a str>>,
    /// Version of the snapshot that showed it; one event may cover several snapshots.
    #[schema(example = "a3f1c2d4.2.142857")]
    version: &'a str,
}

impl<'a> OvertakingResponse<'a> {
    fn new(board: &'a Board, header: &'a Header, overtaking: &'a Overtaking) -> Self {
        let named = |row: &'a Row| NamedPlayer { user_id: &row.user_id, name: &row.user_name };
        Self {
            player: named(&overtaking.player),
            by: named(&overtaking.by),
            old_rank: overtaking.old_rank,
            new_rank: overtaking.player.rank,
            new_tier: header.tiering(board).tier(overtaking.player.score, overtaking.player.rank),
            version: &header.version,
        }
    }
}

/// `overtaken`: players whom the chosen players passed or who passed them since the last event.
///
/// Only overtakings that two consecutive snapshots prove are sent. A snapshot holds the top and
/// five neighbours on each side of every player that any subscriber chose. A player who passes many
/// others at once gets the nearest twenty.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes an event rendered from shared fragments")]
pub(crate) struct OvertakenMessage<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = overtaken)]
    kind: &'static str,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// Each pair once per snapshot, oldest snapshot first.
    overtaken: Vec<OvertakingResponse<'a>>,
}

/// `period`: the followed period has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PeriodMessage<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = period)]
    pub(crate) kind: &'static str,
    /// Name of the period that ended.
    #[schema(example = "week:2024-01-15")]
    pub(crate) ended: &'a str,
    /// Name of the period that the stream shows from now on. Null if the ended period was requested
    /// by name: the stream then stays with it.
    #[schema(required = true, example = "week:2024-01-22")]
    pub(crate) next: Option<&'a str>,
}

/// `continued`: the subscriber has missed nothing since the event in `Last-Event-ID`, or nothing
/// has changed since `stale`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes an event rendered from shared fragments")]
pub(crate) struct ContinuedMessage<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = continued)]
    kind: &'static str,
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
}

/// `stale`: the database cannot be reached. The next event of another kind ends the outage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StaleMessage {
    #[serde(rename = "type")]
    #[schema(schema_with = stale)]
    pub(crate) kind: &'static str,
    /// Age of the data last shown, in seconds.
    pub(crate) stale_for_seconds: u64,
}

/// Data of an event; `type` is its kind, as in `event`.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[schema(discriminator(property_name = "type", mapping(
    ("started" = "#/components/schemas/StartedMessage"),
    ("changed" = "#/components/schemas/ChangedMessage"),
    ("overtaken" = "#/components/schemas/OvertakenMessage"),
    ("period" = "#/components/schemas/PeriodMessage"),
    ("continued" = "#/components/schemas/ContinuedMessage"),
    ("stale" = "#/components/schemas/StaleMessage"),
)))]
#[expect(dead_code, reason = "describes an event rendered from shared fragments")]
pub(crate) enum LiveMessage<'a> {
    /// `started`
    Started(StartedMessage<'a>),
    /// `changed`
    Changed(ChangedMessage<'a>),
    /// `overtaken`
    Overtaken(OvertakenMessage<'a>),
    /// `period`
    Period(PeriodMessage<'a>),
    /// `continued`
    Continued(ContinuedMessage<'a>),
    /// `stale`
    Stale(StaleMessage),
}

/// How snapshots are rendered for this stream.
pub(crate) const RENDERING: Rendering = Rendering { header, rows, standing, overtaking };

fn header(board: &Board, header: &Header) -> Result<String> {
    let object = json(&RankingResponse::new(board, header))?;
    let members = object.strip_prefix('{').and_then(|object| object.strip_suffix('}'));
    members.map(ToOwned::to_owned).ok_or_else(|| Error::Internal("a ranking was not rendered as a JSON object".into()))
}

fn rows(board: &Board, header: &Header, rows: &[Row]) -> Result<String> {
    let tiering = header.tiering(board);
    json(&rows.iter().map(|row| RowResponse::new(row, tiering)).collect::<Vec<_>>())
}

fn standing(board: &Board, standing: &PlayerStanding) -> Result<String> {
    json(&LiveStandingResponse::new(board, standing))
}

fn overtaking(board: &Board, header: &Header, overtaking: &Overtaking) -> Result<String> {
    json(&OvertakingResponse::new(board, header, overtaking))
}

/// Renders `value` as JSON on one line, as the event format requires.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Internal(format!("an event cannot be written as JSON: {error}")))
}
