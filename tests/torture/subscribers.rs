//! Thousands of subscribers of one board that receives scores: the delay of events, the memory for
//! each subscriber, and the effect on writes and reads.
//!
//! `CENTILE_TRIAL_SUBSCRIBERS`, `CENTILE_TRIAL_SCORES` (a second), `CENTILE_TRIAL_CHOSEN` (players
//! that some of the subscribers follow) and `CENTILE_TRIAL_SECONDS` (of each of six rounds) change
//! the size of the trial.

use std::{
    env,
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};

use rand::RngExt as _;
use regex::bytes::Regex;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    common::percentile,
    probe::memory_mb,
    report::Trial,
    support::{TestDb, load::key, redis_url, spawn_serve},
};

/// Players of the board.
const PLAYERS: u32 = 10_000;
/// Events of a request.
const EVENTS: u64 = 10;
/// Ranks read in a second.
const READS: u64 = 100;
/// Interval between two scores of the marker, the player in first place.
const MARKED_EVERY: Duration = Duration::from_millis(500);
/// The marker's first score; each later one is one more.
const FIRST_MARK: usize = 1_000_000_000;
/// Finds the marker's score without parsing the events of thousands, because they and the servers
/// share the cores.
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""name":"marker","avatar_url":null,"score":1([0-9]{9})"#).expect("a pattern"));
/// Maximum length of an incomplete match at the end of the bytes.
const MARK_BYTES: usize = 64;
/// One in this many subscribers follows a player besides the top list.
const ONE_FOLLOWS_IN: usize = 10;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// When each of the marker's scores was acknowledged, and how long after that each subscriber
/// received it.
#[derive(Debug, Default)]
struct Marks {
    acknowledged: Mutex<Vec<Instant>>,
    /// In milliseconds.
    delays: Mutex<Vec<f64>>,
}

impl Marks {
    /// Records that a subscriber received the marks from `from` to before `to`.
    fn note(&self, from: usize, to: usize) {
        let now = Instant::now();
        let known = self.acknowledged.lock().unwrap();
        let mut delays = self.delays.lock().unwrap();
        for mark in from..to {
            // Received before the acknowledgement: no delay.
            let delay = known.get(mark).map_or(Duration::ZERO, |at| now.saturating_duration_since(*at));
            delays.push(delay.as_secs_f64() * 1_000.0);
        }
    }
}

/// Returns the number of the last marker score in these bytes.
fn last_mark(bytes: &[u8]) -> Option<usize> {
    let [digits] = MARK.captures_iter(bytes).last()?.extract().1;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Follows the board for as long as the future is polled.
async fn listen(place: String, chosen: Option<u32>, marks: Arc<Marks>) {
    let mut stream = TcpStream::connect(place).await.expect("a connection");
    let users = chosen.map_or_else(String::new, |player| format!("?user_id=p{player}"));
    let request = format!("GET /v1/boards/arena/live{users} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let (mut buffer, mut seen, mut left) = (vec![0; 8 << 10], None, Vec::new());
    loop {
        let length = stream.read(&mut buffer).await.expect("events");
        assert_ne!(length, 0, "the stream has ended");
        left.extend_from_slice(&buffer[..length]);
        // Marks from before this subscription do not count.
        if let Some(mark) = last_mark(&left) {
            if let Some(seen) = seen {
                marks.note(seen, mark);
            }
            seen = Some(mark);
        }
        let keep = left.len().saturating_sub(MARK_BYTES);
        left.drain(..keep);
    }
}

/// Durations of writes and reads, in milliseconds.
#[derive(Debug, Default)]
struct Times {
    writes: Vec<f64>,
    reads: Vec<f64>,
}

/// Sends requests at a steady rate for some seconds, without waiting for earlier answers.
async fn at_rate<F>(per_second: u64, seconds: u64, request: impl Fn() -> F) -> Vec<f64>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(per_second).unwrap());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut under_way = JoinSet::new();
    for _ in 0..per_second * seconds {
        ticks.tick().await;
        let request = request();
        under_way.spawn(async move {
            let begun = Instant::now();
            request.await;
            begun.elapsed().as_secs_f64() * 1_000.0
        });
    }
    under_way.join_all().await
}

