//! Measures the staleness of responses during writes.
//!
//! Two kinds of players get no scores from the load. *Witnesses* never get a score. The others only
//! gain points, so the rank of a witness only grows, and a correct response lies between its ranks
//! before and after. *Probes* get a score now and then, to measure the delay between its commit and
//! its visibility over HTTP.

use std::time::{Duration, Instant};

use rand::RngExt as _;
use reqwest::Client;
use serde::Serialize;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::timeout;

use crate::{
    check::{self, Player},
    common::{Bench, BenchResult},
    system::{BOARD, Site, System},
};

/// One player in this many is a witness, and one is a probe.
const SHARE: u64 = 1_000;
/// Interval of the checks.
const EVERY: Duration = Duration::from_secs(1);
/// Timeout of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Poll interval for the visibility of a score.
const PAUSE: Duration = Duration::from_millis(1);

/// Staleness of responses.
#[derive(Debug, Default, Serialize)]
pub struct Staleness {
    /// Errors of the witnesses' ranks.
    pub rank_differences: Vec<i64>,
    /// Age of the oldest cached counts, if reported.
    pub counts_age_ms: u64,
    /// Failed checks: no response, a refusal, or a score that did not become visible in time.
    pub unanswered: usize,
    /// Milliseconds between the visibility of each probe's score in PostgreSQL and over HTTP.
    pub visible_after_ms: Vec<f64>,
}

/// Returns whether the load must not score for a player.
pub fn is_watched(player: u64) -> bool {
    [0, SHARE - 1].contains(&(player % SHARE))
}

/// Checks for a while during the load.
pub async fn watch(
    bench: &Bench,
    site: &Site,
    system: System,
    address: &str,
    time: Duration,
) -> BenchResult<Staleness> {
    let url = bench.servers.postgres.url(&site.database);
    // Separate connections: a cancelled statement keeps its connection busy for a while.
    let (mut witnessing, mut probing) = (PgConnection::connect(&url).await?, PgConnection::connect(&url).await?);
    let (end, mut stale) = (Instant::now() + time, Staleness::default());
    let groups = (site.players / SHARE).max(1);
    while Instant::now() < end {
        let next = Instant::now() + EVERY;
        let player = format!("player-{}", rand::rng().random_range(1..=groups) * SHARE);
        // An overloaded system refuses or answers late; that is a result too.
        match witness(&mut witnessing, system, address, &player).await? {
            Some((difference, age)) => {
                stale.rank_differences.push(difference);
                stale.counts_age_ms = stale.counts_age_ms.max(age);
            }
            None => stale.unanswered += 1,
        }
        let player = format!("player-{}", rand::rng().random_range(1..=groups) * SHARE - 1);
        match timeout(PATIENCE, probe(&mut probing, site, system, address, &player)).await {
            Ok(Ok(ms)) => stale.visible_after_ms.push(ms),
            _ => stale.unanswered += 1,
        }
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(stale)
}

/// Returns the error of a witness's rank and the age of its counts; `None` without a response. The
/// timeout applies only to the response, because the compared ranks are counted among all players.
async fn witness(
    connection: &mut PgConnection,
    system: System,
    address: &str,
    player: &str,
) -> BenchResult<Option<(i64, u64)>> {
    let score: i64 =
        sqlx::query_scalar(AssertSqlSafe(system.score_of())).bind(player).fetch_one(&mut *connection).await?;
    let (best, _) = places(connection, system, score).await?;
    let url = format!("{address}/v1/boards/{BOARD}/scores/{player}?around=0");
    let Ok(Ok(said)) = timeout(PATIENCE, check::get::<Player>(&url)).await else { return Ok(None) };
    let (worst, last) = places(connection, system, score).await?;
    let worst = if system.shares_ranks() { worst } else { last };
    Ok(Some(((best - said.rank).max(said.rank - worst).max(0), said.counts_age_ms)))
}

/// Returns the rank of a score, and the last position with this score.
async fn places(connection: &mut PgConnection, system: System, score: i64) -> BenchResult<(i64, i64)> {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE s.score > $1) + 1, count(*) FROM ({}) s WHERE s.score >= $1",
        system.scores()
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(score).fetch_one(connection).await?)
}

/// Returns the delay until a probe's new score is visible over HTTP, in milliseconds.
async fn probe(
    connection: &mut PgConnection,
    site: &Site,
    system: System,
    address: &str,
    player: &str,
) -> BenchResult<f64> {
    let score_of = || sqlx::query_scalar::<_, i64>(AssertSqlSafe(system.score_of())).bind(player);
    let expected = score_of().fetch_one(&mut *connection).await? + 1;
    let body = format!(r#"{{"user_id":"{player}","points":1}}"#);
    let request = Client::new().post(format!("{address}/v1/boards/{BOARD}/scores")).bearer_auth(&site.key);
    let writing = tokio::spawn(request.header("content-type", "application/json").body(body).send());
    while score_of().fetch_one(&mut *connection).await? < expected {
        tokio::time::sleep(PAUSE).await;
    }
    let committed = Instant::now();
    let url = format!("{address}/v1/boards/{BOARD}/scores/{player}?around=0");
    while check::get::<Player>(&url).await?.score < expected {
        tokio::time::sleep(PAUSE).await;
    }
    let behind = committed.elapsed();
    writing.await??.error_for_status()?;
    Ok(behind.as_secs_f64() * 1e3)
}
