//! The rank of a random player among a million: Centile over HTTP beside `count(*)` over an indexed table, on one private
//! PostgreSQL, in one run, in turn. `make bench` runs it and prints the table that stands in docs/benchmarks.md.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
    process::Command,
    time::Instant,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, Outcome, Serve, median, output,
    read::{self, Answers},
};

const PLAYERS: u32 = 1_000_000;
const ROUNDS: usize = 3;
const SECONDS: u32 = 10;
const SEED: u64 = 1;
/// Players whose ranks are compared before and after the timing.
const SAMPLE: usize = 200;

#[tokio::main]
async fn main() -> Outcome<()> {
    Bench::run(async |bench, dir| measure(bench, dir)).await
}

fn measure(bench: &Bench, dir: &Path) -> Outcome<()> {
    bench.centile(&[
        "board",
        "create",
        "bench",
        "--mode",
        "best",
        "--periods",
        "all_time",
        "--expected-points",
        "1000000",
    ])?;
    let file = dir.join("scores.csv");
    write_scores(&file)?;
    let began = Instant::now();
    bench.centile(&["import", file.to_str().ok_or("a path that is no text")?, "--board", "bench"])?;
    let import_seconds = began.elapsed().as_secs_f64();

    bench.psql(
        "CREATE TABLE plain AS SELECT u.user_id, s.score FROM centile.standings s JOIN centile.users u USING (user_id)
         WHERE s.board = 'bench'",
    )?;
    bench.psql("ALTER TABLE plain ADD PRIMARY KEY (user_id)")?;
    bench.psql("CREATE INDEX plain_score_idx ON plain (score)")?;
    bench.psql("VACUUM ANALYZE")?;
    bench.psql("CHECKPOINT")?;

    let serve = Serve::start(bench, &[])?;
    compare(bench, &serve.address)?;
    let script = dir.join("random.lua");
    read::write_script(&script, "bench", PLAYERS.into(), SEED)?;
    let plain = dir.join("plain.sql");
    fs::write(
        &plain,
        format!(
            "\\set n random(1, {PLAYERS})\nSELECT count(*) + 1 FROM plain WHERE score > (SELECT score FROM plain WHERE user_id = 'player-' || :n);\n"
        ),
    )?;
    let mut rounds = Vec::new();
    // The first round warms caches and plans, and does not count.
    for round in 0..=ROUNDS {
        let ranks = read::wrk(&script, &serve.address, SECONDS)?;
        let counts = pgbench(bench, &plain)?;
        if round > 0 {
            rounds.push((ranks, counts));
        }
    }
    compare(bench, &serve.address)?;
    report(&rounds, import_seconds, &bench.machine()?);
    Ok(())
}

/// Ranks over HTTP of a sample against plain `rank()`: a wrong answer is no result.
fn compare(bench: &Bench, address: &str) -> Outcome<()> {
    let expected = bench.psql(&format!(
        "SELECT user_id || ' ' || rank FROM (SELECT user_id, rank() OVER (ORDER BY score DESC) FROM plain) r
         ORDER BY md5(user_id) LIMIT {SAMPLE}"
    ))?;
    for line in expected.lines() {
        let (user, rank) = line.split_once(' ').ok_or("a row without a rank")?;
        let body =
            output(Command::new("curl").args(["-sf", &format!("{address}/v1/boards/bench/scores/{user}?around=0")]))?;
        let answer: serde_json::Value = serde_json::from_str(&body)?;
        if answer["rank"] != rank.parse::<u64>()? {
            return Err(format!("{user} has rank {rank}, and Centile says {}", answer["rank"]).into());
        }
    }
    Ok(())
}

/// One event for each player, scores from 0 to a million.
fn write_scores(file: &Path) -> Outcome<()> {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "user_id,points")?;
    for n in 1..=PLAYERS {
        writeln!(out, "player-{n},{}", random.random_range(0..=1_000_000))?;
    }
    out.flush()?;
    Ok(())
}

fn pgbench(bench: &Bench, script: &Path) -> Outcome<f64> {
    let text = output(
        Command::new(bench.servers.postgres.program("pgbench"))
            .args(["-n", "-M", "prepared", "-c", "8", "-j", "1", "-T", &SECONDS.to_string(), "-f"])
            .arg(script)
            .arg(bench.servers.database_url()),
    )?;
    let line = text.lines().find_map(|line| line.strip_prefix("tps = ")).ok_or("pgbench prints no tps")?;
    Ok(line.split(' ').next().unwrap_or_default().parse()?)
}

fn report(rounds: &[(Answers, f64)], import_seconds: f64, machine: &str) {
    println!("{machine}; {PLAYERS} players, seed {SEED}.");
    println!(
        "Import of {PLAYERS} events: {import_seconds:.0} s, {:.0} events/s.\n",
        f64::from(PLAYERS) / import_seconds
    );
    println!("| round | Centile, HTTP, 32 connections: ranks/s | p50 | p99 | `count(*)`, 8 clients: ranks/s | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (n, (ranks, counts)) in rounds.iter().enumerate() {
        println!(
            "| {} | {:.0} | {} | {} | {counts:.1} | {:.0} |",
            n + 1,
            ranks.per_second,
            ranks.p50,
            ranks.p99,
            ranks.per_second / counts
        );
    }
    let ratio = median(rounds.iter().map(|(ranks, counts)| ranks.per_second / counts).collect());
    println!("\nMedian ratio: {ratio:.0} ×.");
}
