//! Tiers in live rankings.

use super::*;

/// Returns id and tier of rows.
fn tiers(rows: &Value) -> Vec<(&str, Option<&str>)> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| {
        assert!(row.as_object().unwrap().contains_key("tier"), "{row}");
        (row["user_id"].as_str().unwrap(), row["tier"].as_str())
    })
    .collect()
}

#[tokio::test]
async fn events_have_tiers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"tiers": ["gold: top 34 %", "silver: score 5"]}), &[("ada", 9), ("bob", 5), ("cyd", 1)]).await;
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?user_id=bob"), &[]).await;
    let started = stream.one("started").await;
    let all = [("ada", Some("gold")), ("bob", Some("silver")), ("cyd", None)];
    assert_eq!(tiers(&started["scores"]), all);
    let bob = &started["standings"][0];
    assert_eq!(tiers(&json!([bob])), all[1..2]);
    assert_eq!((tiers(&bob["above"]), tiers(&bob["below"])), (all[..1].to_vec(), all[2..].to_vec()));

    // The player is passed, and another one enters.
    post(&site, "cyd", 5).await;
    let passed = stream.one("overtaken").await;
    let shown = (&passed["overtaken"][0]["player"]["user_id"], &passed["overtaken"][0]["new_tier"]);
    assert_eq!(shown, (&json!("bob"), &json!("silver")), "{passed}");
    let changed = stream.one("changed").await;
    assert_eq!(tiers(&changed["scores"]), [("ada", Some("gold")), ("cyd", Some("silver")), ("bob", Some("silver"))]);

    // New tiers without a new score.
    let path = "/v1/boards/main";
    site.admin(Method::PATCH, path, json!({"tiers": ["first: rank 1", "last: rank 3"]})).await.is(200);
    let changed = stream.one("changed").await;
    assert_eq!(changed["version"], passed["version"]);
    assert_eq!(tiers(&changed["scores"]), [("ada", Some("first")), ("cyd", Some("last")), ("bob", Some("last"))]);
    assert_eq!(tiers(&changed["standings"]), [("bob", Some("last"))]);
    // None at all.
    site.admin(Method::PATCH, path, json!({"tiers": []})).await.is(200);
    assert!(!stream.one("changed").await.to_string().contains("tier"));
}
