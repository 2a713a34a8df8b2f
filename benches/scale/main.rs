//! Measures the rank index alone with up to 100 million synthetic players, simulates scores into one
//! and several PostgreSQL nodes, and computes machines from both. `cargo bench --bench scale` prints
//! tables, and fails if an answer is wrong or the index misses its marks. It needs no server.
//!
//! `BENCH_PLAYERS` (100,000,000) sets the largest size. Sizes that do not fit into the available
//! memory are extrapolated.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    error::Error,
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use clap::Parser;

mod fit;
mod index;
mod plan;
mod players;
mod simulation;
mod text;

use fit::Line;
use index::{Measured, Times, memory};
use simulation::{LANES, Setting, Simulated};
use text::{grouped, short};

type BenchResult<T> = Result<T, Box<dyn Error>>;

const SIZES: [u32; 5] = [1_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000];
/// Bytes per player, and in all, that must be available to measure a size. An instance reserves as
/// much per player.
const NEEDED: (f64, f64) = (48.0, 200e6);
/// Smaller indexes are partly in the processor's caches, so they do not count for the lines.
const LINE_FROM: f64 = 10e6;
/// Size to which the lines are extended.
const EXTENDED: f64 = 500e6;
/// Marks for the largest size: nanoseconds of a rank and of a position, and bytes per player.
const MARKS: (f64, f64) = (3_000.0, 56.0);

/// Loads of one primary: scores per second.
const RATES: [f64; 6] = [2_500.0, 10_000.0, 25_000.0, 50_000.0, 100_000.0, 250_000.0];
const CORES: [usize; 4] = [2, 8, 16, 32];
/// Players of the simulated board, for the WAL per score.
const SIMULATED_PLAYERS: f64 = 100e6;
/// Round trips and flush with a synchronous replica in another zone. Assumed.
const FAR_COMMIT: Duration = Duration::from_millis(3);

#[derive(Debug, Parser)]
struct Arguments {
    /// Measure this number of players in this process
    #[arg(long, hide = true)]
    only: Option<u32>,

    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> BenchResult<()> {
    let arguments = Arguments::parse();
    if let Some(players) = arguments.only {
        println!("{}", serde_json::to_string(&index::measure(players)?)?);
        return Ok(());
    }
    let largest = match env::var("BENCH_PLAYERS").unwrap_or_default().as_str() {
        "" => 100_000_000,
        text => text.parse::<u32>().map_err(|error| format!("BENCH_PLAYERS: {error}"))?,
    };
    println!("{}", machine()?);
    index::check()?;
    let measured = measure(largest)?;
    let lines = Lines::through(&measured);
    report(&measured, &lines, f64::from(largest));
    simulate()?;
    plan::print(&lines.bytes, &lines.change)?;
    marks(&measured)
}

/// Describes date and machine in a line.
fn machine() -> BenchResult<String> {
    let processor = fs::read_to_string("/proc/cpuinfo")?;
    let name = processor.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    Ok(format!(
        "{}, {} cores ({}), {:.0} GB RAM",
        chrono::Utc::now().format("%Y-%m-%d"),
        std::thread::available_parallelism().map_or(0, usize::from),
        name.unwrap_or("unknown"),
        memory("/proc/meminfo", "MemTotal")? / f64::from(1 << 30)
    ))
}

/// Measures all sizes that fit into the memory, each in its own process.
fn measure(largest: u32) -> BenchResult<Vec<Measured>> {
    let mut sizes: Vec<u32> = SIZES.into_iter().filter(|size| *size < largest).collect();
    sizes.push(largest);
    let mut measured = Vec::new();
    for size in sizes {
        let needed = f64::from(size) * NEEDED.0 + NEEDED.1;
        let available = memory("/proc/meminfo", "MemAvailable")?;
        if needed > available {
            println!(
                "{} players need {:.1} GB; {:.1} GB are available",
                grouped(f64::from(size)),
                needed / 1e9,
                available / 1e9
            );
            break;
        }
        let mut alone = Command::new(env::current_exe()?);
        let output = alone.args(["--only", &size.to_string()]).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{size} players: {}", output.status).into());
        }
        measured.push(serde_json::from_slice(&output.stdout)?);
    }
    if measured.is_empty() { Err("no size fits into the available memory".into()) } else { Ok(measured) }
}

/// Lines through the measured sizes. Times of reads and of loading a player grow with the logarithm
/// of the players, others with the players.
struct Lines {
    /// Microseconds per player.
    load: Line,
    /// Megabytes.
    bytes: Line,
    reads: [Line; 6],
    change: Line,
}

impl Lines {
    fn through(measured: &[Measured]) -> Self {
        let large: Vec<Measured> = measured.iter().filter(|one| one.players >= LINE_FROM).copied().collect();
        let used = if large.len() > 1 { large } else { measured.to_vec() };
        let line = |x: fn(f64) -> f64, y: &dyn Fn(&Measured) -> f64| {
            Line::through(&used.iter().map(|one| (x(one.players), y(one))).collect::<Vec<_>>())
        };
        let reads = [0, 1, 2, 3, 4, 5].map(|place| line(f64::log2, &|one: &Measured| reads(one)[place]));
        Self {
            load: line(f64::log2, &|one: &Measured| one.load_seconds / millions(one.players)),
            bytes: line(millions, &|one: &Measured| one.bytes * millions(one.players)),
            reads,
            change: line(millions, &|one: &Measured| one.change.mean + one.splitting),
        }
    }
}

fn millions(players: f64) -> f64 {
    players / 1e6
}

const READS: [&str; 6] =
    ["rank, p50", "rank, p99", "position, p50", "position, p99", "rank with ±4, p50", "rank with ±4, p99"];

