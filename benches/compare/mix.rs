//! The mix: scores, ranks and top lists at the rates of the design load, as an open loop. Latencies
//! count from the time when a request was due.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::{
    common::{
        Bench, BenchResult,
        load::{self, Latency, Load},
    },
    measure::{Measure, Written},
    stale::{self, Staleness},
    system::{BOARD, Site, System},
};

/// Duration of the warm-up with half the load, because servers have just started.
const LEAD_IN: Duration = Duration::from_secs(10);

/// Rates and durations of the mix.
#[derive(Debug, Clone, Copy, Args)]
pub struct Rates {
    /// Seconds of the mix; 0 to skip it
    #[arg(long, default_value_t = 60)]
    mix_seconds: u32,

    /// Number of rounds of the mix; each measures every system
    #[arg(long, default_value_t = 1)]
    pub mix_rounds: u32,

    /// Scores per second in the mix
    #[arg(long, default_value_t = 2_500)]
    pub mix_scores: u32,

    /// Ranks per second in the mix
    #[arg(long, default_value_t = 250)]
    pub mix_ranks: u32,

    /// Top lists per second in the mix
    #[arg(long, default_value_t = 50)]
    pub mix_tops: u32,

    /// Seconds of the staleness check for systems with cached counts; a quarter for other systems
    #[arg(long, default_value_t = 65)]
    stale_seconds: u32,
}

impl Rates {
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.mix_seconds.into())
    }

    fn half(self) -> Self {
        let [mix_scores, mix_ranks, mix_tops] =
            [self.mix_scores, self.mix_ranks, self.mix_tops].map(|rate| rate.div_ceil(2));
        Self { mix_scores, mix_ranks, mix_tops, ..self }
    }
}

/// Results of a kind of request.
#[derive(Debug, Serialize)]
pub struct Kind {
    pub name: &'static str,
    pub requests: usize,
    /// Successful responses per second.
    pub per_second: f64,
    /// Not answered with 200, not answered at all, or not sent because too many waited: later than
    /// any answer.
    pub failed: usize,
    /// Percentile of all requests; absent if it falls on a failed request.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
}

/// Results of a system in the mix.
#[derive(Debug, Serialize)]
pub struct Mix {
    pub system: System,
    /// Round, from 1.
    pub round: u32,
    pub kinds: Vec<Kind>,
    pub wal_bytes_per_score: f64,
    pub staleness: Staleness,
    /// Peak memory of its server.
    pub memory_mib: f64,
}

/// Runs the mix and checks staleness during it. Compares ranks with `rank()` afterwards.
pub async fn hold(measure: &Measure<'_>, site: &Site, system: System, round: u32, rates: Rates) -> BenchResult<Mix> {
    let bench: &Bench = measure.bench;
    measure.read_in(site)?;
    let mut written = Written::begin(bench, site, system)?;
    let serve = site.serve(bench, system, measure.options)?;
    let address = &serve.address;
    let before = start(address, site, rates.half());
    tokio::time::sleep(LEAD_IN).await;
    for (_, load) in &before {
        load.stop().await;
    }
    bench.psql("CHECKPOINT")?;
    let wal = bench.psql("SELECT pg_current_wal_lsn()")?;
    let begin = Instant::now();
    let loads = start(address, site, rates);
    tokio::time::sleep(rates.duration()).await;
    let end = Instant::now();
    let wal = bench.psql(&format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{wal}')"))?.parse::<f64>()?;
    let seconds = if system.is_stale_by_design() { rates.stale_seconds } else { rates.stale_seconds / 4 };
    let stale = stale::watch(bench, site, system, address, Duration::from_secs(seconds.into())).await;
    for (_, load) in &loads {
        load.stop().await;
    }
    let kinds: Vec<_> =
        loads.iter().map(|(name, load)| kind(name, &load.latency(begin, end), rates.duration())).collect();
    let wal_bytes_per_score = wal / (kinds[0].requests - kinds[0].failed) as f64;
    let acknowledged = |(_, load): &(&str, Load)| load.said().get("200").copied().unwrap_or_default() as f64;
    written.acknowledged = acknowledged(&before[0]) + acknowledged(&loads[0]);
    let memory_mib = serve.peak_memory_mb()?;
    let mix = Mix { system, round, kinds, wal_bytes_per_score, staleness: stale?, memory_mib };
    for kind in &mix.kinds {
        eprintln!("mix: {}: {}: {} of {} failed", system.title(), kind.name, kind.failed, kind.requests);
    }
    measure.compare_at_rest(site, system, serve).await?;
    written.check(bench, site, system)?;
    measure.tidy(site)?;
    Ok(mix)
}

/// Starts the three kinds of load, scores first. Witnesses and probes get no scores from it.
fn start(address: &str, site: &Site, rates: Rates) -> [(&'static str, Load); 3] {
    let anyone = load::anyone(site.players);
    let player = move || loop {
        let player = anyone();
        if !stale::is_watched(player) {
            return player;
        }
    };
    [
        ("scores", Load::start(rates.mix_scores, load::scores(address, BOARD, &site.key, player))),
        ("ranks", Load::start(rates.mix_ranks, load::ranks(address, BOARD, "all_time", 0, site.players))),
        ("tops", Load::start(rates.mix_tops, load::top(address, BOARD, "all_time", 10))),
    ]
}

fn kind(name: &'static str, latency: &Latency, time: Duration) -> Kind {
    let answered = |ms: f64| ms.is_finite().then_some(ms);
    Kind {
        name,
        requests: latency.answers,
        failed: latency.failed,
        per_second: (latency.answers - latency.failed) as f64 / time.as_secs_f64(),
        p50_ms: answered(latency.p50),
        p99_ms: answered(latency.p99),
        p999_ms: answered(latency.p999),
    }
}
