//! Measures what `centile.submit` costs PostgreSQL at 5,000 scores per second, and how long a score
//! takes from its commit until it counts. `cargo bench --bench submit` prints a table.
//!
//! `BENCH_SECONDS` (20) sets the duration of each line, `BENCH_RATE` (5,000) the scores per second.
//! pgbench makes the transactions. The same scores over HTTP, with ids, show what their writing costs.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    process::Command,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use sqlx::{Connection as _, PgConnection, query, query_scalar};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{MissedTickBehavior, interval, sleep},
};

#[path = "../common/mod.rs"]
mod common;

use common::{Bench, BenchResult, Serve, median, number_of, output, percentile, processor::server_seconds};

const BOARD: &str = "main";
const PLAYERS: u32 = 100_000;
/// Scores per request over HTTP.
const BULK: u32 = 250;
const ROUNDS: usize = 3;

/// A transaction of the caller alone, and the same one with a score.
const OWN: &str = "\\set player random(1, 100000)\nBEGIN;\nINSERT INTO public.matches VALUES (:player);\nEND;\n";
const SUBMIT: &str = "\\set player random(1, 100000)\nBEGIN;\nINSERT INTO public.matches VALUES (:player);\n\
                      SELECT centile.submit('main', 'player-' || :player, 7);\nEND;\n";

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (seconds, rate) = (number_of("BENCH_SECONDS", 20)?, number_of("BENCH_RATE", 5_000)?);
    Bench::run_as_recommended(async |bench, dir| {
        common::fill(bench, BOARD, PLAYERS)?;
        bench.psql("CREATE TABLE public.matches (player integer)")?;
        println!("{}\n", bench.machine()?);
        let serve = Serve::start(bench, &["--no-maintenance"])?;
        let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
        println!("| round | idle, % of a core | caller alone, µs | scores over HTTP, µs | caller with submit, µs | submit, µs | until it counts, ms: p50, p99 |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        let (own, submit) = (dir.join("own.sql"), dir.join("submit.sql"));
        std::fs::write(&own, OWN)?;
        std::fs::write(&submit, SUBMIT)?;
        let mut costs = Vec::new();
        for round in 1..=ROUNDS {
            let idle = per_second(bench, seconds, sleep(Duration::from_secs(seconds.into()))).await?;
            // The service's cost without scores is no part of a score.
            let per_score = |spent: f64| (spent - idle) / f64::from(rate) * 1e6;
            let alone = pgbench(bench, &own, seconds, rate);
            let alone = per_score(per_second(bench, seconds, ended(alone)).await?);
            let http = per_score(per_second(bench, seconds, scores(&serve, key.trim(), seconds, rate)).await?);
            let waits = latencies(bench.servers.postgres.url("postgres"), seconds);
            let with = pgbench(bench, &submit, seconds, rate);
            let with = per_score(per_second(bench, seconds, ended(with)).await?);
            let mut waits = waits.await??;
            let cost = with - alone - http;
            costs.push(cost);
            println!(
                "| {round} | {:.1} | {alone:.1} | {http:.1} | {with:.1} | {cost:.1} | {:.0}, {:.0} |",
                100.0 * idle,
                percentile(&mut waits, 50.0),
                percentile(&mut waits, 99.0)
            );
        }
        println!("\n`submit` costs PostgreSQL {:.1} µs per score beyond the write itself (median).", median(costs));
        Ok(())
    })
    .await
}

/// Returns PostgreSQL's processor time per second while `work` runs. Scores are applied afterwards.
async fn per_second<T>(bench: &Bench, seconds: u32, work: impl Future<Output = T>) -> BenchResult<f64> {
    let before = server_seconds(&bench.servers.postgres)?;
    work.await;
    while bench.psql("SELECT EXISTS (SELECT FROM centile_store.inbox)")?.trim() == "t"
        || bench.psql("SELECT EXISTS (SELECT FROM centile.apply_lag WHERE batches_behind > 0)")?.trim() == "t"
    {
        sleep(Duration::from_millis(100)).await;
    }
    Ok((server_seconds(&bench.servers.postgres)? - before) / f64::from(seconds))
}

/// Runs transactions at a fixed rate.
fn pgbench(bench: &Bench, script: &std::path::Path, seconds: u32, rate: u32) -> JoinHandle<Result<String, String>> {
    let postgres = &bench.servers.postgres;
    let mut command = Command::new(postgres.program("pgbench"));
    command.args(["--no-vacuum", "--protocol=prepared", "--client=8", "--jobs=2"]).arg("--file").arg(script);
    command.args(["--time", &seconds.to_string(), "--rate", &rate.to_string(), &postgres.url("postgres")]);
    spawn_blocking(move || output(&mut command).map_err(|error| error.to_string()))
}

async fn ended(running: JoinHandle<Result<String, String>>) {
    let ended = running.await.map_err(|error| error.to_string()).and_then(|result| result);
    ended.unwrap_or_else(|error| panic!("pgbench failed: {error}"));
}

/// Writes scores over HTTP at a fixed rate.
async fn scores(serve: &Serve, key: &str, seconds: u32, rate: u32) {
    let client = reqwest::Client::new();
    let url = format!("{}/v1/boards/{BOARD}/scores/batch", serve.address);
    let mut random = StdRng::seed_from_u64(1);
    let mut ticks = interval(Duration::from_secs(1) * BULK / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for _ in 0..seconds * rate / BULK {
        ticks.tick().await;
        let event = |random: &mut StdRng| {
            let (player, id) = (random.random_range(1..=PLAYERS), random.random::<u128>());
            json!({"user_id": format!("player-{player}"), "points": 7, "id": format!("{id:032x}")})
        };
        let events: Vec<_> = (0..BULK).map(|_| event(&mut random)).collect();
        let response = client.post(&url).bearer_auth(key).json(&json!({"events": events})).send().await;
        assert!(response.is_ok_and(|response| response.status().is_success()), "scores over HTTP failed");
    }
}

/// Submits a score every 50 ms, and returns the times in milliseconds from the commits until the scores count.
fn latencies(url: String, seconds: u32) -> JoinHandle<Result<Vec<f64>, String>> {
    let measure = async move {
        let mut connection = PgConnection::connect(&url).await?;
        let (until, mut waits) = (Instant::now() + Duration::from_secs(seconds.into()), Vec::new());
        while Instant::now() < until {
            let ticket: String =
                query_scalar("SELECT centile.submit('main', 'player-1', 1)").fetch_one(&mut connection).await?;
            let committed = Instant::now();
            query("SELECT FROM centile.wait_for($1)").bind(ticket).execute(&mut connection).await?;
            waits.push(committed.elapsed().as_secs_f64() * 1e3);
            sleep(Duration::from_millis(50)).await;
        }
        Ok::<_, sqlx::Error>(waits)
    };
    tokio::spawn(async { measure.await.map_err(|error| error.to_string()) })
}
