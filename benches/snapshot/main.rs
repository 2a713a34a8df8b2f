//! Measures the effect of a held snapshot (a dump, an archive build, an audit) on writers and
//! readers: the same load without and with one. `cargo bench --bench snapshot` prints the table of
//! docs/benchmarks.md.
//!
//! `BENCH_PLAYERS` (1,000,000), `BENCH_SECONDS` (600, each), `BENCH_SCORES` (1,000 per second) and
//! `BENCH_RANKS` (100 per second) set the size.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    io::Write as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve,
    load::{self, Latency, Load},
};

const BOARD: &str = "live";
/// Number of parts reported per run: growth shows in the last part.
const PARTS: u32 = 4;
/// Duration of the warm-up.
const WARM_UP: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> BenchResult<()> {
    let number = |name: &str, default: u32| -> BenchResult<u32> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let (players, seconds) = (number("BENCH_PLAYERS", 1_000_000)?, number("BENCH_SECONDS", 600)?);
    let rates = (number("BENCH_SCORES", 1_000)?, number("BENCH_RANKS", 100)?);
    Bench::run_as_recommended(async |bench, _| {
        measure(bench, players, Duration::from_secs(seconds.into()), rates).await
    })
    .await
}

async fn measure(bench: &Bench, players: u32, stretch: Duration, (scores, ranks): (u32, u32)) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    let serve = Serve::start(bench, &[])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    println!(
        "{}\n{players} players, all_time, week and month; {scores} scores/s and {ranks} ranks/s, open loop\n",
        bench.machine()?
    );
    let writes = Load::start(scores, load::scores(&serve.address, BOARD, key.trim(), load::anyone(players.into())));
    let reads = Load::start(ranks, load::ranks(&serve.address, BOARD, "week", 4, players.into()));
    tokio::time::sleep(WARM_UP).await;

    println!(
        "| snapshot | seconds | scores p50 | p99 | ranks p50 | p99 | failed |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    let without = stretches(&writes, &reads, "none", stretch).await;
    let snapshot = Snapshot::take(bench)?;
    let with = stretches(&writes, &reads, "held", stretch).await;
    drop(snapshot);
    writes.stop().await;
    reads.stop().await;
    let ratio = |of: fn(&Latency) -> f64, which: usize| of(&with[which]) / of(&without[which]);
    println!(
        "\nratio of p99 with the snapshot to p99 without: scores {:.2}, ranks {:.2}",
        ratio(|latency| latency.p99, 0),
        ratio(|latency| latency.p99, 1)
    );
    let sizes = bench.psql(
        "SELECT relname || ' ' || pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class
         WHERE oid IN ('centile_store.board_lanes'::regclass, 'centile_store.bucket_counts'::regclass,
                       'centile_store.rankings'::regclass, 'centile_store.boards'::regclass,
                       'centile_store.players'::regclass)
         ORDER BY relname",
    )?;
    println!("afterwards: {}", sizes.replace('\n', ", "));
    let disagree = bench.psql("SELECT count(*) FROM centile.ranking_counts WHERE NOT agree")?;
    if disagree == "0" { Ok(()) } else { Err(format!("counts of {disagree} rankings do not agree").into()) }
}

/// Waits for a run, prints its parts, and returns the latencies of its scores and ranks.
async fn stretches(writes: &Load, reads: &Load, what: &str, stretch: Duration) -> [Latency; 2] {
    let begin = Instant::now();
    for part in 1..=PARTS {
        let from = Instant::now();
        tokio::time::sleep_until((begin + stretch * part / PARTS).into()).await;
        // By then, in-flight requests are answered or count as failed.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let [score, rank] = [writes, reads].map(|load| load.latency(from, begin + stretch * part / PARTS));
        println!(
            "| {what} | {}–{} | {:.1} | {:.1} | {:.1} | {:.1} | {} |",
            (stretch * (part - 1) / PARTS).as_secs(),
            (stretch * part / PARTS).as_secs(),
            score.p50,
            score.p99,
            rank.p50,
            rank.p99,
            score.failed + rank.failed
        );
    }
    [writes, reads].map(|load| load.latency(begin, begin + stretch))
}

/// A session that holds a snapshot until it is dropped.
struct Snapshot(Child);

impl Snapshot {
    fn take(bench: &Bench) -> BenchResult<Self> {
        let mut psql = Command::new(bench.servers.postgres.program("psql"))
            .arg(bench.servers.database_url())
            .args(["-X", "-q"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let input = psql.stdin.as_mut().ok_or("psql has no standard input")?;
        input.write_all(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM centile.boards;\n")?;
        input.flush()?;
        Ok(Self(psql))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // Closing its standard input ends the session.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
