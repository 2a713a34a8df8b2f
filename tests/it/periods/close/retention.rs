//! Removal of archives and rankings.

use super::*;

#[tokio::test]
async fn archives_beyond_retention_are_dropped_and_the_ledger_stays() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["close", "--due"]).well();
    let views = "SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'";
    assert!(run(&db, &["maintain"]).well().contains("archives    0 dropped"));
    assert_eq!(count(&pool, views).await, 4);
    assert_eq!(count(&pool, "SELECT count(*) FROM centile_store.rankings").await, 1);
    for rows in [
        "SELECT count(*) FROM centile_store.leaderboard",
        "SELECT count(*) FROM centile_store.leaderboard_bucket",
        "SELECT sum(c)::bigint FROM centile_store.bucket_counts, unnest(counts) c",
    ] {
        assert_eq!(count(&pool, rows).await, 10, "only the players of all time are left: {rows}");
    }
    db.execute("UPDATE centile_store.boards SET kept_archives = '{\"week\": 1}'").await;
    let output = run(&db, &["maintain"]).well();
    assert!(
        output.contains("dropped arena week:2024-01-01\n") && output.contains("dropped arena week:2024-01-08\n"),
        "{output}"
    );
    assert!(run(&db, &["maintain"]).well().contains("archives    0 dropped"));
    let left: Vec<String> =
        sqlx::query_scalar("SELECT matviewname::text FROM pg_matviews WHERE schemaname = 'centile_archive' ORDER BY 1")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(left, ["arena_month_2024_01", "arena_week_2024_01_15"]);
    assert_eq!(count(&pool, EVENTS).await, 20);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01", "--by", "dora"]).refused(1, &["dropped"]);
}

#[tokio::test]
async fn a_due_period_closes_while_rows_of_a_released_ranking_are_removed() {
    const RELEASED: &str = "SELECT count(*) FROM centile_store.rankings WHERE released_at IS NOT NULL";
    let (db, files) = (TestDb::new().await, Files::new());
    for board in ["arena", "other"] {
        run(&db, &["board", "create", board, "--periods", "all_time,week", "--lanes", "1"]).well();
    }
    let file = files.write("three_weeks.csv", three_weeks());
    import(&db, &file, "arena", &[]).well(20, 0);
    run(&db, &["close", "--due"]).well();
    let pool = db.pool().await;
    assert_eq!(count(&pool, RELEASED).await, 3);
    // While this transaction lasts, the removal of the first released ranking does not end.
    let mut holder = pool.begin().await.unwrap();
    sqlx::query(
        "SELECT FROM centile_store.leaderboard_bucket l
         WHERE l.ranking_id = (SELECT min(g.id) FROM centile_store.rankings g WHERE g.released_at IS NOT NULL) FOR UPDATE",
    )
    .execute(&mut *holder)
    .await
    .unwrap();
    let _serve = spawn_serve(&db, None, &["--maintenance-every", "1", "--statement-timeout", "600"]).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%remove_released%' AND wait_event_type = 'Lock'";
    until("the removal waits", async || count(&pool, waiting).await > 0).await;
    // Weeks that become due now do not wait for it.
    import(&db, &file, "other", &[]).well(20, 0);
    until("the weeks of the other board are closed", async || count(&pool, CLOSED).await == 6).await;
    assert_eq!(count(&pool, RELEASED).await, 6);
    holder.rollback().await.unwrap();
    until("the rows are removed", async || count(&pool, RELEASED).await == 0).await;
}

#[tokio::test]
async fn an_archive_in_use_is_dropped_later_and_delays_no_other() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    run(&db, &["board", "change", "arena", "--keep", "week=1"]).well();
    let pool = db.pool().await;
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM centile_archive.arena_week_2024_01_01").execute(&mut *reader).await.unwrap();
    let output = run(&db, &["maintain"]).well();
    assert!(output.contains("arena week:2024-01-01 not dropped yet: another session, such as a dump"), "{output}");
    assert!(output.contains("dropped arena week:2024-01-08\n"), "{output}");
    reader.rollback().await.unwrap();
    assert!(run(&db, &["maintain"]).well().contains("dropped arena week:2024-01-01\n"));
    // A dropped archive needs no refresh.
    let correct =
        ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-03T12:00:00Z", "--reason", "x", "--by", "dora"];
    assert_eq!(run(&db, &correct).well().lines().count(), 1);
}
