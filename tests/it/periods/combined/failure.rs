//! Refreshes that fail leave the last ranking.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::oracle::{Row, list};
use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, run, wait::until},
};

/// Reads the board in several ways, and checks that it is still in this state.
async fn is_unchanged(site: &Site, rows: &[Row], as_of: &Value) {
    assert_eq!(list(site, "hero").await, rows);
    let standing = site.get("/v1/boards/hero/scores/ada").await.is(200);
    assert_eq!(&standing["combination"]["as_of"], as_of);
}

#[tokio::test]
async fn a_failed_refresh_leaves_the_last_ranking() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time", "day"], "points_max": i64::MAX}), &[("ada", 5), ("bob", 7)]).await;
    let day = |n: u32| format!("ada,5,2024-01-0{n}T12:00:00Z\n");
    let file = files.write("days.csv", format!("user_id,points,occurred_at\n{}{}{}", day(1), day(2), day(3)));
    import(&db, &file, "main", &[]).well(3, 0);
    run(&db, &["close", "--due"]).well();
    run(&db, &["board", "combine", "hero", "--source", "main@day:2024-01-01", "--source", "main@day:2024-01-02"])
        .well();
    let rows = list(&site, "hero").await;
    assert_eq!(rows[0].score, 10);
    let as_of = site.get("/v1/boards/hero/scores").await.is(200)["combination"]["as_of"].clone();

    let refresh = || run(&db, &["refresh", "--board", "hero"]);
    let shown = async |key: &str| {
        let headers = [("authorization", &*format!("Bearer {key}"))];
        site.send(Method::GET, "/v1/boards/hero", &headers, String::new()).await.is(200)["combination"]["failure"]
            .clone()
    };
    // The archive of one source was dropped. The view itself depends on no archive.
    db.execute("UPDATE centile_store.boards SET kept_archives = '{\"day\": 2}' WHERE slug = 'main'").await;
    run(&db, &["maintain"]).well();
    refresh().refused(1, &["the archive of day:2024-01-01 of board main was dropped"]);
    is_unchanged(&site, &rows, &as_of).await;
    // The service knows boards for a second.
    let detail = "the archive of day:2024-01-01 of board main was dropped";
    until("the failure is shown", async || shown(&site.admin_key).await["detail"] == detail).await;
    assert_eq!(site.get("/v1/boards/hero").await.is(200)["combination"]["failure"], Value::Null);
    let text = run(&db, &["board", "show", "hero"]).well();
    assert!(text.contains("was dropped"), "{text}");
    let metrics = site.get("/metrics").await.text;
    for line in ["centile_combination_failures{board=\"hero\"} 1", "centile_combination_age_seconds{board=\"hero\"} "] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    refresh().refused(1, &["was dropped"]);
    assert!(site.get("/metrics").await.text.contains("centile_combination_failures{board=\"hero\"} 2"));

    // An archive that somebody has dropped by hand. The ranking does not become empty.
    let replace = |source: &str| run(&db, &["board", "combine", "hero", "--replace", "--source", source]);
    db.execute("DROP MATERIALIZED VIEW centile_archive.main_day_2024_01_02").await;
    replace("main@day:2024-01-02").refused(1, &["the archive centile_archive.main_day_2024_01_02 is missing"]);
    is_unchanged(&site, &rows, &as_of).await;

    // A season that has not begun, then one that nobody created.
    let season = json!({"name": "later", "starts_at": "2050-01-01T00:00:00Z", "ends_at": "2050-02-01T00:00:00Z"});
    site.admin(Method::POST, "/v1/boards/main/seasons", season).await.is(201);
    replace("main@season:later").refused(1, &["season:later of board main has not begun"]);
    replace("main@season:none").refused(1, &["board main has no period 'season:none'"]);
    is_unchanged(&site, &rows, &as_of).await;

    // A sum, and a product with a weight, outside 64 bits. Both name the player.
    site.post("/v1/boards/main/scores", json!({"user_id": "bob", "points": i64::MAX - 7})).await.is(200);
    for sources in [["main@all_time", "main@all_time"], ["main@all_time*2", "main@day:2024-01-03"]] {
        let sources = sources.iter().flat_map(|source| ["--source", source]).collect::<Vec<_>>();
        run(&db, &[&["board", "combine", "hero", "--replace"], &*sources].concat())
            .refused(1, &["the score of the player with internal_id 2 would leave the range of 64 bits"]);
    }
    is_unchanged(&site, &rows, &as_of).await;
    // A product outside 64 bits whose sum is inside.
    run(&db, &["board", "combine", "hero", "--replace", "--source", "main@all_time*2", "--source", "main@all_time*-1"])
        .well();
    assert_eq!(list(&site, "hero").await[0].score, i64::MAX);
    // The largest scores themselves fit.
    replace("main@all_time").well();
    assert_eq!(list(&site, "hero").await[0].score, i64::MAX);
    replace("main@all_time*-1").well();
    assert_eq!(list(&site, "hero").await.last().unwrap().score, -i64::MAX);
    until("no failure is shown", async || shown(&site.admin_key).await.is_null()).await;

    // A combined board that has not been computed is no source.
    let empty = json!({"slug": "empty", "mode": "combined", "combination": {"sources": [{"board": "main", "period": "season:later"}]}});
    site.admin(Method::POST, "/v1/boards", empty).await.is(201);
    replace("empty@all_time").refused(1, &["board empty has not been computed yet"]);
    // A new definition is tried at once, and the failed one later.
    let due = run(&db, &["refresh", "--due"]);
    assert!(
        due.code == Some(1) && due.out.starts_with("failed    empty: season:later of board main has not begun"),
        "{due:?}"
    );
    assert!(due.err.contains("1 could not be refreshed; readers get the previous rankings"), "{due:?}");
    run(&db, &["verify", "--board", "hero"]).well();
}

