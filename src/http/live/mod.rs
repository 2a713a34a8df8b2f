//! `/v1/boards/{board}/events`: a ranking followed live, as Server-Sent Events.

pub(crate) mod events;

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
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    delivery::live::{self, Interest, Overtaking, Rendering},
    http::{
        Api,
        api::{
            list::{LIMIT_DEFAULT, RankingResponse, RowResponse},
            problem::ReadProblems,
        },
        extract::{
            caller,
            path::{BoardPath, UserIdText},
            query::{self, PeriodText},
        },
        live::events::EventWriter,
        server::{address, listener::Listener},
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

/// In which a browser that was cut off names the last event it has got.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Longest one that can be one of ours.
const EVENT_ID_MAX_BYTES: usize = 4_096;

/// By which nginx is told to hand events on as they come.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Most rows of a top that is followed.
const LIMIT_MAX: u32 = 100;

/// Most players that one listener may choose.
const CHOSEN_MAX: usize = 20;

/// Neighbours shown on each side of a chosen player.
const AROUND: usize = 4;

/// What to follow.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiveQuery {
    /// Which period, as in a list; `all_time` when absent. `week` goes on with the next one when the week ends.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Players of the top.
    #[param(minimum = 1, maximum = 100, default = 10)]
    limit: Option<u64>,
    /// Players to be told of besides, once for each; up to 20.
    #[serde(default)]
    #[param(value_type = Vec<UserIdText>, max_items = 20, example = json!(["ada", "bob"]))]
    users: Vec<String>,
}

/// Where the last connection ended.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what browsers send by themselves")]
pub(crate) struct LastEventId {
    /// Id of the last event that was received.
    #[param(rename = "Last-Event-ID")]
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

impl<'a> From<&'a Standing> for LiveStandingResponse<'a> {
    fn from(standing: &'a Standing) -> Self {
        let Standing { player, percentile, above, below, .. } = standing;
        Self {
            row: RowResponse::from(player),
            percentile: (percentile * 100.0).floor() / 100.0,
            above: above[above.len().saturating_sub(AROUND)..].iter().map(RowResponse::from).collect(),
            below: below.iter().take(AROUND).map(RowResponse::from).collect(),
        }
    }
}

/// `started`: all there is to see. The first event, unless that is `continued`, and the one after `period`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is put together from shared pieces")]
pub(crate) struct StartedEvent<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// Whether events may have been missed since the one that `Last-Event-ID` names.
    restarted: bool,
    /// The top, best first.
    scores: Vec<RowResponse<'a>>,
    /// The chosen players who have a score, in the order asked.
    standings: Vec<LiveStandingResponse<'a>>,
    /// Ids of those who have none.
    missing: Vec<String>,
}

/// `changed`: what is other than before. No scores and no standings where that is only the state of the period.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is put together from shared pieces")]
pub(crate) struct ChangedEvent<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// The whole top, if anything in it changed.
    scores: Option<Vec<RowResponse<'a>>>,
    /// The chosen players of whom anything changed.
    standings: Vec<LiveStandingResponse<'a>>,
    /// Ids of all chosen players who have no score.
    missing: Vec<String>,
}

/// A player, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedPlayer<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Name.
    #[schema(example = "Ada")]
    user_name: &'a str,
}

/// One player who passed another.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OvertakingResponse<'a> {
    /// Who was passed.
    player: NamedPlayer<'a>,
    /// Who passed.
    by: NamedPlayer<'a>,
    /// Rank, before, of the one who was passed.
    #[schema(example = 6, minimum = 1)]
    old_rank: u64,
    /// The same player's rank after it.
    #[schema(example = 7, minimum = 1)]
    new_rank: u64,
    /// The version at which it had happened; several looks may be told of at once.
    #[schema(example = "a3f1c2d4.2.142857")]
    version: &'a str,
}

impl<'a> OvertakingResponse<'a> {
    fn new(header: &'a Header, overtaking: &'a Overtaking) -> Self {
        let named = |row: &'a Row| NamedPlayer { user_id: &row.user_id, user_name: &row.user_name };
        Self {
            player: named(&overtaking.player),
            by: named(&overtaking.by),
            old_rank: overtaking.old_rank,
            new_rank: overtaking.player.rank,
            version: &header.version,
        }
    }
}

/// `overtaken`: whom the chosen players passed, and who passed them, since the event before. Only what is certain from both states
/// is sent: the top, and five players above and below each player that anybody has chosen; of who leaps over many, the nearest twenty.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is put together from shared pieces")]
pub(crate) struct OvertakenEvent<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
    /// Each pair of a look once, oldest look first.
    overtaken: Vec<OvertakingResponse<'a>>,
}

/// `period`: the period that was shown has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PeriodEvent<'a> {
    /// Name of the period that ended.
    #[schema(example = "week:2024-01-15")]
    pub(crate) ended: &'a str,
    /// Name of the one that is shown from now on; null when the one that ended goes on being shown, because it was asked for by name.
    #[schema(required = true, example = "week:2024-01-22")]
    pub(crate) next: Option<&'a str>,
}

