//! The mix: scores, ranks and tops at the rates of the design load, open loop. Nobody waits for the answer before the next request,
//! and latencies count from the time at which a request was due.

use std::time::{Duration, Instant};

use clap::Args;
use rand::RngExt as _;
use reqwest::{Client, RequestBuilder};
use serde::Serialize;

use crate::{
    common::{
        Bench, Outcome,
        load::{self, Latency, Load},
    },
    measure::Measure,
    stale::{self, Staleness},
    system::{BOARD, Site, System},
};

/// Rates and times of the mix.
#[derive(Debug, Clone, Copy, Args)]
pub struct Rates {
    /// Seconds that the mix is held; 0 for none
    #[arg(long, default_value_t = 60)]
    mix_seconds: u32,

    /// Scores a second in the mix
    #[arg(long, default_value_t = 2_500)]
    pub mix_scores: u32,

    /// Ranks a second in the mix
    #[arg(long, default_value_t = 250)]
    pub mix_ranks: u32,

    /// Tops a second in the mix
    #[arg(long, default_value_t = 50)]
    pub mix_tops: u32,

    /// Seconds for which the load goes on while answers are compared, where counts are used for a minute; a quarter elsewhere
    #[arg(long, default_value_t = 65)]
    stale_seconds: u32,
}

impl Rates {
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.mix_seconds.into())
    }
}

/// What became of one kind of request.
#[derive(Debug, Serialize)]
pub struct Kind {
    pub name: &'static str,
    pub requests: usize,
    /// Not answered with 200, not answered at all, or not sent because too many waited.
    pub failed: usize,
    /// Of all requests; absent where it falls on one that was not answered.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
}

/// What a system made of the mix.
#[derive(Debug, Serialize)]
pub struct Mix {
    pub system: System,
    pub kinds: Vec<Kind>,
    pub staleness: Staleness,
    /// The most memory that its server had.
    pub memory_mib: f64,
}

/// Holds the mix, and compares answers while it goes on. Ranks are compared with `rank()` afterwards.
pub async fn hold(measure: &Measure<'_>, site: &Site, system: System, rates: Rates) -> Outcome<Mix> {
    let bench: &Bench = measure.bench;
    bench.psql("CHECKPOINT")?;
    let serve = site.serve(bench, system, measure.options)?;
    let address = &serve.address;
    let begin = Instant::now();
    let loads = [
        ("scores", Load::start(rates.mix_scores, scores(address, &site.key, site.players))),
        ("ranks", Load::start(rates.mix_ranks, load::ranks(address, BOARD, "all_time", site.players))),
        ("tops", Load::start(rates.mix_tops, tops(address))),
    ];
    tokio::time::sleep(rates.duration()).await;
    let end = Instant::now();
    let seconds = if system.is_stale_by_design() { rates.stale_seconds } else { rates.stale_seconds / 4 };
    let stale = stale::watch(bench, site, system, address, Duration::from_secs(seconds.into())).await;
    for (_, load) in &loads {
        load.stop().await;
    }
    let kinds = loads.iter().map(|(name, load)| kind(name, &load.latency(begin, end))).collect();
    let mix = Mix { system, kinds, staleness: stale?, memory_mib: serve.peak_memory_mb()? };
    for kind in &mix.kinds {
        eprintln!("mix: {}: {}: {} of {} failed", system.title(), kind.name, kind.failed, kind.requests);
    }
    measure.compare_at_rest(site, system, serve).await?;
    Ok(mix)
}

fn kind(name: &'static str, latency: &Latency) -> Kind {
    let answered = |ms: f64| (ms < 1e9).then_some(ms);
    Kind {
        name,
        requests: latency.answers,
        failed: latency.failed,
        p50_ms: answered(latency.p50),
        p99_ms: answered(latency.p99),
        p999_ms: answered(latency.p999),
    }
}

/// A score of a random player who is not watched.
fn scores(address: &str, key: &str, players: u64) -> impl Fn() -> RequestBuilder + Send + use<> {
    let client = Client::new();
    let (url, key) = (format!("{address}/v1/boards/{BOARD}/scores"), key.to_owned());
    move || {
        let mut random = rand::rng();
        let mut player = random.random_range(1..=players);
        while stale::is_watched(player) {
            player = random.random_range(1..=players);
        }
        let points = random.random_range(0..=1_000);
        let body = format!(r#"{{"user_id":"player-{player}","points":{points}}}"#);
        client.post(&url).bearer_auth(&key).header("content-type", "application/json").body(body)
    }
}

/// The first ten.
fn tops(address: &str) -> impl Fn() -> RequestBuilder + Send + use<> {
    let client = Client::new();
    let url = format!("{address}/v1/boards/{BOARD}/scores?limit=10");
    move || client.get(&url)
}
