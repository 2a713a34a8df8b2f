//! Which refreshes are due. The table of times is in `src/model/combination.rs`.

use serde_json::json;

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, run},
};

/// Refreshes what is due and returns the boards.
fn due(db: &TestDb) -> Vec<String> {
    let printed = run(db, &["refresh", "--due"]).well();
    printed.lines().filter_map(|line| Some(line.strip_prefix("refreshed ")?.split_once(':')?.0.to_owned())).collect()
}

/// Moves the last refresh of all boards into the past.
async fn age(db: &TestDb, by: &str) {
    db.execute(&format!(
        "UPDATE centile_store.combinations SET as_of = as_of - interval '{by}', defined_at = defined_at - interval '{by}', failed_at = failed_at - interval '{by}'"
    ))
    .await;
}

#[tokio::test]
async fn each_rule_refreshes_when_it_says() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["all_time", "day"], "lanes": 2}), &[("ada", 5)]).await;
    site.board(json!({"slug": "other"}), &[("ada", 5)]).await;
    let file =
        files.write("days.csv", "user_id,points,occurred_at\nada,5,2024-01-01T12:00:00Z\nada,5,2024-01-02T12:00:00Z\n");
    import(&db, &file, "main", &[]).well(2, 0);
    run(&db, &["close", "--board", "main", "--period", "day:2024-01-02"]).well();
    for (slug, refresh, sources) in [
        ("manual", "manual", ["main@all_time", "main@day"]),
        ("close", "on-close", ["main@day:2024-01-01", "main@all_time"]),
        ("count", "after=3", ["main@all_time", "main@day:2024-01-01"]),
        ("often", "every=5m", ["main@all_time", "main@day:2024-01-01"]),
        ("still", "every=5m", ["main@day:2024-01-02", "main@day:2024-01-02"]),
        ("yearly", "0 3 1 1 *", ["main@day:2024-01-01", "main@day:2024-01-01"]),
    ] {
        run(&db, &["board", "combine", slug, "--refresh", refresh, "--source", sources[0], "--source", sources[1]])
            .well();
    }
    let no_board: [&str; 0] = [];
    assert_eq!(due(&db), no_board);
    let score = async |board: &str, user: &str| {
        site.post(&format!("/v1/boards/{board}/scores"), json!({"user_id": user, "points": 1})).await.is(200);
    };
    // Of the boards that count scores, only those of the sources matter; each score counts once.
    for user in ["ada", "bob"] {
        score("main", user).await;
        score("other", user).await;
        score("other", "eve").await;
    }
    assert_eq!(due(&db), no_board);
    score("main", "cyd").await;
    assert_eq!(due(&db), ["count"]);
    score("main", "cyd").await;
    assert_eq!(due(&db), no_board);

    // After five minutes the board with a changed source; after a year the one with a schedule.
    age(&db, "6 minutes").await;
    assert_eq!(due(&db), ["often"]);
    assert_eq!(due(&db), no_board);
    age(&db, "367 days").await;
    assert_eq!(due(&db), ["yearly"]);

    // A period is closed, and later its archive corrected. Live sources do not matter.
    run(&db, &["close", "--board", "main", "--period", "day:2024-01-01"]).well();
    let closed = due(&db);
    assert_eq!(closed, ["close", "often"], "the archive is another version of the period");
    // Corrections are scores, too.
    for (day, board, counted) in [("2024-01-01", "close", &no_board[..]), ("2024-01-02", "still", &["count"])] {
        let at = format!("{day}T12:00:00Z");
        run(&db, &["correct", "ada", "0", "--board", "main", "--at", &at, "--reason", "late", "--by", "dora"]).well();
        assert_eq!(due(&db), counted);
        run(&db, &["refresh", "--board", "main", "--period", &format!("day:{day}")]).well();
        assert_eq!(due(&db), [board]);
    }

    // A changed definition is due whatever its rule, but not a changed rule.
    run(&db, &["maintain"]).well();
    db.execute("SELECT centile.update_board('manual', '{\"combination\": {\"aggregate\": \"max\"}}'); SELECT centile.update_board('yearly', '{\"combination\": {\"refresh\": \"0 4 1 1 *\"}}')").await;
    assert_eq!(due(&db), ["manual"]);
    // So is every board after a restore.
    db.execute("UPDATE centile_store.combinations SET epoch = 'another'").await;
    assert_eq!(due(&db).len(), 6);
    assert_eq!(due(&db), no_board);
}

#[tokio::test]
async fn one_process_refreshes_at_a_time_and_failures_wait() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({}), &[("ada", 5)]).await;
    let season = json!({"name": "spring", "starts_at": "2050-01-01T00:00:00Z", "ends_at": "2050-02-01T00:00:00Z"});
    site.admin(reqwest::Method::POST, "/v1/boards/main/seasons", season).await.is(201);
    run(&db, &["board", "combine", "hero", "--source", "main@season:spring"])
        .refused(1, &["board hero is stored, but not refreshed", "has not begun"]);
    let tried = || run(&db, &["refresh", "--due"]);
    assert_eq!(tried().well(), "nothing is due\n");
    age(&db, "61 seconds").await;
    assert!(tried().out.contains("failed    hero: season:spring of board main has not begun"));
    age(&db, "61 seconds").await;
    assert_eq!(tried().well(), "nothing is due\n");
    age(&db, "61 seconds").await;
    let session = db.hold("SELECT centile_store.try_combining_lock()").await;
    assert_eq!(tried().well(), "another process is closing or refreshing: 0 refreshed\n");
    drop(session);
    db.execute("UPDATE centile_store.periods SET starts_at = '2020-01-01' WHERE label = 'spring'").await;
    crate::support::wait::until_blocking("the lock is free", || {
        run(&db, &["refresh", "--due"]).out.contains("refreshed hero")
    });
}
