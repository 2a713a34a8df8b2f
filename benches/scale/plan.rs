//! Computes memory, disk, network and machines for boards of any size from measured figures.

use crate::{
    BenchResult,
    fit::Line,
    simulation::{self, Setting, WAL_PER_SECOND},
    text::{grouped, short},
};

const PLAYERS: [f64; 4] = [1e6, 25e6, 100e6, 500e6];
const RATES: [f64; 2] = [2_500.0, 250_000.0];
const SECONDS_PER_DAY: f64 = 86_400.0;
const GB: f64 = 1e9;

/// Open periods: `all_time`, week and month, as in docs/sizing.md.
const PERIODS: f64 = 3.0;
// Bytes, from docs/sizing.md.
const USER: f64 = 186.0;
const ENTRY: f64 = 330.0;
const LEDGER: f64 = 187.0;
const EVENT_ID: f64 = 166.0;
const DIRECTORY: f64 = 57.0;
const INDEX_MEMORY: f64 = 64.0;
/// Microseconds of the service's processor time per score, from docs/sizing.md.
const SERVICE: f64 = 63.0;
/// Redis with a batched ledger, three sets and names: microseconds of processor time per score, with
/// PostgreSQL, the service and the load (24,140 scores per second on two cores, 2026-11-24), and
/// bytes of memory per player. From docs/benchmarks/2026-11-26-comparison.md and
/// docs/benchmarks/2026-11-25-ten-million-players.md.
const REDIS: f64 = 2e6 / 24_140.0;
const REDIS_PLAYER: f64 = 497.0;
/// Machines are busy for half of the time, so that a closing, a restart or a load has room.
const BUSY: f64 = 0.5;

/// Bytes of WAL per score without full pages (docs/benchmarks/2026-11-24-writes.md).
const WAL_RECORDS: f64 = 1_860.0;
/// Bytes of the compressed image of a page. Computed from the mix among ten million players
/// (docs/benchmarks/2026-11-25-ten-million-players.md): 735,576 scores after a checkpoint wrote 4,712
/// bytes each. They touched all 1,077,000 pages of entries and bucket rows.
const PAGE_IMAGE: f64 = (4_712.0 - WAL_RECORDS) * 735_576.0 / 1_077_000.0;
const PAGE: f64 = 8_192.0;
/// Pages that a score changes per period: the entry, the old and the new bucket row, and the leaf of
/// the bucket table's index.
const PAGES_PER_PERIOD: f64 = 4.0;
const CHECKPOINT_SECONDS: f64 = 1_800.0;
/// Bytes that a round sends per score: ranking, user and two keys per period, each with its length.
const CHANGES: f64 = 12.0 * 4.0 * PERIODS;
/// Bytes of request and response of a score, and of its part in the batch's statements. Assumed.
const REQUEST: f64 = 1_000.0;
const STATEMENTS: f64 = 500.0;

/// Sizes of machines.
const CORES: [u16; 5] = [2, 4, 8, 16, 32];
const MEMORY_GB: [f64; 9] = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];
const INSTANCE_CORES: f64 = 8.0;
const MOST_NODES: u16 = 16;
/// At twice the rate, 99 of 100 scores are committed within this time, in milliseconds.
const LONGEST_MS: f64 = 100.0;
/// The unit of cost.
const UNIT: Machine = Machine { cores: 8.0, memory_gb: 32.0 };

#[derive(Debug, Clone, Copy)]
struct Machine {
    cores: f64,
    memory_gb: f64,
}

impl Machine {
    /// Returns the smallest size, or the largest if none suffices.
    fn at_least(cores: f64, memory_gb: f64) -> Self {
        let size = |sizes: &[f64], wanted: f64| {
            sizes.iter().copied().find(|size| *size >= wanted).or(sizes.last().copied()).unwrap_or(wanted)
        };
        Self { cores: size(&CORES.map(f64::from), cores), memory_gb: size(&MEMORY_GB, memory_gb) }
    }

    fn units(self) -> f64 {
        (self.cores / UNIT.cores).max(self.memory_gb / UNIT.memory_gb)
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} cores, {} GB", self.cores, grouped(self.memory_gb))
    }
}

/// Returns the bytes of WAL per score. The first change of a page after a checkpoint writes the whole
/// page, so scores that meet on a page share its image.
pub fn wal_per_score(players: f64, rate: f64) -> f64 {
    let pages = players * PERIODS * ENTRY / PAGE;
    let scores = rate * CHECKPOINT_SECONDS;
    let touched = pages * (1.0 - (-scores * PERIODS * PAGES_PER_PERIOD / pages).exp());
    WAL_RECORDS + touched * PAGE_IMAGE / scores
}

