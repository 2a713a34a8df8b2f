//! Simulates scores into one board whose lanes are spread over PostgreSQL nodes.
//!
//! Scores arrive at random (Poisson) and belong to a lane by the hash of the player. As in
//! `scoring/writer.rs`, a lane sends one batch at a time, of all scores that wait. A batch occupies a
//! core of the lane's node, then writes its WAL after that of earlier batches, then waits for the
//! commit. Batches wait for a core in order of arrival. The simulation is deterministic.
//!
//! It omits locks between lanes, checkpoints, vacuum, and all work of the nodes but scores.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::BenchResult;

/// Scores of a batch, and PostgreSQL's processor time per score in microseconds. Scores enter four
/// rankings. From docs/benchmarks/2026-11-24-writes.md: the upper bounds for one caller, for 256
/// callers (batches of 30 to 65), and for requests with 1,000 scores (batches of 690). Between them,
/// the time of a batch is a + b × scores.
const BATCH_COSTS: [(f64, f64); 3] = [(1.0, 606.0), (65.0, 144.0), (690.0, 88.0)];
/// Round trips and flush of a commit: 1.14 ms that one caller waited on 2026-11-24
/// (docs/benchmarks/2026-11-26-comparison.md), less 606 µs of PostgreSQL and 63 µs of the service.
pub const COMMIT: Duration = Duration::from_micros(470);
/// Bytes of WAL that a node writes per second. Assumed, not measured.
pub const WAL_PER_SECOND: f64 = 500e6;

/// Largest number of lanes of a board.
pub const LANES: usize = 64;
/// Limits of `scoring/writer.rs`: scores in a batch and in a queue, and the pause after a batch of
/// eight or more.
pub const LARGEST_BATCH: usize = 500;
const LONGEST_QUEUE: usize = 10_000;
const PAUSE_FROM: usize = 8;
const PAUSE_SHARE: u32 = 8;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

const SEED: u64 = 1;
/// Simulated time that is not counted, and the end.
const WARM_UP: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(12);

/// A load, and what takes it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Scores per second.
    pub rate: f64,
    pub lanes: usize,
    pub nodes: usize,
    /// Cores of a node.
    pub cores: usize,
    /// Bytes of WAL per score.
    pub wal: f64,
    /// Round trips and flush of a commit.
    pub commit: Duration,
}

/// Results of the time after the warm-up.
#[derive(Debug, Clone, Copy)]
pub struct Simulated {
    /// Committed scores per second.
    pub committed: f64,
    /// Mean scores of a batch.
    pub batch: f64,
    /// Time from arrival to commit.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Busy share of all cores.
    pub processor: f64,
    /// Busy share of writing WAL.
    pub wal: f64,
}

impl Setting {
    /// Returns a setting with two lanes per core, as far as a board may have so many.
    pub fn new(rate: f64, nodes: usize, cores: usize, wal: f64) -> Self {
        Self { rate, lanes: LANES.min(2 * cores * nodes), nodes, cores, wal, commit: COMMIT }
    }
}

impl Simulated {
    /// Whether the nodes commit what arrives.
    pub fn keeps_up(&self, setting: &Setting) -> bool {
        self.committed > setting.rate * 0.98
    }
}

/// Returns PostgreSQL's processor time for a batch.
pub fn batch_cost(scores: usize) -> Duration {
    let scores = scores as f64;
    let [first, second, third] = BATCH_COSTS.map(|(scores, micros)| (scores, scores * micros));
    let (low, high) = if scores < second.0 { (first, second) } else { (second, third) };
    let micros = low.1 + (scores - low.0) * (high.1 - low.1) / (high.0 - low.0);
    Duration::from_secs_f64(micros / 1e6)
}

/// Returns the pause of a lane after a batch.
fn pause(scores: usize, took: Duration) -> Duration {
    if scores < PAUSE_FROM { Duration::ZERO } else { (took / PAUSE_SHARE).min(LONGEST_PAUSE) }
}

/// Steps of a batch: its lane starts it, PostgreSQL has computed it, it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Start,
    Computed,
    Committed,
}

struct Lane {
    random: StdRng,
    /// Mean time between scores, in seconds.
    gap: f64,
    next_score: Duration,
    /// Times at which the waiting scores, and those of the batch, have arrived.
    waiting: VecDeque<Duration>,
    batch: Vec<Duration>,
    began: Duration,
}

impl Lane {
    fn draw_next(&mut self) {
        let gap = -self.random.random_range(f64::MIN_POSITIVE..1.0).ln() * self.gap;
        self.next_score += Duration::from_secs_f64(gap);
    }

    /// Starts a batch of the scores that have arrived. A score that finds a full queue is refused.
    fn start(&mut self, now: Duration) {
        while self.next_score <= now {
            if self.waiting.len() < LONGEST_QUEUE {
                self.waiting.push_back(self.next_score);
            }
            self.draw_next();
        }
        let scores = self.waiting.len().min(LARGEST_BATCH);
        self.batch.clear();
        self.batch.extend(self.waiting.drain(..scores));
        self.began = now;
    }
}

struct Node {
    idle_cores: usize,
    /// Lanes whose batch waits for a core.
    waiting: VecDeque<usize>,
    /// When all WAL so far is written.
    wal_until: Duration,
}

