//! Ten times as many scores as the service can write. Accepted ones are written soon, the others
//! are refused at once, and the service recovers immediately afterwards.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use centile::dev::local::PostgresOptions;
use reqwest::{Client, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    common::{RECOMMENDED, percentile},
    probe::memory_mb,
    report::{Trial, seconds},
    support::{Serve, audit, load::key, own_postgres, redis_url},
};

/// Duration of the overload.
const OVERLOAD: Duration = Duration::from_mins(1);
/// Factor of the load over the capacity.
const OVERLOAD_FACTOR: f64 = 10.0;
/// Events of a request. With short lists, most of the load would be HTTP, and client, service and
/// PostgreSQL share the cores.
const EVENTS: u32 = 100;
/// Number of prepared bodies.
const BODIES: usize = 2_000;
/// Players of the board.
const PLAYERS: u32 = 10_000;
/// Maximum number of requests in progress. Requests beyond it are counted as unsent.
const MAX_IN_PROGRESS: usize = 2_000;
/// Reads a second during the overload.
const READS: f64 = 50.0;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All events were accepted.
    Done,
    /// Some or all events were refused with 503.
    Refused,
    /// Any other answer.
    Failed,
}

/// Requests sent at a steady rate, without waiting for earlier answers.
struct Sent {
    /// Time of sending, duration and outcome of each.
    answers: Vec<(Instant, Duration, Outcome)>,
    /// Number of requests beyond the limit.
    unsent: usize,
}

impl Sent {
    /// Returns the number of requests with this outcome, and the 99th percentile of their durations
    /// in milliseconds.
    fn p99(&self, wanted: Outcome, from: Instant, to: Instant) -> (usize, f64) {
        let those = self.answers.iter().filter(|(at, _, outcome)| from <= *at && *at < to && *outcome == wanted);
        let mut times: Vec<f64> = those.map(|(_, time, _)| time.as_secs_f64() * 1_000.0).collect();
        (times.len(), percentile(&mut times, 99.0))
    }

    fn count(&self, wanted: Outcome) -> usize {
        self.answers.iter().filter(|(.., outcome)| *outcome == wanted).count()
    }
}

/// Writes and reads. Bodies are prepared and answers are not parsed, because the service shares the
/// cores.
#[derive(Clone)]
struct Caller {
    client: Client,
    address: String,
    key: String,
    bodies: Arc<[String]>,
}

