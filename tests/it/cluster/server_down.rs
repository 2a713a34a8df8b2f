//! A server of a cluster is down. The tests need PostgreSQL with Citus.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{PgPool, error::DatabaseError};

use crate::support::{
    Serve, cluster,
    load::key,
    markup::{table, text},
    run_at,
    wait::until,
};

/// Starts an instance with the usual timeouts.
async fn serve(url: &str, name: &'static str, flags: &[&str]) -> Serve {
    let (url, flags) = (url.to_owned(), flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>());
    tokio::task::spawn_blocking(move || Serve::spawn(&url, None, name, &flags)).await.unwrap()
}

/// Sends a GET request with a key or, with a `user`, posts a score of this user. Returns the status,
/// whether the response has `Retry-After`, and the body.
async fn ask(serve: &Serve, key: &str, path: &str, user: Option<&str>) -> (StatusCode, bool, String) {
    let request = match user {
        Some(user) => serve.client.post(serve.at(path)).json(&json!({"user_id": user, "points": 5})),
        None => serve.client.get(serve.at(path)),
    };
    let answer = request.bearer_auth(key).send().await.unwrap();
    (answer.status(), answer.headers().contains_key("retry-after"), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn the_lanes_of_other_workers_accept_scores() {
    let mut cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"]}')")
        .execute(&pool)
        .await
        .unwrap();
    let ports = [0, 1].map(|worker| cluster.workers[worker].port());
    let lost = cluster::players(&pool, ports[0]).await.remove(0);
    let kept = cluster::players(&pool, ports[1]).await.remove(0);
    let key = key(&url, "admin");
    let serve = serve(&url, "one", &[]).await;
    let (scores, rank) = ("/v1/boards/arena/scores", format!("/v1/boards/arena/scores/{lost}"));
    for user in [&lost, &kept] {
        assert_eq!(ask(&serve, &key, scores, Some(user)).await.0, StatusCode::OK);
    }
    let is_well = async || text(&ask(&serve, &key, "/ops/", None).await.2).contains("Nothing needs attention.");
    assert!(is_well().await);

    cluster.workers[0].kill_hard().unwrap();
    for _ in 0..3 {
        let (status, retries, body) = ask(&serve, &key, scores, Some(&lost)).await;
        assert_eq!((status, retries), (StatusCode::SERVICE_UNAVAILABLE, true), "{body}");
        let (status, _, body) = ask(&serve, &key, scores, Some(&kept)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    let (status, retries, body) = ask(&serve, &key, &rank, None).await;
    assert_eq!((status, retries), (StatusCode::SERVICE_UNAVAILABLE, true), "{body}");
    let (status, _, page) = ask(&serve, &key, "/ops/", None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(text(&page).contains("A worker is down."), "{page}");
    let rows = table(&page, "Servers, their lanes, the sizes of their databases, and the lag of their replicas");
    let shown = run_at(&url, &["cluster", "status"]).well();
    let ports = [ports[0], ports[1], cluster.coordinator.port()];
    for (port, state) in ports.iter().zip(["down", "up", "up"]) {
        let words = |line: &str| line.split_whitespace().take(2).map(ToOwned::to_owned).collect::<Vec<_>>();
        let wanted = [format!("127.0.0.1:{port}"), state.to_owned()];
        assert!(shown.lines().any(|line| words(line) == wanted), "{shown}");
        assert!(rows.iter().any(|row| row[..2] == wanted), "{rows:?}");
    }

    cluster.workers[0].start_again().unwrap();
    until("the score is accepted", async || ask(&serve, &key, scores, Some(&lost)).await.0 == StatusCode::OK).await;
    until("the rank is known", async || {
        let (status, _, body) = ask(&serve, &key, &rank, None).await;
        // Refused scores were not written.
        let score = || serde_json::from_str::<Value>(&body).unwrap()["score"].as_i64();
        status == StatusCode::OK && score() == Some(10)
    })
    .await;
    assert!(is_well().await);
}

/// Takes the structure lock of the first board, as closings and rebuilds do.
const LOCK: &str = "SELECT (centile_store.lock_structure(1, true)).slug";

/// Adds a correction for a player, at the current time.
const CORRECT: &str = "SELECT centile.correct_score('arena', $1, 5, clock_timestamp(), 'a reason', 'a test')";

/// The periods of a server with their rankings, one line per period.
const PERIODS: &str = "
    SELECT string_agg(concat_ws(' ', p.id, p.kind, p.label, p.starts_at, p.ends_at, p.state, r.id, r.lanes, r.low_rank_keys), E'\\n' ORDER BY p.id)
    FROM centile_store.periods p JOIN centile_store.rankings r ON r.id = p.ranking_id";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn periods_are_opened_without_a_worker() {
    let mut cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"year\"]}')")
        .execute(&pool)
        .await
        .unwrap();
    let on_killed = cluster::players(&pool, cluster.workers[0].port()).await.remove(0);
    let on_other = cluster::players(&pool, cluster.workers[1].port()).await.remove(0);
    let key = key(&url, "admin");
    let scores = "/v1/boards/arena/scores";

    let mut first = serve(&url, "one", &[]).await;
    cluster.workers[0].kill_hard().unwrap();
    for _ in 0..2 {
        let (status, _, body) = ask(&first, &key, scores, Some(&on_other)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    let (status, retries, body) = ask(&first, &key, scores, Some(&on_killed)).await;
    assert_eq!((status, retries), (StatusCode::SERVICE_UNAVAILABLE, true), "{body}");
    first.kill();

    cluster.workers[0].start_again().unwrap();
    // The sessions of the first pool may have lost their connection to the worker.
    let pool = PgPool::connect(&url).await.unwrap();
    let code = |error: sqlx::Error| error.as_database_error().and_then(DatabaseError::code).map(String::from);
    let refused = sqlx::query(LOCK).execute(&pool).await.unwrap_err();
    assert_eq!(code(refused).as_deref(), Some("CB001"));
    let worker = cluster::worker(&url, cluster.workers[0].port());
    let users = [&on_killed];
    sqlx::query("SELECT centile.ensure_users($1)").bind(users).execute(&worker).await.unwrap();
    let refused = sqlx::query(CORRECT).bind(&on_killed).execute(&worker).await.unwrap_err();
    assert_eq!(code(refused).as_deref(), Some("CB001"));
    let serve = serve(&url, "two", &[]).await;
    until("the score is accepted", async || ask(&serve, &key, scores, Some(&on_killed)).await.0 == StatusCode::OK)
        .await;
    until("the structure lock is granted", async || sqlx::query(LOCK).execute(&pool).await.is_ok()).await;
    let expected: String = sqlx::query_scalar(PERIODS).fetch_one(&pool).await.unwrap();
    assert_eq!(expected.lines().count(), 2, "{expected}");
    for worker in cluster::workers(&url).await {
        assert_eq!(sqlx::query_scalar::<_, String>(PERIODS).fetch_one(&worker).await.unwrap(), expected);
    }
    for (player, rank, score) in [(&on_other, 1, 10), (&on_killed, 2, 5)] {
        let (_, _, body) = ask(&serve, &key, &format!("/v1/boards/arena/scores/{player}?period=year"), None).await;
        let standing: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((standing["rank"].as_i64(), standing["score"].as_i64()), (Some(rank), Some(score)), "{body}");
    }
    run_at(&url, &["verify"]).well();
}

/// Longer than the maximum age of a cached key or board.
const PAST_CACHES: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn scores_and_ranks_continue_without_the_coordinator() {
    let mut cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"]}')")
        .execute(&pool)
        .await
        .unwrap();
    let ports = [0, 1].map(|worker| cluster.workers[worker].port());
    let mut players = Vec::new();
    for port in ports {
        players.push(cluster::players(&pool, port).await.remove(0));
    }
    let [cached, uncached] = [(); 2].map(|()| key(&url, "admin"));
    let serve = serve(&url, "one", &["--index-boards", "arena", "--ready-when-indexed"]).await;
    let is_ready = async || ask(&serve, &cached, "/readyz", None).await.0 == StatusCode::OK;
    until("the index has loaded", is_ready).await;
    let (scores, rank) = ("/v1/boards/arena/scores", |player: &str| format!("/v1/boards/arena/scores/{player}"));
    let mut score = 0;
    let mut write_and_read = async || {
        score += 5;
        for player in &players {
            let (status, _, body) = ask(&serve, &cached, scores, Some(player)).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            let (status, _, body) = ask(&serve, &cached, &rank(player), None).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["score"], score, "{body}");
        }
    };
    write_and_read().await;

    cluster.coordinator.kill_hard().unwrap();
    let killed_at = Instant::now();
    while killed_at.elapsed() < PAST_CACHES {
        write_and_read().await;
    }
    assert!(is_ready().await);
    // The instance has not cached this key, so it cannot check it.
    let (status, retries, body) = ask(&serve, &uncached, scores, Some(&players[0])).await;
    assert_eq!((status, retries), (StatusCode::SERVICE_UNAVAILABLE, true), "{body}");

    cluster.coordinator.start_again().unwrap();
    until("the key is known", async || ask(&serve, &uncached, &rank(&players[0]), None).await.0 == StatusCode::OK)
        .await;
    write_and_read().await;
}
