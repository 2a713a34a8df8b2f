//! Measures the cost of ten times the players. It reads the same ranks among a million and among
//! ten million, on one server, in turn. It also measures rebuilds and the memory of `serve`.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use clap::Parser;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

#[path = "../common/mod.rs"]
mod common;

use common::{
    Bench, BenchResult, Serve, fill_ledger,
    load::{self, Load},
    median, read, wrk,
};

const SEED: u64 = 1;
const ROUNDS: u32 = 3;
/// Duration of a run of `wrk`.
const SECONDS: u32 = 10;
/// Intervals of timed statements per round.
const STRETCHES: u32 = 5;
/// Load during the measurement of memory.
const LOAD: Duration = Duration::from_mins(1);

/// Sizes of the boards.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of players of the smaller board
    #[arg(long, default_value_t = 1_000_000)]
    few: u64,

    /// Number of players of the larger board
    #[arg(long, default_value_t = 10_000_000)]
    many: u64,

    /// Number of events of a third board, with the players of the smaller one; only rebuilt
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,

    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// A board and its measurements.
struct Board {
    name: &'static str,
    players: u64,
    statements: Vec<f64>,
    answers: Vec<f64>,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let arguments = Arguments::parse();
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, &arguments).await).await
}

async fn measure(bench: &Bench, dir: &Path, arguments: &Arguments) -> BenchResult<()> {
    println!("{}; seed {SEED}\n", bench.machine()?);
    let mut boards = [("few", arguments.few), ("many", arguments.many)].map(|(name, players)| Board {
        name,
        players,
        statements: Vec::new(),
        answers: Vec::new(),
    });
    for board in &boards {
        fill(bench, dir, board.name, board.players, board.players)?;
    }
    fill(bench, dir, "busy", arguments.few, arguments.events)?;
    bench.psql("VACUUM ANALYZE")?;
    bench.psql("CHECKPOINT")?;

    let serve = Serve::start(bench, &[])?;
    let mut reader = read::connect(bench).await?;
    let mut random = StdRng::seed_from_u64(SEED);
    // The first round only warms the caches.
    for round in 0..=ROUNDS {
        for board in &mut boards {
            let times = read::ranks(&mut reader, board.name, board.players, STRETCHES, &mut random).await?;
            let request = format!(
                "wrk.format('GET', '/v1/boards/{}/scores/player-' .. math.random({}) .. '?around=0')",
                board.name, board.players
            );
            let answers = wrk::run(
                dir,
                &wrk::Run {
                    address: &serve.address,
                    connections: 32,
                    seconds: SECONDS,
                    seed: 1,
                    key: "",
                    request: &request,
                    varies: true,
                },
            )?;
            if answers.errors > 0 {
                return Err(format!("{} of {} responses are errors", answers.errors, answers.requests).into());
            }
            let per_second = answers.requests as f64 / answers.seconds;
            if round > 0 {
                println!(
                    "round {round}, {} players: statement p50 {:.3} ms, p99 {:.3} ms; HTTP {per_second:.0}/s, p50 {:.2} ms, p99 {:.2} ms",
                    board.players, times.p50, times.p99, answers.p50, answers.p99
                );
                board.statements.push(times.p50);
                board.answers.push(per_second);
            }
        }
    }
    let [few, many] = boards;
    println!(
        "\n{} players compared with {}: a statement takes {:.2} times as long; HTTP throughput is {:.2} times lower",
        many.players,
        few.players,
        median(many.statements) / median(few.statements),
        median(few.answers) / median(many.answers)
    );

    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let writes = Load::start(500, load::scores(&serve.address, many.name, key.trim(), load::anyone(many.players)));
    let reads = Load::start(200, load::ranks(&serve.address, many.name, "week", 4, many.players));
    tokio::time::sleep(LOAD).await;
    writes.stop().await;
    reads.stop().await;
    println!("peak memory of serve: {:.0} MB", serve.peak_memory_mb()?);
    Ok(())
}

/// Fills a board with one event per player, or several for random players.
fn fill(bench: &Bench, dir: &Path, board: &str, players: u64, events: u64) -> BenchResult<()> {
    let file = dir.join("scores.csv");
    let mut random = StdRng::seed_from_u64(SEED);
    let mut out = BufWriter::new(File::create(&file)?);
    writeln!(out, "user_id,name,points")?;
    for n in 1..=events {
        let player = if events == players { n } else { random.random_range(1..=players) };
        writeln!(out, "player-{player},player-{player},{}", random.random_range(0..=1_000_000_000))?;
    }
    out.flush()?;
    bench.centile(&["board", "create", board, "--periods", "all_time,week,month"])?;
    let began = Instant::now();
    fill_ledger(bench, "postgres", board, &file)?;
    let said = bench.centile(&["rebuild", "--board", board, "--all"])?;
    println!(
        "{events} events of {players} players, all_time, week and month: {:.0} s including rebuilds\n{said}",
        began.elapsed().as_secs_f64()
    );
    fs::remove_file(file)?;
    Ok(())
}
