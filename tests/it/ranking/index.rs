//! Reads from the rank index equal reads by SQL, and include everything acknowledged before them.

mod both;
mod fresh;
mod friends;
mod life;
mod memory;
mod reload;
mod replay;
mod standings;
mod tiers;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, load::PATIENT, spawn_serve, wait::until_some},
};

/// Flags of an instance with enough memory for its indexes.
const INDEXED: [&str; 2] = ["--index-memory", "64"];
/// Flags of an instance without indexes.
const BY_SQL: [&str; 2] = ["--index-memory", "0"];

/// Returns the source of an answer, `index` or `sql`; empty for a refusal.
fn source(answer: &Answer) -> &str {
    answer.headers.get("centile-source").map_or("", |name| name.to_str().unwrap())
}

/// Returns an instance's answer once its index gives it. Until then SQL answers.
async fn from_index(site: &Site, path: &str) -> Value {
    let read = async || {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        (source(&answer) == "index").then_some(answer.body)
    };
    until_some(&format!("the index answers {path}"), read).await
}

/// Two instances of one database without a shared cache: one reads from its indexes, the other by
/// SQL.
struct Pair {
    index: Site,
    sql: Site,
}

impl Pair {
    async fn start(db: &TestDb) -> Self {
        let start = async |flags: [&str; 2]| spawn_serve(db, None, &[&flags[..], PATIENT].concat()).await;
        Self { index: Site::of(start(INDEXED).await, db.url()), sql: Site::of(start(BY_SQL).await, db.url()) }
    }

    /// Compares the answers of both without writes, until the index answers. Returns that answer.
    async fn read(&self, path: &str) -> Value {
        let expected = self.sql.get(path).await;
        assert!([200, 404].contains(&expected.status), "{path}: {expected:?}");
        assert_eq!(source(&expected), if expected.status == 200 { "sql" } else { "" }, "{path}");
        let read = async || {
            let answer = self.index.get(path).await;
            assert_eq!(answer.status, expected.status, "{path}: {answer:?}");
            if answer.status == 404 {
                return Some(());
            }
            assert_eq!(answer.body, expected.body, "{path} by {}", source(&answer));
            (source(&answer) == "index").then_some(())
        };
        until_some(&format!("the index answers {path}"), read).await;
        expected.body
    }

    /// Compares a top list of both, which may be cached for a moment.
    async fn top(&self, path: &str) {
        let read = async || {
            let (index, sql) = (self.index.get(path).await, self.sql.get(path).await);
            assert_eq!((index.status, sql.status, source(&sql)), (200, 200, "sql"), "{path}");
            (index.body == sql.body).then_some(())
        };
        until_some(&format!("both give the same {path}"), read).await;
    }

    /// Checks the whole ranking and each player's standing on both instances.
    async fn shows(&self, board: &str, sums: &Sums) {
        let list = format!("/v1/boards/{board}/scores?from=2&limit=1000");
        let output = self.read(&list).await;
        assert_eq!(output["players"], sums.0.len(), "{output}");
        let rows = output["data"].as_array().unwrap();
        assert_eq!(rows.len(), sums.0.len().saturating_sub(1).min(1_000), "{output}");
        for row in rows {
            let user = row["user_id"].as_str().unwrap();
            assert_eq!((&row["score"], &row["rank"]), (&json!(sums.0[user]), &json!(sums.rank(user))), "{row}");
        }
        let every = sums.0.len().div_ceil(30).max(1);
        for user in sums.0.keys().step_by(every) {
            let output = self.read(&format!("/v1/boards/{board}/scores/{user}?around=3")).await;
            assert_eq!(
                (&output["score"], &output["rank"]),
                (&json!(sums.0[user]), &json!(sums.rank(user))),
                "{output}"
            );
        }
        self.read(&format!("/v1/boards/{board}/distribution")).await;
    }
}

/// The oracle of a `sum` board with shared ranks.
#[derive(Debug, Clone, Default)]
struct Sums(BTreeMap<String, i64>);

impl Sums {
    fn add(&mut self, user: &str, points: i64) -> i64 {
        let sum = self.0.entry(user.to_owned()).or_default();
        *sum += points;
        *sum
    }

    fn rank(&self, user: &str) -> usize {
        let own = self.0[user];
        self.0.values().filter(|sum| **sum > own).count() + 1
    }
}
