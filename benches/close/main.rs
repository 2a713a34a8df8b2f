//! Measures the cost of closing a period and its effect on concurrent writers and readers, on
//! private servers. `make torture` runs it; it prints tables for docs/benchmarks.md.
//!
//! `BENCH_PLAYERS` (1,000,000) and `BENCH_EVENTS` (five per player) set the size of each week,
//! `BENCH_ROUNDS` (3) the number of weeks.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    time::{Duration, Instant},
};

mod acts;
#[path = "../common/mod.rs"]
mod common;
mod fill;
mod refresh;
mod report;
mod watch;

use common::{
    Bench, BenchResult, Serve,
    load::{self, Load},
};
use fill::{BOARD, Size, Week};
use report::{Report, UnderLoad, say};

/// Scores per second while another command runs.
const SCORES_PER_SECOND: u32 = 200;
/// Reads of a closed week's top list per second while it is refreshed.
const TOPS_PER_SECOND: u32 = 50;
/// Duration of the load without another command, for comparison.
const QUIET: Duration = Duration::from_secs(20);
/// Number of runs of the quick commands.
const REPEATS: usize = 5;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let number = |name: &str, default: u64| -> BenchResult<u64> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let players = number("BENCH_PLAYERS", 1_000_000)?.max(1_000);
    let events = number("BENCH_EVENTS", 5 * players)?.max(players);
    let weeks = u32::try_from(number("BENCH_ROUNDS", 3)?.clamp(1, 9))?;
    Bench::run(async |bench, _| measure(bench, Size { players, events, weeks }).await).await
}

async fn measure(bench: &Bench, size: Size) -> BenchResult<()> {
    let began = Instant::now();
    say("filling");
    let (weeks, small) = fill::fill(bench, size)?;
    let mut report = Report::new(bench.machine()?, size, began.elapsed());
    let result = measure_all(bench, &weeks, &small, &mut report).await;
    // Print the results even after a failure.
    report.print();
    result
}

async fn measure_all(bench: &Bench, weeks: &[Week], small: &Week, report: &mut Report) -> BenchResult<()> {
    say("closing, compared with a bare CREATE TABLE AS");
    // Also proves that the filled rankings agree with the ledger.
    report.small = Some(close(bench, small)?);
    for week in weeks {
        report.closes.push(beside_bare(bench, week)?);
    }
    for week in weeks {
        week.reopen(bench)?;
    }
    bench.psql("VACUUM ANALYZE")?;

    let players = report.size.players;
    let serve = Serve::start(bench, &["--no-maintenance"])?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let scores =
        || Load::start(SCORES_PER_SECOND, load::scores(&serve.address, BOARD, key.trim(), load::anyone(players)));

    for week in weeks {
        say("closing during writes");
        bench.psql("CHECKPOINT")?;
        let load = scores();
        let quiet = quiet(QUIET).await;
        let took = close(bench, week)?;
        load.stop().await;
        report.under_load.push(beside(&load, "`centile close`", quiet, &took));
        if report.under_load.len() < weeks.len() && report.maintain.is_none() {
            report.maintain = Some(watch::run(bench, &["maintain"])?);
        }
    }

    say("refreshing, both ways");
    let week = &weeks[0];
    for _ in weeks {
        for shifts in [true, false] {
            report.refreshes.push(refresh::both_ways(bench, week, shifts)?);
        }
    }

    say("refreshing and removing during writes");
    refresh::correct(bench, week, true)?;
    bench.psql("CHECKPOINT")?;
    let top = load::top(&serve.address, BOARD, &week.name, 100);
    report.serves_closed = load::works(top()).await?;
    let load = scores();
    let quiet_span = quiet(QUIET).await;
    let readers = report.serves_closed.then(|| Load::start(TOPS_PER_SECOND, top));
    if readers.is_some() {
        quiet(Duration::from_secs(2)).await;
    }
    let refreshed = watch::run(bench, &["refresh", "--board", BOARD, "--period", &week.name, "--by", "bench"])?;
    if let Some(readers) = readers {
        quiet(Duration::from_secs(2)).await;
        readers.stop().await;
        report.reads = readers.said();
    }
    let (corrected, correction) = refresh::and_correct(bench, week)?;
    report.correct_meanwhile = Some(correction);
    let removed = watch::run(bench, &["maintain"])?;
    load.stop().await;
    for (what, took) in [
        ("`centile refresh`", &refreshed),
        ("`centile refresh`, and a `centile correct` of the same week", &corrected),
        (&format!("`centile maintain`, {}", report::removal(&removed.text)), &removed),
    ] {
        report.others.push(beside(&load, what, quiet_span, took));
    }

    say("other commands");
    for _ in 0..REPEATS {
        report.close_due.push(watch::run(bench, &["close", "--due"])?.seconds());
        report.idle_maintain.push(watch::run(bench, &["maintain"])?.seconds());
        report.corrects.push(refresh::correct(bench, week, false)?.seconds());
    }

    say("many resets, voids and bans");
    report.with_acts = Some(acts::beside_none(bench, &weeks[0], players)?);
    Ok(())
}

