//! `verify` and `rebuild` while scores arrive.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::support::{
    PATIENT, Serve, amount,
    load::{Load, key},
    run_at, spawn_serve, verdict,
    wait::until,
};

/// Runs a command without blocking the rest of the test.
async fn beside(db: &TestDb, arguments: &'static [&'static str]) -> Ran {
    let url = db.url().to_owned();
    tokio::task::spawn_blocking(move || run_at(&url, arguments)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a load of half a minute: make torture"]
async fn verify_finds_no_difference_while_the_service_writes() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.create_board('first', '{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 2}')",
    )
    .await;
    let serve = spawn_serve(&db, None, &[&PATIENT[..], &["--maintenance-every", "1"]].concat()).await;
    let mut load = Load::new(vec![serve.url.clone()], &["shared", "first"], key(db.url(), "admin"));
    load.players = amount(300, 3_000);
    let load = Arc::new(load);
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let (running, stopped) = (Arc::clone(&load), stop.clone());
    let writing = tokio::spawn(async move { running.run(&stopped).await });
    let pool = db.pool().await;
    let mut connection = pool.acquire().await.unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let rankings: Vec<i64> =
        sqlx::query_scalar("SELECT ranking_id FROM centile.periods").fetch_all(&pool).await.unwrap();
    for round in 0..amount(3, 6) {
        let verify: &[&str] = if round % 3 == 2 { &["verify", "--counts"] } else { &["verify"] };
        // Layouts change meanwhile.
        let scatter = async {
            for &ranking in &rankings {
                layout::scatter(&mut connection, ranking, &mut random, layout::MANY).await;
            }
        };
        let (output, ()) = tokio::join!(beside(&db, verify), scatter);
        let output = output.well();
        assert_eq!(output.lines().filter(|line| line.ends_with("  ok")).count(), 4, "{output}");
    }
    stop.cancel();
    record.join(writing.await.unwrap());
    verdict::of(&pool, &load, &record).await.expect_right("while periods were compared");
}

/// State that a writer and the test share.
#[derive(Debug, Default)]
struct Writing {
    is_mended: AtomicBool,
    /// Number of accepted scores.
    taken: AtomicI64,
    stop: CancellationToken,
}

/// Sends scores of one point for random players until `stop`. The service may fail until the
/// ranking is repaired.
async fn score(serve: Serve, key: String, writing: Arc<Writing>) -> Serve {
    for n in 0.. {
        if writing.stop.is_cancelled() {
            break;
        }
        let event = json!({"user_id": format!("p{:03}", n * 37 % 320 + 1), "points": 1});
        let was_mended = writing.is_mended.load(Ordering::SeqCst);
        let request = serve.client.post(serve.at("/v1/boards/arena/scores")).bearer_auth(&key).json(&event);
        let status = request.send().await.unwrap().status().as_u16();
        // Scores of a banned player are refused.
        assert!(status == 200 || status == 409 || status == 500 && !was_mended, "{status} to {event}");
        writing.taken.fetch_add(i64::from(status == 200), Ordering::SeqCst);
    }
    serve
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_repaired_while_scores_arrive() {
    let db = with_past().await;
    let pool = db.pool().await;
    let key = key(db.url(), "server");
    let mut serve = spawn_serve(&db, None, &PATIENT).await;
    for statement in [
        "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND user_key % 3 = 0",
        "UPDATE bucket_counts SET counts[31] = counts[31] + 5, counts[80] = 70 WHERE ranking_id = $r",
        "DELETE FROM leaderboard WHERE ranking_id = $r AND user_id % 5 = 0;
         UPDATE leaderboard SET score = score * 2, rank_key = rank_key * 2 WHERE ranking_id = $r AND user_id % 5 = 1",
        // Exchanges the tables of two buckets.
        "UPDATE rankings g
         SET buckets = ARRAY(SELECT CASE u.bucket WHEN x.one THEN x.other WHEN x.other THEN x.one ELSE u.bucket END
                             FROM unnest(g.buckets) WITH ORDINALITY AS u (bucket, place) ORDER BY u.place)
         FROM (SELECT min(y.bucket) AS one, max(y.bucket) AS other
               FROM (SELECT u.bucket FROM rankings r, unnest(r.buckets, bucket_totals(r.id)) AS u (bucket, players)
                     WHERE r.id = $r AND u.players > 0 ORDER BY u.players LIMIT 2) y) x
         WHERE g.id = $r",
        // Raises the bounds.
        "UPDATE rankings
         SET low_rank_keys = ARRAY(SELECT CASE WHEN u.key BETWEEN -1000000 AND 1000000 THEN u.key + 1 ELSE u.key END
                                   FROM unnest(low_rank_keys) WITH ORDINALITY AS u (key, place) ORDER BY u.place)
         WHERE id = $r",
    ] {
        scatter(&pool).await;
        damage(&db, &pool, statement).await;
        let before: i64 =
            sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await.unwrap();
        let writing = Arc::new(Writing::default());
        let writer = tokio::spawn(score(serve, key.clone(), Arc::clone(&writing)));
        let taken = || writing.taken.load(Ordering::SeqCst);
        until("scores arrive", async || writer.is_finished() || taken() > 0).await;
        assert_eq!(beside(&db, &["verify"]).await.code, Some(1), "{statement}");
        beside(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).await.well();
        writing.is_mended.store(true, Ordering::SeqCst);
        let then = taken();
        until("scores arrive afterwards", async || writer.is_finished() || taken() > then + 20).await;
        writing.stop.cancel();
        serve = writer.await.unwrap();
        let after: i64 =
            sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await.unwrap();
        assert_eq!(after - before, taken(), "what was acknowledged is in the ledger: {statement}");
        ranks_are_right(&pool, "all_time").await;
        beside(&db, &["verify"]).await.well();
        // Over HTTP, from an instance that had read the old ranking.
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
