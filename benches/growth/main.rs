//! Measures the cost of ten times the players: the same ranks among a million and among ten million,
//! on one server, in turn; the time of rebuilds, and the memory of `serve`.
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
    Bench, Outcome, Serve, fill_from_file,
    load::{self, Load},
    median, read, wrk,
};

const SEED: u64 = 1;
const ROUNDS: u32 = 3;
/// How long `wrk` asks at a time.
const SECONDS: u32 = 10;
/// Stretches in which statements are timed, per round.
const STRETCHES: u32 = 5;
/// Load under which memory is looked at.
const LOAD: Duration = Duration::from_mins(1);

/// Sizes of the boards.
#[derive(Debug, Parser)]
struct Arguments {
    /// Players of the smaller board
    #[arg(long, default_value_t = 1_000_000)]
    few: u64,

    /// Players of the larger one
    #[arg(long, default_value_t = 10_000_000)]
    many: u64,

    /// Events of a third one, with as many players as the smaller: only rebuilt
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,

    /// What cargo gives to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// A board and what was measured on it.
struct Board {
    name: &'static str,
    players: u64,
    statements: Vec<f64>,
    answers: Vec<f64>,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, &arguments).await).await
}

async fn measure(bench: &Bench, dir: &Path, arguments: &Arguments) -> Outcome<()> {
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
    // The first round warms caches, and does not count.
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
                return Err(format!("{} of {} answers are errors", answers.errors, answers.requests).into());
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
        "\n{} players beside {}: a statement takes {:.2} times as long, over HTTP there are {:.2} times fewer answers a second",
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
    println!("memory of serve after all this, at most: {:.0} MB", serve.peak_memory_mb()?);
    Ok(())
}

/// Fills a board: one event for each player, or several for random ones.
fn fill(bench: &Bench, dir: &Path, board: &str, players: u64, events: u64) -> Outcome<()> {
    let file = dir.join("scores.csv");
    let mut random = StdRng::seed_from_u64(SEED);
    let mut out = BufWriter::new(File::create(&file)?);
    writeln!(out, "user_id,user_name,points")?;
    for n in 1..=events {
        let player = if events == players { n } else { random.random_range(1..=players) };
        writeln!(out, "player-{player},player-{player},{}", random.random_range(0..=1_000_000_000))?;
    }
    out.flush()?;
    bench.centile(&["board", "create", board, "--periods", "all_time,week,month"])?;
    let began = Instant::now();
    let said = fill_from_file(bench, "postgres", board, &file)?;
    println!(
        "{events} events of {players} players, all_time, week and month: {:.0} s with the rebuilds\n{said}",
        began.elapsed().as_secs_f64()
    );
    fs::remove_file(file)?;
    Ok(())
}
