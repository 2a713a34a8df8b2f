//! Measures rolling windows: the cost of a score that enters one more window, the preparation of the
//! next window compared with a bare aggregate of the same events, and reads compared with those of a
//! week. `cargo bench --bench window` prints the tables of docs/benchmarks.md.
//!
//! `BENCH_PLAYERS` (1,000,000) and `BENCH_EVENTS` (five per player) set the size of the window,
//! `BENCH_ROUNDS` (3) the number of rounds.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve,
    load::{self, Latency, Load},
    median, ranking_reads,
    wrk::{self, Run},
};

const BOARD: &str = "live";
const SCORES_PER_SECOND: u32 = 1_000;
/// Connections of the closed loops.
const CONNECTIONS: u32 = 64;
const SECONDS: u32 = 15;
/// Duration of the load without another command, for comparison.
const QUIET: Duration = Duration::from_secs(30);
/// Longest time that a score may wait for a lock. PostgreSQL logs longer waits.
const LOCK_WAIT_MS: u32 = 100;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let number = |name: &str, default: u32| -> BenchResult<u32> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let players = number("BENCH_PLAYERS", 1_000_000)?;
    let events = number("BENCH_EVENTS", 5 * players)?.max(players);
    let rounds = number("BENCH_ROUNDS", 3)?;
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, players, events, rounds).await).await
}

async fn measure(bench: &Bench, dir: &Path, players: u32, events: u32, rounds: u32) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    // More events of the same players, spread over the days before.
    bench.psql(&format!(
        "SELECT setseed(0.5), centile.ensure_ledger_months(now() - interval '7 days', now());
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         SELECT b.id, u.id, (random() * 1000)::bigint, now() - random() * interval '5 days', u.lane_hash % b.lanes, 1
         FROM centile_store.boards b
         CROSS JOIN generate_series(1, {}) AS n
         CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.id = n % {players} + 1) u",
        events - players
    ))?;
    // The day ends soon, so that the next window is due.
    bench.psql(
        "UPDATE centile_store.boards
         SET time_zone = format('<bench>%s', to_char(((now() AT TIME ZONE 'UTC')::time + interval '55 minutes')::time, 'HH24:MI:SS'))",
    )?;
    bench.psql("VACUUM ANALYZE")?;
    bench.centile(&["rebuild", "--board", BOARD, "--all", "--by", "bench"])?;
    println!("{}\n{players} players, {events} events in the window; all_time, week and month\n", bench.machine()?);

    preparation(bench, players, rounds).await?;
    add_windows(bench)?;
    ranking_reads::compare(bench, dir, players, rounds, &[("week", BOARD, "week"), ("window", BOARD, "rolling:7d")])?;
    remove(bench)?;
    cost(bench, dir, players, rounds)?;
    let disagree = bench.psql("SELECT count(*) FROM centile.ranking_counts WHERE NOT agree")?;
    if disagree == "0" { Ok(()) } else { Err(format!("counts of {disagree} rankings do not agree").into()) }
}

