//! Measures rebalancing while a board grows from 0 to a million players, for several distributions
//! of scores, through `centile serve` on private servers. `make torture` runs it.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use clap::{Parser, ValueEnum as _};
use rand::{SeedableRng as _, rngs::StdRng};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;

#[path = "../common/mod.rs"]
mod common;
mod grow;
mod report;
mod sample;
mod spread;

use common::{
    Bench, BenchResult, Serve, median, percentile,
    read::{self, Times},
};
use grow::Sender;
use report::Grown;
use spread::Spread;

const SEED: u64 = 1;
/// Number of measurements while a board grows.
const PARTS: u64 = 10;
/// Intervals of rank reads per measurement.
const SAMPLES: u32 = 3;
/// Intervals of rank reads at the end, for the grown ranking and for the rebuilt one.
const LAST_SAMPLES: u32 = 10;
/// Timeout for rebalancing after the last score.
const PATIENCE: Duration = Duration::from_mins(10);
/// Interval of timed commits.
const PROBE: Duration = Duration::from_millis(20);

/// Boards to grow.
#[derive(Debug, Parser)]
struct Arguments {
    /// Final number of players per board
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    players: u64,

    /// Comma-separated score distributions [default: all]
    #[arg(long, value_delimiter = ',')]
    only: Vec<Spread>,

    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let arguments = Arguments::parse();
    let spreads = if arguments.only.is_empty() { Spread::value_variants().to_vec() } else { arguments.only };
    report::head(arguments.players, SEED);
    let mut all = Vec::new();
    for spread in spreads {
        // New servers for each, so that none has to vacuum the rows of another.
        Bench::run_as_recommended(async |bench, _| {
            if all.is_empty() {
                println!("{}\n", bench.machine()?);
                report::columns();
            }
            let grown = grow(bench, spread, arguments.players).await?;
            grown.print();
            all.push(grown);
            Ok(())
        })
        .await?;
    }
    report::demands(&all);
    Ok(())
}

async fn grow(bench: &Bench, spread: Spread, players: u64) -> BenchResult<Grown> {
    let board = "grown";
    bench.psql(sample::NOTE_HOLDS)?;
    let [mode, order, ties] = spread.rules();
    let rules = ["board", "create", board, "--mode", mode, "--order", order, "--ties", ties, "--periods", "all_time"];
    bench.centile(&[&rules, spread.hints()].concat())?;
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let serve = Serve::start(bench, &[])?;
    let sender = Sender::new(&serve.address, board, key.trim());
    let mut random = StdRng::seed_from_u64(SEED);
    let mut reader = read::connect(bench).await?;
    let commits = time_commits(bench);

    let mut grown = Grown { spread: spread.name(), players, ..Grown::default() };
    for part in 1..=PARTS {
        let (first, last) = (1 + players * (part - 1) / PARTS, players * part / PARTS);
        let (scores, took) = sender.arrive(spread, first, last, &mut random).await?;
        grown.scores += scores;
        grown.seconds += took.as_secs_f64();
        // Measured at this moment, while the timer continues.
        let largest = sample::largest(&mut reader, board).await?.shares;
        let now = read::ranks(&mut reader, board, last, SAMPLES, &mut random).await?;
        eprintln!(
            "{}: {last} players, {largest:.2} shares in the largest bucket, {:.3} ms per rank",
            grown.spread, now.p50
        );
        grown.largest_while_growing.push(largest);
        grown.while_growing.push(now.p50);
    }
    let began = Instant::now();
    loop {
        let largest = sample::largest(&mut reader, board).await?;
        if largest.is_at_rest() {
            grown.largest = Some(largest.shares);
            break;
        }
        if began.elapsed() > PATIENCE {
            return Err("rebalancing does not finish".into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    grown.rest_seconds = began.elapsed().as_secs_f64();
    drop(serve);
    let commits = stop(commits).await?;
    let mut all: Vec<f64> = commits.iter().map(|(_, ms)| *ms).collect();
    grown.commit = Times { p50: median(all.clone()), p99: percentile(&mut all, 99.0) };

    for (steps, name) in [(&mut grown.moved, "move"), (&mut grown.repositioned, "reposition")] {
        let statement = "SELECT at, ms, coalesce(rows, 0) FROM public.hold WHERE step = $1";
        let rows: Vec<(DateTime<Utc>, f64, i64)> = sqlx::query_as(statement).bind(name).fetch_all(&mut reader).await?;
        steps.extend(rows.iter().map(|(at, ms, rows)| (ms + commit_at(&commits, *at), *rows)));
    }
    let kept = read::ranking(&mut reader, board).await?;
    grown.wrong = sample::verify(bench, &kept)?;
    grown.counted = Some(sample::counted(&mut reader, &kept, players).await?);
    common::fill_rankings(bench, "postgres", &[&kept.period.to_string()])?;
    let anew = read::ranking(&mut reader, board).await?;
    bench.psql("VACUUM ANALYZE")?;
    bench.psql("CHECKPOINT")?;
    // Alternate, so that both see the same machine load.
    for _ in 0..LAST_SAMPLES {
        for (ranking, times) in [(&kept, &mut grown.last), (&anew, &mut grown.best)] {
            bench.psql(&format!(
                "UPDATE centile_store.periods SET ranking_id = {} WHERE id = {}",
                ranking.id, ranking.period
            ))?;
            let next = read::ranks(&mut reader, board, players, 1, &mut random).await?;
            if times.is_none_or(|times| next.p50 < times.p50) {
                *times = Some(next);
            }
        }
    }
    reader.close().await?;
    Ok(grown)
}

/// Times independent commits until it is stopped. A step holds its lock for about as long after its
/// statement.
fn time_commits(bench: &Bench) -> Commits {
    let url = bench.servers.database_url();
    let stop = tokio_util::sync::CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let mut connection = PgConnection::connect(&url).await?;
        let mut times = Vec::new();
        while !stopped.is_cancelled() {
            tokio::time::sleep(PROBE).await;
            let mut transaction = connection.begin().await?;
            sqlx::query("INSERT INTO public.probe VALUES (1)").execute(&mut *transaction).await?;
            let (at, began) = (Utc::now(), Instant::now());
            transaction.commit().await?;
            times.push((at, began.elapsed().as_secs_f64() * 1e3));
        }
        Ok(times)
    });
    (stop, task)
}

/// Start times and durations of commits, in milliseconds.
type CommitTimes = Vec<(DateTime<Utc>, f64)>;
type Commits = (tokio_util::sync::CancellationToken, JoinHandle<sqlx::Result<CommitTimes>>);

async fn stop((stop, task): Commits) -> BenchResult<CommitTimes> {
    stop.cancel();
    Ok(task.await??)
}

/// Returns the duration of the commit that started closest to a time.
fn commit_at(commits: &CommitTimes, at: DateTime<Utc>) -> f64 {
    commits.iter().min_by_key(|(began, _)| (*began - at).abs()).map_or(f64::NAN, |(_, ms)| *ms)
}
