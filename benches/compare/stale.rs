//! How far behind answers are while scores come in.
//!
//! Two kinds of players get no scores from the load. *Witnesses* never get one: the others only gain points, so their ranks only
//! grow, and a rank that was true when it was answered lies between what it was before and after. *Probes* get one now and then, and
//! it is seen how long after its commit it shows over HTTP.

use std::time::{Duration, Instant};

use rand::RngExt as _;
use reqwest::Client;
use serde::Serialize;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::timeout;

use crate::{
    check::{self, Player},
    common::{Bench, Outcome},
    system::{BOARD, Site, System},
};

/// One player in so many is a witness, and one a probe.
const SHARE: u64 = 1_000;
/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions whether a score shows.
const PAUSE: Duration = Duration::from_millis(1);

/// How far behind answers were.
#[derive(Debug, Default, Serialize)]
pub struct Staleness {
    /// Ranks by which each witness' answer was off.
    pub rank_differences: Vec<i64>,
    /// Age of the oldest cached counts seen, where answers tell.
    pub counts_age_ms: u64,
    /// Looks that came to nothing: no answer, a refusal, or a score that did not show in time.
    pub unanswered: usize,
    /// Milliseconds from when each probe's score could be read in PostgreSQL until it showed over HTTP.
    pub visible_after_ms: Vec<f64>,
}

/// Whether the load has to leave a player alone.
pub fn is_watched(player: u64) -> bool {
    [0, SHARE - 1].contains(&(player % SHARE))
}

/// Compares for a while, with the load going on.
pub async fn watch(bench: &Bench, site: &Site, system: System, address: &str, time: Duration) -> Outcome<Staleness> {
    let url = bench.servers.postgres.url(&site.database);
    // A connection each: what is cut short with one goes on in PostgreSQL for a while, and would be waited for by the other.
    let (mut witnessing, mut probing) = (PgConnection::connect(&url).await?, PgConnection::connect(&url).await?);
    let (end, mut stale) = (Instant::now() + time, Staleness::default());
    let groups = (site.players / SHARE).max(1);
    while Instant::now() < end {
        let next = Instant::now() + EVERY;
        let player = format!("player-{}", rand::rng().random_range(1..=groups) * SHARE);
        // A system that cannot keep up refuses, or answers late; that is a result, too.
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

/// By how much the rank of a witness is off, and how old the counts were that it came from; nothing without an answer. Only the
/// answer has to come in time: the ranks that it is compared with are counted among all players.
async fn witness(
    connection: &mut PgConnection,
    system: System,
    address: &str,
    player: &str,
) -> Outcome<Option<(i64, u64)>> {
    let score: i64 =
        sqlx::query_scalar(AssertSqlSafe(system.score_of())).bind(player).fetch_one(&mut *connection).await?;
    let (best, _) = places(connection, system, score).await?;
    let url = format!("{address}/v1/boards/{BOARD}/scores/{player}?around=0");
    let Ok(Ok(said)) = timeout(PATIENCE, check::get::<Player>(&url)).await else { return Ok(None) };
    let (worst, last) = places(connection, system, score).await?;
    let worst = if system.shares_ranks() { worst } else { last };
    Ok(Some(((best - said.rank).max(said.rank - worst).max(0), said.counts_age_ms)))
}

/// The rank of a score, and the last of the places of those who have it.
async fn places(connection: &mut PgConnection, system: System, score: i64) -> Outcome<(i64, i64)> {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE s.score > $1) + 1, count(*) FROM ({}) s WHERE s.score >= $1",
        system.scores()
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(score).fetch_one(connection).await?)
}

/// How many milliseconds after PostgreSQL a probe's new score shows over HTTP.
async fn probe(
    connection: &mut PgConnection,
    site: &Site,
    system: System,
    address: &str,
    player: &str,
) -> Outcome<f64> {
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
