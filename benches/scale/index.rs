//! Loads, reads and changes one rank index.

use std::{
    cmp::Reverse,
    collections::HashMap,
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use centile::timed::{Index, IndexLoad, Key};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde::{Deserialize, Serialize};

use crate::{BenchResult, players::Players};

const SEED: u64 = 1;
/// Operations of each kind.
const SAMPLES: usize = 1_000_000;
/// Keys that are computed, then loaded.
const CHUNK: u32 = 1_000_000;
/// Neighbours on each side.
const AROUND: u64 = 4;
/// Points of a change.
const POINTS: i64 = 1_000;
/// The settled part is one player of so many, and each of them moves so often before it is timed.
const SETTLED_PART: u32 = 100;
const SETTLING_MOVES: u32 = 5;

/// Times of an operation, in nanoseconds. They include one reading of the clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Times {
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    /// Processor time, which excludes interruptions by other processes.
    pub mean: f64,
}

/// Results for one number of players. Bytes are per player.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Measured {
    pub players: f64,
    pub load_seconds: f64,
    /// As the index reports them.
    pub bytes: f64,
    /// Growth of the process by the load.
    pub resident: f64,
    /// Highest growth of the process during the load.
    pub peak: f64,
    /// As the index reports them after the changes.
    pub bytes_after: f64,
    pub clock: Times,
    pub rank: Times,
    pub position: Times,
    pub around: Times,
    pub change: Times,
    /// Changes in a part of the ranking whose blocks have been split and merged before.
    pub settled: Times,
    /// Mean time per change that splitting and merging takes: that of the slowest hundredth.
    pub splitting: f64,
}

/// Returns a value of /proc/self/status or /proc/meminfo, in bytes.
pub fn memory(file: &str, name: &str) -> BenchResult<f64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib: f64 = line.ok_or_else(|| format!("{file} has no {name}"))?.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0)
}

/// Loads an index and times its operations. Runs alone in its process.
pub fn measure(count: u32) -> BenchResult<Measured> {
    let players = Players::new(count);
    let mut random = StdRng::seed_from_u64(SEED);
    // All buffers are in use before the memory is read.
    let mut chunk: Vec<Key> = (0..count.min(CHUNK)).map(|place| players.key(place)).collect();
    let mut nanos = vec![1_u32; SAMPLES];
    let places: Vec<u32> = (0..SAMPLES).map(|_| random.random_range(0..count)).collect();
    let users: Vec<u32> = places.iter().map(|place| players.key(*place).2).collect();
    let before = memory("/proc/self/status", "VmRSS")?;

    let mut load = IndexLoad::new(usize::try_from(count)?);
    let mut loading = Duration::ZERO;
    let mut start = 0;
    while start < count {
        let end = count.min(start.saturating_add(CHUNK));
        chunk.clear();
        chunk.extend((start..end).map(|place| players.key(place)));
        let began = Instant::now();
        for key in &chunk {
            load.push(*key)?;
        }
        loading += began.elapsed();
        start = end;
    }
    let began = Instant::now();
    let mut index = load.finish();
    loading += began.elapsed();
    let per_player = |bytes: f64| bytes / f64::from(count);
    let resident = per_player(memory("/proc/self/status", "VmRSS")? - before);
    let peak = per_player(memory("/proc/self/status", "VmHWM")? - before);
    let bytes = per_player(index.bytes() as f64);

    check_loaded(&index, &players, &places)?;
    let clock = time(&mut nanos, |_| ())?;
    let rank = time(&mut nanos, |n| {
        black_box(index.rank(users[n]));
    })?;
    let position = time(&mut nanos, |n| {
        black_box(index.at(u64::from(places[n]) + 1));
    })?;
    let around = time(&mut nanos, |n| {
        black_box(neighbours(&index, users[n]));
    })?;
    let changes: Vec<Key> = (0..)
        .zip(&places)
        .map(|(time, place)| players.later_key(*place, players.score(*place) + random.random_range(1..=POINTS), time))
        .collect();
    let change = time(&mut nanos, |n| index.set(changes[n]))?;
    // A block is split when it has become full. To get there everywhere would take too long, so it
    // is done in the middle of the ranking.
    let part = (count / SETTLED_PART).max(1);
    let mut moves = (u32::try_from(SAMPLES)?..).map(|time| {
        let [from, to] = [0; 2].map(|_: u32| count / 2 + random.random_range(0..part));
        players.later_key(from, players.score(to), time)
    });
    moves.by_ref().take(usize::try_from(part * SETTLING_MOVES)?).for_each(|key| index.set(key));
    let changes: Vec<Key> = moves.take(SAMPLES).collect();
    let settled = time(&mut nanos, |n| index.set(changes[n]))?;
    let fast: u64 = nanos.iter().take(SAMPLES / 100 * 99).map(|nanos| u64::from(*nanos)).sum();
    let splitting = settled.mean - fast as f64 / SAMPLES as f64;
    check_order(&index, count)?;
    let bytes_after = per_player(index.bytes() as f64);
    Ok(Measured {
        players: f64::from(count),
        load_seconds: loading.as_secs_f64(),
        bytes,
        resident,
        peak,
        bytes_after,
        clock,
        rank,
        position,
        around,
        change,
        settled,
        splitting,
    })
}

