//! Open-loop load of scores, ranks and top lists over HTTP.
//!
//! Each request starts when it is due, even if earlier ones are unanswered, and its latency counts
//! from that time. So a stalled service shows in the latencies. A request fails at once while
//! [`WAITING`] others are waiting.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rand::RngExt as _;
use reqwest::{Client, RequestBuilder};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::{BenchResult, percentile};

/// Maximum concurrent requests, and so connections, of a load. Further requests wait.
const CONNECTIONS: usize = 512;
/// Maximum waiting and concurrent requests of a load.
const WAITING: usize = 10_000;

/// The outcome of a request.
struct Answer {
    at: Instant,
    latency: Duration,
    /// The status and, if present, the version; or the error.
    said: Result<(u16, Option<String>), String>,
}

/// A running load. Stop it with [`Self::stop`].
pub struct Load {
    /// One entry per due request, "no answer" until it is answered.
    answers: Arc<Mutex<Vec<Answer>>>,
    connections: Arc<Semaphore>,
    task: JoinHandle<()>,
}

/// Latencies of a time interval, in milliseconds.
#[derive(Clone, Copy)]
pub struct Latency {
    pub answers: usize,
    pub failed: usize,
    pub p50: f64,
    pub p99: f64,
    #[allow(dead_code, reason = "one benchmark does not use it")]
    pub p999: f64,
    pub max: f64,
}

impl Load {
    /// Starts a load; `request` builds each request.
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

    /// Sends no further requests, and gives in-flight ones 3 s to complete. Waiting requests are
    /// dropped.
    pub async fn stop(&self) {
        self.task.abort();
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.connections.close();
    }

    /// Returns the latencies of requests that were due in an interval. A response other than 200 is
    /// a failure of infinite latency, so that quick refusals do not improve the result.
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

    /// Counts the outcomes.
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
    // The latency includes the whole body.
    response.bytes().await.map_err(|error| error.to_string())?;
    Ok((status, version))
}

/// Returns a generator of random players.
pub fn anyone(players: u64) -> impl Fn() -> u64 + Send + use<> {
    move || rand::rng().random_range(1..=players)
}

/// Returns a generator of score submissions with a server key.
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

/// Returns a generator of rank requests for random players, with `around` neighbours on each side.
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

/// Returns a generator of top list requests.
pub fn top(address: &str, board: &str, period: &str, limit: u32) -> impl Fn() -> RequestBuilder + Send + use<> {
    let client = Client::new();
    let url = format!("{address}/v1/boards/{board}/scores?period={period}&limit={limit}");
    move || client.get(&url)
}

/// Returns whether the response is 200.
pub async fn works(request: RequestBuilder) -> BenchResult<bool> {
    Ok(answer(request).await?.0 == 200)
}
