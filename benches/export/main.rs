//! Measures downloads of whole periods: rows per second and additional memory of the service, for
//! one file, two concurrent files and a slow reader. `cargo bench --bench export` prints the table
//! and fails if memory grows too much.
//!
//! `BENCH_PLAYERS` (1,000,000) sets the size. `BENCH_SECONDS` (100) sets the duration of the slow
//! download, which must exceed the idle timeout of a connection.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    fmt::Display,
    str::FromStr,
    time::{Duration, Instant},
};

use tokio::time::sleep_until;

#[path = "../common/mod.rs"]
mod common;

use common::{Bench, BenchResult, Serve};

const BOARD: &str = "file";
/// Maximum growth of the service's memory, in MB.
const MOST_MB: f64 = 20.0;

#[tokio::main]
async fn main() -> BenchResult<()> {
    let (players, slow) = (number("BENCH_PLAYERS", 1_000_000)?, number("BENCH_SECONDS", 100)?);
    Bench::run_as_recommended(async |bench, _| measure(bench, players, Duration::from_secs(slow)).await).await
}

fn number<T: FromStr<Err: Display>>(name: &str, default: T) -> BenchResult<T> {
    let text = env::var(name).unwrap_or_default();
    if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
}

async fn measure(bench: &Bench, players: u32, slow: Duration) -> BenchResult<()> {
    common::fill(bench, BOARD, players)?;
    // A slow reader drains its socket buffer in jumps of up to a sixteenth of 32 MiB, so the client
    // timeout of 10 s would be too short.
    let serve = Serve::start(bench, &["--client-timeout", "60"])?;
    // Exclude the memory of the first request.
    for _ in 0..1_000 {
        read(&serve, &format!("/v1/boards/{BOARD}/scores?limit=100"), None).await?;
    }
    println!("{}\n{players} players\n", bench.machine()?);
    println!("| files | seconds | rows/s | MB | memory before, MB | peak, MB |\n| --- | --- | --- | --- | --- | --- |");
    let before = serve.memory_mb("VmRSS")?;
    let [csv, ndjson] = ["csv", "ndjson"].map(|form| format!("/v1/boards/{BOARD}/scores.{form}"));
    let begin = Instant::now();
    let size = read(&serve, &csv, None).await?;
    report(&serve, "CSV", begin, [(players, 1, size)], before)?;
    let begin = Instant::now();
    let sizes = tokio::try_join!(read(&serve, &csv, None), read(&serve, &ndjson, None))?;
    report(&serve, "CSV and NDJSON at once", begin, [(players, 1, sizes.0), (players, 0, sizes.1)], before)?;
    let begin = Instant::now();
    let pace = size.bytes as f64 / slow.as_secs_f64();
    let size = read(&serve, &csv, Some(pace)).await?;
    report(&serve, "CSV, slowly", begin, [(players, 1, size)], before)?;
    let metrics = reqwest::get(format!("{}/metrics", serve.address)).await?.text().await?;
    for cut in metrics.lines().filter(|line| line.starts_with("centile_http_connections_cut_total")) {
        if !cut.ends_with(" 0") {
            return Err(format!("a connection was cut: {cut}").into());
        }
    }
    let growth = serve.memory_mb("VmHWM")? - before;
    println!("\nmemory grew by {growth:.1} MB; the limit is {MOST_MB} MB");
    if growth < MOST_MB { Ok(()) } else { Err("memory grew by more".into()) }
}

/// The data read.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: u64,
    lines: u64,
}

/// Reads a response to its end, at a limited rate in bytes per second.
async fn read(serve: &Serve, path: &str, pace: Option<f64>) -> BenchResult<Size> {
    let mut answer = reqwest::get(format!("{}{path}", serve.address)).await?.error_for_status()?;
    let (begin, mut size) = (tokio::time::Instant::now(), Size { bytes: 0, lines: 0 });
    while let Some(piece) = answer.chunk().await? {
        size.bytes += piece.len() as u64;
        size.lines += piece.split(|byte| *byte == b'\n').count() as u64 - 1;
        if let Some(pace) = pace {
            sleep_until(begin + Duration::from_secs_f64(size.bytes as f64 / pace)).await;
        }
    }
    Ok(size)
}

/// Prints a row of the table. Fails unless each file has a line per player plus the given header
/// lines.
fn report<const N: usize>(
    serve: &Serve,
    what: &str,
    begin: Instant,
    files: [(u32, u64, Size); N],
    before: f64,
) -> BenchResult<()> {
    let (seconds, mut rows, mut bytes) = (begin.elapsed().as_secs_f64(), 0, 0);
    for (players, head, size) in files {
        if size.lines != u64::from(players) + head {
            return Err(format!("{what}: {} lines", size.lines).into());
        }
        rows += players;
        bytes += size.bytes;
    }
    println!(
        "| {what} | {seconds:.1} | {:.0} | {:.1} | {before:.1} | {:.1} |",
        f64::from(rows) / seconds,
        bytes as f64 / 1e6,
        serve.memory_mb("VmHWM")?
    );
    Ok(())
}