fn reads(measured: &Measured) -> [f64; 6] {
    let Measured { rank, position, around, .. } = measured;
    [rank.p50, rank.p99, position.p50, position.p99, around.p50, around.p99]
}

/// Prints the measured sizes and the lines.
fn report(measured: &[Measured], lines: &Lines, largest: f64) {
    println!("\nLoad, and bytes per player:\n");
    println!("| players | load, s | index | resident | peak | index after the changes |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for one in measured {
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            short(one.players),
            one.load_seconds,
            one.bytes,
            one.resident,
            one.peak,
            one.bytes_after
        );
    }
    println!("\nReads, ns:\n\n| players | {} | clock |", READS.join(" | "));
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for one in measured {
        let columns = reads(one).map(grouped).join(" | ");
        println!("| {} | {columns} | {} |", short(one.players), grouped(one.clock.p50));
    }
    println!("\nProcessor time of reads, and changes, ns:\n");
    println!(
        "| players | rank, mean | position, mean | rank with ±4, mean | change, p50 | change, p99 | change, p99.9 | change, mean | settled, p99.9 | splitting, mean |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for one in measured {
        let Times { p50, p99, p99_9, mean } = one.change;
        let reads = [one.rank.mean, one.position.mean, one.around.mean].map(grouped).join(" | ");
        let columns = [p50, p99, p99_9, mean, one.settled.p99_9, one.splitting].map(grouped).join(" | ");
        println!("| {} | {reads} | {columns} |", short(one.players));
    }

    println!("\nLines through the sizes from {} on:\n", short(LINE_FROM));
    let mut extended: Vec<f64> = SIZES.map(f64::from).into_iter().filter(|size| *size < largest).collect();
    extended.extend([largest, EXTENDED]);
    extended.retain(|size| measured.iter().all(|one| (one.players - size).abs() > 0.5));
    let names: Vec<String> = extended.iter().map(|size| format!("extended to {}", short(*size))).collect();
    println!("| what | line | largest deviation | {} |", names.join(" | "));
    println!("| --- | --- | --- | {}", "--- | ".repeat(extended.len()).trim_end());
    let print = |what: &str, line: &Line, x: fn(f64) -> f64, name: &str| {
        let values: Vec<String> = extended.iter().map(|size| format!("{:.2}", line.at(x(*size)))).collect();
        let (formula, deviation) = (line.formula(name), line.deviation * 100.0);
        println!("| {what} | {formula} | {deviation:.1} % | {} |", values.join(" | "));
    };
    for (what, line) in READS.iter().zip(&lines.reads) {
        print(&format!("{what}, ns"), line, f64::log2, "log2(players)");
    }
    print("change with splitting, mean, ns", &lines.change, millions, "millions");
    print("index, MB", &lines.bytes, millions, "millions");
    print("load, µs per player", &lines.load, f64::log2, "log2(players)");
}

/// Prints simulations of one primary, and of several nodes.
fn simulate() -> BenchResult<()> {
    simulation::check()?;
    println!("\nSimulated scores into a board of {} players, on one primary:\n", short(SIMULATED_PLAYERS));
    header();
    for rate in RATES {
        for cores in CORES {
            row(&setting(rate, 1, cores))?;
        }
    }
    println!("\nOn several nodes, with {LANES} lanes:\n");
    header();
    for nodes in [1, 2, 4, 8] {
        for cores in [8, 16, 32] {
            row(&Setting { lanes: LANES, ..setting(250_000.0, nodes, cores) })?;
        }
    }
    println!("\nThe same with {} ms for round trips and flush of a commit:\n", FAR_COMMIT.as_millis());
    header();
    for (rate, nodes, cores) in [(2_500.0, 1, 2), (25_000.0, 1, 8), (250_000.0, 4, 16)] {
        row(&Setting { commit: FAR_COMMIT, ..setting(rate, nodes, cores) })?;
    }
    Ok(())
}

fn header() {
    println!("| scores/s | nodes | cores | lanes | committed/s | batch | p50, ms | p99, ms | processor | WAL |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
}

fn setting(rate: f64, nodes: usize, cores: usize) -> Setting {
    Setting::new(rate, nodes, cores, plan::wal_per_score(SIMULATED_PLAYERS, rate))
}

/// Simulates a setting and prints the result.
fn row(setting: &Setting) -> BenchResult<()> {
    let simulated = simulation::simulate(setting);
    simulation::check_load(setting, &simulated)?;
    let Setting { rate, lanes, nodes, cores, .. } = *setting;
    let Simulated { committed, batch, p50_ms, p99_ms, processor, wal } = simulated;
    // Without an end of the queue, a time means nothing.
    let [p50, p99] =
        [p50_ms, p99_ms].map(|ms| if simulated.keeps_up(setting) { format!("{ms:.1}") } else { "grows".to_owned() });
    println!(
        "| {} | {nodes} | {cores} | {lanes} | {} | {batch:.0} | {p50} | {p99} | {:.0} % | {:.0} % |",
        grouped(rate),
        grouped(committed),
        processor * 100.0,
        wal * 100.0,
    );
    Ok(())
}

/// Fails if the largest measured size misses a mark.
fn marks(measured: &[Measured]) -> BenchResult<()> {
    let Some(last) = measured.last() else { return Err("nothing was measured".into()) };
    let bytes = last.bytes.max(last.resident).max(last.bytes_after);
    let time = last.rank.p50.max(last.position.p50);
    let found = format!(
        "{} players: {time:.0} ns at p50 (at most {:.0}), {bytes:.1} bytes per player (at most {:.0})",
        short(last.players),
        MARKS.0,
        MARKS.1
    );
    println!("\n{found}");
    if time <= MARKS.0 && bytes <= MARKS.1 { Ok(()) } else { Err(found.into()) }
}
