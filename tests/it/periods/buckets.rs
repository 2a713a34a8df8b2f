//! Boards with bucket rows of all time only: the life of a week without them. Property tests compare
//! its ranks with the oracle, and indexes with SQL.

use reqwest::Method;
use serde_json::json;
use sqlx::{PgPool, query_as, query_scalar};

use crate::{
    http::{api::site::Site, errors::refused},
    support::{Files, TestDb, audit, import, run},
};

/// Twelve players in two weeks of January 2024.
fn events() -> String {
    let lines: Vec<String> =
        (0..60).map(|n| format!("e{n},p{},{},2024-01-{:02}T12:00:00Z\n", n * 5 % 12, n * 7 % 30, 1 + n % 14)).collect();
    format!("id,user_id,points,occurred_at\n{}", lines.concat())
}

/// Returns each ranking, with its bucket rows or NULL without them, and whether it is damaged.
async fn rankings(pool: &PgPool) -> Vec<(String, Option<i64>, bool)> {
    query_as(
        "SELECT p.kind || ':' || p.label, CASE WHEN g.has_bucket_rows THEN (
                    SELECT count(*) FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = g.id) END, g.damaged_at IS NOT NULL
         FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id ORDER BY p.starts_at",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

type Row = (i64, i64, String, i64);

/// Returns position, rank, player and score by sums over the ledger. The reset is of a later week.
async fn ranked(pool: &PgPool, from: &str) -> Vec<Row> {
    query_as(
        "SELECT row_number() OVER (ORDER BY sum(t.points) DESC, max(t.occurred_at) FILTER (WHERE t.points <> 0), u.id),
                rank() OVER (ORDER BY sum(t.points) DESC), u.external_id, sum(t.points)::bigint
         FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
         WHERE t.kind = 'score' AND t.occurred_at >= $1::text::timestamptz AND t.occurred_at < $1::text::timestamptz + interval '7 days'
           AND NOT EXISTS (SELECT FROM centile_store.score_transactions b WHERE b.kind = 'ban' AND b.user_id = t.user_id)
           AND NOT EXISTS (SELECT FROM centile_store.score_transactions v WHERE v.voids_id = t.id)
         GROUP BY u.id ORDER BY 1",
    )
    .bind(from)
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn page(pool: &PgPool, period: &str) -> Vec<Row> {
    let page = "SELECT position, rank, user_id, score FROM centile.page('main', $1, 1, 100)";
    query_as(page).bind(period).fetch_all(pool).await.unwrap()
}

#[tokio::test]
async fn a_week_without_bucket_rows_lives_like_others() {
    let (db, files) = (TestDb::new().await, Files::new());
    let (pool, week) = (db.pool().await, "week:2024-01-08");
    let site = Site::start(&db, &["--no-maintenance"]).await;
    run(&db, &["board", "create", "main", "--periods", "all_time,week", "--buckets", "all_time"]).well();
    import(&db, &files.write("events.csv", events()), "main", &[]).well(60, 0);
    db.execute(
        "SELECT centile.void_score('main', max(id)), centile.reset_player('main', 'p4'), centile.ban_user('main', 'p5', true)
         FROM centile_store.score_transactions",
    )
    .await;
    audit::apply(&pool).await;
    let left = |week: Option<i64>| {
        let name = |label: &str| format!("week:{label}");
        [
            ("all_time:all_time".to_owned(), Some(10), false),
            (name("2024-01-01"), None, false),
            (name("2024-01-08"), week, false),
        ]
    };
    assert_eq!(rankings(&pool).await, left(None));
    let expected = ranked(&pool, "2024-01-08Z").await;
    assert_eq!((page(&pool, week).await, expected.len()), (expected.clone(), 11));
    let (user, player) = (&expected[4].2, format!("/v1/boards/main/scores/{}?period={week}", expected[4].2));
    let rank: i64 = query_scalar("SELECT rank FROM centile.player_rank('main', $1, $2)")
        .bind(user)
        .bind(week)
        .fetch_one(&pool)
        .await
        .unwrap();
    let answer = site.get(&player).await.is(200);
    assert_eq!((rank, &answer["rank"], &answer["players"]), (expected[4].1, &json!(rank), &json!(11)));
    let file = run(&db, &["export", "--board", "main", "--period", week]).well();
    let users: Vec<&str> = file.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(users, expected.iter().map(|row| row.2.as_str()).collect::<Vec<_>>(), "{file}");
    assert!(audit::rankings_are_sound(&pool).await == 3);
    assert!(run(&db, &["verify", "--whole"]).well().contains("week:2024-01-08"), "and no difference");
    run(&db, &["verify", "--counts"]).well();
    run(&db, &["maintain"]).well();

    // A rebuild keeps the ranking as it is, or gives it bucket rows when the board has them again.
    let rebuild = || run(&db, &["rebuild", "--board", "main", "--period", week]).well();
    rebuild();
    assert_eq!(rankings(&pool).await, left(None));
    run(&db, &["board", "change", "main", "--buckets", "all"]).well();
    assert_eq!(rankings(&pool).await, left(None));
    rebuild();
    assert_eq!((rankings(&pool).await, page(&pool, week).await), (left(Some(11)).to_vec(), expected.clone()));
    site.admin(Method::PATCH, "/v1/boards/main", json!({"buckets": "all_time"})).await.is(200);
    rebuild();
    assert_eq!((rankings(&pool).await, page(&pool, week).await), (left(None).to_vec(), expected.clone()));
    assert!(audit::rankings_are_sound(&pool).await == 3);
    run(&db, &["maintain"]).well();
    // Without an index, only SQL functions rank the week.
    let without = Site::start(&db, &["--index-memory", "0"]).await;
    let refusal = without.get(&player).await.is(503);
    assert_eq!(refusal["code"], "index_unavailable", "{refusal}");
    without.get(&format!("/v1/boards/main/scores/{user}")).await.is(200);
    let rows = "SELECT count(*) FROM centile_store.leaderboard_bucket";
    assert_eq!(query_scalar::<_, i64>(rows).fetch_one(&pool).await.unwrap(), 10);

    let closed = run(&db, &["close", "--due"]).well();
    assert!(closed.contains("week:2024-01-08: 11 players") && !closed.contains("differ"), "{closed}");
    assert_eq!(page(&pool, week).await, expected);
    run(&db, &["verify", "--whole"]).well();
    // The bounds of the next week's buckets come from a week with bucket rows.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"buckets": "all"})).await.is(200);
    site.post("/v1/boards/main/scores", json!({"user_id": "p1", "points": 3})).await.is(200);
    audit::apply(&pool).await;
    assert_eq!(rankings(&pool).await[1].1, Some(1));
}

#[tokio::test]
async fn buckets_of_a_combined_board_are_refused() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"buckets": "all_time"}), &[("ann", 5)]).await;
    assert_eq!(site.get("/v1/boards/main").await.is(200)["buckets"], "all_time");
    let sources = json!([{"board": "main", "period": "week"}]);
    let combined = |buckets: &str| json!({"slug": "both", "mode": "combined", "combination": {"sources": sources.clone()}, "buckets": buckets});
    refused(&site.admin(Method::POST, "/v1/boards", combined("all_time")).await, 422, "buckets", "a combined board");
    refused(&site.admin(Method::PATCH, "/v1/boards/main", json!({"buckets": "none"})).await, 422, "buckets", "unknown");
    let mut plain = combined("");
    plain.as_object_mut().unwrap().remove("buckets");
    site.admin(Method::POST, "/v1/boards", plain).await.is(201);
    let change = site.admin(Method::PATCH, "/v1/boards/both", json!({"buckets": "all_time"})).await;
    refused(&change, 422, "buckets", "a combined board");
    for (statement, reason) in [
        ("SELECT centile.update_board('both', '{\"buckets\": \"all_time\"}')", "a combined board"),
        ("UPDATE centile_store.boards SET buckets = 'all_time' WHERE slug = 'both'", "boards_buckets_rules"),
    ] {
        let refused = sqlx::raw_sql(statement).execute(&db.pool().await).await.unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
    }
    // Its source has no bucket rows.
    run(&db, &["refresh", "--board", "both"]).well();
    assert_eq!(site.get("/v1/boards/both/scores/ann").await.is(200)["score"], 5);
}
