//! The alternatives, as a careful user would build them. All implement [`Peer`], and `server.rs`
//! serves them over the same HTTP API. README.md describes them.

pub mod buckets;
pub mod lane;
pub mod plain;
pub mod redis;
pub mod sorted_sets;

use std::{error::Error, str::FromStr as _};

use serde::{Deserialize, Serialize};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// Connections of each server, the defaults of `centile serve`.
const READ_CONNECTIONS: u32 = 16;
const WRITE_CONNECTIONS: u32 = 8;

pub type PeerResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A score event in the format of Centile.
#[derive(Debug, Deserialize)]
pub struct Event {
    pub user_id: String,
    pub points: i64,
}

/// A player's row.
#[derive(Debug, Serialize)]
pub struct Row {
    pub rank: i64,
    pub user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    pub score: i64,
}

/// A player with the neighbours above and below, best first.
#[derive(Debug, Serialize)]
pub struct Standing {
    #[serde(flatten)]
    pub row: Row,
    pub above: Vec<Row>,
    pub below: Vec<Row>,
    /// Age of the cached counts behind the rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts_age_ms: Option<u64>,
}

/// The operations of every system.
pub trait Peer: Send + Sync + 'static {
    /// Returns a player with `around` neighbours on each side; `None` without a score.
    fn standing(&self, user: String, around: i64) -> impl Future<Output = PeerResult<Option<Standing>>>;

    /// Returns `limit` players from a position, counted from 1.
    fn page(&self, from: i64, limit: i64) -> impl Future<Output = PeerResult<Vec<Row>>>;

    /// Writes events and returns the new score of each; the final score for a player with several
    /// events.
    fn write(&self, events: Vec<Event>) -> impl Future<Output = PeerResult<Vec<i64>>>;
}

/// Connections to PostgreSQL with Centile's session settings.
pub struct Pools {
    pub readers: PgPool,
    pub writers: PgPool,
}

impl Pools {
    pub fn new(url: &str) -> PeerResult<Self> {
        let writing = options(url)?;
        let reading = writing.clone().options([("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")]);
        Ok(Self { readers: pool(READ_CONNECTIONS, reading), writers: pool(WRITE_CONNECTIONS, writing) })
    }

    /// All connections for writing.
    pub fn for_writing(url: &str) -> PeerResult<PgPool> {
        Ok(pool(READ_CONNECTIONS + WRITE_CONNECTIONS, options(url)?))
    }
}

fn options(url: &str) -> PeerResult<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url)?.options([
        ("jit", "off"),
        ("synchronous_commit", "on"),
        ("max_parallel_workers_per_gather", "0"),
    ]);
    // A peer prepares statements for each of 100 tables.
    Ok(options.statement_cache_capacity(1_000))
}

fn pool(connections: u32, options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(connections).test_before_acquire(false).connect_lazy_with(options)
}

/// Returns users and points of events, summed per player.
pub fn folded(events: &[Event]) -> (Vec<&str>, Vec<i64>) {
    let mut sums = std::collections::BTreeMap::<&str, i64>::new();
    for event in events {
        *sums.entry(&event.user_id).or_default() += event.points;
    }
    sums.into_iter().unzip()
}

/// Returns the score of each event from the scores of its players.
pub fn scores_of(events: &[Event], scores: Vec<(String, i64)>) -> PeerResult<Vec<i64>> {
    let scores: std::collections::HashMap<_, _> = scores.into_iter().collect();
    events.iter().map(|event| Ok(*scores.get(&event.user_id).ok_or("a player has no new score")?)).collect()
}

/// Rows as (side, rank, `user_id`, `user_name`, score). Side 0 is the player; -1 and 1 are the
/// neighbours above and below, nearest first.
pub type SideRow = (i32, i64, String, String, i64);

/// Returns the player and the neighbours of [`SideRow`]s.
pub fn standing(rows: Vec<SideRow>) -> Option<Standing> {
    let (mut player, mut above, mut below) = (None, Vec::new(), Vec::new());
    for (side, rank, user_id, user_name, score) in rows {
        let row = Row { rank, user_id, user_name: Some(user_name), score };
        match side {
            0 => player = Some(row),
            -1 => above.push(row),
            _ => below.push(row),
        }
    }
    above.sort_by_key(|row| std::cmp::Reverse(row.score));
    Some(Standing { row: player?, above, below, counts_age_ms: None })
}
