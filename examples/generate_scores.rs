//! Generates scores for `centile import` as CSV on standard output. Equal arguments give equal
//! scores:
//!
//! ```text
//! cargo run --release --example generate_scores -- --players 1000000 --events 1000000 > scores.csv
//! ```
//!
//! The first events go to each player once, in random order; the others go to random players. Most
//! points are near 0, the maximum is just below 100,000; create the board with
//! `--expected-points 100000`. Times are spread evenly over the days before `--until`, in file
//! order unless `--shuffled`.
#![allow(clippy::print_stderr, reason = "a command-line tool")]

use std::{
    io::{self, BufWriter, ErrorKind, Write as _},
    process::ExitCode,
};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Parser;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

/// Generates scores as CSV
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of players
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    players: u32,
    /// Number of events
    #[arg(long, default_value_t = 10_000)]
    events: u32,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of days that the events span
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=9_000))]
    days: u16,
    /// End of the time span, exclusive
    #[arg(long, default_value = "2025-01-01T00:00:00Z")]
    until: DateTime<Utc>,
    /// Assign times in random order
    #[arg(long)]
    shuffled: bool,
    /// Omit event ids
    #[arg(long)]
    no_ids: bool,
}

fn main() -> ExitCode {
    match write(&Arguments::parse()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("generate_scores: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn write(arguments: &Arguments) -> io::Result<()> {
    let mut rng = StdRng::seed_from_u64(arguments.seed);
    let mut players: Vec<u32> = (1..=arguments.players).collect();
    players.shuffle(&mut rng);
    let span_micros = i64::from(arguments.days) * 86_400_000_000;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "id,user_id,name,points,occurred_at,reason")?;
    for event in 0..arguments.events {
        let player = match players.get(event as usize) {
            Some(player) => *player,
            None => rng.random_range(1..=arguments.players),
        };
        let luck = rng.random_range(0..10_000_i64);
        let points = luck * luck / 1_000;
        let place = if arguments.shuffled { rng.random_range(0..arguments.events) } else { event };
        let before =
            TimeDelta::microseconds(span_micros / i64::from(arguments.events) * i64::from(arguments.events - place));
        let at = (arguments.until - before).to_rfc3339_opts(SecondsFormat::Millis, true);
        let id = if arguments.no_ids { String::new() } else { format!("{}-{event}", arguments.seed) };
        writeln!(out, "{id},p{player},Player {player},{points},{at},")?;
    }
    out.flush()
}
