//! A worker of a cluster loses commits. The tests need PostgreSQL with Citus.

use std::{fs, path::Path, process::Command};

use centile::dev::local::LocalPostgres;
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{PgPool, query_scalar};

use crate::support::{Serve, cluster, load::key, wait::until};

/// A client of an instance.
struct Client {
    serve: Serve,
    key: String,
}

impl Client {
    /// Sends a score until it is accepted. The id keeps it from counting twice.
    async fn score(&self, user: &str, points: i64) {
        until("the score is accepted", async || {
            let request = self.serve.client.post(self.serve.at("/v1/boards/arena/scores")).bearer_auth(&self.key);
            let answer = request.json(&json!({"user_id": user, "points": points, "id": user})).send().await.unwrap();
            assert!([StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].contains(&answer.status()), "{answer:?}");
            answer.status() == StatusCode::OK
        })
        .await;
    }

    /// Waits until a rank index answers. Returns the version, and the players above with their scores.
    async fn above(&self, user: &str) -> (String, Vec<(String, i64)>) {
        let mut answered = (String::new(), Vec::new());
        until("an index answers", async || {
            let answer = self.serve.client.get(self.serve.at(&format!("/v1/boards/arena/scores/{user}"))).send();
            let answer = answer.await.unwrap();
            if answer.headers().get("centile-source").is_none_or(|source| source != "index") {
                return false;
            }
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            let row = |row: &Value| (row["user_id"].as_str().unwrap().to_owned(), row["score"].as_i64().unwrap());
            let above = body["above"].as_array().unwrap().iter().map(row).collect();
            answered = (body["version"].as_str().unwrap().to_owned(), above);
            true
        })
        .await;
        answered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_score_on_a_worker_that_lost_commits_begins_a_new_epoch() {
    lose_commits(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn an_instance_sees_that_a_worker_lost_commits() {
    lose_commits(true).await;
}

/// Restores a worker. After the loss, other scores get the numbers of the lost batches, and another
/// player gets the internal id of a lost one. With `waits`, they come after the new epoch has begun.
async fn lose_commits(waits: bool) {
    let mut cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"]}')")
        .execute(&pool)
        .await
        .unwrap();
    let client = Client { serve: cluster::serve(&url, "one").await, key: key(&url, "server") };
    let players = cluster::players(&pool, cluster.workers[0].port()).await;
    let [kept, lost, found] = &players[..] else { panic!("{players:?}") };
    client.score(kept, 10).await;
    client.above(kept).await;

    let worker = &mut cluster.workers[0];
    let (data, backup) = (worker.home().join("data"), worker.home().join("backup"));
    tokio::task::block_in_place(|| back_up(worker, &data, &backup));
    client.score(lost, 20).await;
    let (version, above) = client.above(kept).await;
    assert_eq!(above, [(lost.clone(), 20)]);
    let numbers = numbers_of(&pool, lost).await;

    let epoch = async || -> String {
        query_scalar("SELECT epoch FROM centile_lanes.cluster_epoch").fetch_one(&pool).await.unwrap()
    };
    let before = epoch().await;
    tokio::task::block_in_place(|| restore(worker, &data, &backup));
    if waits {
        until("a new epoch begins", async || epoch().await != before).await;
    }
    client.score(found, 30).await;
    let (later, above) = client.above(kept).await;
    assert_eq!(above, [(found.clone(), 30)]);
    assert_ne!(version, later);
    assert_eq!(numbers, numbers_of(&pool, found).await);
}

/// Returns the internal id of a player, and the last batches of the board.
async fn numbers_of(pool: &PgPool, user: &str) -> (i64, Vec<i64>) {
    let numbers = "SELECT u.internal_id, centile_store.lane_batches(1, 4) FROM centile.users u WHERE u.user_id = $1";
    sqlx::query_as(numbers).bind(user).fetch_one(pool).await.unwrap()
}

/// Copies the data of a worker.
fn back_up(worker: &mut LocalPostgres, data: &Path, backup: &Path) {
    worker.shut_down().unwrap();
    let status = Command::new("cp").arg("-a").arg(data).arg(backup).status();
    assert!(status.unwrap().success());
    worker.start_again().unwrap();
}

/// Restores the backup of a worker. As after a failover, the worker has a new timeline.
fn restore(worker: &mut LocalPostgres, data: &Path, backup: &Path) {
    worker.kill_hard().unwrap();
    fs::remove_dir_all(data).unwrap();
    fs::rename(backup, data).unwrap();
    fs::write(data.join("recovery.signal"), "").unwrap();
    let settings = data.join("postgresql.auto.conf");
    let old = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{old}restore_command = 'false'\n")).unwrap();
    worker.start_again().unwrap();
}