/// Writes and reads for some seconds.
async fn work(client: &Client, address: &str, key: &str, scores: u64, seconds: u64) -> Times {
    let write = || {
        let mut rng = rand::rng();
        let events: Vec<Value> = (0..EVENTS)
            .map(|_| json!({"user_id": format!("p{}", rng.random_range(0..PLAYERS)), "points": rng.random_range(1..100)}))
            .collect();
        let request = client.post(format!("{address}/batch")).bearer_auth(key).json(&json!({"events": events}));
        async move { assert_eq!(request.send().await.expect("an answer").status(), StatusCode::OK) }
    };
    let read = || {
        let request = client.get(format!("{address}/p{}", rand::rng().random_range(0..PLAYERS)));
        async move {
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::OK);
            answer.bytes().await.expect("a body");
        }
    };
    let (writes, reads) =
        tokio::join!(at_rate((scores / EVENTS).max(1), seconds, write), at_rate(READS, seconds, read));
    Times { writes, reads }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_get_events_within_a_second() {
    let subscribers = usize::try_from(setting("CENTILE_TRIAL_SUBSCRIBERS", 5_000)).unwrap();
    let (scores, seconds) = (setting("CENTILE_TRIAL_SCORES", 1_000), setting("CENTILE_TRIAL_SECONDS", 20));
    let chosen_players = u32::try_from(setting("CENTILE_TRIAL_CHOSEN", 100)).unwrap();
    let mut trial = Trial::begin(
        "subscribers",
        format!("{subscribers} subscribers"),
        "events within 1 s of the answer at p99, 20 kB each, writes and ranks no more than 20 % slower",
    );
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 2}')").await;
    let serve = spawn_serve(&db, Some(&redis_url().await), &["--address-subscribers", "0"]).await;
    let (client, key, address) = (serve.client.clone(), key(db.url(), "server"), serve.at("/v1/boards/arena/scores"));
    let players: Vec<u32> = (0..PLAYERS).collect();
    for some in players.chunks(1_000) {
        let events: Vec<Value> =
            some.iter().map(|player| json!({"user_id": format!("p{player}"), "points": player % 100})).collect();
        let answer = client
            .post(format!("{address}/batch"))
            .bearer_auth(&key)
            .json(&json!({"events": events}))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    }
    // The player in first place.
    let mark = async |points: u64| {
        let event = json!({"user_id": "marker", "points": points});
        let answer = client.post(&address).bearer_auth(&key).json(&event).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    };
    mark(FIRST_MARK as u64).await;
    // Warms up caches and connections, so that all rounds are alike.
    work(&client, &address, &key, scores, 5).await;

    let marks = Arc::new(Marks::default());
    let (mut without, mut with) = (Times::default(), Times::default());
    let (mut each_kb, mut marked) = (Vec::new(), 0);
    for turn in 0..6 {
        let before_mb = memory_mb(serve.id(), "VmRSS");
        if turn % 2 == 0 {
            let times = work(&client, &address, &key, scores, seconds).await;
            without.writes.extend(times.writes);
            without.reads.extend(times.reads);
            continue;
        }
        let place = serve.url.strip_prefix("http://").unwrap().to_owned();
        let mut all = JoinSet::new();
        for subscriber in 0..subscribers {
            let chosen = (subscriber % ONE_FOLLOWS_IN == 0).then(|| rand::rng().random_range(0..chosen_players));
            all.spawn(listen(place.clone(), chosen, Arc::clone(&marks)));
            if subscriber % 100 == 99 {
                sleep(Duration::from_millis(20)).await;
            }
        }
        sleep(Duration::from_secs(3)).await;
        let working = work(&client, &address, &key, scores, seconds);
        let marking = async {
            let mut ticks = interval(MARKED_EVERY);
            for _ in 0..seconds * 2 {
                ticks.tick().await;
                mark(1).await;
                marks.acknowledged.lock().unwrap().push(Instant::now());
                marked += 1;
            }
        };
        let (times, ()) = tokio::join!(working, marking);
        with.writes.extend(times.writes);
        with.reads.extend(times.reads);
        each_kb.push((memory_mb(serve.id(), "VmRSS") - before_mb) * 1_024.0 / subscribers as f64);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(all.len(), subscribers, "a subscriber has disconnected");
        assert!(all.try_join_next().is_none(), "a subscriber has disconnected");
        all.shutdown().await;
        sleep(Duration::from_secs(1)).await;
    }

    let mut delays = marks.delays.lock().unwrap().clone();
    let wanted = marked * subscribers as u64;
    trial.saw(format!("{subscribers} subscribers, one in {ONE_FOLLOWS_IN} with one of {chosen_players} players; {scores} scores and {READS} ranks a second; six rounds of {seconds} s"));
    trial.expect(delays.len() as u64 == wanted, format!("{} of {wanted} marks were received", delays.len()));
    let (p50, p99) = (percentile(&mut delays, 50.0), percentile(&mut delays, 99.0));
    trial.expect(p99 <= 1_000.0, format!("from the answer to the event {p50:.0} ms at p50, {p99:.0} ms at p99"));
    let most_kb = each_kb.iter().copied().fold(f64::MIN, f64::max);
    trial.expect(most_kb <= 20.0, format!("{most_kb:.1} kB a subscriber"));
    for (what, without, with) in
        [("writes", &mut without.writes, &mut with.writes), ("ranks", &mut without.reads, &mut with.reads)]
    {
        let [from50, to50] = [percentile(without, 50.0), percentile(with, 50.0)];
        let [from99, to99] = [percentile(without, 99.0), percentile(with, 99.0)];
        trial.expect(
            to50 <= 1.2 * from50,
            format!(
                "{what} {from50:.1} ms at p50 and {from99:.1} at p99 without, {to50:.1} and {to99:.1} with subscribers"
            ),
        );
    }
    trial.end();
}
