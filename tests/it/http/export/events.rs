//! Events and their standings, computed by the definition of a sum.

use std::collections::HashMap;

use chrono::{DateTime, Duration, Utc};
use serde_json::json;
use sqlx::query_as;

use crate::support::{TestDb, replay::Ledger};

/// A score event.
#[derive(Debug, Clone)]
pub struct Event {
    pub user_id: String,
    pub name: Option<String>,
    pub points: i64,
    /// Determines its time; no two events share one.
    pub number: usize,
}

/// A player's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub position: i64,
    pub rank: i64,
    pub user_id: String,
    pub name: String,
    pub score: i64,
    pub reached_at: String,
}

impl Line {
    /// Returns the cells as text.
    pub fn cells(&self) -> Vec<String> {
        let Self { position, rank, user_id, name, score, reached_at } = self.clone();
        vec![position.to_string(), rank.to_string(), user_id, name, score.to_string(), reached_at]
    }
}

/// State of a player's events.
struct Sum {
    /// Number of the player, which breaks ties within a microsecond.
    id: i64,
    name: String,
    score: i64,
    reached_at: DateTime<Utc>,
}

/// A score with its player, name and time.
pub struct Scored {
    id: i64,
    user_id: String,
    name: String,
    points: i64,
    at: DateTime<Utc>,
}

impl Event {
    /// Returns the time: each event is 1 ms and 1 µs after the previous one.
    fn at(&self) -> DateTime<Utc> {
        let begin: DateTime<Utc> = "2024-01-15T10:00:00Z".parse().unwrap();
        begin + Duration::microseconds(1_001 * i64::try_from(self.number).unwrap())
    }

    /// Returns a line of an import file.
    pub fn as_imported(&self) -> String {
        let Self { user_id, name, points, .. } = self;
        let mut line = json!({"user_id": user_id, "points": points, "occurred_at": self.at().to_rfc3339()});
        if let Some(name) = name {
            line["name"] = json!(name);
        }
        line.to_string()
    }
}

impl From<Event> for Scored {
    fn from(event: Event) -> Self {
        let at = event.at();
        // The name of a player without a name is the id.
        let name = event.name.unwrap_or_else(|| event.user_id.clone());
        Self { id: 0, user_id: event.user_id, name, points: event.points, at }
    }
}

/// Returns the standings of events in order of time: best first, the earlier one first among
/// equals.
pub fn standings(events: impl IntoIterator<Item: Into<Scored>>) -> Vec<Line> {
    let mut sums = HashMap::<String, Sum>::new();
    for Scored { id, user_id, name, points, at } in events.into_iter().map(Into::into) {
        let sum = sums.entry(user_id).or_insert_with(|| Sum { id, name: name.clone(), score: 0, reached_at: at });
        sum.score += points;
        if points != 0 {
            sum.reached_at = sum.reached_at.max(at);
        }
        sum.name = name;
    }
    let mut players: Vec<(String, Sum)> = sums.into_iter().collect();
    players.sort_by_key(|(_, sum)| (-sum.score, sum.reached_at, sum.id));
    let mut rank = 0;
    let mut above = None;
    (1..)
        .zip(players)
        .map(|(position, (user_id, sum))| {
            if above != Some(sum.score) {
                (above, rank) = (Some(sum.score), position);
            }
            let reached_at = sum.reached_at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            Line { position, rank, user_id, name: sum.name, score: sum.score, reached_at }
        })
        .collect()
}

/// A score in the ledger: internal id, id, name, points, time, lane and batch.
type Recorded = (i64, String, String, i64, DateTime<Utc>, i16, i64);

/// Returns the ledger's scores up to a version, that is, up to the last batch of each lane.
pub async fn recorded(db: &TestDb, version: &str) -> Vec<Scored> {
    let (_, batches) = version.rsplit_once('.').unwrap();
    let ledger = Ledger::read(&db.pool().await, "main").await;
    let batches = &ledger.versions[batches];
    let rows: Vec<Recorded> = query_as(
        "SELECT u.id, u.external_id, u.name, t.points, t.occurred_at, t.lane, t.batch
         FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
         WHERE t.kind = 'score' ORDER BY t.occurred_at, t.user_id",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    let all = rows.len();
    let held: Vec<Scored> = rows
        .into_iter()
        .filter(|(.., lane, batch)| *batch <= batches[usize::try_from(*lane).unwrap()])
        .map(|(id, user_id, name, points, at, ..)| Scored { id, user_id, name, points, at })
        .collect();
    assert!(held.len() < all, "some scores are newer than the version");
    held
}
