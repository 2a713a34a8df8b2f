//! One who follows a ranking: what is sent, and when.
//!
//! Nothing is kept for a listener but which look it was shown last. What is new since is put together when there is room for it.

use std::{convert::Infallible, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{Bytes, Data},
};
use futures::{Stream, stream};
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep_until};

use super::{
    Api,
    connection::{Activity, Streaming},
    live::{PeriodEvent, StaleEvent, json},
    seats::Seat,
};
use crate::{
    Error,
    board::{Board, Reading},
    key, known_key,
    live::{Following, Look},
};

/// From one event to the next.
const PACE: Duration = Duration::from_millis(250);
/// How often it is asked whether a listener's key still works. What is known of a key may be four seconds old.
const KEY_LOOKED_AT_EVERY: Duration = Duration::from_millis(500);
/// When to come again after the connection ended, in milliseconds: not all at once, after an instance stopped.
const RETRY_MS: std::ops::Range<u32> = 500..3_000;

/// A listener.
pub(super) struct Listener {
    api: Data<Api>,
    board: Arc<Board>,
    following: Following,
    /// What the connection is at, which is told once the answer's head is written.
    activity: Option<Rc<Activity>>,
    streaming: Option<Streaming>,
    /// The text of the `Authorization` header.
    authorization: Option<String>,
    /// Whether the board asks for a key.
    reading: Reading,
    /// What of a state it is shown, for its ids.
    wish: String,
    /// What `Last-Event-ID` said.
    last_id: Option<String>,
    /// The look it was shown last; none yet.
    seen: Option<u64>,
    is_stale: bool,
    /// Whether there may be something new.
    has_news: bool,
    /// Not before this.
    next_at: Instant,
    beat_at: Instant,
    key_at: Instant,
    _seat: Seat,
}

/// What came of a look.
enum Shown {
    Events(String),
    Nothing,
    End,
}

impl Listener {
    /// A listener who has been shown nothing yet.
    pub(super) fn new(
        api: &Data<Api>,
        request: &HttpRequest,
        board: Arc<Board>,
        following: Following,
        seat: Seat,
        last_id: Option<String>,
    ) -> Self {
        let now = Instant::now();
        let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        Self {
            api: api.clone(),
            reading: board.reading,
            board,
            wish: digest(&following),
            following,
            activity: request.conn_data::<Rc<Activity>>().cloned(),
            streaming: None,
            authorization: authorization.map(ToOwned::to_owned),
            last_id,
            seen: None,
            is_stale: false,
            has_news: true,
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
            if self.has_news && self.next_at <= now {
                self.has_news = false;
                match self.show(now) {
                    Shown::Events(events) => return Some(events.into()),
                    Shown::Nothing => {}
                    Shown::End => return None,
                }
            }
            if self.reading == Reading::Key && self.key_at <= now {
                if !self.may_still_read().await {
                    return None;
                }
                self.key_at = now + KEY_LOOKED_AT_EVERY;
            }
            if self.beat_at <= now {
                self.beat_at = now + self.api.settings.heartbeat;
                return Some(self.beat().into());
            }
            let mut wake_at = self.beat_at;
            if self.has_news {
                wake_at = wake_at.min(self.next_at);
            }
            if self.reading == Reading::Key {
                wake_at = wake_at.min(self.key_at);
            }
            tokio::select! {
                biased;
                () = ending.cancelled() => return None,
                () = self.following.changed(), if !self.has_news => self.has_news = true,
                () = sleep_until(wake_at) => {}
            }
        }
    }

    /// Whether the key still works with which this was asked for.
    async fn may_still_read(&self) -> bool {
        match known_key::find(&self.api.service, self.authorization.as_deref()).await {
            Ok(known) => known.key.may_read(&self.board.slug).is_ok(),
            // Nothing new is shown meanwhile either.
            Err(Error::Unavailable { .. }) => true,
            Err(_) => false,
        }
    }

    /// Names what a listener like this one has been shown.
    fn id(&self, look: &Look) -> String {
        format!("{}.{}", look.tag, self.wish)
    }

    /// A comment, and the id of what is still all there is to see, which needs no event.
    fn beat(&mut self) -> String {
        match self.following.newest() {
            Some(Ok(look)) if Some(look.number) == self.seen && look.stale_since.is_some() == self.is_stale => {
                format!(":\nid: {}\n\n", self.id(&look))
            }
            _ => {
                self.has_news = true;
                ":\n\n".to_owned()
            }
        }
    }

    /// What is new in the newest look.
    fn show(&mut self, now: Instant) -> Shown {
        let Some(Ok(look)) = self.following.newest() else { return Shown::End };
        self.reading = look.reading;
        let mut events = Events::default();
        let shown = match self.seen {
            None => self.begin(&look, &mut events),
            Some(seen) => self.go_on(&look, seen, &mut events),
        };
        // What is stale may be newer than what was shown: that is shown once it can be confirmed.
        if self.seen.is_none() || look.stale_since.is_none() {
            self.seen = Some(look.number);
        }
        if shown.is_err() {
            return Shown::End;
        }
        if events.count == 0 {
            return Shown::Nothing;
        }
        self.next_at = now + PACE * events.count;
        self.beat_at = now + self.api.settings.heartbeat;
        Shown::Events(events.text)
    }

