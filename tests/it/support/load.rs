//! Concurrent writers and readers over HTTP, on one or more instances.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::{
    RequestBuilder, StatusCode,
    header::{self, HeaderMap},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    amount, make_key, next_number,
    record::{Acknowledged, Answer, Change, Question, Record},
    wait::within,
};

/// Number of scores and ids that are kept for reuse.
const REMEMBERED: usize = 2_000;

/// Flags of an instance under load: on a busy machine requests wait instead of being refused.
pub const PATIENT: &[&str] = &["--pool-wait", "60000", "--statement-timeout", "60"];

/// Creates a key with a role on the command line.
pub fn key(database_url: &str, role: &str) -> String {
    make_key(database_url, role, &[])
}

/// Returns a token that is cancelled after some time.
pub fn stop_after(time: Duration) -> CancellationToken {
    let stop = CancellationToken::new();
    let after = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        after.cancel();
    });
    stop
}

/// A load and its targets.
#[derive(Debug)]
pub struct Load {
    /// `http://HOST:PORT` of each instance.
    pub instances: Vec<String>,
    /// Slugs of the boards. The points of their events are -2 to 5. Boards whose slugs begin with `second`
    /// get second numbers.
    pub boards: Vec<String>,
    /// The kinds of period to read.
    pub periods: Vec<&'static str>,
    /// Whether the load only reads.
    pub read_only: bool,
    /// Whether pages are continued by their cursors, which needs periods whose labels are dates.
    pub cursors: bool,
    /// Whether the test kills servers during the load. The record then omits requests without an
    /// answer or with status 503.
    pub may_fail: bool,
    /// Pause of each writer after a change, so that more questions are answered per change.
    pub pause: Duration,
    /// Pause of each worker after a request, so that other tests can run meanwhile.
    pub idle: Duration,
    /// A key with the role admin.
    pub key: String,
    /// Number of players.
    pub players: usize,
    client: reqwest::Client,
    /// Sent events with ids, for repetition, possibly while still in flight.
    sent: Mutex<VecDeque<(usize, Value)>>,
    /// Scores that may be voided.
    scores: Mutex<VecDeque<(usize, i64)>>,
    banned: Mutex<Vec<String>>,
    next_id: AtomicU32,
    answered: AtomicUsize,
}

impl Load {
    /// Creates a load on `boards` that reads `all_time` and `week`.
    pub fn new(instances: Vec<String>, boards: &[&str], key: String) -> Self {
        Self {
            instances,
            boards: boards.iter().map(|&slug| slug.to_owned()).collect(),
            periods: vec!["all_time", "week"],
            read_only: false,
            cursors: true,
            may_fail: false,
            pause: Duration::ZERO,
            idle: Duration::from_millis(amount(40, 0)),
            key,
            players: amount(1_000, 3_000),
            client: super::client(),
            sent: Mutex::default(),
            scores: Mutex::default(),
            banned: Mutex::default(),
            next_id: AtomicU32::new(0),
            answered: AtomicUsize::new(0),
        }
    }

    /// Returns the number of answered questions.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Gives most players a first score, so that there are entries from the start.
    pub async fn begin(&self) -> Record {
        let mut record = Record::default();
        for board in 0..self.boards.len() {
            for first in (0..self.players * 9 / 10).step_by(1_000) {
                let users = first..(first + 1_000).min(self.players * 9 / 10);
                let events = users.map(|user| json!({"user_id": format!("p{user}"), "points": user % 7})).collect();
                self.write_many(&mut record, board, 0, events).await;
            }
        }
        record
    }

