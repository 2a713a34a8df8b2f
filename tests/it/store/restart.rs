//! PostgreSQL restarts, or accepts no new connections.

use centile::dev::local::PostgresOptions;
use futures::future::join_all;
use reqwest::StatusCode;
use sqlx::PgPool;

use crate::support::{Serve, TestDb, client, own_postgres, spawn_serve, wait::until};

/// Needs a private server, because it restarts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_one_request_finds_all_connections_lost() {
    let mut postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    sqlx::raw_sql("SELECT centile.create_board('arena')").execute(&pool).await.expect("a board");
    pool.close().await;
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, "restart", &[])).await.expect("a service");
    let client = client();
    let get = async || {
        let answer = client.get(serve.at("/v1/boards/arena/periods")).send().await.expect("an answer");
        answer.status()
    };
    // As many requests as the pool has connections.
    for status in join_all((0..200).map(|_| get())).await {
        assert_eq!(status, StatusCode::OK);
    }
    postgres.kill_hard().expect("a dead PostgreSQL");
    postgres.start_again().expect("PostgreSQL is back");
    let mut failed = 0;
    for _ in 0..50 {
        failed += usize::from(get().await != StatusCode::OK);
    }
    assert!(failed <= 1, "{failed} of 50 requests failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_new_connections_is_not_ready() {
    let (db, other) = (TestDb::new().await, TestDb::new().await);
    let serve = spawn_serve(&db, None, &[]).await;
    let ready = async || serve.client.get(serve.at("/readyz")).send().await.expect("an answer").status();
    assert_eq!(ready().await, StatusCode::OK);
    let name = db.url().rsplit_once('/').expect("a database").1;
    other.execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false")).await;
    until("it is not ready", async || ready().await == StatusCode::SERVICE_UNAVAILABLE).await;
    other.execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await;
    until("it is ready again", async || ready().await == StatusCode::OK).await;
}
