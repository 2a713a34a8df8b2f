//! Measures the cost of a pooler in transaction mode: the same ranks and scores directly and
//! through `PgBouncer`, alternating, on the same data. `cargo bench --bench pooler` prints the
//! figures of docs/operations.md. `scripts/setup.sh test` installs `PgBouncer`.
//!
//! `BENCH_PLAYERS` (1,000,000), `BENCH_SECONDS` (10, for each figure) and `BENCH_ROUNDS` (3) set
//! the size.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    time::{Duration, Instant},
};

use rand::RngExt as _;
use reqwest::{Client, RequestBuilder};
use serde_json::json;
use tokio::task::JoinSet;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/it/support/pooler.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "shared with the tests")]
mod pooler;
#[path = "../../tests/it/support/wait.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod wait;

use common::{Bench, Outcome, Serve, median};
use pooler::Pooler;

const BOARD: &str = "live";
/// Server connections of the pooler: as many as an instance uses.
const SESSIONS: u32 = 26;

/// A kind of load: concurrent callers, and events per request; 0 events is a rank request.
struct Kind {
    name: &'static str,
    callers: u32,
    events: u32,
}

const KINDS: [Kind; 5] = [
    Kind { name: "ranks, 1 caller", callers: 1, events: 0 },
    Kind { name: "ranks, 32 callers", callers: 32, events: 0 },
    Kind { name: "scores, 1 caller", callers: 1, events: 1 },
    Kind { name: "scores, 32 callers", callers: 32, events: 1 },
    Kind { name: "scores, 8 callers, 500 per request", callers: 8, events: 500 },
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let number = |name: &str, default: u32| -> Outcome<u32> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let (players, seconds) = (number("BENCH_PLAYERS", 1_000_000)?, number("BENCH_SECONDS", 10)?);
    let rounds = number("BENCH_ROUNDS", 3)?.max(1);
    Bench::run_as_recommended(async |bench, dir| {
        common::fill(bench, BOARD, players)?;
        let direct = bench.servers.database_url();
        let pooler = Pooler::start(dir.join("pooler"), &direct, SESSIONS, "");
        let through = pooler.instead(&direct);
        let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
        let stretch = Duration::from_secs(seconds.into());
        let mut runs = [KINDS.map(|_| Vec::new()), KINDS.map(|_| Vec::new())];
        for round in 0..rounds {
            for (way, runs) in ["directly", "through PgBouncer"].into_iter().zip(&mut runs) {
                let mut command = bench.command();
                command.env("CENTILE_LOG", "warn");
                if way != "directly" {
                    command.env("DATABASE_URL", &through).env("DATABASE_DIRECT_URL", &direct);
                }
                let serve = Serve::spawn(command.args(["serve", "--listen", "127.0.0.1:0"]))?;
                for (kind, runs) in KINDS.iter().zip(runs) {
                    let per_second = measure(&serve.address, key.trim(), kind, players, stretch).await?;
                    eprintln!("round {}: {}, {way}: {per_second:.0}/s", round + 1, kind.name);
                    runs.push(per_second);
                }
            }
        }
        println!(
            "{}\n{players} players in all_time, week and month; {seconds} s each, medians of {rounds}\n\n\
             | a second | directly | through PgBouncer | |\n| --- | --- | --- | --- |",
            bench.machine()?
        );
        let [direct, through] = runs;
        for ((kind, direct), through) in KINDS.iter().zip(direct).zip(through) {
            let (direct, through) = (median(direct), median(through));
            println!("| {} | {direct:.0} | {through:.0} | {:.2} |", kind.name, through / direct);
        }
        Ok(())
    })
    .await
}

/// Returns ranks or scores per second of all callers.
async fn measure(address: &str, key: &str, kind: &Kind, players: u32, stretch: Duration) -> Outcome<f64> {
    let (client, begin) = (Client::new(), Instant::now());
    let mut callers = JoinSet::new();
    for _ in 0..kind.callers {
        let (client, scores) = (client.clone(), format!("{address}/v1/boards/{BOARD}/scores"));
        let (key, events) = (key.to_owned(), kind.events);
        callers.spawn(async move {
            let mut answered = 0;
            while begin.elapsed() < stretch {
                request(&client, &scores, &key, events, players).send().await?.error_for_status()?.bytes().await?;
                answered += events.max(1);
            }
            Ok::<_, reqwest::Error>(answered)
        });
    }
    let mut answered = 0;
    while let Some(ended) = callers.join_next().await {
        answered += ended??;
    }
    Ok(f64::from(answered) / begin.elapsed().as_secs_f64())
}

fn request(client: &Client, scores: &str, key: &str, events: u32, players: u32) -> RequestBuilder {
    let mut random = rand::rng();
    let mut player = || format!("player-{}", random.random_range(1..=players));
    if events == 0 {
        return client.get(format!("{scores}/{}", player()));
    }
    let events: Vec<_> = (0..events).map(|n| json!({"user_id": player(), "points": n % 100})).collect();
    client.post(scores).bearer_auth(key).json(&events)
}