/// Runs a simulation.
pub fn simulate(setting: &Setting) -> Simulated {
    let mut lanes: Vec<Lane> = (0..setting.lanes)
        .map(|lane| Lane {
            random: StdRng::seed_from_u64(SEED + lane as u64),
            gap: setting.lanes as f64 / setting.rate,
            next_score: Duration::ZERO,
            waiting: VecDeque::new(),
            batch: Vec::new(),
            began: Duration::ZERO,
        })
        .collect();
    let mut nodes: Vec<Node> = (0..setting.nodes)
        .map(|_| Node { idle_cores: setting.cores, waiting: VecDeque::new(), wal_until: Duration::ZERO })
        .collect();
    let mut steps = BinaryHeap::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        lane.draw_next();
        steps.push(Reverse((lane.next_score, number, Step::Start)));
    }
    let (mut computing, mut writing, mut batches, mut waits) = (Duration::ZERO, Duration::ZERO, 0.0, Vec::new());
    while let Some(Reverse((now, number, step))) = steps.pop() {
        if now >= END {
            break;
        }
        let node = &mut nodes[number % setting.nodes];
        match step {
            Step::Start => {
                let lane = &mut lanes[number];
                lane.start(now);
                if lane.batch.is_empty() {
                    steps.push(Reverse((lane.next_score, number, Step::Start)));
                } else if node.idle_cores > 0 {
                    node.idle_cores -= 1;
                    steps.push(Reverse((now + batch_cost(lane.batch.len()), number, Step::Computed)));
                } else {
                    node.waiting.push_back(number);
                }
            }
            Step::Computed => {
                match node.waiting.pop_front() {
                    Some(next) => {
                        steps.push(Reverse((now + batch_cost(lanes[next].batch.len()), next, Step::Computed)));
                    }
                    None => node.idle_cores += 1,
                }
                let scores = lanes[number].batch.len();
                let write = Duration::from_secs_f64(scores as f64 * setting.wal / WAL_PER_SECOND);
                node.wal_until = node.wal_until.max(now) + write;
                steps.push(Reverse((node.wal_until + setting.commit, number, Step::Committed)));
                if now >= WARM_UP {
                    computing += batch_cost(scores);
                    writing += write;
                }
            }
            Step::Committed => {
                let lane = &lanes[number];
                if now >= WARM_UP {
                    batches += 1.0;
                    waits.extend(lane.batch.iter().map(|arrived| now.saturating_sub(*arrived)));
                }
                steps.push(Reverse((
                    now + pause(lane.batch.len(), now.saturating_sub(lane.began)),
                    number,
                    Step::Start,
                )));
            }
        }
    }
    let seconds = END.saturating_sub(WARM_UP).as_secs_f64();
    waits.sort_unstable();
    let wait = |percent: usize| waits.get(waits.len() * percent / 100).map_or(0.0, |wait| wait.as_secs_f64() * 1e3);
    Simulated {
        committed: waits.len() as f64 / seconds,
        batch: waits.len() as f64 / batches,
        p50_ms: wait(50),
        p99_ms: wait(99),
        processor: computing.as_secs_f64() / seconds / (setting.nodes * setting.cores) as f64,
        wal: writing.as_secs_f64() / seconds / setting.nodes as f64,
    }
}

/// Compares a simulation with the processor time by the formula: rate × (b + a / batch) / cores.
pub fn check_load(setting: &Setting, simulated: &Simulated) -> BenchResult<()> {
    let cost = |scores: f64| {
        let [first, second, third] = BATCH_COSTS;
        let (low, high) = if scores < second.0 { (first, second) } else { (second, third) };
        let b = (high.0 * high.1 - low.0 * low.1) / (high.0 - low.0);
        let a = low.0 * (low.1 - b);
        b + a / scores
    };
    let cores = (setting.nodes * setting.cores) as f64;
    let expected = simulated.committed * cost(simulated.batch) / 1e6 / cores;
    within("processor", simulated.processor, expected, 0.1).map_err(|error| format!("{setting:?}: {error}").into())
}

/// Compares simulations with results that can be computed.
pub fn check() -> BenchResult<()> {
    let setting = Setting { rate: 20.0, lanes: 1, nodes: 1, cores: 1, wal: 0.0, commit: COMMIT };
    let full = batch_cost(LARGEST_BATCH);
    // Scores that meet no others.
    let alone = simulate(&setting);
    within("time of a score alone", alone.p50_ms, (batch_cost(1) + COMMIT).as_secs_f64() * 1e3, 0.01)?;
    // A lane sends full batches, one after another.
    let lane = simulate(&Setting { rate: 50_000.0, ..setting });
    let cycle = full + COMMIT + pause(LARGEST_BATCH, full + COMMIT);
    within("scores of a lane", lane.committed, LARGEST_BATCH as f64 / cycle.as_secs_f64(), 0.02)?;
    // Many lanes keep the cores of two nodes busy.
    let cores = simulate(&Setting { rate: 100_000.0, lanes: 32, nodes: 2, cores: 2, ..setting });
    within("scores of four cores", cores.committed, 4.0 * LARGEST_BATCH as f64 / full.as_secs_f64(), 0.02)?;
    within("busy share of four cores", cores.processor, 1.0, 0.02)?;
    // The disk of a node takes 50,000 scores of 10 kB.
    let disk = simulate(&Setting { rate: 100_000.0, lanes: 64, cores: 64, wal: 10_000.0, ..setting });
    within("scores of a disk", disk.committed, WAL_PER_SECOND / 10_000.0, 0.02)
}

fn within(what: &str, found: f64, expected: f64, tolerance: f64) -> BenchResult<()> {
    if (found - expected).abs() <= expected * tolerance {
        Ok(())
    } else {
        Err(format!("{what}: simulated {found:.4}, computed {expected:.4}").into())
    }
}