    /// The first events.
    fn begin(&mut self, look: &Look, events: &mut Events) -> crate::Result<()> {
        events.text = format!("retry: {}\n", rand::rng().random_range(RETRY_MS));
        let id = self.id(look);
        if self.last_id.as_deref() == Some(&*id) {
            events.add("continued", Some(&id), format_args!("{{{}}}", look.header));
        } else {
            self.started(look, self.last_id.is_some(), events);
        }
        self.note_stale(look, events)
    }

    /// What is new since the look that was shown last.
    fn go_on(&mut self, look: &Look, seen: u64, events: &mut Events) -> crate::Result<()> {
        if look.stale_since.is_some() {
            return self.note_stale(look, events);
        }
        let was_stale = std::mem::take(&mut self.is_stale);
        if let Some(turn) = look.turn.as_ref().filter(|turn| turn.at > seen) {
            let told = json(&PeriodEvent { ended: &turn.ended, next: turn.next.as_deref() })?;
            events.add("period", None, format_args!("{told}"));
            if turn.next.is_some() {
                self.started(look, false, events);
                return Ok(());
            }
        }
        self.overtaken(look, seen, events);
        self.changed(look, seen, events);
        if was_stale && events.count == 0 {
            events.add("continued", Some(&self.id(look)), format_args!("{{{}}}", look.header));
        }
        Ok(())
    }

    fn note_stale(&mut self, look: &Look, events: &mut Events) -> crate::Result<()> {
        if let Some(since) = look.stale_since
            && !std::mem::replace(&mut self.is_stale, true)
        {
            let told = json(&StaleEvent { stale_for_seconds: since.elapsed().as_secs() })?;
            events.add("stale", None, format_args!("{told}"));
        }
        Ok(())
    }

    /// All there is to see.
    fn started(&self, look: &Look, restarted: bool, events: &mut Events) {
        let (standings, missing) = self.players(look, 0);
        let scores = look.tops.get(&self.following.wish().limit).and_then(|top| top.text.as_deref()).unwrap_or("[]");
        events.add(
            "started",
            Some(&self.id(look)),
            format_args!(
                r#"{{{},"restarted":{restarted},"scores":{scores},"standings":[{standings}],"missing":[{missing}]}}"#,
                look.header
            ),
        );
    }

    /// What is other than at the look `seen`, if anything is.
    fn changed(&self, look: &Look, seen: u64, events: &mut Events) {
        let wish = self.following.wish();
        let top = look.tops.get(&wish.limit).filter(|top| top.since > seen);
        let has_player =
            wish.users.iter().any(|user| look.players.get(user.as_str()).is_some_and(|piece| piece.since > seen));
        if top.is_none() && !has_player {
            return;
        }
        let (standings, missing) = self.players(look, seen);
        let id = self.id(look);
        let rest = format!(r#""standings":[{standings}],"missing":[{missing}]"#);
        match top.and_then(|top| top.text.as_deref()) {
            Some(scores) => {
                events.add("changed", Some(&id), format_args!(r#"{{{},"scores":{scores},{rest}}}"#, look.header));
            }
            None => events.add("changed", Some(&id), format_args!("{{{},{rest}}}", look.header)),
        }
    }

    /// Chosen players of whom something is other than at the look `seen`, and the ids of all who have no score.
    fn players(&self, look: &Look, seen: u64) -> (String, String) {
        let (mut standings, mut missing) = (Vec::new(), Vec::new());
        for user in &self.following.wish().users {
            match look.players.get(user.as_str()) {
                Some(piece) if piece.since <= seen && piece.text.is_some() => {}
                Some(piece) if piece.text.is_some() => standings.extend(piece.text.as_deref()),
                _ => missing.extend(json(&user.as_str()).ok()),
            }
        }
        (standings.join(","), missing.join(","))
    }

    /// Whom the chosen players passed since the look `seen`, and who passed them.
    fn overtaken(&self, look: &Look, seen: u64, events: &mut Events) {
        let users = &self.following.wish().users;
        let is_chosen = |id: &String| users.iter().any(|user| user.as_str() == id);
        let told = look.overtakings.iter().filter(|passed| passed.at > seen && passed.user_ids.iter().any(is_chosen));
        let told: Vec<&str> = told.map(|passed| &*passed.text).collect();
        if !told.is_empty() {
            // Without an id, which comes with `changed`: who is cut off in between has to begin anew.
            events.add("overtaken", None, format_args!(r#"{{{},"overtaken":[{}]}}"#, look.header, told.join(",")));
        }
    }
}

/// Stands for the limit and the players wished for: another wish makes other ids.
fn digest(following: &Following) -> String {
    let wish = following.wish();
    let mut digest = Sha256::new();
    digest.update(wish.limit.to_be_bytes());
    for user in &wish.users {
        digest.update((user.as_str().len() as u64).to_be_bytes());
        digest.update(user.as_str());
    }
    key::hex(&digest.finalize()[..8])
}

/// Events as they are written.
#[derive(Default)]
struct Events {
    text: String,
    count: u32,
}

impl Events {
    fn add(&mut self, kind: &str, id: Option<&str>, data: std::fmt::Arguments<'_>) {
        use std::fmt::Write as _;
        self.count += 1;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "event: {kind}\ndata: {data}\n");
        if let Some(id) = id {
            let _ = writeln!(self.text, "id: {id}");
        }
        self.text.push('\n');
    }
}