    /// Writes and reads until `stop`.
    pub async fn run(self: &Arc<Self>, stop: &CancellationToken) -> Record {
        let mut tasks = JoinSet::new();
        for worker in if self.read_only { 6..14 } else { 0..14 } {
            let (load, stop) = (Arc::clone(self), stop.clone());
            let seed = rand::random::<u64>();
            tasks.spawn(async move {
                let mut rng = StdRng::seed_from_u64(seed);
                let (mut record, mut reader) = (Record::default(), Reader::default());
                while !stop.is_cancelled() {
                    let instance = rng.random_range(0..load.instances.len());
                    match worker {
                        0..=2 => load.write_one(&mut record, &mut rng, instance).await,
                        3 => {
                            let board = rng.random_range(0..load.boards.len());
                            let most = if rng.random_ratio(1, 25) { amount(200, 1_000) } else { 20 };
                            let events = (0..rng.random_range(1..=most)).map(|_| load.event(&mut rng, board)).collect();
                            load.write_many(&mut record, board, instance, events).await;
                        }
                        4 | 5 => load.administer(&mut record, &mut rng, instance).await,
                        _ => {
                            reader.ask(&load, &mut record, &mut rng, instance).await;
                            tokio::time::sleep(load.idle).await;
                            continue;
                        }
                    }
                    tokio::time::sleep(load.idle + load.pause).await;
                }
                record
            });
        }
        let mut all = Record::default();
        while let Some(record) = tasks.join_next().await {
            all.join(record.expect("a part of the load failed"));
        }
        all
    }

    /// Begins, and runs for `time` repeatedly until the record is `enough`. Fails the test if it is
    /// not by the deadline.
    pub async fn run_until(self: &Arc<Self>, time: Duration, mut enough: impl AsyncFnMut(&Record) -> bool) {
        let mut record = self.begin().await;
        let running = async {
            loop {
                record.join(self.run(&stop_after(time)).await);
                if enough(&record).await {
                    return;
                }
            }
        };
        within("the load has covered enough", running).await;
    }

    fn url(&self, instance: usize, board: usize, path: &str) -> String {
        format!("{}/v1/boards/{}{path}", self.instances[instance], self.boards[board])
    }

    fn user(&self, rng: &mut StdRng) -> String {
        format!("p{}", rng.random_range(0..self.players))
    }

    /// Returns a random event; a third have ids, some of which were sent before.
    fn event(&self, rng: &mut StdRng, board: usize) -> Value {
        let mut event = json!({"user_id": self.user(rng), "points": rng.random_range(-2..=5)});
        if self.boards[board].starts_with("second") && rng.random() {
            event["tiebreak"] = rng.random_range(-2..=2).into();
        }
        if rng.random_ratio(1, 3) {
            let mut sent = self.sent.lock().expect("no panic");
            let of_board: Vec<&Value> =
                sent.iter().rev().take(30).filter(|(on, _)| *on == board).map(|e| &e.1).collect();
            if let Some(&again) = of_board.choose(rng).filter(|_| rng.random_ratio(1, 4)) {
                return again.clone();
            }
            event["id"] = format!("event {}", self.next_id.fetch_add(1, Ordering::Relaxed)).into();
            sent.push_back((board, event.clone()));
            if sent.len() > REMEMBERED {
                sent.pop_front();
            }
        }
        event
    }

    async fn write_one(&self, record: &mut Record, rng: &mut StdRng, instance: usize) {
        let board = rng.random_range(0..self.boards.len());
        let event = self.event(rng, board);
        let ranks = if rng.random_ratio(1, 5) { "?ranks=true" } else { "" };
        let url = self.url(instance, board, &format!("/scores{ranks}"));
        let Some((status, text)) = self.send(self.client.post(url).json(&event)).await else { return };
        match status {
            StatusCode::OK => self.accepted(record, board, instance, event, parsed(&text)),
            // The player is banned.
            StatusCode::CONFLICT => {}
            other => panic!("{other} to {event}: {text}"),
        }
    }

    async fn write_many(&self, record: &mut Record, board: usize, instance: usize, events: Vec<Value>) {
        let request = self.client.post(self.url(instance, board, "/scores/batch")).json(&json!({"events": events}));
        let Some((status, text)) = self.send(request).await else { return };
        assert_eq!(status, StatusCode::OK, "{text}");
        let mut answer = parsed(&text);
        let results = answer["results"].as_array_mut().expect("results").drain(..);
        assert_eq!(results.len(), events.len());
        for (event, result) in events.into_iter().zip(results) {
            match result["state"].as_str() {
                Some("accepted") => self.accepted(record, board, instance, event, result),
                _ if self.may_fail && result["error"]["status"] == 503 => {}
                _ => assert_eq!(result["error"]["code"], "user_banned", "{event}: {result}"),
            }
        }
    }

