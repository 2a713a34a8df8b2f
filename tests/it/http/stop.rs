//! A stopping instance: it reports that it is not ready, finishes accepted requests, and exits with
//! 0.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use centile::dev::local::signal;
use reqwest::StatusCode;
use serde_json::json;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{TestDb, amount, audit, client, load::key, redis_url, sender::Sender, spawn_serve, wait::until};

/// Number of sessions that wait for a lock of this kind.
async fn waiting(pool: &PgPool, lock: &str) -> i64 {
    const WAITING: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = $1 AND datname = current_database()";
    sqlx::query_scalar(WAITING).bind(lock).fetch_one(pool).await.expect("a count")
}

/// Stops an instance with accepted events. If it `drains`, clients may still connect for some time,
/// and `/readyz` answers 503.
async fn stops_well(drains: bool) {
    const CALLERS: usize = 20;
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 1}')").await;
    let mut serve = spawn_serve(
        &db,
        None,
        &["--drain", if drains { "600" } else { "0" }, "--statement-timeout", "600", "--stop-within", "600"],
    )
    .await;
    let (key, address) = (key(db.url(), "server"), serve.at("/v1/boards/arena/scores"));
    let send = |player: usize| {
        let event = json!({"user_id": format!("p{player}"), "points": 1});
        let request = serve.client.post(&address).bearer_auth(&key).json(&event);
        async move { request.send().await.expect("an answer").status() }
    };
    // Opens the periods and creates the players.
    for player in 0..CALLERS {
        assert_eq!(send(player).await, StatusCode::OK);
    }
    let pool = db.pool().await;
    let mut holder = pool.begin().await.expect("a transaction");
    sqlx::query("SELECT pg_advisory_xact_lock(1128615508, id) FROM centile_store.boards WHERE slug = 'arena'")
        .execute(&mut *holder)
        .await
        .expect("the structure lock");
    let accepted: JoinSet<StatusCode> = (0..CALLERS).map(&send).collect();
    until("a writer waits", async || waiting(&pool, "advisory").await >= 1).await;
    // More events wait behind the waiting batch, so that the stopping instance has work to finish.
    let waits = format!("\ncentile_queue_events {CALLERS}\n");
    until("all events wait", async || {
        let numbers = serve.client.get(serve.at("/metrics")).send().await.expect("numbers");
        numbers.text().await.expect("text").contains(&waits)
    })
    .await;

    let (url, watcher) = (serve.at("/readyz"), client());
    let id = serve.id();
    let (ended, output) = tokio::join!(serve.stop(), async {
        // Like a load balancer, on a new connection each time.
        let mut output = Some(StatusCode::OK);
        while output == Some(StatusCode::OK) {
            let answer = watcher.get(&url).header("connection", "close").send().await;
            output = answer.ok().map(|answer| answer.status());
        }
        // The second signal ends the drain.
        if drains {
            signal(id, "TERM").expect("a signal");
        }
        let mut refused = output.is_none();
        // In the end nothing listens on the port.
        while !refused {
            refused = watcher.get(&url).header("connection", "close").send().await.is_err();
        }
        // Only now let the accepted events proceed.
        holder.rollback().await.expect("the end of the transaction");
        output
    });
    // Without a drain, the port may be closed at once or still answer.
    let may_be = output == Some(StatusCode::SERVICE_UNAVAILABLE) || !drains && output.is_none();
    assert!(may_be, "/readyz answered {output:?} after SIGTERM");
    assert_eq!(accepted.join_all().await, vec![StatusCode::OK; CALLERS], "accepted events are answered");
    assert_eq!(ended.code(), Some(0), "{}", serve.output());
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions")
        .fetch_one(&pool)
        .await
        .expect("the ledger");
    assert_eq!(usize::try_from(rows), Ok(2 * CALLERS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_instance_accepts_nothing_new_and_finishes_accepted_requests() {
    stops_well(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_instance_is_not_ready() {
    stops_well(true).await;
}

/// Workers without requests stop first. They must not close connections to PostgreSQL that other
/// workers use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_in_progress_survives_the_end_of_other_workers() {
    const WORKERS: usize = 8;
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena'), testing.submit_score('arena', 'ann', 1)").await;
    let count = WORKERS.to_string();
    let mut serve = spawn_serve(&db, None, &["--workers", &count, "--read-connections", &count]).await;
    let (key, address) = (key(db.url(), "server"), serve.at("/v1/boards/arena/transactions"));
    let read = || {
        // Each client opens its own connection, so each worker gets one request.
        let request = client().get(&address).bearer_auth(&key);
        async move { request.send().await.expect("an answer").text().await.expect("a whole body") }
    };
    let pool = db.pool().await;
    let blocked = async |reads: usize| {
        let mut holder = pool.begin().await.expect("a transaction");
        let lock = "LOCK TABLE centile_store.score_transactions";
        sqlx::raw_sql(lock).execute(&mut *holder).await.expect("a lock");
        let reading: JoinSet<String> = (0..reads).map(|_| read()).collect();
        until("the reads wait", async || usize::try_from(waiting(&pool, "relation").await) == Ok(reads)).await;
        (holder, reading)
    };
    // Each worker opens a connection to PostgreSQL.
    let (holder, reading) = blocked(WORKERS).await;
    holder.rollback().await.expect("the end of the transaction");
    let whole = reading.join_all().await;
    let (holder, reading) = blocked(1).await;
    let id = serve.id();
    let (ended, ()) = tokio::join!(serve.stop(), async {
        until("the other workers have ended", async || workers(id) == 1).await;
        holder.rollback().await.expect("the end of the transaction");
    });
    assert_eq!(reading.join_all().await, whole[..1]);
    assert!(ended.success(), "{}", serve.output());
}

/// Number of HTTP workers that a process still has.
fn workers(process: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("actix-server wo")).count()
}

/// Instances are stopped and replaced in turn, while senders switch between the addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_and_repeats_no_event() {
    const CALLERS: usize = 8;
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let redis = redis_url().await;
    let mut instances = [spawn_serve(&db, Some(&redis), &[]).await, spawn_serve(&db, Some(&redis), &[]).await];
    let at = |url: &str| format!("{url}/v1/boards/arena/scores");
    let addresses = Arc::new(Mutex::new(instances.iter().map(|serve| at(&serve.url)).collect::<Vec<_>>()));
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    let stop = CancellationToken::new();
    let callers: JoinSet<()> = (0..CALLERS)
        .map(|caller| {
            let (sender, addresses, stop) = (Arc::clone(&sender), Arc::clone(&addresses), stop.clone());
            async move {
                let mut turn = caller;
                while !stop.is_cancelled() {
                    let address = addresses.lock().expect("no panic")[turn % 2].clone();
                    // Sends until that instance has stopped.
                    sender.run(&address, &stop).await;
                    turn += 1;
                }
            }
        })
        .collect();
    let restarts = amount(4, 8);
    for restart in 0..restarts {
        sender.wait_for_more(100).await;
        let ended = instances[restart % 2].stop().await;
        assert_eq!(ended.code(), Some(0), "{}", instances[restart % 2].output());
        instances[restart % 2] = spawn_serve(&db, Some(&redis), &[]).await;
        addresses.lock().expect("no panic")[restart % 2] = at(&instances[restart % 2].url);
    }
    sender.wait_for_more(100).await;
    stop.cancel();
    callers.join_all().await;
    sender.finish(&at(&instances[0].url)).await;
    let (acknowledged, repeated, unavailable) = sender.counts();
    eprintln!("{restarts} restarts: {acknowledged} events, {repeated} repeated, {unavailable} times 503");
    let pool = db.pool().await;
    sender.expect_all_once(&pool).await;
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}