/// Builds a bare table of a week's sums and ranks, then closes the week. Fails if they differ.
fn beside_bare(bench: &Bench, week: &Week) -> BenchResult<report::Close> {
    let bare = |table: &str, setting: &str| -> BenchResult<f64> {
        bench.psql("CHECKPOINT")?;
        let began = Instant::now();
        bench.psql(&format!(
            "{setting}
             CREATE TABLE {table} AS
             SELECT user_id, sum(points) AS score, rank() OVER (ORDER BY sum(points) DESC) AS rank
             FROM centile_store.score_transactions WHERE {} GROUP BY user_id",
            week.scores()
        ))?;
        Ok(began.elapsed().as_secs_f64())
    };
    // Warm the cache, because the first one would read from disk what the second finds in memory.
    bench.psql(&format!("SELECT sum(points) FROM centile_store.score_transactions WHERE {}", week.scores()))?;
    let bare_seconds = bare("bare", "")?;
    bench.psql("CHECKPOINT")?;
    let close = close(bench, week)?;
    let wrong = bench.psql(&format!(
        "SELECT count(*) FROM bare b FULL JOIN centile_archive.{} a USING (user_id)
         WHERE a.rank IS DISTINCT FROM b.rank OR a.score IS DISTINCT FROM b.score",
        week.archive
    ))?;
    if wrong != "0" {
        return Err(format!("{wrong} players of the archive {} have another rank than by rank()", week.archive).into());
    }
    let with_memory = bare("bare_with_memory", "SET work_mem = '128MB';")?;
    bench.psql("DROP TABLE bare, bare_with_memory")?;
    Ok(report::Close { bare: bare_seconds, bare_with_memory: with_memory, took: close })
}

/// Closes a week as cron would. Fails if the live ranking differs from the ledger.
fn close(bench: &Bench, week: &Week) -> BenchResult<watch::Took> {
    let took = watch::run(bench, &["close", "--board", BOARD, "--period", &week.name])?;
    let agrees = bench.psql(&format!(
        "SELECT count(*) FROM centile_store.periods WHERE id = {} AND state = 'closed' AND archive_differences = 0",
        week.period_id
    ))?;
    if agrees == "1" { Ok(took) } else { Err(format!("{} was not closed correctly: {}", week.name, took.text).into()) }
}

/// Sleeps, and returns the start and end of the interval.
async fn quiet(time: Duration) -> (Instant, Instant) {
    let from = Instant::now();
    tokio::time::sleep(time).await;
    (from, Instant::now())
}

fn beside(load: &Load, what: &str, quiet: (Instant, Instant), took: &watch::Took) -> UnderLoad {
    UnderLoad {
        what: what.to_owned(),
        seconds: took.seconds(),
        before: load.latency(quiet.0, quiet.1),
        during: load.latency(took.began, took.ended),
    }
}