    fn accepted(&self, record: &mut Record, board: usize, instance: usize, event: Value, result: Value) {
        let id = result["transaction_id"].as_i64().expect("the id of a transaction");
        let what = Change::Score { event, result };
        record.acknowledged.push(Acknowledged { board, instance, at: Instant::now(), what });
        let mut scores = self.scores.lock().expect("no panic");
        scores.push_back((board, id));
        if scores.len() > REMEMBERED {
            scores.pop_front();
        }
    }

    /// Sends a ban, an unban, a void, a reset or a rename.
    async fn administer(&self, record: &mut Record, rng: &mut StdRng, instance: usize) {
        let url = &self.instances[instance];
        let reason = format!("act-{}", next_number());
        let body = json!({"reason": &reason});
        match rng.random_range(0..10) {
            0 | 1 => {
                let user = self.user(rng);
                self.banned.lock().expect("no panic").push(user.clone());
                let request = self.client.post(format!("{url}/v1/users/{user}/ban")).json(&body);
                let Some((status, text)) = self.send(request).await else { return };
                // A player without any score does not exist, and a later unban may have begun.
                let allowed = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::CONFLICT];
                assert!(allowed.contains(&status), "{status}: {text}");
                self.acted(record, instance, &reason, status);
            }
            2 | 3 => {
                let user = self.banned.lock().expect("no panic").pop();
                let Some(user) = user else { return };
                let request = self.client.post(format!("{url}/v1/users/{user}/unban")).json(&body);
                let Some((status, text)) = self.send(request).await else { return };
                let allowed = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::CONFLICT];
                assert!(allowed.contains(&status), "{status}: {text}");
                self.acted(record, instance, &reason, status);
            }
            4 | 5 => {
                let scores: Vec<_> = self.scores.lock().expect("no panic").iter().copied().collect();
                let Some(&(board, transaction_id)) = scores.choose(rng) else { return };
                let path = format!("/transactions/{transaction_id}/void");
                let request = self.client.post(self.url(instance, board, &path)).json(&body);
                let Some((status, text)) = self.send(request).await else { return };
                assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
                let what = Change::Void { transaction_id };
                record.acknowledged.push(Acknowledged { board, instance, at: Instant::now(), what });
            }
            6 | 7 => {
                let board = rng.random_range(0..self.boards.len());
                let path = format!("/scores/{}/reset", self.user(rng));
                let request = self.client.post(self.url(instance, board, &path)).json(&body);
                let Some((status, text)) = self.send(request).await else { return };
                assert!([StatusCode::NO_CONTENT, StatusCode::NOT_FOUND].contains(&status), "{status}: {text}");
                let what = Change::Act { reason };
                record.acknowledged.push(Acknowledged { board, instance, at: Instant::now(), what });
            }
            _ => {
                let user = self.user(rng);
                let body = json!({"name": format!("{user} the {}", rng.random_range(0..1_000))});
                let request = self.client.put(format!("{url}/v1/users/{user}")).json(&body);
                let Some((status, text)) = self.send(request).await else { return };
                assert!(status.is_success(), "{status}: {text}");
            }
        }
    }

    /// Records an act that concerns every board.
    fn acted(&self, record: &mut Record, instance: usize, reason: &str, status: StatusCode) {
        for board in (0..self.boards.len()).filter(|_| status.is_success()) {
            let what = Change::Act { reason: reason.to_owned() };
            record.acknowledged.push(Acknowledged { board, instance, at: Instant::now(), what });
        }
    }

    /// Sends a request with the admin key; see [`Self::answer`].
    async fn send(&self, request: RequestBuilder) -> Option<(StatusCode, String)> {
        let (status, _, text) = self.answer(request.bearer_auth(&self.key)).await?;
        Some((status, text))
    }

    /// Sends a request and returns its answer. Returns `None` on a connection error, 502, 503 or
    /// 504 if `may_fail` is set; otherwise a failure panics.
    async fn answer(&self, request: RequestBuilder) -> Option<(StatusCode, HeaderMap, String)> {
        let answer = async {
            let response = request.send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, response.text().await?))
        };
        // A balancer answers 502 or 504 if an instance does not answer.
        let away = [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
        let is_away = |status| self.may_fail && away.contains(&status);
        match answer.await {
            Ok((status, ..)) if is_away(status) => None,
            Ok((status, _, text)) if status.is_server_error() => panic!("{status}: {text}"),
            Ok(answer) => Some(answer),
            Err(_) if self.may_fail => None,
            Err(error) => panic!("no answer: {error:?}"),
        }
    }
}

