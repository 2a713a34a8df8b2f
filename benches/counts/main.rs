//! Measures ranks by SQL with and without Redis, from one and from three instances: ranks per
//! second, and where their bucket counts come from. `cargo bench --bench counts` prints a table.
//!
//! Meanwhile 20 newcomers score per second, because only they change the counts each time.
//! `BENCH_PLAYERS` (1,000,000) sets the size of the board, `BENCH_ROUNDS` (3) the number of rounds.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::task::block_in_place;

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve,
    load::{self, Load},
    median, number_of,
    wrk::{self, Answers, Run},
};

const BOARD: &str = "main";
/// Connections of all load generators together, and the seconds of a run.
const CONNECTIONS: u32 = 30;
const SECONDS: u32 = 10;
const NEWCOMERS_PER_SECOND: u32 = 20;
const SOURCES: [&str; 3] = ["process", "shared", "database"];

/// Results of a run.
struct Figures {
    first_ms: f64,
    ranks_per_second: f64,
    p99_ms: f64,
    /// Counts by source.
    sources: [f64; 3],
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, rounds) = (number_of("BENCH_PLAYERS", 1_000_000)?, number_of("BENCH_ROUNDS", 3)?);
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, rounds).await).await
}

async fn measure(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let newcomers = Arc::new(AtomicU64::new(players.into()));
    let mut cells: BTreeMap<(usize, bool), Vec<Figures>> = BTreeMap::new();
    for _ in 0..rounds {
        for instances in [1, 3] {
            for has_redis in [false, true] {
                let figures = run(bench, dir, players, key.trim(), &newcomers, (instances, has_redis)).await?;
                cells.entry((instances, has_redis)).or_default().push(figures);
            }
        }
    }
    println!("{}\n{players} players, medians of {rounds} rounds\n", bench.machine()?);
    println!(
        "| instances | Redis | first rank (ms) | ranks (1/s) | p99 (ms) | counts from the process | from Redis | from PostgreSQL |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for ((instances, has_redis), rounds) in &cells {
        let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
        println!(
            "| {instances} | {} | {:.1} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} |",
            if *has_redis { "yes" } else { "no" },
            of(|figures| figures.first_ms),
            of(|figures| figures.ranks_per_second),
            of(|figures| figures.p99_ms),
            of(|figures| figures.sources[0]),
            of(|figures| figures.sources[1]),
            of(|figures| figures.sources[2]),
        );
    }
    Ok(())
}

/// Starts instances without rank indexes, and reads ranks of random players from all of them.
async fn run(
    bench: &Bench,
    dir: &Path,
    players: u32,
    key: &str,
    newcomers: &Arc<AtomicU64>,
    (count, has_redis): (usize, bool),
) -> BenchResult<Figures> {
    let mut instances = Vec::new();
    for _ in 0..count {
        let mut command = bench.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--address-rate", "0", "--key-rate", "0"]);
        command.args(["--no-maintenance", "--index-memory", "0"]);
        if !has_redis {
            command.env_remove("REDIS_URL");
        }
        instances.push(Serve::spawn(&mut command)?);
    }
    // Until Redis is connected.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let newcomers = Arc::clone(newcomers);
    let next = move || newcomers.fetch_add(1, Ordering::Relaxed) + 1;
    let scores = Load::start(NEWCOMERS_PER_SECOND, load::scores(&instances[0].address, BOARD, key, next));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The last instance has no counts yet.
    let last = &instances[count - 1].address;
    let begin = Instant::now();
    if !load::works(load::ranks(last, BOARD, "all_time", 0, players.into())()).await? {
        return Err("the first rank failed".into());
    }
    let first_ms = begin.elapsed().as_secs_f64() * 1e3;
    let request =
        format!("wrk.format('GET', string.format('/v1/boards/{BOARD}/scores/player-%d', math.random({players})))");
    let answers = block_in_place(|| ranks(dir, &instances, key, &request))?;
    scores.stop().await;
    if let Some(failed) = answers.iter().find(|answers| answers.errors > 0) {
        return Err(format!("{failed:?}").into());
    }
    let mut sources = [0.0; 3];
    for instance in &instances {
        let metrics = reqwest::get(format!("{}/metrics", instance.address)).await?.text().await?;
        for (sum, source) in sources.iter_mut().zip(SOURCES) {
            let name = format!("centile_reads_total{{kind=\"counts\",from=\"{source}\"}} ");
            let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
            *sum += count.map_or(Ok(0.0), str::parse)?;
        }
    }
    Ok(Figures {
        first_ms,
        ranks_per_second: answers.iter().map(|answers| answers.requests as f64 / answers.seconds).sum(),
        p99_ms: answers.iter().map(|answers| answers.p99).fold(0.0, f64::max),
        sources,
    })
}

/// Runs a load generator for each instance, all at once.
fn ranks(dir: &Path, instances: &[Serve], key: &str, request: &str) -> BenchResult<Vec<Answers>> {
    let connections = CONNECTIONS / u32::try_from(instances.len())?;
    let run = |number: u32, address: &str| -> Result<Answers, String> {
        let dir = dir.join(format!("wrk-{number}"));
        fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        let run = Run { address, connections, seconds: SECONDS, seed: number, key, request, varies: true };
        wrk::run(&dir, &run).map_err(|error| error.to_string())
    };
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = (0..)
            .zip(instances)
            .map(|(number, instance)| scope.spawn(move || run(number, &instance.address)))
            .collect();
        let mut answers = Vec::new();
        for one in running {
            answers.push(one.join().map_err(|_| "a load generator failed")??);
        }
        Ok(answers)
    })
}
