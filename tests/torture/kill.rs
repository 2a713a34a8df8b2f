//! Repeated `kill -9` of the service and of PostgreSQL under load.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use centile::dev::local::PostgresOptions;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    probe::{self, until_recovered},
    report::{Trial, seconds},
    support::{Serve, TestDb, audit, load::key, own_postgres, redis_url, sender::Sender, spawn_serve},
};

const BOARD: &str =
    "SELECT centile.create_board('arena', '{\"lanes\": 4, \"first_layout\": {\"bounds\": [0,20,100]}}')";
/// Number of concurrent callers.
const CALLERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_no_event() {
    const KILLS: usize = 100;
    let mut trial = Trial::begin(
        "kill-service",
        format!("kill -9 of the service under load, {KILLS} times"),
        "no event lost, none applied twice; answers again within 5 s; meanwhile no connection",
    );
    let db = TestDb::new().await;
    db.execute(BOARD).await;
    db.execute(probe::BOARD).await;
    let redis = redis_url().await;
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    let probing = key(db.url(), "server");
    let mut serve = spawn_serve(&db, Some(&redis), &[]).await;
    let mut longest = Duration::ZERO;
    for kill in 0..KILLS {
        let callers = sender.spawn(CALLERS, &serve.at("/v1/boards/arena/scores"), &CancellationToken::new());
        sender.wait_for_more([1, 100, 2_000][kill % 3]).await;
        serve.kill();
        let killed = Instant::now();
        callers.join_all().await;
        serve = spawn_serve(&db, Some(&redis), &[]).await;
        longest = longest.max(until_recovered(&serve, &probing, killed).await);
    }
    sender.finish(&serve.at("/v1/boards/arena/scores")).await;
    let pool = db.pool().await;
    sender.expect_all_once(&pool).await;
    audit::rankings_are_sound(&pool).await;
    let (acknowledged, repeated, _) = sender.counts();
    trial.saw(format!("{acknowledged} events acknowledged, each in the ledger once; {repeated} of them sent again"));
    trial.expect(longest <= Duration::from_secs(5), format!("answers again after {} at most", seconds(longest)));
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_postgresql_loses_no_event() {
    const KILLS: usize = 100;
    let mut trial = Trial::begin(
        "kill-postgresql",
        format!("kill -9 of PostgreSQL under load, {KILLS} times"),
        "no event lost, none applied twice; answers again within 15 s; meanwhile 503",
    );
    let mut postgres = own_postgres(PostgresOptions { fsync: true, ..PostgresOptions::ephemeral() }).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    for board in [BOARD, probe::BOARD] {
        sqlx::raw_sql(board).execute(&pool).await.expect("a board");
    }
    let database = url.clone();
    let serve =
        tokio::task::spawn_blocking(move || Serve::spawn(&database, None, "kill", &[])).await.expect("a service");
    let (sender, probing) = (Arc::new(Sender::new(key(&url, "server"))), key(&url, "server"));
    let stop = CancellationToken::new();
    let callers = sender.spawn(CALLERS, &serve.at("/v1/boards/arena/scores"), &stop);
    let mut longest = Duration::ZERO;
    for kill in 0..KILLS {
        sender.wait_for_more([1, 100, 2_000][kill % 3]).await;
        let killed = Instant::now();
        tokio::task::block_in_place(|| postgres.kill_hard().and_then(|()| postgres.start_again()))
            .expect("PostgreSQL is back");
        longest = longest.max(until_recovered(&serve, &probing, killed).await);
    }
    stop.cancel();
    // Each caller ended normally; any status other than 200 and 503 would fail here.
    callers.join_all().await;
    sender.finish(&serve.at("/v1/boards/arena/scores")).await;
    let pool = PgPool::connect(&url).await.expect("a connection");
    sender.expect_all_once(&pool).await;
    audit::rankings_are_sound(&pool).await;
    let (acknowledged, repeated, unavailable) = sender.counts();
    trial.saw(format!(
        "{acknowledged} events acknowledged, each in the ledger once; {repeated} of them sent again; {unavailable} times 503"
    ));
    trial.expect(unavailable > 0, "no status other than 200 and 503");
    trial.expect(longest <= Duration::from_secs(15), format!("answers again after {} at most", seconds(longest)));
    trial.end();
}
