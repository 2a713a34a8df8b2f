//! A writer that stops in the middle of a batch: its lane is blocked until PostgreSQL ends its
//! session, and the second instance continues.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    report::{Trial, seconds},
    support::{Serve, TestDb, audit, load::key, sender::Sender, spawn_serve},
};

/// Number of stops that must leave a batch open.
const WANTED: usize = 20;
const STOPS_MAX: usize = 400;
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Additional time for PostgreSQL to end the session, and for the next batch.
const MARGIN: Duration = Duration::from_secs(1);

/// Sends a signal to a service.
fn signal(name: &str, serve: &Serve) {
    let status = Command::new("kill").args([name, &serve.id().to_string()]).status().expect("kill");
    assert!(status.success(), "kill {name}");
}

/// Returns the number of the lane's last batch.
async fn last_batch(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT max(batch) FROM centile_store.board_lanes").fetch_one(pool).await.expect("a batch")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_that_stops_within_a_batch_blocks_its_lane_briefly() {
    let mut trial = Trial::begin(
        "stopped-writer",
        format!("kill -STOP of one of two instances that write to one lane, until {WANTED} had a batch open"),
        "the other one writes again within the statement timeout (2 s) and a second; no event lost or repeated",
    );
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 1}')").await;
    let flags = ["--statement-timeout", "2"];
    let stopped = spawn_serve(&db, None, &flags).await;
    let other = spawn_serve(&db, None, &flags).await;
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    let pool = db.pool().await;
    let (mut open, mut longest) = (0, Duration::ZERO);
    let end = CancellationToken::new();
    let mut callers = sender.spawn(8, &stopped.at("/v1/boards/arena/scores"), &end);
    let more = sender.spawn(8, &other.at("/v1/boards/arena/scores"), &end);
    for _ in 0..STOPS_MAX {
        sender.wait_for_more(10).await;
        signal("-STOP", &stopped);
        let begun = Instant::now();
        // Counts sessions that hold the lane's row while they wait for their client.
        let blocking: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity a
             JOIN pg_locks l ON l.pid = a.pid AND l.relation = 'centile_store.board_lanes'::regclass AND l.mode = 'RowShareLock'
             WHERE a.state = 'idle in transaction' AND a.datname = current_database()",
        )
        .fetch_one(&pool)
        .await
        .expect("the blocking sessions");
        if blocking > 0 {
            // The first batch after the stop may be one whose commit was in progress.
            let wanted = last_batch(&pool).await + 2;
            while last_batch(&pool).await < wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            // The open batch may have been the other instance's.
            if begun.elapsed() > Duration::from_millis(500) {
                open += 1;
                longest = longest.max(begun.elapsed());
            }
        }
        signal("-CONT", &stopped);
        if open == WANTED {
            break;
        }
    }
    end.cancel();
    callers.shutdown().await;
    more.join_all().await;
    sender.finish(&other.at("/v1/boards/arena/scores")).await;
    sender.expect_all_once(&pool).await;
    audit::rankings_are_sound(&pool).await;
    let (acknowledged, repeated, _) = sender.counts();
    trial.saw(format!("{acknowledged} events acknowledged, each in the ledger once; {repeated} of them sent again"));
    trial.expect(open == WANTED, format!("{open} stops left a batch open"));
    trial.expect(
        longest <= STATEMENT_TIMEOUT + MARGIN,
        format!("the other instance wrote again after {} at most", seconds(longest)),
    );
    trial.end();
}
