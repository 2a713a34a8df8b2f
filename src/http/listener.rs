//! One who follows a ranking: when something is sent.
//!
//! Nothing is kept for a listener but what it was told last. What is new since is put together when there is room for it.

use std::{convert::Infallible, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{Bytes, Data},
};
use futures::{Stream, stream};
use rand::RngExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    Api,
    connection::{Activity, Streaming},
    seats::Seat,
    told::{Telling, Told},
};
use crate::{
    Error,
    board::{Board, Reading},
    known_key,
    live::Following,
};

/// How often it is asked whether a listener's key still works. What is known of a key may be four seconds old.
const KEY_LOOKED_AT_EVERY: Duration = Duration::from_millis(500);
/// Time of an event to one of many: an instance sends ten thousand a second, and whoever writes and reads has the rest of it.
const TIME_OF_EVENT: Duration = Duration::from_micros(100);
/// Shares of that between two events of a listener, by lot: not all are sent to at once.
const SPREAD: std::ops::Range<f64> = 0.75..1.25;

/// How long it may take to find that out.
const KEY_KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// A listener.
pub(super) struct Listener {
    api: Data<Api>,
    board: Arc<Board>,
    following: Following,
    told: Told,
    /// What the connection is at, which is told once the answer's head is written.
    activity: Option<Rc<Activity>>,
    streaming: Option<Streaming>,
    /// The text of the `Authorization` header.
    authorization: Option<String>,
    /// Whether the board asks for a key.
    reading: Reading,
    access: Access,
    /// What is new is not told before this.
    next_at: Instant,
    beat_at: Instant,
    key_at: Instant,
    _seat: Seat,
}

/// Whether the key still works with which a stream was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Yes,
    No,
    /// That could not be found out: nothing new is shown until it can be.
    Unknown,
}

impl Listener {
    /// A listener who has been shown nothing yet.
    pub(super) fn new(
        api: &Data<Api>,
        request: &HttpRequest,
        board: Arc<Board>,
        following: Following,
        seat: Seat,
        told: Told,
    ) -> Self {
        let now = Instant::now();
        let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        Self {
            api: api.clone(),
            reading: board.reading,
            access: Access::Yes,
            board,
            following,
            told,
            activity: request.conn_data::<Rc<Activity>>().cloned(),
            streaming: None,
            authorization: authorization.map(ToOwned::to_owned),
            next_at: now,
            beat_at: now + api.settings.heartbeat,
            key_at: now + KEY_LOOKED_AT_EVERY,
            _seat: seat,
        }
    }

    /// What is sent.
    pub(super) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, async |mut listener| Some((Ok(listener.next().await?), listener)))
    }

    /// The next events, or a sign of life; `None` when that was all.
    async fn next(&mut self) -> Option<Bytes> {
        if self.streaming.is_none() {
            self.streaming = self.activity.as_ref().map(Activity::streaming);
        }
        let ending = self.api.ending.clone();
        loop {
            let now = Instant::now();
            let look = self.following.newest()?.ok()?;
            if look.reading != self.reading {
                // Before anything of it is shown.
                (self.reading, self.key_at) = (look.reading, now);
            }
            if self.reading == Reading::Key && self.key_at <= now {
                self.access = tokio::select! {
                    biased;
                    () = ending.cancelled() => return None,
                    access = self.access() => access,
                };
                self.key_at = Instant::now() + KEY_LOOKED_AT_EVERY;
            }
            let may_see = match self.access {
                _ if self.reading == Reading::Public => true,
                Access::Yes => true,
                Access::Unknown => look.stale_since.is_some(),
                Access::No => return None,
            };
            // A look may have been begun before it was known what this listener wants.
            let is_whole = look.has(self.following.wish()) || (look.stale_since.is_some() && self.told.has_begun());
            let has_news = may_see && is_whole && !self.told.knows(&look);
            if has_news && self.next_at <= now {
                let pace =
                    TIME_OF_EVENT.mul_f64(self.api.seats.taken_by_all() as f64 * rand::rng().random_range(SPREAD));
                match self.told.tell(&look, self.following.wish(), now, pace).ok()? {
                    Telling::Events(events) => {
                        self.beat_at = now + self.api.settings.heartbeat;
                        return Some(events.into());
                    }
                    Telling::Nothing => {}
                    Telling::Later(at) => self.next_at = at,
                }
                continue;
            }
            if self.beat_at <= now {
                self.beat_at = now + self.api.settings.heartbeat;
                return Some(self.told.sign_of_life(&look).into());
            }
            let mut wake_at = self.beat_at;
            if has_news {
                wake_at = wake_at.min(self.next_at);
            }
            if self.reading == Reading::Key {
                wake_at = wake_at.min(self.key_at);
            }
            tokio::select! {
                biased;
                () = ending.cancelled() => return None,
                // While something is about to be told, the newest state then is what counts.
                () = self.following.changed(), if !has_news => {}
                () = sleep_until(wake_at) => {}
            }
        }
    }

    /// Whether the key still works.
    async fn access(&self) -> Access {
        let finding = known_key::find(&self.api.service, self.authorization.as_deref());
        let Ok(found) = timeout(KEY_KNOWN_WITHIN, finding).await else { return Access::Unknown };
        match found {
            Ok(known) if known.key.may_read(&self.board.slug).is_ok() => Access::Yes,
            Err(Error::Unavailable { .. } | Error::Internal(_)) => Access::Unknown,
            _ => Access::No,
        }
    }
}
