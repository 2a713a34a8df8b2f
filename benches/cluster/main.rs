//! Compares a cluster of a coordinator and workers with a single server, on the same cores: scores in
//! large requests, the processor time that they cost, and ranks from an index. `cargo bench --bench
//! cluster` prints a table. The newest installed PostgreSQL must have Citus; of equal versions, the
//! first in `PATH`.
//!
//! `BENCH_WORKERS` (1), `BENCH_PLAYERS` (100,000), `BENCH_SECONDS` (10) and `BENCH_ROUNDS` (3) set the
//! size.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    path::Path,
    process::Command,
    slice,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use centile::{
    dev::local::{LocalCluster, LocalPostgres, PostgresOptions},
    store::migrate::{init_cluster, migrate_url},
};
use rand::RngExt as _;
use serde_json::json;

#[path = "../common/mod.rs"]
mod common;

use common::{Bench, BenchResult, CENTILE, RECOMMENDED, Serve, median, number_of, output, percentile, processor};

const BOARD: &str = "main";
/// Lanes of the board, on both systems.
const LANES: u16 = 4;
/// Concurrent requests, and scores per request: a quarter of them for each lane.
const CALLERS: usize = 4;
const SCORES: u32 = 1_000;
/// Scores per second of the paced part.
const PACE: u32 = 2_500;
/// Ranks read one after the other.
const RANKS: usize = 500;

/// A service with its PostgreSQL servers.
struct System<'a> {
    name: &'static str,
    serve: Serve,
    key: String,
    /// The servers that write scores.
    writers: &'a [LocalPostgres],
    coordinator: Option<&'a LocalPostgres>,
}

/// Results of a round.
struct Round {
    scores_per_second: f64,
    writers_us: f64,
    coordinator_us: f64,
    /// Percent of a core that the coordinator uses at [`PACE`].
    coordinator_percent: f64,
    rank_ms: f64,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, seconds) = (number_of("BENCH_PLAYERS", 100_000)?, number_of("BENCH_SECONDS", 10)?);
    let (rounds, workers) = (number_of("BENCH_ROUNDS", 3)?, number_of("BENCH_WORKERS", 1)?);
    Bench::in_folder(async |dir| {
        let settings = RECOMMENDED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = PostgresOptions { settings, shared_buffers_mb: common::memory_mb()? / 8, ..Bench::ephemeral() };
        let single = LocalPostgres::start(&dir.join("single"), options.clone())?;
        migrate_url(&single.url("postgres")).await?;
        let cluster = LocalCluster::start(&dir.join("cluster"), workers.try_into()?, &options)?;
        let url = cluster.create_database("boards")?;
        init_cluster(&url, LANES, LANES, None).await?;
        let systems = [
            System::start("single server", &single.url("postgres"), slice::from_ref(&single), None)?,
            System::start("cluster", &url, &cluster.workers, Some(&cluster.coordinator))?,
        ];
        for system in &systems {
            system.fill(players).await?;
        }
        let mut results: [Vec<Round>; 2] = Default::default();
        for _ in 0..rounds {
            for (system, results) in systems.iter().zip(&mut results) {
                results.push(system.measure(players, Duration::from_secs(seconds.into())).await?);
            }
        }
        report(dir, players, workers, &systems, &results)
    })
    .await
}

