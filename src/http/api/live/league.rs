//! `/v1/boards/{board}/league/live`: follows a player's cohort live, as Server-Sent Events.

use std::{convert::Infallible, rc::Rc, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{Bytes, Data},
};
use futures::{Stream, stream};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use utoipa::IntoParams;

use crate::{
    Error, Result, boards,
    delivery::followed_leagues,
    http::{
        api::{
            live::{
                ACCEL_BUFFERING, EVENT_STREAM,
                message::json,
                subscriber::{KEY_CHECKED_EVERY, KeyValidity, check_key},
            },
            path::{BoardPath, UserIdText},
            query,
        },
        auth::caller,
        server::{
            Api,
            activity::{Activity, Streaming},
            address,
            problem::ReadProblems,
            slots::Slot,
        },
    },
    model::{
        board::{Board, Reading},
        league::LeagueState,
        user::UserId,
    },
    telemetry,
};

/// Selects a player to follow.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// The player.
    #[param(value_type = UserIdText)]
    user_id: String,
}

/// Follow a player's cohort
///
/// Sends Server-Sent Events named `league`: at the beginning, and whenever the player's place or the cohort
/// changes, at most twice a second. The data are those of `read_league` for the current period. A comment
/// after 15 s of silence (default) keeps proxies from closing the connection. The stream ends when the
/// key of the request stops working and when the instance stops.
#[utoipa::path(
    get, path = "/v1/boards/{board}/league/live", operation_id = "follow_league", tag = "leagues",
    security((), ("key" = [])), params(BoardPath, FollowQuery),
    responses(
        (status = 200, description = "Events with one line of data each, a JSON object.", body = LeagueState, content_type = "text/event-stream"),
        ReadProblems,
    ),
)]
pub(crate) async fn follow(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let path = BoardPath::from_request(&request)?;
    let FollowQuery { user_id } = query::parse(&request)?;
    let user_id: UserId = user_id.parse()?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let network = address::client_address(&api.settings.trusted_proxies, &request).map(address::network);
    let slot = api.subscribers.take(network).inspect_err(|_| telemetry::count_refused("subscribers"))?;
    let found = api.instance.store.reader.league_state(&board, Some(&user_id), None, None).await;
    caller::listed(&api, &request, &user_id, found, |state| state.state != "none").await?;
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
    let latest = followed_leagues::follow(&api.instance.followed_leagues, &board, &user_id)?;
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let now = Instant::now();
    let follower = Follower {
        latest,
        authorization: authorization.map(ToOwned::to_owned),
        activity: request.conn_data::<Rc<Activity>>().cloned(),
        streaming: None,
        beat_at: now + api.settings.heartbeat,
        key_at: now,
        api,
        board,
        _slot: slot,
        _counted: telemetry::GaugeGuard::count(telemetry::SUBSCRIBERS),
    };
    Ok(response.streaming(follower.events()))
}

/// A subscriber of a cohort.
struct Follower {
    api: Data<Api>,
    board: Arc<Board>,
    latest: watch::Receiver<Option<Result<Arc<LeagueState>>>>,
    authorization: Option<String>,
    /// The connection, marked as an event stream once the head of the response is written.
    activity: Option<Rc<Activity>>,
    streaming: Option<Streaming>,
    beat_at: Instant,
    key_at: Instant,
    _slot: Slot,
    _counted: telemetry::GaugeGuard,
}

impl Follower {
    fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, async |mut follower| Some((Ok(follower.next().await?), follower)))
    }

    /// The next event or heartbeat; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.streaming.is_none() {
            self.streaming = self.activity.as_ref().map(Activity::streaming);
        }
        let ending = self.api.ending.clone();
        loop {
            // Check the key when it is due, and before anything is sent.
            if self.key_at <= Instant::now() {
                let board = boards::find(&self.api.instance.boards, &self.board.slug).await.ok()?;
                if board.id != self.board.id {
                    return None;
                }
                if board.reading == Reading::Key
                    && check_key(&self.api, self.authorization.as_deref(), &board).await != KeyValidity::Valid
                {
                    return None;
                }
                self.key_at = Instant::now() + KEY_CHECKED_EVERY;
            }
            let news = self.latest.has_changed().ok()?.then(|| self.latest.borrow_and_update().clone()).flatten();
            if let Some(news) = news {
                self.beat_at = Instant::now() + self.api.settings.heartbeat;
                return Some(format!("event: league\ndata: {}\n\n", json(&*news.ok()?).ok()?).into());
            }
            if self.beat_at <= Instant::now() {
                self.beat_at = Instant::now() + self.api.settings.heartbeat;
                return Some(Bytes::from_static(b":\n\n"));
            }
            tokio::select! {
                biased;
                () = ending.cancelled() => return None,
                changed = self.latest.changed() => { changed.ok()?; self.latest.mark_changed(); }
                () = sleep_until(self.beat_at.min(self.key_at)) => {}
            }
        }
    }
}
