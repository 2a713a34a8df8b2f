//! Measures reads and scores of two instances that share a machine and a board, compared with one
//! instance. `cargo bench --bench instances` prints a table.
//!
//! `BENCH_PLAYERS` (1,000,000) sets the size of the board, `BENCH_ROUNDS` (5) the number of rounds.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{fs, path::Path, thread};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve, median, number_of,
    wrk::{self, Answers, Run},
};

const BOARD: &str = "main";
/// Connections of each of the two load generators, and the seconds of a run.
const CONNECTIONS: u32 = 32;
const SECONDS: u32 = 10;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, rounds) = (number_of("BENCH_PLAYERS", 1_000_000)?, number_of("BENCH_ROUNDS", 5)?);
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, rounds)).await
}

fn measure(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    println!("{}\n{players} players\n", bench.machine()?);
    let flags = ["--no-maintenance", "--index-boards", BOARD];
    let instances = [Serve::start(bench, &flags)?, Serve::start(bench, &flags)?];
    let [first, second] = instances.each_ref().map(|instance| instance.address.as_str());
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let key = key.trim();
    println!("| request | one instance (1/s) | two instances (1/s) | ratio | p99 (ms) | p99 |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let read = |path| format!("wrk.format('GET', string.format('/v1/boards/{BOARD}/{path}', math.random({players})))");
    let event = format!(r#"'{{"user_id":"player-' .. math.random({players}) .. '","points":1}}'"#);
    for (what, request) in [
        ("top 100", read("scores?limit=100")),
        ("standing", read("scores/player-%d")),
        ("around 4", read("scores/player-%d?around=4")),
        ("score", format!("wrk.format('POST', '/v1/boards/{BOARD}/scores', nil, {event})")),
    ] {
        let (mut rates, mut latencies): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
        // The first round warms up: indexes load.
        for round in 0..=rounds {
            for (n, targets) in [[first, first], [first, second]].into_iter().enumerate() {
                let answers = load(dir, targets, round, key, &request)?;
                if round > 0 {
                    if answers.iter().any(|answers| answers.errors > 0) {
                        return Err(format!("{what}: {answers:?}").into());
                    }
                    rates[n].push(answers.iter().map(|answers| answers.requests as f64 / answers.seconds).sum());
                    latencies[n].push(answers.iter().map(|answers| answers.p99).fold(0.0, f64::max));
                }
            }
        }
        let ([one, two], [one_p99, two_p99]) = (rates.map(median), latencies.map(median));
        println!("| {what} | {one:.0} | {two:.0} | {:.2} | {one_p99:.1} | {two_p99:.1} |", two / one);
    }
    Ok(())
}

/// Runs two load generators at once, each with its target.
fn load(dir: &Path, targets: [&str; 2], round: u32, key: &str, request: &str) -> BenchResult<[Answers; 2]> {
    let run = |n: u32, address: &str| -> Result<Answers, String> {
        let dir = dir.join(format!("wrk-{n}"));
        fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        let seed = 2 * round + n;
        let run = Run { address, connections: CONNECTIONS, seconds: SECONDS, seed, key, request, varies: true };
        wrk::run(&dir, &run).map_err(|error| error.to_string())
    };
    let [first, second] = targets;
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1, second));
        let own = run(0, first);
        Ok([own?, other.join().map_err(|_| "a load generator failed")??])
    })
}