/// Returns a player's neighbours with the rank of the first, as the service reads them.
fn neighbours(index: &Index, user_id: u32) -> Option<(u64, Vec<Key>)> {
    let (position, ..) = index.rank(user_id)?;
    let from = position.saturating_sub(AROUND).max(1);
    let page = index.page(from, usize::try_from(position - from + 1 + AROUND).ok()?);
    Some((index.better(page.first()?.0) + 1, page))
}

/// Returns the processor time of this process, in nanoseconds.
fn processor_nanos() -> BenchResult<f64> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Times each of the operations.
fn time(nanos: &mut [u32], mut operation: impl FnMut(usize)) -> BenchResult<Times> {
    let processor = processor_nanos()?;
    let mut before = Instant::now();
    for (n, slot) in nanos.iter_mut().enumerate() {
        operation(n);
        let now = Instant::now();
        *slot = u32::try_from((now - before).as_nanos()).unwrap_or(u32::MAX);
        before = now;
    }
    let mean = (processor_nanos()? - processor) / nanos.len() as f64;
    nanos.sort_unstable();
    let at = |thousandths: usize| nanos.get(nanos.len() * thousandths / 1_000).copied().map_or(0.0, f64::from);
    Ok(Times { p50: at(500), p99: at(990), p99_9: at(999), mean })
}

/// Compares ranks with the formula that made the players.
fn check_loaded(index: &Index, players: &Players, places: &[u32]) -> BenchResult<()> {
    for place in places.iter().take(SAMPLES / 10) {
        let (key, position) = (players.key(*place), u64::from(*place) + 1);
        let (better, no_worse) = players.better_and_no_worse(*place);
        let found = (index.rank(key.2), index.at(position));
        if found != (Some((position, better, no_worse)), Some(key)) {
            return Err(format!("place {place} of {}: {found:?}", players.count).into());
        }
    }
    Ok(())
}

/// Reads all keys and compares their order and number.
fn check_order(index: &Index, count: u32) -> BenchResult<()> {
    let (mut position, mut last) = (0, None);
    loop {
        let page = index.page(position + 1, 100_000);
        if page.is_empty() {
            break;
        }
        for key in page {
            position += 1;
            let place = Some(order(&key));
            // `None` is less than any place.
            if last >= place {
                return Err(format!("position {position} is out of order").into());
            }
            if position % 10_007 == 0 && index.rank(key.2).map(|(position, ..)| position) != Some(position) {
                return Err(format!("the player at {position} has another position").into());
            }
            last = place;
        }
    }
    if position == u64::from(count) { Ok(()) } else { Err(format!("{position} players instead of {count}").into()) }
}

/// Sorts the best key first.
fn order(key: &Key) -> (Reverse<i64>, Reverse<i64>, u32) {
    (Reverse(key.0), Reverse(key.1), key.2)
}

/// Compares an index with a sorted list of the same players after many changes.
pub fn check() -> BenchResult<()> {
    const PLAYERS: u32 = 100_000;
    let (players, mut random) = (Players::new(PLAYERS), StdRng::seed_from_u64(SEED));
    let mut load = IndexLoad::new(usize::try_from(PLAYERS)?);
    let mut expected = HashMap::new();
    for place in 0..PLAYERS {
        let key = players.key(place);
        load.push(key)?;
        expected.insert(key.2, key);
    }
    let mut index = load.finish();
    for time in 0..3 * PLAYERS {
        let place = random.random_range(0..PLAYERS);
        let mut key = players.later_key(place, players.score(place) + random.random_range(-POINTS..=POINTS), time);
        // Some of them are new players.
        if time % 100 == 0 {
            key.2 += PLAYERS;
        }
        index.set(key);
        expected.insert(key.2, key);
    }
    let mut sorted: Vec<Key> = expected.into_values().collect();
    sorted.sort_unstable_by_key(order);
    let (mut better, mut position) = (0, 0);
    for equals in sorted.chunk_by(|one, other| one.0 == other.0) {
        let no_worse = better + equals.len() as u64;
        for key in equals {
            position += 1;
            let found = (index.rank(key.2), index.at(position));
            if found != (Some((position, better, no_worse)), Some(*key)) {
                return Err(format!("position {position}: {found:?} instead of {key:?}").into());
            }
        }
        better = no_worse;
    }
    for start in (0..sorted.len()).step_by(1_000) {
        if index.page(start as u64 + 1, 10) != sorted[start..sorted.len().min(start + 10)] {
            return Err(format!("the page from {start} differs").into());
        }
    }
    Ok(())
}
