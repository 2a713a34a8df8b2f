//! Three instances behind `HAProxy`, with the configuration in `deploy/`.

mod cut;
mod forward;
mod paused;
mod restart;

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    Serve, TestDb, audit,
    balancer::{Balancer, own_loopback},
    client,
    load::{Load, parsed},
    record::Record,
    verdict,
    wait::until,
};

const SCORES: &str = "/v1/boards/arena/scores";

/// Instances, numbered from 0, and their balancer.
#[derive(Debug)]
struct Group {
    instances: [Serve; 3],
    balancer: Balancer,
    redis_prefix: String,
}

/// Starts an instance that listens on `listen`.
async fn serve(url: &str, redis_prefix: &str, listen: String, flags: &[&str]) -> Serve {
    let (url, redis_prefix) = (url.to_owned(), redis_prefix.to_owned());
    let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(["--listen".to_owned(), listen]);
    tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &redis_prefix, &flags)).await.unwrap()
}

/// Returns the `HOST:PORT` of an instance.
fn address(instance: &Serve) -> String {
    instance.url.strip_prefix("http://").unwrap().to_owned()
}

impl Group {
    /// Starts an instance per URL of the database, and returns once all get requests.
    async fn start(db: &TestDb, urls: [&str; 3], flags: &[&str]) -> Self {
        let redis_prefix = db.redis_prefix();
        let start = async |url| serve(url, &redis_prefix, format!("{}:0", own_loopback()), flags).await;
        let instances = [start(urls[0]).await, start(urls[1]).await, start(urls[2]).await];
        for instance in &instances {
            until_ready(instance).await;
        }
        let addresses = instances.each_ref().map(address);
        let balancer = tokio::task::spawn_blocking(move || Balancer::start(&addresses)).await.unwrap();
        let group = Self { instances, balancer, redis_prefix };
        for instance in 0..3 {
            group.balancer.until(instance, "UP").await;
        }
        group
    }

    /// Sends a score that makes a new player the first, until it is acknowledged. Returns the player.
    async fn new_first(&self, key: &str, number: usize) -> String {
        let user = format!("first {number}");
        let event = json!({"user_id": user, "points": 1_000_000 + number, "id": user});
        until("the score is acknowledged", async || {
            let sent = client().post(self.balancer.at(SCORES)).bearer_auth(key).json(&event).send().await;
            sent.is_ok_and(|answer| answer.status() == StatusCode::OK)
        })
        .await;
        user
    }
}

/// Waits until an instance is ready.
async fn until_ready(instance: &Serve) {
    until("the instance is ready", async || {
        let ready = instance.client.get(instance.at("/readyz")).send().await.unwrap();
        ready.status() == StatusCode::OK
    })
    .await;
}

/// Returns status and body of a read.
async fn read(url: String) -> (StatusCode, Value) {
    let response = client().get(&url).send().await.unwrap();
    (response.status(), parsed(&response.text().await.unwrap()))
}

/// Waits until these loads have more answers.
async fn more(loads: &[&Load]) {
    for load in loads {
        let wanted = load.answered() + 100;
        until("the load continues", async || load.answered() >= wanted).await;
    }
}

/// Compares every answer of a load with a replay of the ledger.
async fn compare(db: &TestDb, load: &Arc<Load>, record: &mut Record, what: &str) {
    // Any instance may have acknowledged a change, and the top lists of the others may lag.
    for change in &mut record.acknowledged {
        change.instance = usize::MAX;
    }
    let pool = db.pool().await;
    verdict::of(&pool, load, record).await.expect_right(what);
    audit::rankings_are_sound(&pool).await;
}
