//! The events of one subscriber, as Server-Sent Events: first a full snapshot, then only changes.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{
    Result,
    delivery::subscriptions::{Interest, RenderedSnapshot},
    http::api::live::message::{PeriodMessage, StaleMessage, json},
    model::key,
};

/// Minimum interval between two events.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum events within any [`WINDOW`].
const EVENTS_MAX: usize = 4;

const WINDOW: Duration = Duration::from_secs(1);

/// Reconnection delay sent to browsers, in milliseconds. It is random, so that the subscribers of a
/// stopped instance do not return all at once.
const RETRY_MS: std::ops::Range<u32> = 500..3_000;

/// Tracks which snapshot a subscriber has received, and writes the events that follow.
#[derive(Debug)]
pub(crate) struct EventWriter {
    /// Digest of the subscriber's interest; a part of each event id.
    interest: String,
    /// Value of the `Last-Event-ID` header.
    last_id: Option<String>,
    /// Number of the last snapshot sent; `None` before the first.
    seen: Option<u64>,
    is_stale: bool,
    /// Times of the last events, oldest first.
    sent_at: VecDeque<Instant>,
    next_at: Option<Instant>,
}

/// The result of [`EventWriter::next`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Events to send now.
    Events(Bytes),
    /// The snapshot has nothing new for this subscriber.
    Nothing,
    /// There are events, to be sent at [`EventWriter::next_at`].
    Later,
}

impl EventWriter {
    /// Starts a stream that has sent nothing. `last_id` is the last event that the subscriber has
    /// received on an earlier connection.
    pub(crate) fn new(interest: &Interest, last_id: Option<String>) -> Self {
        let interest = digest(interest);
        Self { interest, last_id, seen: None, is_stale: false, sent_at: VecDeque::new(), next_at: None }
    }

