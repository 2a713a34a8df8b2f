//! Erasure of a player: nothing in the database or in Redis identifies the player any more, and
//! every score remains.

use deadpool_redis::redis::cmd;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::raw_sql;

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, redis_connection, redis_url, run, wait::until_some},
};

pub const OLD_ID: &str = "ada-lovelace-1815";
pub const NAME: &str = "Ada King";
const AVATAR: &str = "https://example.com/countess.png";
const CLAN: &str = "Difference Engine";
pub const WEEK: &str = "week:2024-01-15";

/// Creates a board with a closed week in which the player is second of three, a webhook message
/// about the week, and some administrative acts.
pub async fn played(db: &TestDb, site: &Site) {
    played_on(db, site, json!({})).await;
}

/// Like [`played`], on a board with more rules.
pub async fn played_on(db: &TestDb, site: &Site, rules: Value) {
    site.board(rules, &[]).await;
    let profile = json!({"name": NAME, "avatar_url": AVATAR, "metadata": {"clan": CLAN}});
    site.admin(Method::PUT, &format!("/v1/users/{OLD_ID}"), profile).await.is(201);
    let files = Files::new();
    let lines =
        [("bob", 30), (OLD_ID, 20), ("cyd", 10)].map(|(user, points)| format!("{user},{points},2024-01-16T12:00:00Z"));
    let file = files.write("week.csv", format!("user_id,points,occurred_at\n{}\n", lines.join("\n")));
    import(db, &file, "main", &[]).well(3, 0);
    run(db, &["webhook", "set", "http://127.0.0.1:9/", "--board", "main"]).well();
    run(
        db,
        &[
            "correct",
            OLD_ID,
            "1",
            "--board",
            "main",
            "--at",
            "2024-01-16T13:00:00Z",
            "--reason",
            "forgotten",
            "--by",
            "dora",
        ],
    )
    .well();
    run(db, &["close", "--board", "main", "--period", WEEK]).well();
    site.admin(Method::POST, &format!("/v1/users/{OLD_ID}/ban"), Value::Null).await.is(200);
    site.admin(Method::POST, &format!("/v1/users/{OLD_ID}/unban"), Value::Null).await.is(200);
}

/// Returns those of the texts that occur anywhere in the data of the database, as text or as bytes.
pub fn found(db: &TestDb, output: &[&str]) -> Vec<String> {
    let dump = db.data_dump();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let here = |text: &&&str| dump.contains(**text) || dump.contains(&hex(text));
    output.iter().filter(here).map(|text| (*text).to_owned()).collect()
}