/// Returns nodes that take twice the rate, and the 99th percentile of its commits in milliseconds.
fn nodes(players: f64, rate: f64) -> BenchResult<(f64, Machine, f64)> {
    let (rate, wal) = (rate / BUSY, wal_per_score(players, rate));
    let memory_gb = 2.0 * players * PERIODS * ENTRY / GB;
    let shares = [memory_gb / 1_024.0, rate * wal / WAL_PER_SECOND];
    let least = shares.into_iter().fold(1.0, |nodes: f64, share| nodes.max(share.ceil()));
    for number in (1..=MOST_NODES).filter(|number| f64::from(*number) >= least) {
        for cores in CORES {
            let setting = Setting::new(rate, usize::from(number), usize::from(cores), wal);
            let simulated = simulation::simulate(&setting);
            if simulated.keeps_up(&setting) && simulated.p99_ms <= LONGEST_MS {
                let number = f64::from(number);
                return Ok((number, Machine::at_least(f64::from(cores), memory_gb / number), simulated.p99_ms));
            }
        }
    }
    Err(format!("{MOST_NODES} nodes do not take {rate} scores per second").into())
}

/// Prints all tables. `index_mb`: megabytes, and `change_ns`: mean time of a change, both by millions
/// of players.
pub fn print(index_mb: &Line, change_ns: &Line) -> BenchResult<()> {
    println!("\nMemory and disk, GB, with {PERIODS:.0} open periods:\n");
    println!("| players | rank indexes | names | `--index-memory` | `shared_buffers` | users, entries, bucket rows |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for players in PLAYERS {
        let columns = [
            index_mb.at(players / 1e6) * 1e6 / players * PERIODS,
            DIRECTORY,
            INDEX_MEMORY * PERIODS,
            ENTRY * PERIODS,
            USER + ENTRY * PERIODS,
        ];
        let columns = columns.map(|bytes| format!("{:.1}", bytes * players / GB));
        println!("| {} | {} |", short(players), columns.join(" | "));
    }

    println!("\nDisk and network of a day at a constant rate:\n");
    println!(
        "| players | scores/s | WAL per score, B | WAL, MB/s | WAL, TB | ledger, GB | ids of a week, GB | \
         clients, GB | statements, GB | changes to an instance, GB |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (players, rate) in cases() {
        let (wal, scores) = (wal_per_score(players, rate), rate * SECONDS_PER_DAY);
        let gb = |bytes: f64| grouped(bytes * scores / GB);
        println!(
            "| {} | {} | {} | {:.0} | {:.2} | {} | {} | {} | {} | {} |",
            short(players),
            grouped(rate),
            grouped(wal),
            wal * rate / 1e6,
            wal * scores / 1e12,
            gb(LEDGER),
            gb(EVENT_ID * 7.0),
            gb(REQUEST),
            gb(STATEMENTS),
            gb(CHANGES),
        );
    }

    println!("\nMachines, half busy, in units of {UNIT}:\n");
    println!(
        "| players | scores/s | nodes with a replica each | of | p99 at twice the rate, ms | instances | of | \
         a core that applies changes | units | units of Redis with a batched ledger |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (players, rate) in cases() {
        let (nodes, node, p99_ms) = nodes(players, rate)?;
        let instances = (rate * SERVICE / 1e6 / BUSY / INSTANCE_CORES).ceil().max(2.0);
        let instance_cores = rate * SERVICE / 1e6 / BUSY / instances;
        let instance = Machine::at_least(instance_cores, INDEX_MEMORY * PERIODS * players / GB + 2.0);
        // Each set has a replica. The sizes are not rounded to machines.
        let redis = Machine { cores: rate * REDIS / 1e6 / BUSY, memory_gb: 2.0 * players * REDIS_PLAYER / GB }.units();
        println!(
            "| {} | {} | {nodes:.0} | {node} | {p99_ms:.1} | {instances:.0} | {instance} | {:.0} % | {:.1} | {redis:.1} |",
            short(players),
            grouped(rate),
            rate * PERIODS * change_ns.at(players / 1e6) / 1e9 * 100.0,
            2.0 * nodes * node.units() + instances * instance.units(),
        );
    }
    Ok(())
}

fn cases() -> impl Iterator<Item = (f64, f64)> {
    PLAYERS.into_iter().flat_map(|players| RATES.map(|rate| (players, rate)))
}
