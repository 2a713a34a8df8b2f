//! The compared systems and their stores.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
    process::Command,
};

use centile::dev::local::LocalRedis;
use clap::ValueEnum;
use serde::Serialize;

use crate::common::{Bench, BenchResult, CENTILE, Serve};

pub const BOARD: &str = "bench";

/// A compared system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// A constant response of the size of a top 10
    Constant,
    /// One table with an index on the score
    Plain,
    /// 100 bucket tables, counts cached for a minute
    Buckets,
    /// Redis sorted sets with a ledger in PostgreSQL, as usually built
    SortedSets,
    /// The same with one shared connection to Redis, and Centile's batching for the ledger
    SortedSetsBatched,
    /// Centile, three live periods
    Centile,
}

impl System {
    /// Returns its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Constant => "constant answer",
            Self::Plain => "plain SQL",
            Self::Buckets => "100 bucket tables",
            Self::SortedSets => "Redis + ledger",
            Self::SortedSetsBatched => "Redis + batched ledger",
            Self::Centile => "Centile",
        }
    }

    /// Returns the system whose store it uses: batching writes to the same store.
    pub fn store(self) -> Self {
        if self == Self::SortedSetsBatched { Self::SortedSets } else { self }
    }

    /// Returns whether it has players.
    pub fn has_players(self) -> bool {
        self != Self::Constant
    }

    /// Returns whether its ranks depend on cached counts while the process runs.
    pub fn is_stale_by_design(self) -> bool {
        self == Self::Buckets
    }

    /// Returns whether equal scores share a rank. Otherwise each has one of their places.
    pub fn shares_ranks(self) -> bool {
        self.store() != Self::SortedSets
    }

    /// Returns a query for (`user_id`, score) on its source of truth.
    pub fn authority(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT user_id, score FROM scores",
            Self::Buckets => "SELECT user_id, score FROM users",
            Self::SortedSets => "SELECT user_id, score FROM totals",
            _ => {
                "SELECT u.external_id AS user_id, sum(t.points)::bigint AS score
                 FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
                 WHERE t.kind = 'score' GROUP BY u.external_id"
            }
        }
    }

    /// Returns a query for the sum of all points.
    pub fn points(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT sum(score) FROM scores",
            Self::Buckets => "SELECT sum(score) FROM users",
            Self::SortedSets => "SELECT sum(points) FROM ledger",
            _ => "SELECT sum(points) FROM centile_store.score_transactions WHERE kind = 'score'",
        }
    }

    /// Returns a fast query for all scores, from a table that changes in the same transactions as
    /// the source of truth.
    pub fn scores(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT score FROM scores",
            Self::Buckets => "SELECT score FROM buckets",
            Self::SortedSets => "SELECT score FROM totals",
            // Larger scores are better, so the score equals the rank key.
            _ => {
                "SELECT p.rank_keys[array_position(p.period_ids, q.id)] AS score FROM centile_store.periods q
                 JOIN centile_store.players p ON p.board_id = q.board_id
                 WHERE q.kind = 'all_time' AND q.id = ANY (p.period_ids)"
            }
        }
    }

    /// Returns a query for the score of player $1 in the same table.
    pub fn score_of(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT score FROM scores WHERE user_id = $1",
            Self::Buckets => "SELECT score FROM users WHERE user_id = $1",
            Self::SortedSets => "SELECT score FROM totals WHERE user_id = $1",
            _ => {
                "SELECT p.rank_keys[array_position(p.period_ids, q.id)] AS score FROM centile_store.users u
                 JOIN centile_store.periods q ON q.kind = 'all_time'
                 JOIN centile_store.players p ON p.board_id = q.board_id AND p.user_id = u.id WHERE u.external_id = $1"
            }
        }
    }
}

/// A store with its players.
pub struct Site {
    pub system: System,
    pub database: String,
    pub players: u64,
    /// The Redis of the sorted sets.
    pub redis: Option<LocalRedis>,
    /// The server key for Centile.
    pub key: String,
}

/// How to start servers of alternatives.
#[derive(Clone)]
pub struct Options {
    pub lanes: usize,
    /// File with the constant response.
    pub body: PathBuf,
    /// Log file of the running server.
    pub log: PathBuf,
}

impl Site {
    /// Starts the server of a system on this store.
    pub fn serve(&self, bench: &Bench, system: System, options: &Options) -> BenchResult<Serve> {
        let mut command = if system == System::Centile {
            let mut command = Command::new(CENTILE);
            command.args(["serve", "--listen", "127.0.0.1:0", "--address-rate", "0", "--key-rate", "0"]);
            command.env("REDIS_URL", bench.servers.redis_url());
            command
        } else {
            let mut command = alternative(system, options)?;
            if let Some(redis) = &self.redis {
                command.env("REDIS_URL", redis.url());
            }
            command
        };
        command.env("DATABASE_URL", bench.servers.postgres.url(&self.database));
        start(&mut command, options)
    }
}

/// Starts a server that logs to a file.
fn start(command: &mut Command, options: &Options) -> BenchResult<Serve> {
    let log = File::create(&options.log)?;
    Serve::spawn(command.stderr(log))
        .map_err(|error| format!("{error}: {}", fs::read_to_string(&options.log).unwrap_or_default()).into())
}

/// Starts the server of the constant response, which needs no store.
pub fn serve_constant(options: &Options) -> BenchResult<Serve> {
    start(&mut alternative(System::Constant, options)?, options)
}

/// Returns a command that runs this program as the server of an alternative.
fn alternative(system: System, options: &Options) -> BenchResult<Command> {
    let mut command = Command::new(env::current_exe()?);
    let name = system.to_possible_value().ok_or("a system has no name")?;
    command.args(["--serve", name.get_name()]);
    command.arg("--lanes").arg(options.lanes.to_string()).arg("--body").arg(&options.body);
    Ok(command)
}
