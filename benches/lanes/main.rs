//! Measures scores into boards with 1, 2, 4 and 8 lanes, on one instance. `cargo bench --bench lanes`
//! prints a table.
//!
//! `BENCH_PLAYERS` (300,000) sets the size of each board, `BENCH_ROUNDS` (3) the number of rounds; each
//! round loads every board in turn.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve, fill_ledger, fill_rankings, median, number_of,
    wrk::{self, Run},
};

const LANES: [u32; 4] = [1, 2, 4, 8];
const SECONDS: u32 = 8;
/// Scores of a request in bulk.
const BULK: u32 = 1_000;

/// Scores per second on one board, a value per round.
#[derive(Default)]
struct Rates {
    until_response: Vec<f64>,
    until_applied: Vec<f64>,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, rounds) = (number_of("BENCH_PLAYERS", 300_000)?, number_of("BENCH_ROUNDS", 3)?);
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, rounds)).await
}

fn measure(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    let boards = LANES.map(|lanes| format!("lanes-{lanes}"));
    fill(bench, dir, players, &boards)?;
    println!("{}\n{players} players in each board, three periods\n", bench.machine()?);
    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    println!("| load | lanes | scores/s, all applied | rounds | scores/s, until the last response | rounds |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let event = format!(r#"'{{"user_id":"player-' .. math.random({players}) .. '","points":1}}'"#);
    let many = format!(
        "(function() local t = {{}} for i = 1, {BULK} do t[i] = {event} end return '{{\"events\":[' .. table.concat(t, ',') .. ']}}' end)()"
    );
    for (what, path, body, connections, scores) in
        [("256 callers", "scores", &event, 256, 1), ("bulks of 1,000, 4 callers", "scores/batch", &many, 4, BULK)]
    {
        let mut rates: [Rates; 4] = Default::default();
        // The first round warms up.
        for round in 0..=rounds {
            for (board, rates) in boards.iter().zip(&mut rates) {
                let request = format!("wrk.format('POST', '/v1/boards/{board}/{path}', nil, {body})");
                let (address, key, seed) = (serve.address.as_str(), key.trim(), round);
                let run = Run { address, connections, seconds: SECONDS, seed, key, request: &request, varies: true };
                let answers = wrk::run(dir, &run)?;
                if answers.errors > 0 {
                    return Err(format!("{board}: {answers:?}").into());
                }
                let answered = Instant::now();
                while bench.psql("SELECT EXISTS (SELECT FROM centile.apply_lag WHERE batches_behind > 0)")?.trim()
                    == "t"
                {
                    thread::sleep(Duration::from_millis(50));
                }
                if round > 0 {
                    let written = answers.requests as f64 * f64::from(scores);
                    rates.until_response.push(written / answers.seconds);
                    rates.until_applied.push(written / (answers.seconds + answered.elapsed().as_secs_f64()));
                }
            }
        }
        for (lanes, Rates { until_response, until_applied }) in LANES.iter().zip(rates) {
            let [applied, answered] = [until_applied, until_response].map(|rates| {
                let rounds = rates.iter().fold(String::new(), |mut text, rate| {
                    let _ = write!(text, "{}{rate:.0}", if text.is_empty() { "" } else { ", " });
                    text
                });
                format!("{:.0} | {rounds}", median(rates))
            });
            println!("| {what} | {lanes} | {applied} | {answered} |");
        }
    }
    Ok(())
}

/// Creates the boards, each with the same players and a score of each.
fn fill(bench: &Bench, dir: &Path, players: u32, boards: &[String]) -> BenchResult<()> {
    let file = dir.join("scores.csv");
    let rows = (1..=players).fold("user_id,user_name,points\n".to_owned(), |mut text, n| {
        let _ = writeln!(text, "player-{n},Player {n},{}", u64::from(n) * 7_919 % 1_000_000);
        text
    });
    fs::write(&file, rows)?;
    for (board, lanes) in boards.iter().zip(LANES) {
        let rules = format!(r#"{{"periods": ["all_time", "week", "month"], "lanes": {lanes}}}"#);
        let id = bench.psql(&format!("SELECT centile.create_board('{board}', '{rules}')"))?;
        fill_ledger(bench, "postgres", board, &file)?;
        let period_ids = bench.psql(&format!("SELECT id FROM centile_store.periods WHERE board_id = {id}"))?;
        fill_rankings(bench, "postgres", &period_ids.lines().collect::<Vec<_>>())?;
    }
    bench.psql("VACUUM ANALYZE").map(drop)
}
