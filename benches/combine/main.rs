//! Measures the refresh of a combined board from seven archives, compared with the bare join, and reads
//! of its result compared with those of an archive. `cargo bench --bench combine` prints the table of
//! docs/benchmarks.md.
//!
//! `BENCH_PLAYERS` (1,000,000) sets the size of each archive, `BENCH_ROUNDS` (3) the number of rounds.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{env, path::Path, time::Instant};

#[path = "../common/mod.rs"]
mod common;

use common::{Bench, BenchResult, median, ranking_reads};

const BOARD: &str = "live";
const COMBINED: &str = "overall";
const DAYS: u32 = 7;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let number = |name: &str, default: u32| -> BenchResult<u32> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let (players, rounds) = (number("BENCH_PLAYERS", 1_000_000)?, number("BENCH_ROUNDS", 3)?);
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, rounds)).await
}

fn measure(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    fill(bench, players)?;
    println!("{}\n{DAYS} archives of {players} players, union of sums\n", bench.machine()?);
    let mut sources: Vec<String> = Vec::new();
    for day in 1..=DAYS {
        sources.extend(["--source".to_owned(), format!("{BOARD}@day:-{day}")]);
    }
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    bench.centile(&[&["board", "combine", COMBINED][..], &sources, &["--by", "bench"]].concat())?;
    let archives = bench.psql(
        "SELECT string_agg(format('SELECT user_id, score, reached_at FROM %s', archive), ' UNION ALL ')
         FROM centile.periods WHERE kind = 'day' AND archive IS NOT NULL",
    )?;

    println!("| round | bare join (s) | refresh (s) | ratio |\n| --- | --- | --- | --- |");
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        bench.psql("CHECKPOINT")?;
        let begin = Instant::now();
        bench.psql(&format!(
            "SET work_mem = '128MB';
             CREATE TABLE bare AS SELECT s.user_id, sum(s.score) AS score, max(s.reached_at) AS reached_at FROM ({archives}) s GROUP BY s.user_id"
        ))?;
        let bare = begin.elapsed().as_secs_f64();
        bench.psql("DROP TABLE bare; CHECKPOINT")?;
        let begin = Instant::now();
        bench.centile(&["refresh", "--board", COMBINED, "--by", "bench"])?;
        let refresh = begin.elapsed().as_secs_f64();
        println!("| {round} | {bare:.1} | {refresh:.1} | {:.2} |", refresh / bare);
        ratios.push(refresh / bare);
    }
    println!("\nmedian ratio {:.2}\n", median(ratios));
    ranking_reads::compare(
        bench,
        dir,
        players,
        rounds,
        &[("archive", BOARD, "day:previous"), ("combined", COMBINED, "all_time")],
    )
}

/// Makes closed days with a score of every player in each.
fn fill(bench: &Bench, players: u32) -> BenchResult<()> {
    let board = bench.psql(&format!("SELECT centile.create_board('{BOARD}', '{{\"periods\": [\"day\"]}}')"))?;
    bench.psql(&format!(
        "INSERT INTO centile_store.users (external_id, name, lane_hash)
         SELECT 'player-' || n, 'Player ' || n, centile.lane_hash('player-' || n) FROM generate_series(1, {players}) AS n"
    ))?;
    bench.psql(&format!(
        "SELECT setseed(0.5), centile.ensure_ledger_months(now() - interval '{DAYS} days', now()),
                centile_store.open_periods({board}, ARRAY(SELECT now() - n * interval '1 day' FROM generate_series(1, {DAYS}) AS n));
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         SELECT {board}, u.id, (random() * 1000000)::bigint, now() - n * interval '1 day', u.lane_hash % 2, 1
         FROM generate_series(1, {DAYS}) AS n CROSS JOIN centile_store.users u;
         UPDATE centile_store.board_lanes SET batch = 1, last_at = now() WHERE board_id = {board}"
    ))?;
    bench.psql("VACUUM ANALYZE")?;
    for period_id in bench.psql("SELECT id FROM centile_store.periods WHERE kind = 'day'")?.lines() {
        common::fill_rankings(bench, "postgres", &[period_id])?;
    }
    bench.centile(&["close", "--due"])?;
    bench.centile(&["maintain"])?;
    bench.psql("VACUUM ANALYZE").map(drop)
}
