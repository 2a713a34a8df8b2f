//! While scores arrive.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::support::{
    Serve,
    load::{Load, key},
    run_at, spawn_serve, verdict,
};

/// Runs a command without holding up what the test does besides.
async fn beside(db: &TestDb, arguments: &'static [&'static str]) -> Ran {
    let url = db.url().to_owned();
    tokio::task::spawn_blocking(move || run_at(&url, arguments)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_well_while_the_service_writes() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint);
         SELECT centile.create_board('first', p_mode => 'latest', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 2::smallint);
         UPDATE centile_store.boards SET stripe_target = 10, balance_from = 0",
    )
    .await;
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    let load = Arc::new(Load::new(vec![serve.url.clone()], &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let (running, until) = (Arc::clone(&load), stop.clone());
    let writing = tokio::spawn(async move { running.run(&until).await });
    for round in 0..6 {
        let told = beside(&db, if round % 3 == 2 { &["verify", "--counts"] } else { &["verify"] }).await.well();
        assert_eq!(told.lines().filter(|line| line.ends_with("  ok")).count(), 4, "{told}");
    }
    stop.cancel();
    record.join(writing.await.unwrap());
    verdict::of(&db.pool().await, &load, &record).await.expect_right("while periods were compared");
}

/// Sends scores of one point to random players, until told to stop; gives how many were taken. Before `is_mended` the service may
/// fail.
async fn score(serve: Serve, key: String, is_mended: Arc<AtomicBool>, stop: CancellationToken) -> (Serve, i64) {
    let mut taken = 0;
    for n in 0.. {
        if stop.is_cancelled() {
            break;
        }
        let event = json!({"user_id": format!("p{:03}", n * 37 % 320 + 1), "points": 1});
        let was_mended = is_mended.load(Ordering::SeqCst);
        let request = serve.client.post(serve.at("/v1/boards/arena/scores")).bearer_auth(&key).json(&event);
        let status = request.send().await.unwrap().status().as_u16();
        // A player who is banned is refused.
        assert!(status == 200 || status == 403 || status == 500 && !was_mended, "{status} to {event}");
        taken += i64::from(status == 200);
    }
    (serve, taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_mended_while_scores_arrive() {
    let db = with_past().await;
    let pool = db.pool().await;
    let key = key(db.url(), "server");
    let mut serve = spawn_serve(&db, None, &[]).await;
    for statement in [
        "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND user_key % 3 = 0",
        "UPDATE stripe_counts SET counts[1] = counts[1] + 5 WHERE ranking_id = $r;
         UPDATE bucket_counts SET counts[80] = 70 WHERE ranking_id = $r",
        "DELETE FROM leaderboard WHERE ranking_id = $r AND user_id % 5 = 0;
         UPDATE leaderboard SET score = score * 2, rank_key = rank_key * 2 WHERE ranking_id = $r AND user_id % 5 = 1",
        "DELETE FROM stripes WHERE ranking_id = $r",
    ] {
        damage(&db, &pool, statement).await;
        let before: i64 =
            sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await.unwrap();
        let (is_mended, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let writer = tokio::spawn(score(serve, key.clone(), Arc::clone(&is_mended), stop.clone()));
        // Until the first are in.
        let count = "SELECT count(*) FROM centile_store.score_transactions";
        while sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(beside(&db, &["verify"]).await.code, Some(1), "{statement}");
        beside(&db, &["rebuild", "--board", "arena", "--all", "--by", "dora"]).await.well();
        is_mended.store(true, Ordering::SeqCst);
        beside(&db, &["verify"]).await.well();
        stop.cancel();
        let taken;
        (serve, taken) = writer.await.unwrap();
        let after: i64 =
            sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await.unwrap();
        assert_eq!(after - before, taken, "what was acknowledged is in the ledger: {statement}");
        assert!(taken > 20, "scores did arrive");
        ranks_are_right(&pool, "all_time").await;
        beside(&db, &["verify"]).await.well();
        // Over HTTP, by whoever had read the old ranking.
        let (user, rank): (String, i64) =
            sqlx::query_as("SELECT user_id, rank FROM centile.ranking('arena') WHERE position = 150")
                .fetch_one(&pool)
                .await
                .unwrap();
        let request = serve.client.get(serve.at(&format!("/v1/boards/arena/scores/{user}"))).send().await.unwrap();
        let standing: serde_json::Value = request.json().await.unwrap();
        assert_eq!(standing["rank"], rank, "{statement}: {standing}");
    }
}
