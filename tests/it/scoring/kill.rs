//! `kill -9` of the service and of PostgreSQL under load: no acknowledged event is lost, and none
//! is applied twice.

use std::sync::Arc;

use centile::dev::local::PostgresOptions;
use reqwest::StatusCode;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::support::{
    PATIENT, Serve, TestDb, amount, audit, client, cluster, is_cluster,
    load::{key, parsed},
    own_postgres, redis_url,
    sender::Sender,
    spawn_serve,
};

/// Number of concurrent senders.
const CALLERS: usize = 4;

const BOARD: &str =
    "SELECT centile.create_board('arena', '{\"lanes\": 4, \"first_layout\": {\"bounds\": [0,20,100]}}')";

/// Records the `synchronous_commit` setting of every transaction that writes to the ledger.
const WATCH_COMMITS: &str = "
    CREATE TABLE public.seen (synchronous_commit text PRIMARY KEY);
    CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT EXISTS (SELECT FROM public.seen WHERE synchronous_commit = current_setting('synchronous_commit')) THEN
            INSERT INTO public.seen VALUES (current_setting('synchronous_commit')) ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER see AFTER INSERT ON centile_store.score_transactions FOR EACH STATEMENT EXECUTE FUNCTION public.see()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_and_repeats_no_event() {
    kill_service(BOARD, amount(6, 20)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_and_repeats_no_event_of_a_template() {
    if !is_cluster() {
        kill_service("SELECT centile.set_template('arena', 'arena*', '{\"lanes\": 4}')", amount(3, 20)).await;
    }
}

async fn kill_service(board: &str, kills: usize) {
    let db = TestDb::new().await;
    db.execute(board).await;
    // On a cluster, the workers write to the ledger.
    let writers = if is_cluster() { cluster::workers(db.url()).await } else { vec![db.pool().await] };
    for writer in &writers {
        sqlx::raw_sql(WATCH_COMMITS).execute(writer).await.expect("a trigger");
    }
    let redis = redis_url().await;
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    for kill in 0..kills {
        let mut serve = spawn_serve(&db, Some(&redis), &PATIENT).await;
        let callers = sender.spawn(CALLERS, &serve.at("/v1/boards/arena/scores"), &CancellationToken::new());
        // Soon after the instance's start, or later.
        sender.wait_for_more([1, 40, 400][kill % 3]).await;
        serve.kill();
        // Each sender ends when the service no longer answers.
        callers.join_all().await;
    }
    let serve = spawn_serve(&db, Some(&redis), &PATIENT).await;
    sender.finish(&format!("{}/v1/boards/arena/scores", serve.url)).await;
    let (acknowledged, repeated, unavailable) = sender.counts();
    eprintln!("{kills} kills: {acknowledged} events acknowledged, {repeated} of them more than once");
    assert_eq!(unavailable, 0);
    assert!(repeated > 20, "only {repeated} repetitions");
    let pool = db.pool().await;
    sender.expect_all_once(&pool).await;
    for writer in &writers {
        expect_synchronous(writer).await;
    }
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}

/// Otherwise readers could see a score that a crash then loses, and its version would be used again
/// for another state.
#[tokio::test]
async fn writes_from_psql_commit_synchronously() {
    let db = TestDb::new().await;
    db.execute(BOARD).await;
    db.execute(WATCH_COMMITS).await;
    for setting in ["off", "local"] {
        for act in [
            "testing.submit_score('arena', 'ann', 5)",
            "centile.void_score('arena', max(id)) FROM centile_store.score_transactions",
            "centile.reset_player('arena', 'ann')",
            "centile.ban_user('arena', 'ann', true)",
            "centile.ban_user('arena', 'ann', false)",
        ] {
            db.execute(&format!("SET synchronous_commit = {setting}; SELECT {act}")).await;
        }
    }
    let pool = db.pool().await;
    expect_synchronous(&pool).await;
}

/// Fails unless all transactions that [`WATCH_COMMITS`] has seen commit synchronously.
async fn expect_synchronous(pool: &PgPool) {
    let seen: Vec<String> = sqlx::query_scalar("SELECT * FROM public.seen").fetch_all(pool).await.expect("settings");
    assert_eq!(seen, ["on"], "synchronous_commit of the transactions that write");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_reconnects_to_a_killed_postgresql_without_losing_events() {
    // The kernel keeps a killed process's writes, with or without fsync.
    let options = PostgresOptions { fsync: amount(false, true), ..PostgresOptions::ephemeral() };
    let mut postgres = own_postgres(options).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    sqlx::raw_sql(BOARD).execute(&pool).await.expect("a board");
    let database = url.clone();
    let serve =
        tokio::task::spawn_blocking(move || Serve::spawn(&database, None, "kill", &[])).await.expect("a service");
    let sender = Arc::new(Sender::new(key(&url, "server")));
    let (stop, client) = (CancellationToken::new(), client());
    let callers = sender.spawn(CALLERS, &serve.at("/v1/boards/arena/scores"), &stop);
    sender.wait_for_more(300).await;
    let top = || client.get(serve.at("/v1/boards/arena/scores?limit=3")).send();
    assert_eq!(top().await.expect("an answer").status(), StatusCode::OK);

    postgres.kill_hard().expect("a dead PostgreSQL");
    // Only connections used after the kill count.
    for path in
        ["/v1/boards/arena/scores/p1", "/v1/boards/arena/rank?score=1", "/v1/boards/arena/scores?from=2", "/readyz"]
    {
        let answer = client.get(serve.at(path)).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(answer.headers().contains_key("retry-after"), "{path}");
    }
    // Only the last known top list may still be served.
    let last = top().await.expect("an answer");
    if last.status() != StatusCode::SERVICE_UNAVAILABLE {
        assert_eq!(last.status(), StatusCode::OK);
        assert_eq!(parsed(&last.text().await.expect("a body"))["data"].as_array().map(Vec::len), Some(3));
    }
    let known = sender.counts().0;
    postgres.start_again().expect("PostgreSQL is back");

    sender.wait_for_more(300).await;
    stop.cancel();
    callers.join_all().await;
    sender.finish(&serve.at("/v1/boards/arena/scores")).await;
    let (acknowledged, repeated, unavailable) = sender.counts();
    eprintln!("PostgreSQL killed after {known} of {acknowledged} events, {repeated} repeated, {unavailable} times 503");
    assert!(unavailable > 0);
    let pool = PgPool::connect(&url).await.expect("a connection");
    sender.expect_all_once(&pool).await;
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}
