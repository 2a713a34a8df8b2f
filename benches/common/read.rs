//! Reads ranks with the service's own statement and session settings.
#![allow(dead_code, reason = "not every benchmark reads in all ways")]

use std::{
    str::FromStr as _,
    time::{Duration, Instant},
};

use rand::{RngExt as _, rngs::StdRng};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, postgres::PgConnectOptions};

use super::{Bench, BenchResult, percentile};

/// Duration of an interval of reading.
const STRETCH: Duration = Duration::from_millis(400);
/// The service's statement.
const RANK: &str = include_str!("../../sql/queries/standing.sql");

/// A board's all-time ranking.
pub struct Ranking {
    pub board: i32,
    pub period: i64,
    pub id: i64,
}

/// Latencies of rank reads, in milliseconds.
#[derive(Debug, Default, Clone, Copy)]
pub struct Times {
    pub p50: f64,
    pub p99: f64,
}

/// Returns the board's current all-time ranking.
pub async fn ranking(connection: &mut PgConnection, board: &str) -> BenchResult<Ranking> {
    let (board, period, id) = sqlx::query_as(
        "SELECT p.board_id, p.id, p.ranking_id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
         WHERE b.slug = $1 AND p.kind = 'all_time'",
    )
    .bind(board)
    .fetch_one(connection)
    .await?;
    Ok(Ranking { board, period, id })
}

/// Connects with the settings of the service's readers.
pub async fn connect(bench: &Bench) -> BenchResult<PgConnection> {
    let options = PgConnectOptions::from_str(&bench.servers.database_url())?.options([
        ("jit", "off"),
        ("timezone", "UTC"),
        ("search_path", "pg_catalog,pg_temp"),
        ("plan_cache_mode", "force_generic_plan"),
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("max_parallel_workers_per_gather", "0"),
    ]);
    let mut connection = PgConnection::connect_with(&options).await?;
    sqlx::query("SELECT set_config('centile.epoch', centile.epoch(), false)").execute(&mut connection).await?;
    Ok(connection)
}

/// Reads ranks of random players in several intervals and returns the fastest interval. Other work
/// on the machine is temporary, whereas a slow layout slows every interval.
pub async fn ranks(
    connection: &mut PgConnection,
    board: &str,
    players: u64,
    times: u32,
    random: &mut StdRng,
) -> BenchResult<Times> {
    let mut quickest = stretch(connection, board, players, random).await?;
    for _ in 1..times {
        let next = stretch(connection, board, players, random).await?;
        if next.p50 < quickest.p50 {
            quickest = next;
        }
    }
    Ok(quickest)
}

/// Reads ranks one by one with known bucket counts, as in a service without writes.
async fn stretch(connection: &mut PgConnection, board: &str, players: u64, random: &mut StdRng) -> BenchResult<Times> {
    let Ranking { board: board_id, period: period_id, id: ranking_id } = ranking(connection, board).await?;
    let (layout, batches): (i32, Vec<i64>) = sqlx::query_as(
        "SELECT g.layout, centile_store.lane_batches(g.board_id, g.lanes) FROM centile_store.rankings g WHERE g.id = $1",
    )
    .bind(ranking_id)
    .fetch_one(&mut *connection)
    .await?;
    let mut times = Vec::new();
    let mut end = Instant::now() + STRETCH;
    // The first hundred create plans and fill caches.
    while times.len() < 200 || Instant::now() < end {
        let user = format!("player-{}", random.random_range(1..=players));
        let began = Instant::now();
        let row = sqlx::query(AssertSqlSafe(RANK))
            .bind(board_id)
            .bind(period_id)
            .bind(ranking_id)
            .bind(None::<chrono::DateTime<chrono::Utc>>)
            .bind(None::<chrono::DateTime<chrono::Utc>>)
            .bind(&user)
            .bind(layout)
            .bind(&batches)
            .fetch_one(&mut *connection)
            .await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        if row.try_get::<Option<i64>, _>("score")?.is_none() {
            return Err(format!("{user} has no rank").into());
        }
        if times.len() == 100 {
            end = Instant::now() + STRETCH;
        }
    }
    times.drain(..100);
    Ok(Times { p50: percentile(&mut times, 50.0), p99: percentile(&mut times, 99.0) })
}
