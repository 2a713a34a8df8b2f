//! Requests with wrong cursors and parameters.

use reqwest::Method;
use serde_json::json;

use crate::{
    http::api::site::{Answer, Site},
    support::TestDb,
};

const PATH: &str = "/v1/boards/main/transactions";

async fn read(site: &Site, path: &str) -> Answer {
    let authorization = format!("Bearer {}", site.server_key);
    site.send(Method::GET, path, &[("authorization", &*authorization)], String::new()).await
}

/// Returns the cursor in the last line of a page.
async fn cursor(site: &Site, path: &str) -> String {
    let answer = read(site, path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let last: serde_json::Value = serde_json::from_str(answer.text.lines().last().unwrap()).unwrap();
    last["cursor"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn wrong_parameters_are_refused() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 1)]).await;
    site.board(json!({"slug": "other"}), &[("ann", 1)]).await;
    let other = cursor(&site, "/v1/boards/other/transactions").await;
    let own = cursor(&site, PATH).await;
    for (query, field) in [
        (format!("after={other}"), "after"),
        (format!("after={}", &own[1..]), "after"),
        ("after=".to_owned(), "after"),
        ("after=1042".to_owned(), "after"),
        ("limit=0".to_owned(), "limit"),
        ("limit=10001".to_owned(), "limit"),
        ("wait=31".to_owned(), "wait"),
        ("from=now".to_owned(), "from"),
    ] {
        let refused = read(&site, &format!("{PATH}?{query}")).await.is(422);
        assert_eq!((&refused["code"], &refused["field"]), (&json!("invalid_value"), &json!(field)), "{query}");
    }
    let unknown = read(&site, "/v1/boards/nowhere/transactions").await.is(404);
    assert_eq!(unknown["code"], "board_not_found");
    let sources = json!({"slug": "both", "mode": "combined", "combination": {"sources": [{"board": "main", "period": "all_time"}, {"board": "other", "period": "all_time"}]}});
    site.admin(Method::POST, "/v1/boards", sources).await.is(201);
    let combined = read(&site, "/v1/boards/both/transactions").await.is(409);
    assert_eq!(combined["code"], "board_combined");
    let same = read(&site, &format!("{PATH}?after={own}")).await;
    assert_eq!((same.status, same.text.lines().count()), (200, 1), "{same:?}");
}

#[tokio::test]
async fn a_cursor_from_before_a_restore_is_refused() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 1)]).await;
    let own = cursor(&site, PATH).await;
    let copy = TestDb::new().await;
    copy.execute("SELECT centile.create_board('main', '{\"lanes\": 4}')").await;
    drop(site);
    let other = Site::start(&copy, &[]).await;
    let refused = read(&other, &format!("{PATH}?after={own}")).await.is(409);
    assert_eq!(refused["code"], "cursor_outdated");
    assert!(refused["detail"].as_str().unwrap().contains("begin without a cursor"), "{refused}");
}

/// The number of lanes can change only while the ledger of the board is empty.
#[tokio::test]
async fn a_cursor_from_before_a_change_of_lanes_is_refused() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let own = cursor(&site, PATH).await;
    site.admin(Method::PATCH, "/v1/boards/main", json!({"lanes": 8})).await.is(200);
    let refused = read(&site, &format!("{PATH}?after={own}")).await.is(409);
    assert_eq!(refused["code"], "cursor_outdated");
}
