//! Measures the cost of ten times the players. It reads the same ranks among a million and among
//! ten million, on one server, in turn. It also measures rebuilds, disk, memory, the mix of scores,
//! ranks and top lists, and closing the week of the larger board.
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
    Bench, BenchResult, Serve, fill_ledger, fill_rankings,
    load::{self, Load},
    median, read, wrk,
};

const SEED: u64 = 1;
const ROUNDS: u32 = 3;
/// Duration of a run of `wrk`.
const SECONDS: u32 = 10;
/// Intervals of timed statements per round.
const STRETCHES: u32 = 5;
/// Scores, ranks and top lists per second in the mix.
const MIX: [u32; 3] = [2_500, 250, 50];

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

    /// Seconds of the mix
    #[arg(long, default_value_t = 60)]
    mix_seconds: u64,

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
    for board in ["few", "busy"] {
        rebuild(bench, board)?;
    }
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
        median(many.statements.clone()) / median(few.statements),
        median(few.answers) / median(many.answers.clone())
    );

    mix(bench, &serve, &many, Duration::from_secs(arguments.mix_seconds)).await?;
    println!("peak memory of serve: {:.0} MiB", serve.peak_memory_mb()?);
    let metrics = reqwest::get(format!("{}/metrics", serve.address)).await?.error_for_status()?.text().await?;
    for line in metrics
        .lines()
        .filter(|line| ["centile_index_bytes", "centile_directory_bytes"].iter().any(|name| line.starts_with(name)))
    {
        println!("{line}");
    }
    close_week(bench, &many)?;
    rebuild(bench, many.name)
}

/// Rebuilds the ranking of all time of a board, and prints the output of the command.
fn rebuild(bench: &Bench, board: &str) -> BenchResult<()> {
    println!("{}", bench.centile(&["rebuild", "--board", board, "--period", "all_time"])?);
    Ok(())
}

/// Sends scores, ranks and top lists to a board at fixed rates.
async fn mix(bench: &Bench, serve: &Serve, board: &Board, duration: Duration) -> BenchResult<()> {
    let key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
    let (address, name, [scores, ranks, tops]) = (&serve.address, board.name, MIX);
    let loads = [
        ("scores", Load::start(scores, load::scores(address, name, key.trim(), load::anyone(board.players)))),
        ("ranks", Load::start(ranks, load::ranks(address, name, "all_time", 0, board.players))),
        ("top lists", Load::start(tops, load::top(address, name, "all_time", 10))),
    ];
    let began = Instant::now();
    tokio::time::sleep(duration).await;
    let ended = Instant::now();
    for (_, load) in &loads {
        load.stop().await;
    }
    println!("\nthe mix on {} players for {} s:", board.players, duration.as_secs());
    for (what, load) in &loads {
        let latency = load.latency(began, ended);
        println!(
            "{what}: {} of {} failed; p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms",
            latency.failed, latency.answers, latency.p50, latency.p99, latency.p999
        );
    }
    Ok(())
}

/// Ends the current week of a board now, closes it, and fails if its archive differs from the live
/// ranking.
fn close_week(bench: &Bench, board: &Board) -> BenchResult<()> {
    let week =
        format!("kind = 'week' AND board_id = (SELECT id FROM centile_store.boards WHERE slug = '{}')", board.name);
    bench.psql(&format!("UPDATE centile_store.periods SET ends_at = now() WHERE {week}"))?;
    bench.psql("CHECKPOINT")?;
    let began = Instant::now();
    bench.centile(&["close", "--due"])?;
    let seconds = began.elapsed().as_secs_f64();
    let closed = bench.psql(&format!(
        "SELECT archive_players, archive_differences FROM centile_store.periods WHERE state = 'closed' AND {week}"
    ))?;
    if closed != format!("{}|0", board.players) {
        return Err(format!("the week was not closed correctly: {closed}").into());
    }
    println!("closing the week of {} players: {seconds:.0} s", board.players);
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
    let periods = bench.psql(&format!(
        "SELECT p.id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE b.slug = '{board}'"
    ))?;
    fill_rankings(bench, "postgres", &periods.lines().collect::<Vec<_>>())?;
    println!(
        "{events} events of {players} players, all_time, week and month: loaded in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let bytes: f64 = bench.psql("SELECT pg_database_size(current_database())")?.parse()?;
    println!("database, with all boards so far: {:.1} GB", bytes / 1e9);
    fs::remove_file(file)?;
    Ok(())
}
