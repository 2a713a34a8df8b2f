//! Bans and unbans go board by board. These tests cover events in between.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_as, raw_sql};
use tokio::task::JoinHandle;

use crate::{
    http::api::site::{Answer, Site},
    http::errors::refused,
    support::TestDb,
};

/// Creates a player with scores on three boards.
async fn played(db: &TestDb) -> Arc<Site> {
    let site = Site::start(db, &[]).await;
    for slug in ["a", "b", "c"] {
        site.board(json!({"slug": slug, "lanes": 1}), &[("ada", 5), ("bob", 4)]).await;
    }
    Arc::new(site)
}

/// Starts an administrator's call in the background.
fn begin(site: &Arc<Site>, what: &str) -> JoinHandle<Answer> {
    let (site, path) = (Arc::clone(site), format!("/v1/users/ada/{what}"));
    tokio::spawn(async move { site.admin(Method::POST, &path, Value::Null).await })
}

/// Stops bans and unbans at this board.
async fn hold(db: &TestDb, board: &str) -> sqlx::PgConnection {
    db.hold(&format!("SELECT FROM centile_store.board_lanes l JOIN centile_store.boards b ON b.id = l.board_id WHERE b.slug = '{board}' FOR UPDATE OF l")).await
}

/// Returns whether the player with the best score of board a is marked as banned, and the boards
/// whose rankings lack the player.
async fn state(db: &TestDb) -> (bool, Vec<String>) {
    query_as(
        "SELECT u.banned_at IS NOT NULL, ARRAY(
             SELECT b.slug::text FROM centile_store.boards b
             WHERE NOT EXISTS (SELECT FROM centile.standings s WHERE s.board = b.slug AND s.kind = 'all_time' AND s.user_id = u.external_id)
             ORDER BY b.slug)
         FROM centile_store.users u WHERE u.id = 1",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_erased_during_a_ban_is_banned_everywhere() {
    let db = TestDb::new().await;
    let site = played(&db).await;
    let mut second = hold(&db, "b").await;
    let ban = begin(&site, "ban");
    db.until_waiting(1, || ban.is_finished()).await;
    let erased = site.admin(Method::DELETE, "/v1/users/ada", Value::Null).await.is(200);
    raw_sql("COMMIT").execute(&mut second).await.unwrap();
    let banned = ban.await.unwrap().is(200);
    assert_eq!((&banned["user_id"], &banned["banned"]), (&erased["new_user_id"], &json!(true)));
    assert_eq!(state(&db).await, (true, ["a", "b", "c"].map(str::to_owned).to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_later_of_a_concurrent_ban_and_unban_counts() {
    let db = TestDb::new().await;
    let site = played(&db).await;
    for (first, later, wanted) in [("unban", "ban", (true, vec!["a", "b", "c"])), ("ban", "unban", (false, vec![]))] {
        site.admin(Method::POST, &format!("/v1/users/ada/{later}"), Value::Null).await.is(200);
        // The first call has finished board a and waits at b. The second waits at a.
        let mut second = hold(&db, "b").await;
        let overtaken = begin(&site, first);
        db.until_waiting(1, || overtaken.is_finished()).await;
        let mut at_begin = hold(&db, "a").await;
        let counts = begin(&site, later);
        db.until_waiting(2, || counts.is_finished()).await;
        raw_sql("COMMIT").execute(&mut second).await.unwrap();
        let overtaken = overtaken.await.unwrap();
        raw_sql("COMMIT").execute(&mut at_begin).await.unwrap();
        assert_eq!(counts.await.unwrap().is(200)["banned"], later == "ban");
        let (marked, lacking) = state(&db).await;
        assert_eq!((marked, lacking.iter().map(String::as_str).collect()), wanted, "{later} after {first}");
        refused(&overtaken, 409, "", "a later one has begun");
    }
    a_failing_board_is_named_and_delays_no_other(&db, &site).await;
}

async fn a_failing_board_is_named_and_delays_no_other(db: &TestDb, site: &Site) {
    for (act, begun, wanted) in [
        ("ban", (true, &["a", "c"][..]), (true, &["a", "b", "c"][..])),
        ("unban", (true, &["b"][..]), (false, &[][..])),
    ] {
        // The row of its lane is missing.
        db.execute(
            "CREATE TABLE lost AS SELECT l.* FROM centile_store.board_lanes l JOIN centile_store.boards b ON b.id = l.board_id WHERE b.slug = 'b';
             DELETE FROM centile_store.board_lanes l USING lost WHERE l.board_id = lost.board_id",
        )
        .await;
        let path = format!("/v1/users/ada/{act}");
        let failed = site.admin(Method::POST, &path, Value::Null).await.is(503);
        let detail = failed["detail"].as_str().unwrap();
        assert!(detail.ends_with("; run it again to finish the boards b"), "{failed}");
        let (marked, lacking) = state(db).await;
        assert_eq!(
            (marked, lacking.iter().map(String::as_str).collect::<Vec<_>>()),
            (begun.0, begun.1.to_vec()),
            "{act}"
        );
        db.execute("INSERT INTO centile_store.board_lanes SELECT * FROM lost; DROP TABLE lost").await;
        site.admin(Method::POST, &path, Value::Null).await.is(200);
        let (marked, lacking) = state(db).await;
        assert_eq!(
            (marked, lacking.iter().map(String::as_str).collect::<Vec<_>>()),
            (wanted.0, wanted.1.to_vec()),
            "{act}"
        );
    }
}