/// A reader and its earlier answers.
#[derive(Debug, Default)]
struct Reader {
    /// The last page with its cursor: board, kind of period, cursor, last row.
    page: Option<(usize, &'static str, String, Box<Value>)>,
    /// Top lists with their tags, by address.
    tops: HashMap<String, (String, String)>,
}

impl Reader {
    /// Asks a random question.
    async fn ask(&mut self, load: &Load, record: &mut Record, rng: &mut StdRng, instance: usize) {
        let mut board = rng.random_range(0..load.boards.len());
        let mut period = *load.periods.choose(rng).expect("a period");
        let limit = rng.random_range(1..=60);
        let mut cursor = None;
        let question = match rng.random_range(0..20) {
            0..=4 => Question::Player { user: load.user(rng), around: 0 },
            5..=7 => Question::Player { user: load.user(rng), around: 4 },
            8..=10 => match self.page.take().filter(|_| load.cursors && rng.random_bool(0.6)) {
                Some((on, of, text, last)) => {
                    (board, period, cursor) = (on, of, Some(text));
                    Question::After { last, limit }
                }
                None => Question::Page { from: rng.random_range(2..load.players + 20), limit },
            },
            11..=13 => {
                let mut users: Vec<String> = (0..limit.min(15)).map(|_| load.user(rng)).collect();
                users.push(format!("nobody {limit}"));
                users.sort();
                users.dedup();
                Question::Chosen(users)
            }
            14 | 15 => Question::RankOf(rng.random_range(-10..80)),
            16 | 17 => Question::Top { limit: 10 },
            18 => Question::Top { limit: 100 },
            _ => Question::Distribution,
        };
        let get = |path: String| load.client.get(load.url(instance, board, &format!("{path}period={period}")));
        let request = match &question {
            Question::Player { user, around } => get(format!("/scores/{user}?around={around}&")),
            Question::Page { from, limit } => get(format!("/scores?from={from}&limit={limit}&")),
            Question::After { limit, .. } => {
                get(format!("/scores?cursor={}&limit={limit}&", cursor.unwrap_or_default()))
            }
            Question::Chosen(users) => {
                let body = json!({"user_ids": users, "period": period});
                load.client.post(load.url(instance, board, "/scores/query")).json(&body)
            }
            Question::RankOf(score) => get(format!("/rank?score={score}&")),
            Question::Top { limit } => get(format!("/scores?limit={limit}&")),
            Question::Distribution => get("/distribution?".to_owned()),
        };
        let address = format!("{instance} {board} {period} {question:?}");
        let known = self.tops.get(&address).filter(|_| rng.random_bool(0.5));
        let request = known.into_iter().fold(request, |request, (tag, _)| request.header(header::IF_NONE_MATCH, tag));
        let sent_at = Instant::now();
        let Some((status, headers, mut text)) = load.answer(request).await else { return };
        let header = |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
        let (tag, is_from_index) = (header("etag"), header("centile-source").is_some_and(|source| source == "index"));
        let done_at = Instant::now();
        if load.may_fail && text.contains(r#""stale":"#) {
            return;
        }
        if let (StatusCode::NOT_MODIFIED, Some((_, body))) = (status, known) {
            text.clone_from(body);
        } else {
            let may_be_missing = matches!(question, Question::Player { .. });
            let is_missing = may_be_missing && status == StatusCode::NOT_FOUND;
            assert!(status == StatusCode::OK || is_missing, "{status} to {address}: {text}");
        }
        if let Some(tag) = tag {
            self.tops.insert(address, (tag, text.clone()));
        }
        if matches!(question, Question::Page { .. } | Question::After { .. }) {
            let mut page = parsed(&text);
            if let (Some(next), Some(last)) =
                (page["next_cursor"].as_str().map(ToOwned::to_owned), page["data"].as_array_mut().and_then(Vec::pop))
            {
                self.page = Some((board, period, next, Box::new(last)));
            }
        }
        load.answered.fetch_add(1, Ordering::Relaxed);
        let body = (status != StatusCode::NOT_FOUND).then_some(text);
        record.answers.push(Answer { board, instance, period, question, is_from_index, sent_at, done_at, body });
    }
}

/// Parses a text that must be JSON.
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
