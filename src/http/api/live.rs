//! `/v1/boards/{board}/live`: follows a ranking live, as Server-Sent Events.

pub(crate) mod events;
pub(crate) mod subscriber;

use std::collections::HashSet;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method,
        header::{self, HeaderName},
    },
    web::Data,
};
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{Object, ObjectBuilder, Type},
};

use crate::{
    Code, Error, Result,
    delivery::live::{self, Interest, Overtaking, Rendering},
    http::{
        api::{
            list::LIMIT_DEFAULT,
            live::{events::EventWriter, subscriber::Subscriber},
            path::{BoardPath, UserIdText},
            query::{self, PeriodText, SegmentText},
            ranking::{RankingResponse, RowResponse},
        },
        auth::caller,
        server::{Api, address, problem::ReadProblems},
    },
    model::{
        board::Board,
        rank::{Header, Row, Standing},
        user::UserId,
    },
    ranking::period,
    telemetry,
};

/// Media type of Server-Sent Events (WHATWG HTML, 9.2).
const EVENT_STREAM: &str = "text/event-stream";

/// Header in which a reconnecting browser names the last event that it received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum length of a `Last-Event-ID`, in bytes. A longer one is not ours.
const EVENT_ID_MAX_BYTES: usize = 4_096;

/// Header that tells nginx to forward events at once.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Maximum rows of a followed top.
const LIMIT_MAX: u32 = 100;

/// Maximum players that one subscriber may choose.
const CHOSEN_MAX: usize = 20;

/// Neighbours on each side of a chosen player.
const AROUND: usize = 4;

/// The part of a ranking to follow.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiveQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; `all_time` when absent. `week` continues with the next week when the
    /// week ends.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Rows of the top.
    #[param(minimum = 1, maximum = 100, default = 10)]
    limit: Option<u64>,
    /// Up to 20 players to follow in addition to the top. Repeat the parameter for each.
    #[serde(default)]
    #[param(value_type = Vec<UserIdText>, max_items = 20, example = json!(["ada", "bob"]))]
    user_id: Vec<String>,
    /// Whether rows have the metadata of the event that decides the score.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    metadata: bool,
}

/// Where the last connection ended.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes a header that browsers send automatically")]
pub(crate) struct LastEventId {
    /// Id of the last event received.
    #[param(rename = "Last-Event-ID", nullable = false)]
    last_event_id: Option<String>,
}

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
    fn new(board: &'a Board, standing: &'a Standing) -> Self {
        let Standing { header, player, percentile, above, below } = standing;
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
            new_tier: header.tiering(board).of(&overtaking.player),
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
const RENDERING: Rendering = Rendering { header, rows, standing, overtaking };

fn header(board: &Board, header: &Header) -> Result<String> {
    let object = json(&RankingResponse::new(board, header))?;
    let members = object.strip_prefix('{').and_then(|object| object.strip_suffix('}'));
    members.map(ToOwned::to_owned).ok_or_else(|| Error::Internal("a ranking was not rendered as a JSON object".into()))
}

fn rows(board: &Board, header: &Header, rows: &[Row]) -> Result<String> {
    let tiering = header.tiering(board);
    json(&rows.iter().map(|row| RowResponse::new(row, tiering)).collect::<Vec<_>>())
}

fn standing(board: &Board, standing: &Standing) -> Result<String> {
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

/// Follow a ranking
///
/// Sends Server-Sent Events. `started` carries a full snapshot. `changed` follows whenever the top,
/// a chosen player or the period's state changes. `overtaken` reports chosen players who passed
/// others or were passed, and `period` the end of the period.
///
/// Each snapshot of the ranking is exact at one version, which the data name. The service takes at
/// most four snapshots a second and sends at most four events in any second. Subscribers skip
/// snapshots if there are more and get the newest.
///
/// The `id` of an event stands for everything sent so far. A browser that reconnects sends the last
/// id as `Last-Event-ID`. If nothing has changed, the stream begins with `continued`. Otherwise it
/// begins with `started` and `restarted: true`, and overtakings in between are lost. A comment
/// after 15 s of silence (default) keeps proxies from closing the connection and updates the id.
///
/// While the database cannot be reached, the stream sends one `stale` event and stays open. The
/// stream ends when the key of the request stops working and when the instance stops.
#[utoipa::path(
    get, path = "/v1/boards/{board}/live", operation_id = "follow_ranking", tag = "reading", security((), ("key" = [])),
    params(BoardPath, LiveQuery, LastEventId),
    responses(
        (status = 200, description = "Events with one line of data each: a JSON object, whose `type` is the same as `event`.", body = LiveMessage,
            content_type = "text/event-stream"),
        ReadProblems,
    ),
)]
pub(crate) async fn subscribe(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    let query: LiveQuery = query::parse(&request)?;
    let selector = query::selector_in(query.period.as_deref(), query.segment.as_deref())?;
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let interest = Interest { limit, users: chosen_ids(&query.user_id)?, metadata: query.metadata };
    let board = caller::readable(&api, &request, &path.board).await?;
    let network = address::of(&api.settings.trusted_proxies, &request).map(address::network);
    let slot = api.subscribers.take(network).inspect_err(|_| telemetry::count_refused("subscribers"))?;
    period::resolve(api.instance.reads.current(), &board, &selector).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(EVENT_STREAM)
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((ACCEL_BUFFERING, "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    if api.ending.is_cancelled() {
        return Err(Error::unavailable(Code::ShuttingDown, "this instance is shutting down"));
    }
    let mut subscription = live::subscribe(&api.instance.live, &board, &selector, interest, network, &RENDERING)?;
    subscription.first().await?;
    // An id too long to be ours matches no snapshot.
    let last_id = request.headers().get(LAST_EVENT_ID).map(|id| {
        if id.len() > EVENT_ID_MAX_BYTES { String::new() } else { String::from_utf8_lossy(id.as_bytes()).into_owned() }
    });
    let writer = EventWriter::new(subscription.interest(), last_id);
    Ok(response.streaming(Subscriber::new(&api, &request, board, subscription, slot, writer).events()))
}

/// Parses the chosen ids and drops repeated ones.
fn chosen_ids(users: &[String]) -> Result<Vec<UserId>> {
    if users.len() > CHOSEN_MAX {
        return Err(Error::invalid("user_id", format!("must have at most {CHOSEN_MAX} ids, not {}", users.len())));
    }
    let mut seen = HashSet::new();
    let each = users.iter().enumerate().filter(|(_, user)| seen.insert(*user));
    each.map(|(index, user)| user.parse().map_err(|error: Error| error.in_field(format!("user_id[{index}]")))).collect()
}