fn report(dir: &Path, players: u32, workers: u32, systems: &[System<'_>], results: &[Vec<Round>]) -> BenchResult<()> {
    let version = output(Command::new(systems[0].writers[0].program("postgres")).arg("--version").current_dir(dir))?;
    let version = version.trim().trim_start_matches("postgres (PostgreSQL) ");
    println!("{}\n", common::machine_with(version));
    println!("{players} players, 3 periods, {LANES} lanes, {CALLERS} callers with {SCORES} scores each");
    println!("workers of the cluster: {workers}\n");
    println!(
        "| | scores per second | processor time of the writing servers per score | of the coordinator | of the coordinator at {PACE} scores per second | rank, p50 |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (system, rounds) in systems.iter().zip(results) {
        let middle = |of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
        println!(
            "| {} | {:.0} | {:.0} µs | {:.1} µs | {:.1} % of a core | {:.2} ms |",
            system.name,
            middle(|round| round.scores_per_second),
            middle(|round| round.writers_us),
            middle(|round| round.coordinator_us),
            middle(|round| round.coordinator_percent),
            middle(|round| round.rank_ms)
        );
    }
    Ok(())
}

/// Returns the players of a request.
fn random_players(players: u32) -> Vec<u32> {
    (0..SCORES).map(|_| rand::rng().random_range(1..=players)).collect()
}

impl<'a> System<'a> {
    fn start(
        name: &'static str,
        url: &str,
        writers: &'a [LocalPostgres],
        coordinator: Option<&'a LocalPostgres>,
    ) -> BenchResult<Self> {
        let command = || {
            let mut command = Command::new(CENTILE);
            command.env("DATABASE_URL", url).env("CENTILE_WRITE_WAIT", "60000");
            command
        };
        let lanes = LANES.to_string();
        output(command().args(["board", "create", BOARD, "--lanes", &lanes, "--periods", "all_time,week,month"]))?;
        let key = output(command().args(["key", "create", "--name", "bench", "--role", "server", "--all-boards"]))?;
        let flags = ["--listen", "127.0.0.1:0", "--address-rate", "0", "--key-rate", "0", "--no-maintenance"];
        let serve = Serve::spawn(command().arg("serve").args(flags))?;
        Ok(Self { name, serve, key: key.trim().to_owned(), writers, coordinator })
    }

    /// Gives each player a score.
    async fn fill(&self, players: u32) -> BenchResult<()> {
        let mut next = 1;
        while next <= players {
            let last = (next + SCORES - 1).min(players);
            self.send((next..=last).collect()).await?;
            next = last + 1;
        }
        Ok(())
    }

    async fn measure(&self, players: u32, stretch: Duration) -> BenchResult<Round> {
        let coordinator = || self.coordinator.map_or(Ok(0.0), processor::server_seconds);
        let writers = || -> BenchResult<f64> { self.writers.iter().map(processor::server_seconds).sum() };
        let before = (writers()?, coordinator()?);
        let (began, accepted) = (Instant::now(), AtomicU64::new(0));
        let caller = async || {
            while began.elapsed() < stretch {
                self.send(random_players(players)).await?;
                accepted.fetch_add(SCORES.into(), Ordering::Relaxed);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        futures::future::try_join_all((0..CALLERS).map(|_| caller())).await?;
        let (seconds, scores) = (began.elapsed().as_secs_f64(), accepted.load(Ordering::Relaxed) as f64);
        let after = (writers()?, coordinator()?);
        let began = Instant::now();
        let every = Duration::from_secs(1) * SCORES / PACE;
        let mut times = tokio::time::interval(every);
        while began.elapsed() + every < stretch {
            times.tick().await;
            self.send(random_players(players)).await?;
        }
        times.tick().await;
        if began.elapsed() > stretch + every {
            return Err(format!("{}: cannot take {PACE} scores per second", self.name).into());
        }
        let coordinator_percent = (coordinator()? - after.1) * 1e2 / began.elapsed().as_secs_f64();
        let client = reqwest::Client::new();
        let mut times = Vec::with_capacity(RANKS);
        for _ in 0..RANKS {
            let player = rand::rng().random_range(1..=players);
            let url = format!("{}/v1/boards/{BOARD}/scores/player-{player}?period=week", self.serve.address);
            let asked = Instant::now();
            client.get(url).send().await?.error_for_status()?.bytes().await?;
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        Ok(Round {
            scores_per_second: scores / seconds,
            writers_us: (after.0 - before.0) * 1e6 / scores,
            coordinator_us: (after.1 - before.1) * 1e6 / scores,
            coordinator_percent,
            rank_ms: percentile(&mut times, 50.0),
        })
    }

    async fn send(&self, players: Vec<u32>) -> BenchResult<()> {
        let points = || rand::rng().random_range(0..=1_000);
        let events: Vec<_> =
            players.iter().map(|player| json!({"user_id": format!("player-{player}"), "points": points()})).collect();
        let url = format!("{}/v1/boards/{BOARD}/scores/batch", self.serve.address);
        let request = reqwest::Client::new().post(url).bearer_auth(&self.key).json(&json!({"events": events}));
        let text = request.send().await?.error_for_status()?.text().await?;
        if text.contains("\"error\"") {
            return Err(format!("{}: a score was refused: {text}", self.name).into());
        }
        Ok(())
    }
}
