//! The systems that are compared, and where each keeps its players.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
    process::Command,
};

use centile::dev::local::LocalRedis;
use clap::ValueEnum;
use serde::Serialize;

use crate::common::{Bench, CENTILE, Outcome, Serve};

pub const BOARD: &str = "bench";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// A constant answer of the size of a top 10
    Constant,
    /// One table with an index on the score
    Plain,
    /// 100 bucket tables, counts cached for a minute
    Buckets,
    /// Redis sorted sets beside a ledger in PostgreSQL, as it is usually built
    SortedSets,
    /// The same with one connection to Redis for all callers, and Centile's batching before the ledger
    SortedSetsBatched,
    /// Centile, three live periods
    Centile,
}

impl System {
    /// As it stands in tables.
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

    /// Whose players it works on: batching is another way into the same store.
    pub fn store(self) -> Self {
        if self == Self::SortedSetsBatched { Self::SortedSets } else { self }
    }

    /// Whether it has players at all.
    pub fn has_players(self) -> bool {
        self != Self::Constant
    }

    /// Whether its ranks hang on something that is older than the last score, as long as the process runs.
    pub fn is_stale_by_design(self) -> bool {
        self == Self::Buckets
    }

    /// Whether equal scores share a rank; else each has one of the places of the equals.
    pub fn shares_ranks(self) -> bool {
        self.store() != Self::SortedSets
    }

    /// What it holds to be true itself: a query for (`user_id`, score).
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

    /// The sum of all points it was given.
    pub fn points(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT sum(score) FROM scores",
            Self::Buckets => "SELECT sum(score) FROM users",
            Self::SortedSets => "SELECT sum(points) FROM ledger",
            _ => "SELECT sum(points) FROM centile_store.score_transactions WHERE kind = 'score'",
        }
    }

    /// The scores of all, quickly: from what is changed in the same transactions as the authority.
    pub fn scores(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT score FROM scores",
            Self::Buckets => "SELECT score FROM buckets",
            Self::SortedSets => "SELECT score FROM totals",
            // Larger scores are better here, and such a score is its rank key.
            _ => {
                "SELECT b.rank_key AS score FROM centile_store.periods p
                 JOIN centile_store.leaderboard_bucket b ON b.ranking_id = p.ranking_id WHERE p.kind = 'all_time'"
            }
        }
    }

    /// The score of player $1, from there.
    pub fn score_of(self) -> &'static str {
        match self.store() {
            Self::Plain => "SELECT score FROM scores WHERE user_id = $1",
            Self::Buckets => "SELECT score FROM users WHERE user_id = $1",
            Self::SortedSets => "SELECT score FROM totals WHERE user_id = $1",
            _ => {
                "SELECT l.score FROM centile_store.users u JOIN centile_store.periods p ON p.kind = 'all_time'
                 JOIN centile_store.leaderboard l ON l.ranking_id = p.ranking_id AND l.user_id = u.id WHERE u.external_id = $1"
            }
        }
    }
}

/// A store with its players.
pub struct Site {
    pub system: System,
    pub database: String,
    pub players: u64,
    /// That of the sorted sets.
    pub redis: Option<LocalRedis>,
    /// The key by which Centile is written to.
    pub key: String,
}

/// How servers of alternatives are started.
#[derive(Clone)]
pub struct Options {
    pub lanes: usize,
    /// The answer of the constant one.
    pub body: PathBuf,
    /// Where the server that runs writes its log.
    pub log: PathBuf,
}

impl Site {
    /// Starts the server of a system on this store.
    pub fn serve(&self, bench: &Bench, system: System, options: &Options) -> Outcome<Serve> {
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

/// Starts a server whose log goes to a file.
fn start(command: &mut Command, options: &Options) -> Outcome<Serve> {
    let log = File::create(&options.log)?;
    Serve::spawn(command.stderr(log))
        .map_err(|error| format!("{error}: {}", fs::read_to_string(&options.log).unwrap_or_default()).into())
}

/// The constant answer needs no store.
pub fn serve_constant(options: &Options) -> Outcome<Serve> {
    start(&mut alternative(System::Constant, options)?, options)
}

/// This program again, as the server of an alternative.
fn alternative(system: System, options: &Options) -> Outcome<Command> {
    let mut command = Command::new(env::current_exe()?);
    let name = system.to_possible_value().ok_or("a system without a name")?;
    command.args(["--serve", name.get_name()]);
    command.arg("--lanes").arg(options.lanes.to_string()).arg("--body").arg(&options.body);
    Ok(command)
}