#[tokio::test]
async fn damage_of_a_combined_ranking_is_found() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time"]}), &[("ada", 5), ("bob", 7)]).await;
    run(&db, &["board", "combine", "hero", "--source", "main@all_time"]).well();
    run(&db, &["verify", "--board", "hero"]).well();
    for (what, damage) in [
        ("archive players", "UPDATE centile_store.periods SET archive_players = 3 WHERE archive_name LIKE 'hero%'"),
        (
            "frozen top",
            "UPDATE centile_store.periods SET frozen_top = convert_to(replace(convert_from(frozen_top, 'UTF8'), '\"score\": 7', '\"score\": 8'), 'UTF8') WHERE archive_name LIKE 'hero%'",
        ),
        (
            "archive missing",
            "DO $$ BEGIN EXECUTE (SELECT format('DROP MATERIALIZED VIEW centile_archive.%I', archive_name) FROM centile_store.periods WHERE archive_name LIKE 'hero%'); END $$",
        ),
    ] {
        db.execute(damage).await;
        let verified = run(&db, &["verify", "--board", "hero"]);
        assert!(verified.code != Some(0) && verified.out.contains(what), "{what}: {verified:?}");
        // A refresh repairs it.
        run(&db, &["refresh", "--board", "hero"]).well();
        run(&db, &["verify", "--board", "hero"]).well();
    }
}

#[tokio::test]
async fn verify_lists_as_many_damaged_rows_of_a_combined_top_as_wanted() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time"]}), &[("ada", 5), ("bob", 7), ("cyd", 9)]).await;
    run(&db, &["board", "combine", "hero", "--source", "main@all_time"]).well();
    db.execute(
        "UPDATE centile_store.periods SET frozen_top = convert_to(replace(convert_from(frozen_top, 'UTF8'), '\"score\": ', '\"score\": 1'), 'UTF8') WHERE archive_name LIKE 'hero%'",
    )
    .await;
    let found = "SELECT subject, total FROM centile.verify('hero', 'all_time', 2)";
    let found: Vec<(String, i64)> = sqlx::query_as(found).fetch_all(&db.pool().await).await.unwrap();
    assert_eq!(found, [("position 1".to_owned(), 3), ("position 2".to_owned(), 3)]);
}

/// It would change the rows, but neither the revision nor the frozen top.
#[tokio::test]
async fn a_dbas_refresh_of_a_combined_ranking_is_refused() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    for board in ["main", "idle"] {
        run(&db, &["board", "create", board, "--periods", "all_time"]).well();
    }
    db.execute("SELECT centile.ensure_users('{ada,bob}'); SELECT testing.submit_score('main', 'bob', 7)").await;
    for (board, source) in [("hero", "main@all_time"), ("empty", "idle@all_time")] {
        run(&db, &["board", "combine", board, "--source", source]).well();
    }
    db.execute("SELECT testing.submit_score('main', 'ada', 9); SELECT testing.submit_score('idle', 'ada', 9)").await;
    let players = async |board: &str| -> i64 {
        let players = "SELECT count(*) FROM centile.ranking($1)";
        sqlx::query_scalar(players).bind(board).fetch_one(&pool).await.unwrap()
    };
    let refresh = |how: &str, board: &str, data: &str| {
        format!(
            "DO $$ BEGIN EXECUTE (SELECT 'REFRESH MATERIALIZED VIEW {how} ' || archive || ' {data}' FROM centile.archive_index WHERE board = '{board}'); END $$"
        )
    };
    let refused = async |how: &str, board: &str| {
        let refused = sqlx::raw_sql(AssertSqlSafe(refresh(how, board, ""))).execute(&pool).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("would change the rows but not the revision"), "{refused}");
    };
    for how in ["", "CONCURRENTLY"] {
        for board in ["hero", "empty"] {
            refused(how, board).await;
        }
        assert_eq!((players("hero").await, players("empty").await), (1, 0));
    }
    // pg_restore, also into the database that has built the view.
    db.execute(&format!("SET check_function_bodies = off; {}", refresh("", "hero", ""))).await;
    assert_eq!(players("hero").await, 2);
    // An emptied view stays empty, too.
    db.execute(&refresh("", "hero", "WITH NO DATA")).await;
    refused("", "hero").await;
    for board in ["hero", "empty"] {
        run(&db, &["refresh", "--board", board]).well();
        run(&db, &["verify", "--board", board]).well();
    }
    assert_eq!((players("hero").await, players("empty").await), (2, 1));
}
