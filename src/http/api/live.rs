//! `/v1/boards/{board}/live`: follows a ranking live, as Server-Sent Events.

mod events;
pub(crate) mod league;
mod message;
mod subscriber;

use std::collections::HashSet;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method,
        header::{self, HeaderName},
    },
    web::Data,
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    Error, Result,
    delivery::subscriptions::{self, Interest},
    http::{
        api::{
            list::LIMIT_DEFAULT,
            live::{
                events::EventWriter,
                message::{LiveMessage, RENDERING},
                subscriber::Subscriber,
            },
            path::{BoardPath, UserIdText},
            query::{self, PeriodText, SegmentText, Selection},
        },
        auth::caller,
        server::{Api, address, problem::ReadProblems},
    },
    model::user::UserId,
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

/// The part of a ranking to follow.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiveQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default period when absent.
    /// `week` continues with the next week when the week ends.
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
    let path = BoardPath::from_request(&request)?;
    let query: LiveQuery = query::parse(&request)?;
    let selection = Selection::parse(query.period.as_deref(), query.segment.as_deref())?;
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let interest = Interest { limit, users: chosen_ids(&query.user_id)?, metadata: query.metadata };
    let board = caller::readable(&api, &request, &path.board).await?;
    let selector = selection.on(&board);
    let network = address::client_address(&api.settings.trusted_proxies, &request).map(address::network);
    let slot = api.subscribers.take(network).inspect_err(|_| telemetry::count_refused("subscribers"))?;
    period::resolve(api.instance.read_router.current(), &board, &selector).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(EVENT_STREAM)
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((ACCEL_BUFFERING, "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    if api.ending.is_cancelled() {
        return Err(Error::Stopping);
    }
    let mut subscription =
        subscriptions::subscribe(&api.instance.followed_rankings, &board, &selector, interest, network, &RENDERING)?;
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
