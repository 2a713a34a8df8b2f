//! All lists are paged alike.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::site::Site;
use crate::support::TestDb;

/// Reads a list whole and in pages of two, and returns it. Fails unless both are the same.
async fn list(site: &Site, path: &str, length: usize) -> Vec<Value> {
    let mark = if path.contains('?') { '&' } else { '?' };
    let read = async |query: &str| site.admin(Method::GET, &format!("{path}{mark}{query}"), Value::Null).await.is(200);
    let whole = read("limit=1000").await;
    assert_eq!(whole["next_cursor"], Value::Null, "{path}");
    let rows = whole["data"].as_array().unwrap_or_else(|| panic!("{path}: {whole}")).clone();
    assert_eq!(rows.len(), length, "{path}: {whole}");
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = read(&format!("limit=2{cursor}")).await;
        let part = page["data"].as_array().unwrap().clone();
        assert!(part.len() <= 2, "{path}: {page}");
        walked.extend(part);
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(walked, rows, "{path} in pages");
    rows
}

#[tokio::test]
async fn every_list_is_paged_alike() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let rules = json!({"points_max": 10, "on_violation": "quarantine"});
    site.board(rules, &[("ada", 3), ("bob", 5), ("ada", 1), ("cyd", 4), ("ada", 2), ("dan", 1)]).await;
    for slug in ["a", "b", "z", "y"] {
        site.board(json!({"slug": slug}), &[]).await;
    }
    for points in 11..16 {
        site.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": points})).await.is(202);
    }
    for name in ["x", "y"] {
        let key = json!({"name": name, "role": "reader", "all_boards": true});
        site.admin(Method::POST, "/v1/keys", key).await.is(201);
    }
    for day in 1..4 {
        let season =
            json!({"name": format!("s{day}"), "starts_at": format!("2040-01-0{day}"), "ends_at": "2040-02-01"});
        site.admin(Method::POST, "/v1/boards/main/seasons", season).await.is(201);
    }

    let boards = list(&site, "/v1/boards", 5).await;
    assert_eq!(
        boards.iter().map(|board| board["slug"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a", "b", "main", "y", "z"]
    );
    list(&site, "/v1/keys", 4).await;
    list(&site, "/v1/boards/main/quarantine", 5).await;
    list(&site, "/v1/boards/main/scores", 4).await;
    list(&site, "/v1/boards/main/scores/ada/history", 3).await;
    let seasons = list(&site, "/v1/boards/main/periods?kind=season", 3).await;
    assert_eq!(seasons[0]["name"], "season:s3", "the newest comes first");
    // A new month or week may begin during the test.
    let periods = site.get("/v1/boards/main/periods").await.is(200)["data"].as_array().unwrap().clone();
    let names: HashSet<&str> = periods.iter().map(|period| period["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), periods.len(), "{periods:?}");
    assert!(periods.len() >= 7 && names.contains("all_time"), "{periods:?}");
    list(&site, "/v1/boards/main/periods", periods.len()).await;
}