impl Caller {
    async fn write(self) -> Outcome {
        let body = self.bodies[rand::random_range(0..self.bodies.len())].clone();
        let request = self
            .client
            .post(format!("{}/batch", self.address))
            .bearer_auth(&self.key)
            .header(CONTENT_TYPE, "application/json");
        let Ok(answer) = request.body(body).send().await else {
            return Outcome::Failed;
        };
        let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
        match status {
            StatusCode::OK => {
                let accepted = text.matches(r#""state":"accepted""#).count();
                match text.matches(r#""status":503"#).count() {
                    0 if accepted == EVENTS as usize => Outcome::Done,
                    refused if refused > 0 && refused + accepted == EVENTS as usize => Outcome::Refused,
                    _ => Outcome::Failed,
                }
            }
            StatusCode::SERVICE_UNAVAILABLE => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }

    async fn read(self) -> Outcome {
        let path = format!("{}/p{}", self.address, rand::random_range(0..PLAYERS));
        match self.client.get(path).send().await.map(|answer| answer.status()) {
            Ok(StatusCode::OK | StatusCode::NOT_FOUND) => Outcome::Done,
            Ok(StatusCode::SERVICE_UNAVAILABLE) => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }

    /// Sends requests at a rate for some time, and waits for their answers.
    async fn send<F>(&self, per_second: f64, time: Duration, ask: impl Fn(Self) -> F) -> Sent
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let (places, answers) = (Arc::new(Semaphore::new(MAX_IN_PROGRESS)), Arc::new(Mutex::new(Vec::new())));
        let (begin, mut sent, mut unsent) = (Instant::now(), 0.0, 0);
        let mut tasks = JoinSet::new();
        while begin.elapsed() < time {
            while sent < begin.elapsed().as_secs_f64() * per_second {
                sent += 1.0;
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    unsent += 1;
                    continue;
                };
                let (asked, answers) = (ask(self.clone()), Arc::clone(&answers));
                tasks.spawn(async move {
                    let (_place, at) = (place, Instant::now());
                    let outcome = asked.await;
                    answers.lock().expect("no panic").push((at, at.elapsed(), outcome));
                });
            }
            while tasks.try_join_next().is_some() {}
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tasks.join_all().await;
        let answers = std::mem::take(&mut *answers.lock().expect("no panic"));
        Sent { answers, unsent }
    }

    /// Returns the requests a second of concurrent callers that wait for their answers.
    async fn capacity(&self, callers: usize, time: Duration) -> f64 {
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let caller = self.clone();
            tasks.spawn(async move {
                let mut done = 0;
                while begin.elapsed() < time {
                    done += u32::from(caller.clone().write().await == Outcome::Done);
                }
                done
            });
        }
        f64::from(tasks.join_all().await.into_iter().sum::<u32>()) / begin.elapsed().as_secs_f64()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_refused_at_once() {
    let mut trial = Trial::begin(
        "overload",
        "overload: 10 times the capacity for 60 s",
        "accepted requests' p99 within 1 s, the rest 503; reads continue; normal within 5 s after; memory bounded",
    );
    // The tests' shared PostgreSQL never vacuums, so that each batch would take longer than the one
    // before.
    let settings = RECOMMENDED.iter().chain(&[("autovacuum_naptime", "2s")]);
    let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let postgres = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let database = postgres.url("postgres");
    let pool = PgPool::connect(&database).await.expect("the database");
    sqlx::query("SELECT centile.create_board('arena', '{\"lanes\": 4}')").execute(&pool).await.expect("a board");
    let mut command = Serve::command(&database, Some(&redis_url().await), "overload:", &[]);
    let serve = tokio::task::spawn_blocking(move || Serve::start(&mut command)).await.expect("a service");
    let client = Client::builder().timeout(Duration::from_mins(1)).build().expect("a client");
    let event = |_| json!({"user_id": format!("p{}", rand::random_range(0..PLAYERS)), "points": 1});
    let bodies =
        (0..BODIES).map(|_| json!({"events": (0..EVENTS).map(event).collect::<Value>()}).to_string()).collect();
    let caller = Caller { client, address: serve.at("/v1/boards/arena/scores"), key: key(&database, "server"), bodies };
    caller.capacity(4, Duration::from_secs(5)).await;
    let capacity = caller.capacity(16, Duration::from_secs(10)).await;
    trial.saw(format!("accepts {:.0} events a second in lists of {EVENTS}", capacity * f64::from(EVENTS)));
    let begin = Instant::now();
    let normal = caller.send(capacity / 5.0, Duration::from_secs(10), Caller::write).await;
    let (_, normal) = normal.p99(Outcome::Done, begin, Instant::now());
    let before = memory_mb(serve.id(), "VmRSS");

    let begin = Instant::now();
    let (writes, reads) = tokio::join!(
        caller.send(capacity * OVERLOAD_FACTOR, OVERLOAD, Caller::write),
        caller.send(READS, OVERLOAD, Caller::read)
    );
    let over = begin + OVERLOAD;
    let (accepted, p99) = writes.p99(Outcome::Done, begin, over);
    let (refused, failed) =
        (writes.count(Outcome::Refused), writes.count(Outcome::Failed) + reads.count(Outcome::Failed));
    trial.saw(format!(
        "{accepted} requests accepted as a whole, {refused} refused in whole or in part, {} not even sent",
        writes.unsent
    ));
    trial.expect(
        accepted > 0 && p99 <= 1_000.0,
        format!("p99 of those accepted as a whole {p99:.0} ms, normally {normal:.0} ms"),
    );
    let sixth = |n| writes.p99(Outcome::Done, begin + n * OVERLOAD / 6, begin + (n + 1) * OVERLOAD / 6).1;
    trial.saw(format!("the same for each ten seconds: {:.0?} ms", (0..6).map(sixth).collect::<Vec<_>>()));
    let (_, refusal) = writes.p99(Outcome::Refused, begin, over);
    trial.saw(format!("p99 of those refused in whole or in part {refusal:.0} ms"));
    trial.expect(failed == 0, format!("{failed} other answers"));
    let (answered, read) = reads.p99(Outcome::Done, begin, over);
    let asked = reads.answers.len() + reads.unsent;
    trial.expect(answered * 100 >= asked * 99, format!("{answered} of {asked} reads answered, p99 {read:.0} ms"));
    let memory = memory_mb(serve.id(), "VmHWM");
    trial.expect(memory <= before + 256.0, format!("memory {before:.0} MB before, {memory:.0} MB at most"));

    // The last answers have arrived by now.
    let after = over.elapsed();
    let calm = caller.send(capacity / 5.0, Duration::from_secs(10), Caller::write).await;
    let late = (over + Duration::from_secs(5), Instant::now());
    let (done, p99) = calm.p99(Outcome::Done, late.0, late.1);
    let (turned_away, _) = calm.p99(Outcome::Refused, late.0, late.1);
    let is_normal = after <= Duration::from_secs(5) && done > 0 && turned_away == 0 && p99 <= (3.0 * normal).max(100.0);
    trial.expect(
        is_normal,
        format!("last answer {} after the end; 5 s after it p99 {p99:.0} ms, {turned_away} refused", seconds(after)),
    );
    audit::rankings_are_sound(&pool).await;
    trial.end();
}
