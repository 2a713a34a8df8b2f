//! Tops that instances share through Redis.

use serde_json::json;

use crate::{
    http::api::site::Site,
    support::{TestDb, wait::until},
};

/// Starts two instances, because an instance reads its own tops from memory.
#[tokio::test]
async fn an_instance_serves_the_top_that_another_one_cached() {
    let db = TestDb::new().await;
    let flags = ["--index-memory", "0", "--no-maintenance"];
    let (first, second) = (Site::start(&db, &flags).await, Site::start(&db, &flags).await);
    first.board(json!({"ties": "shared"}), &[("ann", 5), ("bob", 5), ("fay", 7)]).await;
    let top = "/v1/boards/main/scores?limit=2&period=week";
    // An instance shares a top after it has answered.
    until("the second instance reads a shared top", async || {
        first.post("/v1/boards/main/scores", json!({"user_id": "fay", "points": 1})).await.is(200);
        let (cached, served) = (first.get(top).await, second.get(top).await);
        assert_eq!(cached.status, 200);
        let is_same = (&cached.text, &cached.headers["etag"]) == (&served.text, &served.headers["etag"]);
        is_same && second.serve.metric("centile_reads_total{kind=\"top\",from=\"shared\"}").await >= 1.0
    })
    .await;
    first.post("/v1/boards/main/scores", json!({"user_id": "bob", "points": 1_000})).await.is(200);
    let changed = first.get(top).await;
    assert_eq!(changed.body["data"][0]["user_id"], "bob");
    // Another instance's scores may be missing for 250 ms.
    until("the other instance has the new top", async || second.get(top).await.text == changed.text).await;
}
