//! Scores, ranks and tops at a steady rate over HTTP: each request starts at its time, whether or not those before have
//! been answered, and its latency counts from that time. A service that stands still is seen to.
//!
//! What a service cannot answer piles up only so far: a request that finds [`WAITING`] others before it has failed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rand::RngExt as _;
use reqwest::{Client, RequestBuilder};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::{Outcome, percentile};

/// Most requests of a load that are on their way at a time, and so its most connections; the others wait for their turn.
const CONNECTIONS: usize = 512;
/// Most requests of a load that wait or are on their way.
const WAITING: usize = 10_000;

/// What became of one request.
struct Answer {
    at: Instant,
    latency: Duration,
    /// The status and, of what has one, the version; or why there was none.
    said: Result<(u16, Option<String>), String>,
}

/// Requests that go on until this is stopped.
pub struct Load {
    /// One for each request that was due; until it is answered it says that it was not.
    answers: Arc<Mutex<Vec<Answer>>>,
    connections: Arc<Semaphore>,
    task: JoinHandle<()>,
}

/// Latencies of a stretch of time, in milliseconds.
#[derive(Clone, Copy)]
pub struct Latency {
    pub answers: usize,
    pub failed: usize,
    pub p50: f64,
    pub p99: f64,
    #[allow(dead_code, reason = "one of the benchmarks reports it")]
    pub p999: f64,
    pub max: f64,
}

impl Load {
    /// Begins; `request` makes each request.
    pub fn start(per_second: u32, request: impl Fn() -> RequestBuilder + Send + 'static) -> Self {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (waiting, connections) = (Arc::new(Semaphore::new(WAITING)), Arc::new(Semaphore::new(CONNECTIONS)));
        let (kept, free) = (Arc::clone(&answers), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            let begin = Instant::now();
            for n in 0_u32.. {
                let at = begin + Duration::from_secs(1) * n / per_second;
                tokio::time::sleep_until(at.into()).await;
                let unanswered = Answer { at, latency: Duration::MAX, said: Err("no answer".to_owned()) };
                let place = {
                    let mut answers = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    answers.push(unanswered);
                    answers.len() - 1
                };
                let Ok(turn) = Arc::clone(&waiting).try_acquire_owned() else { continue };
                let (request, kept, free) = (request(), Arc::clone(&kept), Arc::clone(&free));
                tokio::spawn(async move {
                    let _turn = turn;
                    let Ok(_connection) = free.acquire().await else { return };
                    let answer = Answer { at, said: answer(request).await, latency: at.elapsed() };
                    kept.lock().unwrap_or_else(PoisonError::into_inner)[place] = answer;
                });
            }
        });
        Self { answers, connections, task }
    }

    /// No further requests; returns when those under way have had the time to be answered. What still waits then is never sent.
    pub async fn stop(&self) {
        self.task.abort();
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.connections.close();
    }

    /// Of the requests that began in a stretch of time. All that are not 200 have failed, and took longer than anything: a quick
    /// refusal makes no service quick.
    pub fn latency(&self, from: Instant, to: Instant) -> Latency {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers: Vec<_> = answers.iter().filter(|answer| from <= answer.at && answer.at < to).collect();
        let is_answer = |answer: &Answer| matches!(&answer.said, Ok((200, _)));
        let failed = answers.iter().filter(|answer| !is_answer(answer)).count();
        let latency =
            |answer: &&Answer| if is_answer(answer) { answer.latency.as_secs_f64() * 1e3 } else { f64::INFINITY };
        let mut latencies: Vec<_> = answers.iter().map(latency).collect();
        let mut at = |percent| percentile(&mut latencies, percent);
        Latency { answers: answers.len(), failed, p50: at(50.0), p99: at(99.0), p999: at(99.9), max: at(100.0) }
    }

    /// How often each thing was said.
    pub fn said(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for answer in self.answers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let said = match &answer.said {
                Ok((status, None)) => status.to_string(),
                Ok((status, Some(version))) => format!("{status} {version}"),
                Err(error) => error.clone(),
            };
            *counts.entry(said).or_default() += 1;
        }
        counts
    }
}

async fn answer(request: RequestBuilder) -> Result<(u16, Option<String>), String> {
    let response = request.send().await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let version = response.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(ToOwned::to_owned);
    // An answer is there when all of it is.
    response.bytes().await.map_err(|error| error.to_string())?;
    Ok((status, version))
}

/// A random one of so many players.
pub fn anyone(players: u64) -> impl Fn() -> u64 + Send + use<> {
    move || rand::rng().random_range(1..=players)
}

/// A score of a player, by the key of a game server.
pub fn scores<P: Fn() -> u64 + Send>(
    address: &str,
    board: &str,
    key: &str,
    player: P,
) -> impl Fn() -> RequestBuilder + Send + use<P> {
    let client = Client::new();
    let (url, key) = (format!("{address}/v1/boards/{board}/scores"), key.to_owned());
    move || {
        let (player, points) = (player(), rand::rng().random_range(0..=1_000));
        let body = format!(r#"{{"user_id": "player-{player}", "points": {points}}}"#);
        client.post(&url).bearer_auth(&key).header("content-type", "application/json").body(body)
    }
}

/// The rank of a random player in a period, with so many neighbours on either side.
pub fn ranks(
    address: &str,
    board: &str,
    period: &str,
    around: u32,
    players: u64,
) -> impl Fn() -> RequestBuilder + Send + use<> {
    let client = Client::new();
    let (url, period) = (format!("{address}/v1/boards/{board}/scores"), period.to_owned());
    let player = anyone(players);
    move || client.get(format!("{url}/player-{}?period={period}&around={around}", player()))
}

/// The first of a period.
pub fn top(address: &str, board: &str, period: &str, limit: u32) -> impl Fn() -> RequestBuilder + Send + use<> {
    let client = Client::new();
    let url = format!("{address}/v1/boards/{board}/scores?period={period}&limit={limit}");
    move || client.get(&url)
}

/// Whether a request is answered with 200.
pub async fn works(request: RequestBuilder) -> Outcome<bool> {
    Ok(answer(request).await?.0 == 200)
}
