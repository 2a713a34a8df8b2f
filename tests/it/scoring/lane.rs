//! Two writers of one lane, as in two instances: no event is lost, repeated or starved.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use centile::tested::{Batches, Event};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::{
    http::api::site::Site,
    support::{TestDb, audit, wait::until},
};

const USERS: [&str; 5] = ["ann", "bob", "cyd", "dan", "eve"];

/// Writes a batch of `size` events with unique ids; all must be accepted.
async fn write(batches: &Batches, writer: &str, number: usize, size: usize) {
    let events: Vec<Event> = (0..size)
        .map(|n| Event {
            user_id: USERS[n % USERS.len()].parse().unwrap(),
            points: 1,
            tiebreak: None,
            reason: None,
            id: Some(format!("{writer}-{number}-{n}")),
            occurred_at: None,
            metadata: None,
        })
        .collect();
    let (_, answers) = batches.write(1, 0, false, &events).await.unwrap();
    assert!(answers.iter().all(|(outcome, repeated, _)| *outcome == "accepted" && !repeated), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_is_not_starved_by_small_ones() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1, \"periods\": [\"all_time\", \"day\"]}')").await;
    let (large, small) = (Batches::new(db.url()).unwrap(), Batches::new(db.url()).unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    let small = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                write(&small, "small", number, 1).await;
                number += 1;
            }
            number
        }
    });
    for number in 0..10 {
        write(&large, "large", number, 300).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let written = i64::try_from(3_000 + small.await.unwrap()).unwrap();
    let pool = db.pool().await;
    let found: (i64, i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM centile_store.score_transactions), (SELECT count(*) FROM centile_store.transaction_ids),
                (SELECT sum(score)::bigint FROM centile_store.leaderboard l JOIN centile_store.periods p ON p.ranking_id = l.ranking_id
                 WHERE p.kind = 'all_time'),
                (SELECT max(batch) - count(DISTINCT batch) FROM centile_store.score_transactions)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(found, (written, written, written, 0), "events, ids, points, and batches without events");
    assert!(audit::rankings_are_sound(&pool).await > 0);
}

/// The event of a player with a damaged entry is refused, and the others cost few further batches.
#[tokio::test]
async fn a_damaged_entry_affects_no_other_event() {
    const EVENTS: usize = 64;
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"lanes": 1}), &[]).await;
    let path = "/v1/boards/main/scores";
    let events: Vec<_> = (0..=EVENTS).map(|n| json!({"user_id": format!("p{n}"), "points": 1})).collect();
    site.post(path, json!(events)).await.is(200);
    db.execute(
        "SELECT testing.allow_damage();
         UPDATE centile_store.leaderboard SET lane = 1
         WHERE user_id = (SELECT id FROM centile_store.users WHERE external_id = 'p21')",
    )
    .await;
    let batches = async || site.serve.metric("centile_batch_events_count").await;
    let before = batches().await;
    let held = db.hold("SELECT FROM centile_store.board_lanes FOR UPDATE").await;
    let site = &site;
    let write = |n: usize| async move { site.post(path, &json!({"user_id": format!("p{n}"), "points": 1})).await };
    // The first batch waits for the lane, and the second one takes all others.
    let release = async {
        until("all events wait", async || site.serve.metric("centile_queue_events").await > EVENTS as f64).await;
        drop(held);
    };
    let (answers, ()) = tokio::join!(join_all((0..=EVENTS).map(write)), release);
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, if n == 21 { 500 } else { 200 }, "p{n}: {answer:?}");
    }
    let more = batches().await - before;
    assert!(more <= 12.0, "{more} batches");
}

/// A changed rule applies to the next batch, although writers use rules again.
#[tokio::test]
async fn a_changed_rule_counts_at_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"lanes": 1, "points_max": 100}), &[]).await;
    let write = async |points: i64| {
        site.post("/v1/boards/main/scores", &json!({"user_id": "ann", "points": points})).await.status
    };
    assert_eq!((write(50).await, write(500).await), (200, 422));
    for (points_max, status) in [(1_000, 200), (100, 422), (1_000, 200)] {
        site.admin(Method::PATCH, "/v1/boards/main", json!({"points_max": points_max})).await.is(200);
        assert_eq!(write(500).await, status, "a maximum of {points_max}");
    }
}

/// A pooler may send the two calls of a batch to two servers. After a failover, the same batch
/// number may stand for other events.
#[tokio::test]
async fn a_batch_begun_on_another_server_is_not_written() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1}')").await;
    let pool = db.pool().await;
    let commit = async |other: &str| -> Option<i64> {
        let commit = format!(
            "SELECT c.batch FROM centile_store.begin_batch(1, 0::smallint, '{{}}', '{{}}', '{{}}', '{{}}', NULL, NULL) b,
                 centile_store.commit_batch(1, 0::smallint, (b.board).structure_revision, b.batch, b.server_started_at + interval '{other}',
                     b.at, NULL, '{{}}', '{{}}', ({entries}), NULL, '{{}}', '{{}}', '{{}}') c",
            entries = ["'{}'"; 6].join(", "),
        );
        sqlx::query_scalar(sqlx::AssertSqlSafe(commit)).fetch_one(&pool).await.unwrap()
    };
    assert_eq!(commit("1 second").await, None);
    assert_eq!(commit("0").await, Some(1));
}