/// Returns rank, position and score of each player of the closed week, in order.
async fn week(site: &Site) -> Vec<Value> {
    let list = site.get(&format!("/v1/boards/main/scores?period={WEEK}")).await.is(200);
    list["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_erased_player_is_unidentifiable_and_keeps_every_score() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    played(&db, &site).await;
    let output = [OLD_ID, NAME, AVATAR, CLAN];
    assert_eq!(found(&db, &output), output, "the search must find the existing texts");
    let before = week(&site).await;
    let all_time = site.get(&format!("/v1/boards/main/scores/{OLD_ID}")).await.is(200);

    let mut redis = redis_connection(&redis_url().await).await;
    let key = format!("{}:main:closed_top:{WEEK}", db.redis_prefix());
    cmd("SET").arg(key).arg(NAME).exec_async(&mut redis).await.unwrap();
    let erased = site.admin(Method::DELETE, &format!("/v1/users/{OLD_ID}"), Value::Null).await.is(200);
    let new_id = erased["new_user_id"].as_str().unwrap();
    assert_eq!(found(&db, &output), Vec::<String>::new());
    // Both ids hash to the same lane, so that writers under the old id hold the new id's lane lock.
    let keeps_lane: bool = sqlx::query_scalar("SELECT centile.lane_hash($1) = centile.lane_hash($2)")
        .bind(OLD_ID)
        .bind(new_id)
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert!(keeps_lane, "{OLD_ID} and {new_id} hash to different lanes");
    let mut closed = cmd("KEYS");
    let closed: Vec<String> =
        closed.arg(format!("{}:*:closed_top:*", db.redis_prefix())).query_async(&mut redis).await.unwrap();
    for key in closed {
        let value: Vec<u8> = cmd("GET").arg(&key).query_async(&mut redis).await.unwrap();
        assert!(!String::from_utf8_lossy(&value).contains(NAME), "{key}");
    }

    // A top list may lag by 250 ms.
    let after = until_some("the erased player's new id", async || {
        let after = week(&site).await;
        assert!(after == before || after[1]["user_id"] == new_id, "{after:?}");
        (after != before).then_some(after)
    })
    .await;
    for (place, (was, is)) in before.iter().zip(&after).enumerate() {
        let wanted = if place == 1 {
            (json!(new_id), json!("(erased)"), Value::Null)
        } else {
            (was["user_id"].clone(), was["name"].clone(), was["avatar_url"].clone())
        };
        assert_eq!((is["user_id"].clone(), is["name"].clone(), is["avatar_url"].clone()), wanted);
        for member in ["position", "rank", "score", "reached_at"] {
            assert_eq!(is[member], was[member], "{member} of place {place}");
        }
    }
    let standing = site.get(&format!("/v1/boards/main/scores/{new_id}")).await.is(200);
    assert_eq!((&standing["score"], &standing["rank"]), (&all_time["score"], &all_time["rank"]));
    for path in [format!("/v1/users/{OLD_ID}"), format!("/v1/boards/main/scores/{OLD_ID}")] {
        site.get(&path).await.is(404);
    }
    run(&db, &["verify"]).well();

    // A later event with the old id belongs to a new player.
    site.post("/v1/boards/main/scores", json!({"user_id": OLD_ID, "points": 1})).await.is(200);
    assert_eq!(site.get(&format!("/v1/boards/main/scores/{OLD_ID}")).await.is(200)["score"], 1);
    assert_eq!(site.get(&format!("/v1/boards/main/scores/{new_id}")).await.is(200)["score"], all_time["score"]);

    // The erased player can still be managed. Erasing again changes nothing.
    assert_eq!(run(&db, &["user", "erase", new_id]).well().trim(), new_id);
    site.admin(Method::POST, &format!("/v1/users/{new_id}/ban"), Value::Null).await.is(200);
    site.get(&format!("/v1/boards/main/scores/{new_id}")).await.is(404);
    run(&db, &["verify"]).well();
    run(&db, &["user", "erase", "nobody"]).refused(1, &["nobody"]);
    let log: Vec<(String, String)> = sqlx::query_as(
        "SELECT action, subject FROM centile.audit_log WHERE action IN ('correct', 'erase') ORDER BY audit_id",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(log, ["correct", "erase"].map(|action| (action.to_owned(), new_id.to_owned())));
}

#[tokio::test]
async fn an_erasure_reaches_a_top_that_is_being_frozen() {
    let db = TestDb::new().await;
    db.execute(&format!(
        "SELECT centile.create_board('main', '{{\"periods\": [\"week\"]}}');
         SELECT centile.put_user('{OLD_ID}', '{NAME}');
         SELECT centile.ensure_ledger_months('2024-01-15', '2024-01-17');
         SELECT centile_store.open_periods(1, '{{2024-01-16 12:00Z}}');
         SELECT centile.correct_score('main', '{OLD_ID}', 20, '2024-01-16 12:00Z', 'first', 'dora');
         SELECT centile_store.cut_off_period(1);
         SELECT centile_store.build_archive(1);
         SELECT centile_store.compare_archive(1)"
    ))
    .await;
    // The close waits for the erasure before it freezes the top.
    let mut erasure = db.hold(&format!("SELECT centile.erase_user('{OLD_ID}')")).await;
    let closing = db.spawn("SELECT centile_store.finish_close(id, cut_off_at) FROM centile_store.periods WHERE id = 1");
    db.until_waiting(1, || closing.is_finished()).await;
    raw_sql("COMMIT").execute(&mut erasure).await.unwrap();
    closing.await.unwrap().unwrap();
    let state: String = sqlx::query_scalar("SELECT state FROM centile_store.periods WHERE id = 1")
        .fetch_one(&mut erasure)
        .await
        .unwrap();
    assert_eq!(state, "closed");
    assert_eq!(found(&db, &[OLD_ID, NAME]), Vec::<String>::new());
}
