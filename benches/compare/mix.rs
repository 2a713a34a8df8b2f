//! The mix: scores, ranks and tops at the rates of the design load, open loop. Nobody waits for the answer before the next request,
//! and latencies count from the time at which a request was due.

use std::time::{Duration, Instant};

use clap::Args;
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

/// How long the load goes on before it counts: servers have just been started.
const LEAD_IN: Duration = Duration::from_secs(5);

/// Rates and times of the mix.
#[derive(Debug, Clone, Copy, Args)]
pub struct Rates {
    /// Seconds that the mix is held; 0 for none
    #[arg(long, default_value_t = 60)]
    mix_seconds: u32,

    /// Rounds of the mix; each asks every system in turn
    #[arg(long, default_value_t = 1)]
    pub mix_rounds: u32,

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
    /// Not answered with 200, not answered at all, or not sent because too many waited: later than any answer.
    pub failed: usize,
    /// Of all requests; absent where it falls on one that has failed.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
}

/// What a system made of the mix.
#[derive(Debug, Serialize)]
pub struct Mix {
    pub system: System,
    /// From 1.
    pub round: u32,
    pub kinds: Vec<Kind>,
    pub staleness: Staleness,
    /// The most memory that its server had.
    pub memory_mib: f64,
}

/// Holds the mix, and compares answers while it goes on. Ranks are compared with `rank()` afterwards.
pub async fn hold(measure: &Measure<'_>, site: &Site, system: System, round: u32, rates: Rates) -> Outcome<Mix> {
    let bench: &Bench = measure.bench;
    bench.psql("CHECKPOINT")?;
    let serve = site.serve(bench, system, measure.options)?;
    let address = &serve.address;
    let anyone = load::anyone(site.players);
    let player = move || loop {
        let player = anyone();
        if !stale::is_watched(player) {
            return player;
        }
    };
    let loads = [
        ("scores", Load::start(rates.mix_scores, load::scores(address, BOARD, &site.key, player))),
        ("ranks", Load::start(rates.mix_ranks, load::ranks(address, BOARD, "all_time", 0, site.players))),
        ("tops", Load::start(rates.mix_tops, load::top(address, BOARD, "all_time", 10))),
    ];
    tokio::time::sleep(LEAD_IN).await;
    let begin = Instant::now();
    tokio::time::sleep(rates.duration()).await;
    let end = Instant::now();
    let seconds = if system.is_stale_by_design() { rates.stale_seconds } else { rates.stale_seconds / 4 };
    let stale = stale::watch(bench, site, system, address, Duration::from_secs(seconds.into())).await;
    for (_, load) in &loads {
        load.stop().await;
    }
    let kinds = loads.iter().map(|(name, load)| kind(name, &load.latency(begin, end))).collect();
    let mix = Mix { system, round, kinds, staleness: stale?, memory_mib: serve.peak_memory_mb()? };
    for kind in &mix.kinds {
        eprintln!("mix: {}: {}: {} of {} failed", system.title(), kind.name, kind.failed, kind.requests);
    }
    measure.compare_at_rest(site, system, serve).await?;
    measure.tidy(site)?;
    Ok(mix)
}

fn kind(name: &'static str, latency: &Latency) -> Kind {
    let answered = |ms: f64| ms.is_finite().then_some(ms);
    Kind {
        name,
        requests: latency.answers,
        failed: latency.failed,
        p50_ms: answered(latency.p50),
        p99_ms: answered(latency.p99),
        p999_ms: answered(latency.p999),
    }
}
