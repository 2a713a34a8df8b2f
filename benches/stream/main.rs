//! Measures `centile stream` while a board gets 5,000 scores per second. `cargo bench --bench stream`
//! prints the processor time of the copy and of PostgreSQL, and how far the copy was behind.
//!
//! `BENCH_SECONDS` (60) sets the duration, `BENCH_RATE` (5,000) the scores per second.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use deadpool_redis::redis::{Client, aio::MultiplexedConnection, cmd};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve, median, number_of,
    processor::{process_seconds, server_seconds},
};

const BOARD: &str = "main";
const PLAYERS: u32 = 100_000;
const BULK: u32 = 500;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (seconds, rate) = (number_of("BENCH_SECONDS", 60)?, number_of("BENCH_RATE", 5_000)?);
    Bench::run_as_recommended(async |bench, _| measure(bench, seconds, rate).await).await
}

async fn measure(bench: &Bench, seconds: u32, rate: u32) -> BenchResult<()> {
    common::fill(bench, BOARD, PLAYERS)?;
    println!("{}\n", bench.machine()?);
    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let to = format!("{}/copy", bench.servers.redis_url());
    let redis = Client::open(bench.servers.redis_url())?.get_multiplexed_async_connection().await?;
    println!(
        "| what | scores per second | PostgreSQL, % of a core | copy, % of a core | transactions behind: p50, max |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for with_copy in [false, true, false, true] {
        let mut copy = None;
        if with_copy {
            // Without the cursor, so that it begins at the present.
            let keys = ["copy".to_owned(), format!("copy:cursor:{BOARD}")];
            cmd("DEL").arg(&keys).query_async::<()>(&mut redis.clone()).await?;
            let flags = ["stream", "--board", BOARD, "--from", "now", "--to", &to, "--max-length", "100000"];
            copy = Some(Copy(bench.command().args(flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?));
        }
        sleep(Duration::from_secs(3)).await;
        let figures = run(bench, &serve, key.trim(), copy.as_mut(), redis.clone(), (seconds, rate)).await?;
        println!("{figures}");
    }
    Ok(())
}

/// A copy that is stopped when this value is dropped.
struct Copy(Child);

impl Drop for Copy {
    fn drop(&mut self) {
        // Errors only mean that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes at a fixed rate, and returns a line of the table.
async fn run(
    bench: &Bench,
    serve: &Serve,
    key: &str,
    mut copy: Option<&mut Copy>,
    mut redis: MultiplexedConnection,
    (seconds, rate): (u32, u32),
) -> BenchResult<String> {
    let client = reqwest::Client::new();
    let url = format!("{}/v1/boards/{BOARD}/scores/batch", serve.address);
    let mut random = StdRng::seed_from_u64(1);
    let mut ticks = interval(Duration::from_secs(1) * BULK / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let first = added(&mut redis).await?;
    let spent = |copy: Option<&mut Copy>| -> BenchResult<(f64, f64)> {
        let copied = copy.map_or(Ok(0.0), |copy| process_seconds(copy.0.id()))?;
        Ok((server_seconds(&bench.servers.postgres)?, copied))
    };
    let (before, begun) = (spent(copy.as_deref_mut())?, Instant::now());
    let (mut written, mut lags) = (0_u64, Vec::new());
    for _ in 0..seconds * rate / BULK {
        ticks.tick().await;
        let events: Vec<_> = (0..BULK)
            .map(|_| json!({"user_id": format!("player-{}", random.random_range(1..=PLAYERS)), "points": random.random_range(1..1_000)}))
            .collect();
        let response = client.post(&url).bearer_auth(key).json(&json!({"events": events})).send().await?;
        if !response.status().is_success() {
            return Err(response.text().await?.into());
        }
        written += u64::from(BULK);
        lags.push((written - (added(&mut redis).await? - first).min(written)) as f64);
    }
    let took = begun.elapsed().as_secs_f64();
    if copy.is_some() {
        while added(&mut redis).await? - first < written {
            sleep(Duration::from_millis(10)).await;
        }
    }
    let after = spent(copy.as_deref_mut())?;
    let percent = |before: f64, after: f64| 100.0 * (after - before) / took;
    let longest = lags.iter().fold(0.0, |longest: f64, lag| longest.max(*lag));
    let (copied, lag) = match copy {
        Some(_) => (format!("{:.1}", percent(before.1, after.1)), format!("{:.0}, {longest:.0}", median(lags))),
        None => ("no copy".to_owned(), String::new()),
    };
    let rate = written as f64 / took;
    Ok(format!("| {rate:.0}/s for {took:.0} s | {rate:.0} | {:.0} | {copied} | {lag} |", percent(before.0, after.0)))
}

/// Returns the number of entries that were ever added to the copy.
async fn added(redis: &mut MultiplexedConnection) -> BenchResult<u64> {
    let mut command = cmd("XINFO");
    command.arg("STREAM").arg("copy");
    let info: Result<std::collections::BTreeMap<String, deadpool_redis::redis::Value>, _> =
        command.query_async(redis).await;
    // Without a copy there is no stream.
    let Ok(mut info) = info else { return Ok(0) };
    Ok(deadpool_redis::redis::from_redis_value(info.remove("entries-added").ok_or("no entries-added")?)?)
}
