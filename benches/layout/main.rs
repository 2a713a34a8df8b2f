//! Rebalancing while a board grows from nobody to a million players, for each of several spreads of
//! scores: through `centile serve`, on private servers. `make torture` runs it.
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
    Bench, Outcome, Serve, median, percentile,
    read::{self, Times},
};
use grow::Sender;
use report::Grown;
use spread::Spread;

const SEED: u64 = 1;
/// How often ranks are read and buckets are counted while a board grows.
const PARTS: u64 = 10;
/// In how many stretches of time ranks are read each time.
const SAMPLES: u32 = 3;
/// In how many they are read in the end, once as the board has grown and once built anew.
const LAST_SAMPLES: u32 = 10;
/// Timeout for rebalancing after the last score.
const PATIENCE: Duration = Duration::from_mins(10);
/// How often a commit is timed.
const PROBE: Duration = Duration::from_millis(20);

/// What to grow.
#[derive(Debug, Parser)]
struct Arguments {
    /// Players of each board in the end
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    players: u64,

    /// Only these spreads of scores, divided by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<Spread>,

    /// What cargo gives to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let spreads = if arguments.only.is_empty() { Spread::value_variants().to_vec() } else { arguments.only };
    report::head(arguments.players, SEED);
    let mut all = Vec::new();
    for spread in spreads {
        // Servers of its own for each: none has the leavings of another to vacuum.
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

async fn grow(bench: &Bench, spread: Spread, players: u64) -> Outcome<Grown> {
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
        // As it is left at this moment: the timer goes on.
        let largest = sample::largest(&mut reader, board).await?.shares;
        let now = read::ranks(&mut reader, board, last, SAMPLES, &mut random).await?;
        eprintln!(
            "{}: {last} players, {largest:.2} shares in the largest bucket, a rank takes {:.3} ms",
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
            return Err("rebalancing does not come to rest".into());
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
    bench.psql(&format!(
        "SELECT centile_store.fill_entries(r.ranking_id), centile_store.fill_buckets(r.ranking_id),
                centile_store.swap_ranking(r.ranking_id, r.ledger_end)
         FROM centile_store.begin_rebuild({}) r",
        kept.period
    ))?;
    let anew = read::ranking(&mut reader, board).await?;
    bench.psql("VACUUM ANALYZE")?;
    bench.psql("CHECKPOINT")?;
    // In turn, so that both meet the same machine.
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

/// Times commits that nothing else waits for, until they are stopped: a step holds its lock for that
/// long after its statement.
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

/// When commits began, and how many milliseconds they took.
type CommitTimes = Vec<(DateTime<Utc>, f64)>;
type Commits = (tokio_util::sync::CancellationToken, JoinHandle<sqlx::Result<CommitTimes>>);

async fn stop((stop, task): Commits) -> Outcome<CommitTimes> {
    stop.cancel();
    Ok(task.await??)
}

/// Duration of the commit that began closest to this moment.
fn commit_at(commits: &CommitTimes, at: DateTime<Utc>) -> f64 {
    commits.iter().min_by_key(|(began, _)| (*began - at).abs()).map_or(f64::NAN, |(_, ms)| *ms)
}
