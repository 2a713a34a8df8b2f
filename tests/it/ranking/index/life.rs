//! The database changes to another epoch or state under a running instance, which must not answer
//! from the old one.

use reqwest::Method;
use serde_json::json;

use super::{INDEXED, Sums, from_index, source};
use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, amount, load::PATIENT, make_key, redis_url, spawn_serve, wait::until_some},
};

/// Returns the answer once the instance has reconnected.
async fn answered(site: &Site, path: &str) -> Answer {
    until_some("the instance finds the database", async || {
        let answer = site.get(path).await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

async fn score(db: &TestDb, sums: &mut Sums, user: &str, points: i64) {
    db.execute(&format!("SELECT testing.submit_score('main', '{user}', {points})")).await;
    sums.add(user, points);
}

/// Checks the first answers, and the index's answers once it is loaded.
async fn shows(site: &Site, sums: &Sums) {
    for user in sums.0.keys() {
        let path = format!("/v1/boards/main/scores/{user}?around=1");
        let first = answered(site, &path).await.is(200);
        for output in [first, from_index(site, &path).await] {
            assert_eq!(
                (&output["score"], &output["rank"]),
                (&json!(sums.0[user]), &json!(sums.rank(user))),
                "{output}"
            );
            assert_eq!((&output["players"], &output["name"]), (&json!(sums.0.len()), &json!(user)), "{output}");
        }
    }
    for user in ["lost", "swapped"].iter().filter(|user| !sums.0.contains_key(**user)) {
        assert_eq!(answered(site, &format!("/v1/boards/main/scores/{user}")).await.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_to_another_epoch_is_answered_at_once() {
    let db = TestDb::new().await;
    // With one lane each score is a batch, and batch numbers repeat.
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1, \"periods\": [\"all_time\"]}')").await;
    db.execute("SELECT centile.create_board('beside', '{\"lanes\": 1, \"periods\": [\"all_time\"]}')").await;
    let mut sums = Sums::default();
    for n in 0..20 {
        score(&db, &mut sums, &format!("p{n}"), n * 5 % 13).await;
        db.execute(&format!("SELECT testing.submit_score('beside', 'p{n}', 1)")).await;
    }
    for round in 0..amount(2, 20) {
        let copy = db.copy().await;
        let serve = spawn_serve(&db, Some(&redis_url().await), &[&INDEXED[..], PATIENT].concat()).await;
        let site = Site::of(serve, db.url());
        shows(&site, &sums).await;
        from_index(&site, "/v1/boards/beside/distribution").await;
        // The index knows scores, a new player and a name that the restore loses.
        let mut lost = sums.clone();
        for (user, points) in [("p1", 50), ("lost", 7), ("p2", 3)] {
            score(&db, &mut lost, user, points).await;
        }
        shows(&site, &lost).await;
        // The same number of batches with other players: only the epoch differs. Internal ids of
        // new players repeat, too.
        for (user, points) in [("p3", 60), (if round == 0 { "swapped" } else { "p4" }, 9), ("p5", 4)] {
            score(&copy, &mut sums, user, points).await;
        }
        if round % 2 == 1 {
            score(&copy, &mut sums, "p6", 1).await;
        }
        db.exchange(&copy).await;
        shows(&site, &sums).await;
        let beside = answered(&site, "/v1/boards/beside/scores?from=2&limit=1000").await;
        assert_eq!(
            (beside.status, &beside.body["players"]),
            (200, &json!(20)),
            "{} {:?}",
            source(&beside),
            beside.body
        );
        // Writes work on the restored data.
        score(&db, &mut sums, "p7", 11).await;
        shows(&site, &sums).await;
        // The restored data lack the keys from before the restore.
        let key = make_key(db.url(), "server", &[]);
        let event = json!({"user_id": "p8", "points": 2}).to_string();
        site.json(Method::POST, "/v1/boards/main/scores", &key, event).await.is(200);
        sums.add("p8", 2);
        shows(&site, &sums).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_in_place_is_answered_at_once() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 2, \"periods\": [\"all_time\"]}')").await;
    let mut sums = Sums::default();
    for n in 0..20 {
        score(&db, &mut sums, &format!("p{n}"), n * 5 % 13).await;
    }
    let dump = db.pg_dump(&["--data-only", "--inserts", "--schema=centile_store"]);
    let inserts: Vec<&str> = dump.lines().filter(|line| !line.starts_with('\\')).collect();
    let serve = spawn_serve(&db, None, &[&INDEXED[..], PATIENT].concat()).await;
    let site = Site::of(serve, db.url());
    shows(&site, &sums).await;
    let mut lost = sums.clone();
    for n in 0..10 {
        score(&db, &mut lost, &format!("p{n}"), 100 - n).await;
    }
    shows(&site, &lost).await;
    // The epoch stays, because the database is the same. The batch numbers go back.
    let tables: String = sqlx::query_scalar(
        "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
         WHERE relnamespace = 'centile_store'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    let restore = format!(
        "BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE {tables}; {}; COMMIT",
        inserts.join("\n")
    );
    db.execute(&restore).await;
    shows(&site, &sums).await;
    score(&db, &mut sums, "p7", 11).await;
    shows(&site, &sums).await;
}
