//! Measures the processor time of a primary whose replica answers reads. `cargo bench --bench
//! replica` prints a table.
//!
//! Rank indexes are off, so that each read is a statement. `BENCH_PLAYERS` (200,000) sets the size of
//! the board, `BENCH_ROUNDS` (5) the number of rounds.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{path::Path, thread::sleep, time::Duration};

#[path = "../common/mod.rs"]
mod common;

use centile::dev::local::LocalPostgres;
use common::{
    Bench, BenchResult, Serve, median, number_of,
    processor::server_seconds,
    wrk::{self, Run},
};

const BOARD: &str = "main";
const CONNECTIONS: u32 = 16;
const SECONDS: u32 = 10;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, rounds) = (number_of("BENCH_PLAYERS", 200_000)?, number_of("BENCH_ROUNDS", 5)?);
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, rounds)).await
}

fn measure(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    let primary = &bench.servers.postgres;
    let replica = LocalPostgres::start_replica(&dir.join("replica"), Bench::ephemeral(), primary)?;
    println!("{}\n{players} players, rounds of {SECONDS} s\n", bench.machine()?);
    let flags = ["--no-maintenance", "--index-memory", "0"];
    let url = replica.url("postgres");
    let alone = Serve::start(bench, &flags)?;
    let with_replica = Serve::start(bench, &[&flags[..], &["--read-url", &url]].concat())?;
    let runs =
        [("no reads", None), ("reads on the primary", Some(&alone)), ("reads on the replica", Some(&with_replica))];
    let request =
        format!("wrk.format('GET', string.format('/v1/boards/{BOARD}/scores/player-%d', math.random({players})))");
    let mut figures: [[Vec<f64>; 3]; 3] = Default::default();
    // The first round warms up.
    for round in 0..=rounds {
        for (figures, (what, serve)) in figures.iter_mut().zip(&runs) {
            let before = (server_seconds(primary)?, server_seconds(&replica)?);
            let reads = match serve {
                None => {
                    sleep(Duration::from_secs(SECONDS.into()));
                    0.0
                }
                Some(serve) => {
                    let run = Run {
                        address: &serve.address,
                        connections: CONNECTIONS,
                        seconds: SECONDS,
                        seed: round,
                        key: "",
                        request: &request,
                        varies: true,
                    };
                    let answers = wrk::run(dir, &run)?;
                    if answers.errors > 0 {
                        return Err(format!("{what}: {answers:?}").into());
                    }
                    answers.requests as f64 / answers.seconds
                }
            };
            let spent = (server_seconds(primary)? - before.0, server_seconds(&replica)? - before.1);
            if round > 0 {
                let per_second = |seconds: f64| 1_000.0 * seconds / f64::from(SECONDS);
                for (values, value) in figures.iter_mut().zip([reads, per_second(spent.0), per_second(spent.1)]) {
                    values.push(value);
                }
            }
        }
    }
    println!("| what | reads per second | primary, ms of processor time per second | replica |");
    println!("| --- | --- | --- | --- |");
    for (figures, (what, _)) in figures.into_iter().zip(runs) {
        let [reads, primary, replica] = figures.map(median);
        println!("| {what} | {reads:.0} | {primary:.1} | {replica:.1} |");
    }
    Ok(())
}
