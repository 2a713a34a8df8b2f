//! What a listener is told of a look, as Server-Sent Events: all there is to see at first, then nothing but what is new.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{
    Result,
    delivery::live::{Interest, View},
    http::live::{PeriodEvent, StaleEvent, json},
    model::key,
};

/// From one event to the next, at least.
pub(crate) const PACE: Duration = Duration::from_millis(250);

/// Most events in [`WINDOW`], whenever that begins.
const MOST_EVENTS: usize = 4;

const WINDOW: Duration = Duration::from_secs(1);

/// When to come again after the connection ended, in milliseconds: not all at once, after an instance stopped.
const RETRY_MS: std::ops::Range<u32> = 500..3_000;

/// What a listener has been told so far.
#[derive(Debug)]
pub(crate) struct EventWriter {
    /// What of a state it is shown, for its ids.
    interest: String,
    /// What `Last-Event-ID` said.
    last_id: Option<String>,
    /// The look it was shown last; none yet.
    seen: Option<u64>,
    is_stale: bool,
    /// When the last events were sent, oldest first.
    sent_at: VecDeque<Instant>,
    /// No event before this.
    next_at: Option<Instant>,
}

/// What there is to tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// These events.
    Events(Bytes),
    /// Nothing that would be new.
    Nothing,
    /// Something, but not before [`EventWriter::next_at`].
    Later,
}

impl EventWriter {
    /// Nothing, to somebody who was told all up to the event `last_id`, if that is still how things stand.
    pub(crate) fn new(interest: &Interest, last_id: Option<String>) -> Self {
        let interest = digest(interest);
        Self { interest, last_id, seen: None, is_stale: false, sent_at: VecDeque::new(), next_at: None }
    }

    /// What is new in `look`; the events after it come no sooner than `pace`, nor than [`PACE`] for each of these.
    pub(crate) fn next(&mut self, look: &View, interest: &Interest, now: Instant, pace: Duration) -> Result<Next> {
        let mut events = Events::default();
        match self.seen {
            None => self.begin(look, interest, &mut events),
            Some(_) if look.stale_since.is_some() => {}
            Some(seen) => self.go_on(look, interest, seen, &mut events)?,
        }
        if let Some(since) = look.stale_since.filter(|_| !self.is_stale) {
            let told = json(&StaleEvent { stale_for_seconds: since.elapsed().as_secs() })?;
            events.add("stale", None, format_args!("{told}"));
        }
        if let Some(at) = self.too_early(events.count, now) {
            self.next_at = Some(at);
            return Ok(Next::Later);
        }
        self.is_stale = look.stale_since.is_some();
        // What is stale may be newer than what was shown: that is shown once it can be confirmed.
        if self.seen.is_none() || !self.is_stale {
            self.seen = Some(look.number);
        }
        if events.count == 0 {
            return Ok(Next::Nothing);
        }
        self.sent_at.extend((0..events.count).map(|_| now));
        self.sent_at.drain(..self.sent_at.len().saturating_sub(MOST_EVENTS));
        self.next_at = Some(now + pace.max(PACE * u32::try_from(events.count).unwrap_or(1)));
        Ok(Next::Events(events.into_bytes()))
    }

