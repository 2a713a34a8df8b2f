//! Refreshes beside writers: the ranking is exact for the versions that its answers name.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::query_scalar;

use super::oracle::{Rules, Source, page, wanted};
use crate::{
    http::api::site::Site,
    support::{Ran, TestDb, amount, run, spawn},
};

/// Returns the last batch of a board of one lane at a version, which has a digest of it.
async fn batch_of(db: &TestDb, board: &str, version: &str) -> i64 {
    let last: i64 = query_scalar(
        "SELECT max(l.batch) FROM centile_store.board_lanes l JOIN centile_store.boards b ON b.id = l.board_id WHERE b.slug = $1",
    )
    .bind(board)
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    let wanted = version.rsplit('.').next().unwrap();
    let digest = |batch: &i64| {
        let digest = Sha256::digest(batch.to_string());
        format!("{:016x}", u64::from_be_bytes(digest[..8].try_into().unwrap()))
    };
    (0..=last).find(|batch| digest(batch) == wanted).expect("a batch with this digest")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_beside_writers_is_one_snapshot() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    for (slug, mode) in [("arena", "sum"), ("duels", "best")] {
        let rules = json!({"slug": slug, "mode": mode, "periods": ["all_time", "year"], "lanes": 1});
        site.board(rules, &[("p0", 1)]).await;
    }
    let rules = Rules {
        sources: vec![
            Source { board: "arena", period: "all_time", weight: 2 },
            Source { board: "duels", period: "all_time", weight: -1 },
            Source { board: "arena", period: "year", weight: 1 },
        ],
        join: "union",
        aggregate: "sum",
        ties: "first",
        order: "desc",
    };
    run(
        &db,
        &[
            "board",
            "combine",
            "hero",
            "--source",
            "arena@all_time*2",
            "--source",
            "duels@all_time*-1",
            "--source",
            "arena@year",
            "--ties",
            "first",
        ],
    )
    .well();
    let done = AtomicBool::new(false);
    let write = async |slug: &str, step: i64| {
        let mut n = 0;
        while !done.load(Ordering::Relaxed) {
            n += 1;
            let event =
                |k: i64| json!({"user_id": format!("p{}", (n * step + k) % 40), "points": (n * 31 + k * 7) % 100 - 20});
            let events: Value = (0..5).map(event).collect();
            site.post(&format!("/v1/boards/{slug}/scores"), events).await.is(200);
        }
        n
    };
    let refreshes = async {
        let (mut moved, mut before) = (0, String::new());
        for _ in 0..amount(6, 40) {
            let refresh = || run(&db, &["refresh", "--board", "hero"]).well();
            tokio::task::block_in_place(refresh);
            let (rows, combination) = page(&site, "hero").await;
            let version = |place: usize| combination["sources"][place]["version"].as_str().unwrap().to_owned();
            let (arena, duels) = (batch_of(&db, "arena", &version(0)).await, batch_of(&db, "duels", &version(1)).await);
            assert_eq!(batch_of(&db, "arena", &version(2)).await, arena, "one snapshot");
            let wanted = wanted(&db, &rules, |board| if board == "arena" { arena } else { duels }).await;
            assert_eq!(rows, wanted, "{combination}");
            moved += i32::from(version(0) != before);
            before = version(0);
        }
        done.store(true, Ordering::Relaxed);
        moved
    };
    let (arena, duels, moved) = tokio::join!(write("arena", 3), write("duels", 7), refreshes);
    assert!(arena > 5 && duels > 5 && moved > 1, "{arena} and {duels} batches, {moved} other versions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_score_between_versions_and_entries_is_in_neither() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let board = json!({"slug": "arena", "periods": ["all_time"], "lanes": 1});
    site.board(board, &[("ada", 5), ("bob", 7)]).await;
    run(&db, &["board", "combine", "hero", "--source", "arena@all_time"]).well();
    // The refresh has resolved its source, and waits for the number of its view.
    let session = db.hold("ALTER SEQUENCE centile_store.combined_view_number INCREMENT BY 1").await;
    let refresh = spawn(db.url(), &["refresh", "--board", "hero"]);
    db.until_waiting(1, || false).await;
    site.post("/v1/boards/arena/scores", json!({"user_id": "ada", "points": 100})).await.is(200);
    drop(session);
    let printed = tokio::task::spawn_blocking(|| Ran::from(refresh.wait_with_output().unwrap())).await.unwrap().well();
    assert!(printed.contains("revision 2, 2 players"), "{printed}");
    let (rows, combination) = page(&site, "hero").await;
    let last = batch_of(&db, "arena", combination["sources"][0]["version"].as_str().unwrap()).await;
    let rules = Rules {
        sources: vec![Source { board: "arena", period: "all_time", weight: 1 }],
        join: "union",
        aggregate: "sum",
        ties: "shared",
        order: "desc",
    };
    assert_eq!(rows, wanted(&db, &rules, |_| last).await);
    assert_eq!(rows[0].score, 7);
}
