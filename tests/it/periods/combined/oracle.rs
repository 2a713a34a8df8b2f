//! The ranking of a combined board, from the ledgers of its sources.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query_as;

use crate::{http::api::site::Site, support::TestDb};

/// A source of a combined board, on a board of mode `sum` named `arena` or one of mode `best`.
#[derive(Debug, Clone)]
pub struct Source {
    pub board: &'static str,
    pub period: &'static str,
    pub weight: i64,
}

/// How a combined board is computed.
#[derive(Debug, Clone)]
pub struct Rules {
    pub sources: Vec<Source>,
    pub join: &'static str,
    pub aggregate: &'static str,
    pub ties: &'static str,
    pub order: &'static str,
}

/// A row of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub position: i64,
    pub rank: i64,
    pub user: String,
    pub score: i64,
    pub reached_at: DateTime<Utc>,
}

/// A player by internal and external id.
type Player = (i64, String);

/// A score in a ledger: internal and external id of the player, points, time, batch.
type Event = (i64, String, i64, DateTime<Utc>, i64);

/// Returns the ranking of the batches up to `last` of each board.
pub async fn wanted(db: &TestDb, rules: &Rules, last: impl Fn(&str) -> i64) -> Vec<Row> {
    let pool = db.pool().await;
    let mut scores: BTreeMap<Player, Vec<(i128, DateTime<Utc>)>> = BTreeMap::new();
    for source in &rules.sources {
        let events: Vec<Event> = query_as(
            "SELECT u.id, u.external_id, t.points, t.occurred_at, t.batch
             FROM centile_store.score_transactions t
             JOIN centile_store.users u ON u.id = t.user_id JOIN centile_store.boards b ON b.id = t.board_id
             JOIN centile_store.periods p ON p.board_id = b.id AND p.starts_at <= t.occurred_at AND t.occurred_at < p.ends_at
             WHERE b.slug = $1 AND t.kind = 'score'
               AND CASE WHEN $2 LIKE '%:%' OR $2 = 'all_time' THEN concat_ws(':', p.kind, nullif(p.label, 'all_time')) = $2
                        ELSE p.kind = $2 AND p.starts_at <= now() AND now() < p.ends_at END
             ORDER BY t.occurred_at, t.id",
        )
        .bind(source.board)
        .bind(source.period)
        .fetch_all(&pool)
        .await
        .unwrap();
        let mut entries: BTreeMap<Player, (i64, DateTime<Utc>)> = BTreeMap::new();
        for (id, user, points, at, _) in events.into_iter().filter(|event| event.4 <= last(source.board)) {
            let entry = entries.entry((id, user)).or_insert((if source.board == "duels" { points } else { 0 }, at));
            if source.board == "duels" {
                *entry = if points > entry.0 { (points, at) } else { *entry };
            } else {
                *entry = (entry.0 + points, if points == 0 { entry.1 } else { at });
            }
        }
        for (user, (score, at)) in entries {
            scores.entry(user).or_default().push((i128::from(score) * i128::from(source.weight), at));
        }
    }
    let mut rows: Vec<(i128, DateTime<Utc>, Player)> = Vec::new();
    for (user, found) in scores {
        if rules.join == "intersection" && found.len() < rules.sources.len() {
            continue;
        }
        let each = found.iter().map(|(score, _)| *score);
        let score = match rules.aggregate {
            "sum" => each.sum(),
            "min" => each.min().unwrap(),
            _ => each.max().unwrap(),
        };
        rows.push((score, found.iter().map(|(_, at)| *at).max().unwrap(), user));
    }
    let sign = if rules.order == "asc" { 1 } else { -1 };
    rows.sort_by_key(|(score, at, (id, _))| (score * sign, *at, *id));
    let scores: Vec<i128> = rows.iter().map(|row| row.0).collect();
    let place = |n: usize| i64::try_from(n).unwrap() + 1;
    let row = |(n, (score, reached_at, (_, user))): (usize, (i128, DateTime<Utc>, Player))| Row {
        position: place(n),
        rank: if rules.ties == "shared" {
            place(scores.iter().position(|other| *other == score).unwrap())
        } else {
            place(n)
        },
        user,
        score: i64::try_from(score).unwrap(),
        reached_at,
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// Returns the ranking as the API lists it.
pub async fn list(site: &Site, slug: &str) -> Vec<Row> {
    page(site, slug).await.0
}

/// Returns the ranking with the snapshot that the answer names. Unlike a top, which may lag, a page
/// with moves is exact.
pub async fn page(site: &Site, slug: &str) -> (Vec<Row>, Value) {
    let page = site.get(&format!("/v1/boards/{slug}/scores?limit=1000&moved=true")).await.is(200);
    let row = |row: &Value| Row {
        position: row["position"].as_i64().unwrap(),
        rank: row["rank"].as_i64().unwrap(),
        user: row["user_id"].as_str().unwrap().to_owned(),
        score: row["score"].as_i64().unwrap(),
        reached_at: row["reached_at"].as_str().unwrap().parse().unwrap(),
    };
    (page["data"].as_array().unwrap().iter().map(row).collect(), page["combination"].clone())
}