    /// Nothing is told before this.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Whether anything was told.
    pub(crate) fn has_begun(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether there is nothing to tell of `look`.
    pub(crate) fn knows(&self, look: &View) -> bool {
        match look.stale_since {
            Some(_) => self.is_stale,
            None => !self.is_stale && self.seen == Some(look.number),
        }
    }

    /// A comment, and the id of `look` if all of it was told, though no event was needed for it.
    pub(crate) fn sign_of_life(&self, look: &View) -> String {
        if self.seen == Some(look.number) { format!(":\nid: {}\n\n", self.id(look)) } else { ":\n\n".to_owned() }
    }

    /// From when on so many events may be sent, if that is not yet.
    fn too_early(&self, count: usize, now: Instant) -> Option<Instant> {
        if count == 0 {
            return None;
        }
        let first_beyond = self.sent_at.len().checked_sub(MOST_EVENTS.saturating_sub(count) + 1);
        let room_at = first_beyond.map(|event| self.sent_at[event] + WINDOW);
        room_at.max(self.next_at).filter(|at| *at > now)
    }

    /// Names what a listener like this one has been shown.
    fn id(&self, look: &View) -> String {
        format!("{}.{}", look.tag, self.interest)
    }

    /// The first events.
    fn begin(&self, look: &View, interest: &Interest, events: &mut Events) {
        events.text = format!("retry: {}\n", rand::rng().random_range(RETRY_MS));
        let id = self.id(look);
        if self.last_id.as_deref() == Some(&*id) {
            events.add("continued", Some(&id), format_args!("{{{}}}", look.header));
        } else {
            self.started(look, interest, self.last_id.is_some(), events);
        }
    }

    /// What is new since the look `seen`.
    fn go_on(&self, look: &View, interest: &Interest, seen: u64, events: &mut Events) -> Result<()> {
        if let Some(turn) = look.turn.as_ref().filter(|turn| turn.at > seen) {
            let told = json(&PeriodEvent { ended: &turn.ended, next: turn.next.as_deref() })?;
            events.add("period", None, format_args!("{told}"));
            if turn.next.is_some() {
                self.started(look, interest, false, events);
                return Ok(());
            }
        }
        overtaken(look, interest, seen, events);
        self.changed(look, interest, seen, events);
        if self.is_stale && events.count == 0 {
            events.add("continued", Some(&self.id(look)), format_args!("{{{}}}", look.header));
        }
        Ok(())
    }

    /// All there is to see.
    fn started(&self, look: &View, interest: &Interest, restarted: bool, events: &mut Events) {
        let (standings, missing) = players(look, interest, 0);
        let scores = look.tops.get(&interest.limit).and_then(|top| top.text.as_deref()).unwrap_or("[]");
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
    fn changed(&self, look: &View, interest: &Interest, seen: u64, events: &mut Events) {
        let top = look.tops.get(&interest.limit).filter(|top| top.since > seen);
        let has_player =
            interest.users.iter().any(|user| look.players.get(user.as_str()).is_some_and(|piece| piece.since > seen));
        if top.is_none() && !has_player && look.state_since <= seen {
            return;
        }
        let put_together = || {
            let (standings, missing) = players(look, interest, seen);
            let id = self.id(look);
            let rest = format!(r#""standings":[{standings}],"missing":[{missing}]"#);
            match top.and_then(|top| top.text.as_deref()) {
                Some(scores) => {
                    event("changed", Some(&id), format_args!(r#"{{{},"scores":{scores},{rest}}}"#, look.header))
                }
                None => event("changed", Some(&id), format_args!("{{{},{rest}}}", look.header)),
            }
        };
        if interest.users.is_empty() && top.is_some() {
            events.add_last(look.sent(interest.limit, put_together));
        } else {
            events.add_last(put_together().into());
        }
    }
}

/// Chosen players of whom something is other than at the look `seen`, and the ids of all who have no score.
fn players(look: &View, interest: &Interest, seen: u64) -> (String, String) {
    let (mut standings, mut missing) = (Vec::new(), Vec::new());
    for user in &interest.users {
        match look.players.get(user.as_str()) {
            Some(piece) if piece.since <= seen && piece.text.is_some() => {}
            Some(piece) if piece.text.is_some() => standings.extend(piece.text.as_deref()),
            _ => missing.extend(json(&user.as_str()).ok()),
        }
    }
    (standings.join(","), missing.join(","))
}

/// Whom the chosen players passed since the look `seen`, and who passed them.
fn overtaken(look: &View, interest: &Interest, seen: u64, events: &mut Events) {
    let new = look.overtakings.iter().filter(|some| some.at > seen);
    let told: Vec<&str> = new.flat_map(|some| some.of(&interest.users)).collect();
    if !told.is_empty() {
        // Without an id, which comes with `changed`: who is cut off in between has to begin anew.
        events.add("overtaken", None, format_args!(r#"{{{},"overtaken":[{}]}}"#, look.header, told.join(",")));
    }
}

/// Stands for the limit and the players wished for: another wish makes other ids.
fn digest(interest: &Interest) -> String {
    let mut digest = Sha256::new();
    digest.update(interest.limit.to_be_bytes());
    for user in &interest.users {
        digest.update((user.as_str().len() as u64).to_be_bytes());
        digest.update(user.as_str());
    }
    key::hex(&digest.finalize()[..8])
}

/// Events as they are written.
#[derive(Default)]
struct Events {
    text: String,
    /// After that, and maybe all there is.
    last: Bytes,
    count: usize,
}

impl Events {
    fn add(&mut self, kind: &str, id: Option<&str>, data: std::fmt::Arguments<'_>) {
        self.count += 1;
        self.text.push_str(&event(kind, id, data));
    }

    /// An event as it is written; none comes after it.
    fn add_last(&mut self, event: Bytes) {
        self.count += 1;
        self.last = event;
    }

    fn into_bytes(self) -> Bytes {
        if self.text.is_empty() { self.last } else { [self.text.as_bytes(), &self.last].concat().into() }
    }
}

/// One as it is written.
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
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is to stop right there")]
mod tests {
    use std::{
        collections::{BTreeMap, HashMap},
        sync::Arc,
    };

    use rand::{SeedableRng as _, rngs::StdRng};
    use serde_json::Value;

    use super::*;
    use crate::{
        delivery::live::{Fragment, Overtakings, PeriodChange},
        model::{board::Reading, period::PeriodState},
    };

    /// The look of this number, since which the top is as it is.
    fn look(number: u64, top_since: u64) -> View {
        let top = Fragment { text: Some(format!("[{top_since}]").into()), since: top_since };
        View {
            number,
            tag: format!("state-{number}"),
            reading: Reading::Public,
            header: format!(r#""version":"v{number}""#).into(),
            state: PeriodState::Open,
            state_since: 1,
            tops: BTreeMap::from([(10, top)]),
            players: HashMap::new(),
            overtakings: VecDeque::new(),
            turn: None,
            stale_since: None,
            sent: Arc::default(),
        }
    }

    fn stale(look: View) -> View {
        View { stale_since: Some(std::time::Instant::now()), ..look }
    }

    /// Ann's place against somebody else's, at looks.
    fn ann_passed(at: &[u64]) -> VecDeque<Arc<Overtakings>> {
        at.iter().map(|&at| Arc::new(Overtakings::new(at, [(["ann", "bob"], at.to_string())]))).collect()
    }

    fn interest(users: &[&str]) -> Interest {
        Interest { limit: 10, users: users.iter().map(|user| user.parse().expect("an id")).collect() }
    }

    /// A listener, and the time that it lives in.
    struct Played {
        told: EventWriter,
        interest: Interest,
        now: Instant,
    }

    impl Played {
        fn new(users: &[&str], last_id: Option<&str>) -> Self {
            let interest = interest(users);
            Self { told: EventWriter::new(&interest, last_id.map(ToOwned::to_owned)), interest, now: Instant::now() }
        }

        /// What is told, after as long as it takes: the kinds of the events, and their data.
        fn next(&mut self, look: &View) -> Vec<(String, Value)> {
            loop {
                match self.told.next(look, &self.interest, self.now, PACE).expect("events") {
                    Next::Events(bytes) => return parsed(str::from_utf8(&bytes).expect("text")),
                    Next::Nothing => return Vec::new(),
                    Next::Later => {
                        let at = self.told.next_at().expect("a time");
                        assert!(at > self.now);
                        self.now = at;
                    }
                }
            }
        }

        fn kinds(&mut self, look: &View) -> Vec<String> {
            self.next(look).into_iter().map(|(kind, _)| kind).collect()
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
    fn what_was_looked_at_and_not_shown_is_shown_after_the_database_was_away() {
        let mut one = Played::new(&[], None);
        assert_eq!(one.kinds(&look(1, 1)), ["started"]);
        // The second look comes and is not shown in time; then there is none.
        assert_eq!(one.kinds(&stale(look(2, 2))), ["stale"]);
        assert!(one.told.knows(&stale(look(2, 2))));
        assert!(!one.told.sign_of_life(&look(2, 2)).contains("id"));
        let told = one.next(&look(3, 2));
        assert_eq!((&*told[0].0, &told[0].1["scores"]), ("changed", &serde_json::json!([2])));
        // Where nothing was missed, it is said that there was nothing.
        assert_eq!(one.kinds(&stale(look(3, 2))), ["stale"]);
        assert_eq!(one.kinds(&look(4, 2)), ["continued"]);
        assert!(one.told.sign_of_life(&look(4, 2)).contains("id: state-4."));
    }

    #[test]
    fn that_a_period_was_closed_is_told_though_nobody_moved() {
        let mut one = Played::new(&[], None);
        one.kinds(&look(1, 1));
        let closed = View { state: PeriodState::Closed, state_since: 2, ..look(2, 1) };
        let told = one.next(&closed);
        assert_eq!(
            (&*told[0].0, &told[0].1),
            ("changed", &serde_json::json!({"version": "v2", "standings": [], "missing": []}))
        );
        assert_eq!(one.kinds(&View { number: 3, ..closed }), Vec::<String>::new());
    }

    #[test]
    fn a_period_that_ended_meanwhile_is_told_of_once() {
        let mut one = Played::new(&[], None);
        one.kinds(&look(1, 1));
        let turned = |number| View {
            turn: Some(PeriodChange { at: 2, ended: "week:2024-01-15".into(), next: Some("week:2024-01-22".into()) }),
            ..look(number, 2)
        };
        assert_eq!(one.kinds(&stale(turned(2))), ["stale"]);
        assert_eq!(one.kinds(&turned(3)), ["period", "started"]);
        assert_eq!(one.kinds(&turned(4)), Vec::<String>::new());
    }

    #[test]
    fn who_passed_whom_at_several_looks_is_told_together_and_once() {
        let mut one = Played::new(&["ann"], None);
        one.kinds(&look(3, 1));
        let told = one.next(&View { overtakings: ann_passed(&[2, 3, 4, 5]), ..look(5, 1) });
        assert_eq!((&*told[0].0, &told[0].1["overtaken"]), ("overtaken", &serde_json::json!([4, 5])));
        assert_eq!(one.kinds(&View { overtakings: ann_passed(&[3, 4, 5]), ..look(6, 1) }), Vec::<String>::new());
        // Nothing of it is for who has not chosen either of them.
        let mut other = Played::new(&["cyd"], None);
        other.kinds(&look(3, 1));
        assert_eq!(other.kinds(&View { overtakings: ann_passed(&[4]), ..look(4, 1) }), Vec::<String>::new());
        // Who has chosen both is told once.
        let mut both = Played::new(&["ann", "bob"], None);
        both.kinds(&look(3, 1));
        let told = both.next(&View { overtakings: ann_passed(&[4]), ..look(4, 1) });
        assert_eq!(told[0].1["overtaken"], serde_json::json!([4]));
    }

    #[test]
    fn who_comes_again_with_the_id_of_the_state_has_missed_nothing() {
        let mut one = Played::new(&["ann"], None);
        one.kinds(&look(1, 1));
        let id = one.told.id(&look(7, 1));
        assert_eq!(Played::new(&["ann"], Some(&id)).kinds(&look(7, 1)), ["continued"]);
        for (users, id) in [(&["ann"][..], "state-6"), (&["bob"], &id), (&[], &id), (&["ann"], "")] {
            let told = Played::new(users, Some(id)).next(&look(7, 1));
            assert_eq!((&*told[0].0, &told[0].1["restarted"]), ("started", &Value::Bool(true)));
        }
    }

    #[test]
    fn there_are_four_events_in_any_second_and_the_newest_state_is_among_them() {
        let seed = rand::random::<u64>();
        eprintln!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..100 {
            let mut one = Played::new(&["ann"], None);
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
                let now = View { overtakings: ann_passed(&passed), ..look(number, top) };
                let now = if is_away { stale(now) } else { now };
                for (kind, data) in one.next(&now) {
                    sent_at.push(one.now);
                    if kind == "changed" || kind == "started" {
                        shown = data["scores"][0].as_u64().expect("a top");
                    }
                }
                assert!(is_away || shown == top, "look {number}: {shown} is shown, and not {top}");
                one.now += Duration::from_millis(random.random_range(0..600));
            }
            for five in sent_at.windows(MOST_EVENTS + 1) {
                assert!(five[4] - five[0] >= Duration::from_secs(1), "{five:?}");
            }
        }
    }
}