/// Times the preparation of the next window alone and during writes. The current one is open.
async fn preparation(bench: &Bench, players: u32, rounds: u32) -> BenchResult<()> {
    add_windows(bench)?;
    println!("| round | bare aggregate (s) | window (s) | ratio |\n| --- | --- | --- | --- |");
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        remove_next(bench)?;
        bench.psql("CHECKPOINT")?;
        let begin = Instant::now();
        bench.psql(
            "SET work_mem = '128MB';
             CREATE TABLE bare AS SELECT t.user_id, sum(t.points) AS score, max(t.occurred_at) AS reached_at
             FROM centile_store.score_transactions t
             WHERE t.kind = 'score' AND t.occurred_at >= now() - interval '7 days' GROUP BY t.user_id",
        )?;
        let bare = begin.elapsed().as_secs_f64();
        bench.psql("DROP TABLE bare; CHECKPOINT")?;
        let window = prepare(bench, 1)?;
        println!("| {round} | {bare:.1} | {window:.1} | {:.2} |", window / bare);
        ratios.push(window / bare);
    }
    println!("\nmedian ratio {:.2}\n", median(ratios));

    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let load =
        Load::start(SCORES_PER_SECOND, load::scores(&serve.address, BOARD, key.trim(), load::anyone(players.into())));
    tokio::time::sleep(QUIET).await;
    println!(
        "| {SCORES_PER_SECOND} scores/s | scores p50 (ms) | p99 | max | failed | full-page images |\n| --- | --- | --- | --- | --- | --- |"
    );
    bench.psql_in(
        "postgres",
        &[
            "ALTER SYSTEM SET log_lock_waits = on",
            &format!("ALTER SYSTEM SET deadlock_timeout = {LOCK_WAIT_MS}"),
            "SELECT pg_reload_conf()",
        ],
    )?;
    let mut all: [Vec<f64>; 2] = Default::default();
    let mut lock_waits = 0;
    for _ in 1..=rounds {
        remove_next(bench)?;
        // The removed rows are still being written to the disk.
        tokio::time::sleep(QUIET).await;
        let (begin, images_at_begin) = (Instant::now(), full_page_images(bench)?);
        tokio::time::sleep(QUIET).await;
        let (quiet, images_when_quiet) = (Instant::now(), full_page_images(bench)?);
        let waits_before = lock_waits_logged(bench)?;
        prepare(bench, 1)?;
        let (done, images_when_done) = (Instant::now(), full_page_images(bench)?);
        tokio::time::sleep(Duration::from_secs(2)).await;
        lock_waits += lock_waits_logged(bench)? - waits_before;
        let spans = [
            ("alone", begin, quiet, images_when_quiet - images_at_begin),
            ("while the next window is prepared", quiet, done, images_when_done - images_when_quiet),
        ];
        for ((what, from, to, images), p99) in spans.into_iter().zip(&mut all) {
            let Latency { p50, p99: latest, max, failed, .. } = load.latency(from, to);
            p99.push(latest);
            println!("| {what} | {p50:.1} | {latest:.1} | {max:.1} | {failed} | {images} |");
        }
    }
    println!("\nwaits for a lock of more than {LOCK_WAIT_MS} ms during the preparations: {lock_waits}");
    load.stop().await;
    drop(serve);
    remove(bench)?;
    let [alone, during] = all.map(median);
    println!(
        "\nmedian p99: {alone:.1} ms alone and {during:.1} ms during a preparation, {:.1} times\n",
        during / alone
    );
    Ok(())
}

/// Returns the number of waits for locks that PostgreSQL has logged.
fn lock_waits_logged(bench: &Bench) -> BenchResult<usize> {
    let log = fs::read_to_string(bench.servers.postgres.log())?;
    Ok(log.lines().filter(|line| line.contains("still waiting for")).count())
}

/// Returns the number of full-page images in the WAL. Many follow each checkpoint.
fn full_page_images(bench: &Bench) -> BenchResult<u64> {
    Ok(bench.psql("SELECT wal_fpi FROM pg_stat_wal")?.parse()?)
}

/// Adds the current and the next window to the board.
fn add_windows(bench: &Bench) -> BenchResult<()> {
    bench.centile(&["board", "change", BOARD, "--rolling", "7d", "--by", "bench"])?;
    prepare(bench, 2).map(drop)
}

/// Prepares windows, and returns the seconds that the last one took.
fn prepare(bench: &Bench, windows: usize) -> BenchResult<f64> {
    let said = bench.centile(&["close", "--due"])?;
    let seconds = said.lines().filter_map(|line| line.strip_suffix(" s")?.rsplit_once(", ")?.1.parse().ok());
    let seconds: Vec<f64> = seconds.collect();
    match seconds.last() {
        Some(&last) if seconds.len() == windows => Ok(last),
        _ => Err(format!("{windows} windows were expected: {said}").into()),
    }
}