/// `continued`: nothing was missed since the event that `Last-Event-ID` names, or nothing has changed since `stale`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is put together from shared pieces")]
pub(crate) struct ContinuedEvent<'a> {
    #[serde(flatten)]
    ranking: RankingResponse<'a>,
}

/// `stale`: the database cannot be reached. The next event of another kind says that it can be again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StaleEvent {
    /// How long ago what was last shown was right.
    pub(crate) stale_for_seconds: u64,
}

/// The data of an event, by its kind.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what is put together from shared pieces")]
pub(crate) enum LiveEvent<'a> {
    /// `started`
    Started(StartedEvent<'a>),
    /// `changed`
    Changed(ChangedEvent<'a>),
    /// `overtaken`
    Overtaken(OvertakenEvent<'a>),
    /// `period`
    Period(PeriodEvent<'a>),
    /// `continued`
    Continued(ContinuedEvent<'a>),
    /// `stale`
    Stale(StaleEvent),
}

/// How what is followed is written.
const RENDERING: Rendering = Rendering { header, rows, standing, overtaking };

fn header(board: &Board, header: &Header) -> Result<String> {
    let object = json(&RankingResponse::new(board, header))?;
    let members = object.strip_prefix('{').and_then(|object| object.strip_suffix('}'));
    members.map(ToOwned::to_owned).ok_or_else(|| Error::Internal("a ranking was rendered as no object".into()))
}

fn rows(rows: &[Row]) -> Result<String> {
    json(&rows.iter().map(RowResponse::from).collect::<Vec<_>>())
}

fn standing(standing: &Standing) -> Result<String> {
    json(&LiveStandingResponse::from(standing))
}

fn overtaking(header: &Header, overtaking: &Overtaking) -> Result<String> {
    json(&OvertakingResponse::new(header, overtaking))
}

/// JSON, which has no line break and so fits a line of an event.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Internal(format!("an event cannot be written as JSON: {error}")))
}

/// Follow a ranking
///
/// Server-Sent Events: `started` with all there is to see, then `changed` whenever the top, one of the chosen players or the period's state is other than before,
/// `overtaken` for chosen players who passed somebody or were passed, and `period` when the period ends. Each look at the ranking is at one
/// state, whose version the data name. There are at most four looks a second, and at most four events in any second; where there would be
/// more, the newest state is shown.
///
/// The `id` of an event stands for all that was shown up to it. A browser that was cut off sends the last one as `Last-Event-ID`: where nothing
/// has changed since, the stream begins with `continued`; else it begins anew, with `started` and `restarted: true`. Who passed whom
/// meanwhile is not told. A comment every 15 seconds keeps proxies from closing the connection, and brings the id up to date.
///
/// While the database cannot be reached there is one `stale`, and the stream goes on by itself. It ends when the key it was asked for with
/// ceases to work, and when the instance stops.
#[utoipa::path(
    get, path = "/v1/boards/{board}/events", operation_id = "follow_scores", tag = "reading",
    params(BoardPath, LiveQuery, LastEventId),
    responses(
        (status = 200, description = "Events, one line of data each: an object of the kind that `event` names.", body = LiveEvent,
            content_type = "text/event-stream"),
        ReadProblems,
    ),
)]
pub(crate) async fn subscribe(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::of(&request)?;
    let query: LiveQuery = query::parse(&request)?;
    let selector = query::selector(query.period.as_deref())?;
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let interest = Interest { limit, users: chosen_ids(&query.users)? };
    let board = caller::readable(&api, &request, &path.board).await?;
    let network = address::of(&api, &request).map(address::network);
    let slot = api.listeners.take(network).inspect_err(|_| telemetry::count_refused("listeners"))?;
    period::meant(&api.instance.rankings, &board, &selector).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(EVENT_STREAM)
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((ACCEL_BUFFERING, "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    if api.ending.is_cancelled() {
        return Err(Error::unavailable("this instance is about to stop"));
    }
    let mut subscription = live::subscribe(&api.instance.live, &board, &selector, interest, network, &RENDERING)?;
    subscription.first().await?;
    // One that cannot be ours is none of what there is.
    let last_id = request.headers().get(LAST_EVENT_ID).map(|id| {
        if id.len() > EVENT_ID_MAX_BYTES { String::new() } else { String::from_utf8_lossy(id.as_bytes()).into_owned() }
    });
    let writer = EventWriter::new(subscription.interest(), last_id);
    Ok(response.streaming(Listener::new(&api, &request, board, subscription, slot, writer).events()))
}

/// The ids chosen, each once.
fn chosen_ids(users: &[String]) -> Result<Vec<UserId>> {
    if users.len() > CHOSEN_MAX {
        return Err(Error::invalid("users", format!("must be at most {CHOSEN_MAX} ids, not {}", users.len())));
    }
    let mut seen = HashSet::new();
    let each = users.iter().enumerate().filter(|(_, user)| seen.insert(*user));
    each.map(|(index, user)| user.parse().map_err(|error: Error| error.in_field(format!("users[{index}]")))).collect()
}
