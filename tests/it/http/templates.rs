//! Templates: boards that their first score creates.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{http::api::site::Site, support::TestDb};

/// Ranks by user id, as the answer to a page of a board shows them.
async fn ranks(site: &Site, path: &str) -> Vec<(String, i64)> {
    let page = site.get(path).await.is(200);
    page["data"].as_array().unwrap().iter().map(|row| (row["user_id"].as_str().unwrap().to_owned(), row["rank"].as_i64().unwrap())).collect()
}

#[tokio::test]
async fn the_first_score_creates_a_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let rules = json!({"mode": "best", "periods": ["all_time", "week"], "lanes": 2, "max_boards": 3});
    let set = "SELECT centile.set_template('level', 'level-*', $1)";
    query_scalar::<_, i32>(set).bind(rules).fetch_one(&pool).await.unwrap();

    // Before, it is an empty ranking.
    assert_eq!(ranks(&site, "/v1/boards/level-1/scores").await, []);
    site.get("/v1/boards/level-1/scores/ann").await.is(404);
    site.get("/v1/boards/levels/scores").await.is(404);
    assert_eq!(site.get("/v1/boards/level-1").await.is(200)["template"], "level");

    // Equal users on two boards do not mix.
    for (board, user, points) in
        [("level-1", "ann", 5), ("level-2", "ann", 70), ("level-1", "bob", 9), ("level-2", "cid", 80), ("level-1", "ann", 7)]
    {
        let body = json!({"user_id": user, "points": points});
        site.admin(Method::POST, &format!("/v1/boards/{board}/scores"), body).await.is(200);
    }
    for period in ["all_time", "week"] {
        let of = |user: &str, rank| (user.to_owned(), rank);
        let (first, second) = ("/v1/boards/level-1/scores?period=", "/v1/boards/level-2/scores?period=");
        assert_eq!(ranks(&site, &format!("{first}{period}")).await, [of("bob", 1), of("ann", 2)]);
        assert_eq!(ranks(&site, &format!("{second}{period}")).await, [of("cid", 1), of("ann", 2)]);
        let ann = site.get(&format!("/v1/boards/level-1/scores/ann?period={period}&around=1")).await.is(200);
        assert_eq!((&ann["score"], &ann["rank"]), (&json!(7), &json!(2)), "{ann}");
    }
    let boards: Value = query_scalar("SELECT jsonb_agg(slug ORDER BY slug) FROM centile.boards").fetch_one(&pool).await.unwrap();
    assert_eq!(boards, json!(["level-1", "level-2"]));
}
