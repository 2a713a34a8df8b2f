//! Made-up scores for `centile import`, as CSV on standard output, the same again for the same numbers:
//!
//! ```text
//! cargo run --release --example generate_scores -- --players 1000000 --events 1000000 > scores.csv
//! ```
//!
//! The first events give each player one, in random order; the others go to random players. Points crowd near 0 and reach
//! just below 100,000, which is what `centile board create --expected-points 100000` prepares for. Times are spread evenly
//! over the days before `--until`, in file order unless `--shuffled`.
#![allow(clippy::print_stderr, reason = "a command-line tool")]

use std::{
    io::{self, BufWriter, ErrorKind, Write as _},
    process::ExitCode,
};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Parser;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

/// Made-up scores as CSV.
#[derive(Debug, Parser)]
struct Numbers {
    /// Players
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    players: u32,
    /// Events
    #[arg(long, default_value_t = 10_000)]
    events: u32,
    /// Makes other scores of the same kind
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Days that the events are spread over
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=9_000))]
    days: u16,
    /// The time that no event reaches
    #[arg(long, default_value = "2025-01-01T00:00:00Z")]
    until: DateTime<Utc>,
    /// Give the events their times in random order
    #[arg(long)]
    shuffled: bool,
    /// Leave the ids of events out
    #[arg(long)]
    no_ids: bool,
}

fn main() -> ExitCode {
    match write(&Numbers::parse()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("generate_scores: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn write(numbers: &Numbers) -> io::Result<()> {
    let mut rng = StdRng::seed_from_u64(numbers.seed);
    let mut players: Vec<u32> = (1..=numbers.players).collect();
    players.shuffle(&mut rng);
    let span_micros = i64::from(numbers.days) * 86_400_000_000;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "id,user_id,user_name,points,occurred_at,reason")?;
    for event in 0..numbers.events {
        let player = match players.get(event as usize) {
            Some(player) => *player,
            None => rng.random_range(1..=numbers.players),
        };
        let luck = rng.random_range(0..10_000_i64);
        let points = luck * luck / 1_000;
        let place = if numbers.shuffled { rng.random_range(0..numbers.events) } else { event };
        let before =
            TimeDelta::microseconds(span_micros / i64::from(numbers.events) * i64::from(numbers.events - place));
        let at = (numbers.until - before).to_rfc3339_opts(SecondsFormat::Millis, true);
        let id = if numbers.no_ids { String::new() } else { format!("{}-{event}", numbers.seed) };
        writeln!(out, "{id},p{player},Player {player},{points},{at},")?;
    }
    out.flush()
}
