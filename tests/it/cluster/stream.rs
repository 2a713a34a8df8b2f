//! The stream of transactions of a new cluster. The test needs PostgreSQL with Citus.

use reqwest::StatusCode;
use serde_json::json;
use sqlx::PgPool;

use crate::{
    delivery::transactions::Follower,
    support::{cluster, load::key},
};

/// Each server draws ids from its own sequence, and the stream begins above all that were drawn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_stream_that_begins_before_the_first_score_has_all_scores() {
    let cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"]}')")
        .execute(&pool)
        .await
        .unwrap();
    let (serve, key) = (cluster::serve(&url, "one").await, key(&url, "admin"));
    let mut follower = Follower::new(&serve.url, "arena", &key);
    follower.cursor = Some("now".to_owned());
    assert_eq!(follower.read(100, 0).await, 0);
    let mut users = Vec::new();
    for worker in &cluster.workers {
        users.extend(cluster::players(&pool, worker.port()).await);
    }
    for user in &users {
        let request = serve.client.post(serve.at("/v1/boards/arena/scores")).bearer_auth(&key);
        let answer = request.json(&json!({"user_id": user, "points": 5})).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
    while follower.read(100, 0).await > 0 {}
    let mut received: Vec<String> =
        follower.rows.iter().map(|row| row["user_id"].as_str().unwrap().to_owned()).collect();
    received.sort();
    users.sort();
    assert_eq!(received, users);
}