    /// Returns the events that bring the subscriber to the snapshot `view`.
    ///
    /// The next call may return events after `pace`, and no sooner than [`MIN_INTERVAL`] for each
    /// event of this one.
    pub(crate) fn next(
        &mut self,
        view: &RenderedSnapshot,
        interest: &Interest,
        now: Instant,
        pace: Duration,
    ) -> Result<Next> {
        let mut events = Events::default();
        match self.seen {
            None => self.first_events(view, interest, &mut events),
            Some(_) if view.stale_since.is_some() => {}
            Some(seen) => self.new_events(view, interest, seen, &mut events)?,
        }
        if let Some(since) = view.stale_since.filter(|_| !self.is_stale) {
            let data = json(&StaleMessage { kind: "stale", stale_for_seconds: since.elapsed().as_secs() })?;
            events.add("stale", None, format_args!("{data}"));
        }
        if let Some(at) = self.earliest(events.count, now) {
            self.next_at = Some(at);
            return Ok(Next::Later);
        }
        self.is_stale = view.stale_since.is_some();
        // A stale snapshot may be newer than the one sent. Its content is sent once PostgreSQL
        // answers again.
        if self.seen.is_none() || !self.is_stale {
            self.seen = Some(view.number);
        }
        if events.count == 0 {
            return Ok(Next::Nothing);
        }
        self.sent_at.extend((0..events.count).map(|_| now));
        self.sent_at.drain(..self.sent_at.len().saturating_sub(EVENTS_MAX));
        self.next_at = Some(now + pace.max(MIN_INTERVAL * u32::try_from(events.count).unwrap_or(1)));
        Ok(Next::Events(events.into_bytes()))
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Returns whether a snapshot has been sent.
    pub(crate) fn has_begun(&self) -> bool {
        self.seen.is_some()
    }

    /// Returns whether the subscriber has everything in `view`.
    pub(crate) fn is_current(&self, view: &RenderedSnapshot) -> bool {
        match view.stale_since {
            Some(_) => self.is_stale,
            None => !self.is_stale && self.seen == Some(view.number),
        }
    }

    /// Returns a comment that keeps the connection open. It carries the id of `view` if the
    /// subscriber is up to date without an event.
    pub(crate) fn heartbeat(&self, view: &RenderedSnapshot) -> String {
        if self.seen == Some(view.number) { format!(":\nid: {}\n\n", self.id(view)) } else { ":\n\n".to_owned() }
    }

    /// Returns when `count` events may be sent, or `None` if now.
    fn earliest(&self, count: usize, now: Instant) -> Option<Instant> {
        if count == 0 {
            return None;
        }
        let first_beyond = self.sent_at.len().checked_sub(EVENTS_MAX.saturating_sub(count) + 1);
        let free_at = first_beyond.map(|event| self.sent_at[event] + WINDOW);
        free_at.max(self.next_at).filter(|at| *at > now)
    }

    /// Returns the event id for this snapshot and interest.
    fn id(&self, view: &RenderedSnapshot) -> String {
        format!("{}.{}", view.tag, self.interest)
    }

    fn first_events(&self, view: &RenderedSnapshot, interest: &Interest, events: &mut Events) {
        events.text = format!("retry: {}\n", rand::rng().random_range(RETRY_MS));
        let id = self.id(view);
        if self.last_id.as_deref() == Some(&*id) {
            events.add("continued", Some(&id), format_args!(r#"{{"type":"continued",{}}}"#, view.header));
        } else {
            self.started(view, interest, self.last_id.is_some(), events);
        }
    }

    /// Writes the changes since snapshot `seen`.
    fn new_events(&self, view: &RenderedSnapshot, interest: &Interest, seen: u64, events: &mut Events) -> Result<()> {
        if let Some(change) = view.period_change.as_ref().filter(|change| change.at > seen) {
            let data = json(&PeriodMessage { kind: "period", ended: &change.ended, next: change.next.as_deref() })?;
            events.add("period", None, format_args!("{data}"));
            if change.next.is_some() {
                self.started(view, interest, false, events);
                return Ok(());
            }
        }
        overtaken(view, interest, seen, events);
        self.changed(view, interest, seen, events);
        if self.is_stale && events.count == 0 {
            events.add("continued", Some(&self.id(view)), format_args!(r#"{{"type":"continued",{}}}"#, view.header));
        }
        Ok(())
    }

    /// Writes a full snapshot.
    fn started(&self, view: &RenderedSnapshot, interest: &Interest, restarted: bool, events: &mut Events) {
        let (standings, missing) = players(view, interest, 0);
        let scores = view.tops.get(&interest.limit).and_then(|top| top.text.as_deref()).unwrap_or("[]");
        events.add(
            "started",
            Some(&self.id(view)),
            format_args!(
                r#"{{"type":"started",{},"restarted":{restarted},"scores":{scores},"standings":[{standings}],"missing":[{missing}]}}"#,
                view.header
            ),
        );
    }

    /// Writes the changes of the top, the chosen players and the state since snapshot `seen`, if
    /// any.
    fn changed(&self, view: &RenderedSnapshot, interest: &Interest, seen: u64, events: &mut Events) {
        let top = view.tops.get(&interest.limit).filter(|top| top.since > seen);
        let has_player = interest
            .users
            .iter()
            .any(|user| view.players.get(user.as_str()).is_some_and(|fragment| fragment.since > seen));
        if top.is_none() && !has_player && view.state_since <= seen {
            return;
        }
        let render = || {
            let (standings, missing) = players(view, interest, seen);
            let id = self.id(view);
            let rest = format!(r#""standings":[{standings}],"missing":[{missing}]"#);
            match top.and_then(|top| top.text.as_deref()) {
                Some(scores) => event(
                    "changed",
                    Some(&id),
                    format_args!(r#"{{"type":"changed",{},"scores":{scores},{rest}}}"#, view.header),
                ),
                None => event("changed", Some(&id), format_args!(r#"{{"type":"changed",{},{rest}}}"#, view.header)),
            }
        };
        if interest.users.is_empty() && top.is_some() {
            events.add_last(view.sent(interest.limit, render));
        } else {
            events.add_last(render().into());
        }
    }
}

/// Renders the chosen players changed since snapshot `seen`, and the ids of all chosen players
/// without a score.
fn players(view: &RenderedSnapshot, interest: &Interest, seen: u64) -> (String, String) {
    let (mut standings, mut missing) = (Vec::new(), Vec::new());
    for user in &interest.users {
        match view.players.get(user.as_str()) {
            Some(fragment) if fragment.since <= seen && fragment.text.is_some() => {}
            Some(fragment) if fragment.text.is_some() => standings.extend(fragment.text.as_deref()),
            _ => missing.extend(json(&user.as_str()).ok()),
        }
    }
    (standings.join(","), missing.join(","))
}

/// Writes the overtakings of chosen players since snapshot `seen`.
fn overtaken(view: &RenderedSnapshot, interest: &Interest, seen: u64, events: &mut Events) {
    let new = view.overtakings.iter().filter(|overtakings| overtakings.at > seen);
    let data: Vec<&str> = new.flat_map(|overtakings| overtakings.texts_for(&interest.users)).collect();
    if !data.is_empty() {
        // No id: `changed` sends the id. A subscriber disconnected in between must start again.
        events.add(
            "overtaken",
            None,
            format_args!(r#"{{"type":"overtaken",{},"overtaken":[{}]}}"#, view.header, data.join(",")),
        );
    }
}

/// Returns a digest of the interest, so that another interest gets other event ids.
fn digest(interest: &Interest) -> String {
    let mut digest = Sha256::new();
    digest.update(interest.limit.to_be_bytes());
    digest.update([u8::from(interest.metadata)]);
    for user in &interest.users {
        digest.update((user.as_str().len() as u64).to_be_bytes());
        digest.update(user.as_str());
    }
    key::hex(&digest.finalize()[..8])
}

/// Events in the format of the stream.
#[derive(Default)]
struct Events {
    text: String,
    /// Follows `text`; often the only event, shared by many subscribers.
    last: Bytes,
    count: usize,
}

impl Events {
    fn add(&mut self, kind: &str, id: Option<&str>, data: std::fmt::Arguments<'_>) {
        self.count += 1;
        self.text.push_str(&event(kind, id, data));
    }

    /// Adds the last event, already formatted.
    fn add_last(&mut self, event: Bytes) {
        self.count += 1;
        self.last = event;
    }

    fn into_bytes(self) -> Bytes {
        if self.text.is_empty() { self.last } else { [self.text.as_bytes(), &self.last].concat().into() }
    }
}

fn event(kind: &str, id: Option<&str>, data: std::fmt::Arguments<'_>) -> String {
    let mut text = format!("event: {kind}\ndata: {data}\n");
    if let Some(id) = id {
        text.push_str("id: ");
        text.push_str(id);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]
mod tests {
    use std::{
        collections::{BTreeMap, HashMap},
        sync::Arc,
    };

    use rand::{SeedableRng as _, rngs::StdRng};
    use serde_json::Value;

    use super::*;
    use crate::{
        delivery::subscriptions::{Fragment, Overtakings, PeriodChange},
        model::{board::Reading, period::PeriodState},
    };

    /// Returns a snapshot whose top has not changed since snapshot `top_since`.
    fn view(number: u64, top_since: u64) -> RenderedSnapshot {
        let top = Fragment { text: Some(format!("[{top_since}]").into()), since: top_since };
        RenderedSnapshot {
            number,
            tag: format!("state-{number}"),
            reading: Reading::Public,
            header: format!(r#""version":"v{number}""#).into(),
            state: PeriodState::Open,
            state_since: 1,
            tops: BTreeMap::from([(10, top)]),
            players: HashMap::new(),
            overtakings: VecDeque::new(),
            period_change: None,
            stale_since: None,
            sent: Arc::default(),
        }
    }

    fn stale(view: RenderedSnapshot) -> RenderedSnapshot {
        RenderedSnapshot { stale_since: Some(std::time::Instant::now()), ..view }
    }

    /// Returns one overtaking of Ann and Bob at each of these snapshots.
    fn ann_passed(at: &[u64]) -> VecDeque<Arc<Overtakings>> {
        at.iter().map(|&at| Arc::new(Overtakings::new(at, [(["ann", "bob"], at.to_string())]))).collect()
    }

    fn interest(users: &[&str]) -> Interest {
        let users = users.iter().map(|user| user.parse().expect("an id")).collect();
        Interest { limit: 10, users, metadata: false }
    }

    /// A subscriber with its own clock.
    struct Subscriber {
        writer: EventWriter,
        interest: Interest,
        now: Instant,
    }

    impl Subscriber {
        fn new(users: &[&str], last_id: Option<&str>) -> Self {
            let interest = interest(users);
            Self { writer: EventWriter::new(&interest, last_id.map(ToOwned::to_owned)), interest, now: Instant::now() }
        }

        /// Returns kind and data of the next events, advancing the clock as needed.
        fn next(&mut self, view: &RenderedSnapshot) -> Vec<(String, Value)> {
            loop {
                match self.writer.next(view, &self.interest, self.now, MIN_INTERVAL).expect("events") {
                    Next::Events(bytes) => return parsed(str::from_utf8(&bytes).expect("text")),
                    Next::Nothing => return Vec::new(),
                    Next::Later => {
                        let at = self.writer.next_at().expect("a time");
                        assert!(at > self.now);
                        self.now = at;
                    }
                }
            }
        }

        fn kinds(&mut self, view: &RenderedSnapshot) -> Vec<String> {
            self.next(view).into_iter().map(|(kind, _)| kind).collect()
        }
    }

    fn parsed(text: &str) -> Vec<(String, Value)> {
        let events = text.split_terminator("\n\n").map(|event| {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            (
                field("event").expect("a kind").to_owned(),
                serde_json::from_str(field("data").expect("data")).expect("JSON"),
            )
        });
        events.collect()
    }

    #[test]
    fn an_unsent_snapshot_is_sent_after_an_outage() {
        let mut one = Subscriber::new(&[], None);
        assert_eq!(one.kinds(&view(1, 1)), ["started"]);
        // Snapshot 2 is taken but not sent before PostgreSQL fails.
        assert_eq!(one.kinds(&stale(view(2, 2))), ["stale"]);
        assert!(one.writer.is_current(&stale(view(2, 2))));
        assert!(!one.writer.heartbeat(&view(2, 2)).contains("id"));
        let received = one.next(&view(3, 2));
        assert_eq!((&*received[0].0, &received[0].1["scores"]), ("changed", &serde_json::json!([2])));
        // If nothing was missed, an event says so.
        assert_eq!(one.kinds(&stale(view(3, 2))), ["stale"]);
        assert_eq!(one.kinds(&view(4, 2)), ["continued"]);
        assert!(one.writer.heartbeat(&view(4, 2)).contains("id: state-4."));
    }

    #[test]
    fn a_closing_is_sent_though_no_score_changed() {
        let mut one = Subscriber::new(&[], None);
        one.kinds(&view(1, 1));
        let closed = RenderedSnapshot { state: PeriodState::Closed, state_since: 2, ..view(2, 1) };
        let received = one.next(&closed);
        assert_eq!(
            (&*received[0].0, &received[0].1),
            ("changed", &serde_json::json!({"type": "changed", "version": "v2", "standings": [], "missing": []}))
        );
        assert_eq!(one.kinds(&RenderedSnapshot { number: 3, ..closed }), Vec::<String>::new());
    }

    #[test]
    fn the_end_of_a_period_is_sent_once() {
        let mut one = Subscriber::new(&[], None);
        one.kinds(&view(1, 1));
        let after_change = |number| RenderedSnapshot {
            period_change: Some(PeriodChange {
                at: 2,
                ended: "week:2024-01-15".into(),
                next: Some("week:2024-01-22".into()),
            }),
            ..view(number, 2)
        };
        assert_eq!(one.kinds(&stale(after_change(2))), ["stale"]);
        assert_eq!(one.kinds(&after_change(3)), ["period", "started"]);
        assert_eq!(one.kinds(&after_change(4)), Vec::<String>::new());
    }

    #[test]
    fn overtakings_of_several_snapshots_are_sent_together_and_once() {
        let mut one = Subscriber::new(&["ann"], None);
        one.kinds(&view(3, 1));
        let received = one.next(&RenderedSnapshot { overtakings: ann_passed(&[2, 3, 4, 5]), ..view(5, 1) });
        assert_eq!((&*received[0].0, &received[0].1["overtaken"]), ("overtaken", &serde_json::json!([4, 5])));
        assert_eq!(
            one.kinds(&RenderedSnapshot { overtakings: ann_passed(&[3, 4, 5]), ..view(6, 1) }),
            Vec::<String>::new()
        );
        // A subscriber who chose neither player gets nothing.
        let mut other = Subscriber::new(&["cyd"], None);
        other.kinds(&view(3, 1));
        assert_eq!(
            other.kinds(&RenderedSnapshot { overtakings: ann_passed(&[4]), ..view(4, 1) }),
            Vec::<String>::new()
        );
        // A subscriber who chose both players gets one event.
        let mut both = Subscriber::new(&["ann", "bob"], None);
        both.kinds(&view(3, 1));
        let received = both.next(&RenderedSnapshot { overtakings: ann_passed(&[4]), ..view(4, 1) });
        assert_eq!(received[0].1["overtaken"], serde_json::json!([4]));
    }

    #[test]
    fn a_reconnection_with_the_current_id_continues() {
        let mut one = Subscriber::new(&["ann"], None);
        one.kinds(&view(1, 1));
        let id = one.writer.id(&view(7, 1));
        assert_eq!(Subscriber::new(&["ann"], Some(&id)).kinds(&view(7, 1)), ["continued"]);
        for (users, id) in [(&["ann"][..], "state-6"), (&["bob"], &id), (&[], &id), (&["ann"], "")] {
            let received = Subscriber::new(users, Some(id)).next(&view(7, 1));
            assert_eq!((&*received[0].0, &received[0].1["restarted"]), ("started", &Value::Bool(true)));
        }
    }

    #[test]
    fn at_most_four_events_are_sent_in_any_second_and_the_last_is_current() {
        let seed = rand::random::<u64>();
        eprintln!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..100 {
            let mut one = Subscriber::new(&["ann"], None);
            let begun_at = one.now;
            let (mut sent_at, mut number, mut top, mut shown, mut is_away) = (Vec::new(), 0, 0, 0, false);
            let mut passed = Vec::new();
            while one.now < begun_at + Duration::from_secs(20) {
                number += 1;
                if random.random_ratio(1, 2) {
                    top = number;
                }
                if random.random_ratio(1, 2) {
                    passed.push(number);
                }
                is_away = random.random_ratio(1, if is_away { 2 } else { 10 });
                let now = RenderedSnapshot { overtakings: ann_passed(&passed), ..view(number, top) };
                let now = if is_away { stale(now) } else { now };
                for (kind, data) in one.next(&now) {
                    sent_at.push(one.now);
                    if kind == "changed" || kind == "started" {
                        shown = data["scores"][0].as_u64().expect("a top");
                    }
                }
                assert!(is_away || shown == top, "view {number}: shows {shown} instead of {top}");
                one.now += Duration::from_millis(random.random_range(0..600));
            }
            for five in sent_at.windows(EVENTS_MAX + 1) {
                assert!(five[4] - five[0] >= Duration::from_secs(1), "{five:?}");
            }
        }
    }
}