/// Removes the next window and its rows.
fn remove_next(bench: &Bench) -> BenchResult<()> {
    bench.psql(
        "BEGIN;
         SELECT centile_store.lock_structure(id, true) FROM centile_store.boards;
         CREATE TEMP TABLE next AS SELECT id, ranking_id FROM centile_store.periods
         WHERE kind = 'rolling' AND state = 'open' ORDER BY ends_at DESC LIMIT 1;
         UPDATE centile_store.rankings SET released_at = now() WHERE id = (SELECT ranking_id FROM next);
         UPDATE centile_store.periods SET state = 'closed', ranking_id = NULL, closed_at = now() WHERE id = (SELECT id FROM next);
         COMMIT",
    )?;
    bench.centile(&["maintain"])?;
    bench.psql("VACUUM").map(drop)
}

/// Removes the windows and their rows.
fn remove(bench: &Bench) -> BenchResult<()> {
    bench.centile(&["board", "change", BOARD, "--rolling", "none", "--by", "bench"])?;
    bench.centile(&["close", "--due"])?;
    bench.centile(&["maintain"])?;
    bench.psql("VACUUM").map(drop)
}

/// Shifts the bounds of the next window, so that scores do not enter it, or back.
fn shift_next(bench: &Bench, by: &str) -> BenchResult<()> {
    bench
        .psql(&format!(
            "UPDATE centile_store.periods SET starts_at = starts_at + interval '{by}', ends_at = ends_at + interval '{by}'
             WHERE id = (SELECT id FROM centile_store.periods WHERE kind = 'rolling' AND state = 'open' ORDER BY ends_at DESC LIMIT 1)"
        ))
        .map(drop)
}

/// Compares the throughput of scores without a window, with the current one, and with the next one
/// too.
fn cost(bench: &Bench, dir: &Path, players: u32, rounds: u32) -> BenchResult<()> {
    println!("| round | windows | scores/s | p50 (ms) | p99 (ms) |\n| --- | --- | --- | --- | --- |");
    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let key = bench.centile(&["key", "create", "--name", "cost", "--role", "server", "--all-boards"])?;
    let request = format!(
        "wrk.format('POST', '/v1/boards/{BOARD}/scores', nil, string.format('{{\"user_id\": \"player-%d\", \"points\": %d}}', math.random({players}), math.random(1000)))"
    );
    let mut all: [Vec<f64>; 3] = Default::default();
    let mut seed = 0;
    for round in 1..=rounds {
        for (windows, rates) in all.iter_mut().enumerate() {
            match windows {
                0 => {}
                // Without the next window, as in most hours of a day.
                1 => add_windows(bench).and_then(|()| shift_next(bench, "1 year"))?,
                _ => shift_next(bench, "-1 year")?,
            }
            bench.psql("CHECKPOINT")?;
            let mut warm = true;
            for seconds in [5, SECONDS] {
                seed += 1;
                let run = Run {
                    address: &serve.address,
                    connections: CONNECTIONS,
                    seconds,
                    seed,
                    key: key.trim(),
                    request: &request,
                    varies: true,
                };
                let answers = wrk::run(dir, &run)?;
                if !std::mem::take(&mut warm) {
                    let rate = answers.requests as f64 / answers.seconds;
                    println!("| {round} | {windows} | {rate:.0} | {:.1} | {:.1} |", answers.p50, answers.p99);
                    rates.push(rate);
                }
            }
        }
        remove(bench)?;
    }
    let [none, current, next] = all.map(median);
    println!(
        "\nmedians: {none:.0}, {current:.0} and {next:.0} scores/s; a window adds {:.0} % to the time of a score, two add {:.0} %",
        (none / current - 1.0) * 100.0,
        (none / next - 1.0) * 100.0
    );
    Ok(())
}
