//! Corrections, voids and bans around and after a close.

use super::*;
use crate::support::audit;

#[tokio::test]
async fn late_lines_are_refused_and_a_refresh_includes_corrections() {
    let (db, files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    let before = archive(&pool, "arena_week_2024_01_08").await;
    let late = "id,user_id,points,occurred_at\nl1,p1,1000,2024-01-09T12:00:00Z\nl2,p1,5,2024-01-02T12:00:00Z\n";
    let imported = import(&db, &files.write("late.csv", late), "arena", &[]);
    assert_eq!(imported.code, Some(1), "{imported:?}");
    let rejects = imported.rejects.as_ref().unwrap();
    assert_eq!(rejects.keys().copied().collect::<Vec<_>>(), [2]);
    assert!(rejects[&2].0.contains("closed"), "{rejects:?}");

    // The open month shows the correction at once; the closed week after a refresh.
    let month = async || {
        audit::apply(&pool).await;
        let page: Vec<(String, i64)> =
            sqlx::query_as("SELECT user_id, score FROM centile.page('arena', 'month:2024-01', 1, 100)")
                .fetch_all(&pool)
                .await
                .unwrap();
        page.into_iter().find(|(user, _)| user == "p1").unwrap().1
    };
    let was = month().await;
    let correct = ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-09T12:00:00Z"];
    let output = run(&db, &[&correct[..], &["--reason", "counted twice", "--by", "dora"]].concat()).well();
    assert!(output.ends_with("centile refresh --board arena --period week:2024-01-08\n"), "{output}");
    assert_eq!(month().await, was - 3);
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, before);
    let refresh =
        ["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora", "--reason", "counted twice"];
    let output = run(&db, &refresh).well();
    assert_eq!(output, "refreshed arena week:2024-01-08: revision 2, 7 players\n");
    let after = archive(&pool, "arena_week_2024_01_08").await;
    assert_ne!(after, before);
    assert_eq!(after, ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    let needs_refresh = async || -> bool {
        sqlx::query_scalar("SELECT needs_refresh FROM centile.periods WHERE kind = 'week' AND label = '2024-01-08'")
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    assert!(!needs_refresh().await);
    let event: i64 = sqlx::query_scalar(
        "SELECT min(id) FROM centile_store.score_transactions WHERE occurred_at >= '2024-01-08Z' AND occurred_at < '2024-01-15Z'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    run(&db, &["score", "void", &event.to_string(), "--board", "arena"]).well();
    assert!(needs_refresh().await, "a void waits for a refresh");
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, after);
    let audited: Vec<(String, String, String)> =
        sqlx::query_as("SELECT actor, action, subject FROM centile.audit_log WHERE actor = 'dora' ORDER BY audit_id")
            .fetch_all(&pool)
            .await
            .unwrap();
    let line = |action: &str, subject: &str| ("dora".to_owned(), action.to_owned(), subject.to_owned());
    assert_eq!(audited, [line("correct", "p1"), line("refresh", "week:2024-01-08")]);

    for (arguments, words) in [
        (
            ["correct", "nobody", "1", "--board", "arena", "--at", "2024-01-09T12:00:00Z", "--reason", "x"],
            ["nobody", "user"],
        ),
        (["correct", "p1", "1", "--board", "arena", "--at", "2099-01-09T12:00:00Z", "--reason", "x"], ["--at", "now"]),
        (["correct", "p1", "1", "--board", "none", "--at", "2024-01-09T12:00:00Z", "--reason", "x"], ["none", "board"]),
    ] {
        run(&db, &[&arguments[..], &["--by", "dora"]].concat()).refused(1, &words);
    }
    assert_eq!(count(&pool, EVENTS).await, 23);
}

#[tokio::test]
async fn acts_between_cut_off_and_close_are_included_or_marked() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let first = |rows: &[(i64, String, i64)]| rows[0].1.clone();
    let best = first(&ranked(&pool, "2024-01-01Z", "2024-01-08Z").await);
    let week = "(SELECT min(id) FROM centile_store.periods WHERE kind = 'week')";
    // A closer that died after its cut-off. The next close includes the ban.
    db.execute(&format!("SELECT centile_store.cut_off_period({week})")).await;
    db.execute(&format!("SELECT centile.ban_user('arena', '{best}', true)")).await;
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
    let rows = archive(&pool, "arena_week_2024_01_01").await;
    assert!(rows.iter().all(|(_, user, _)| *user != best), "{best} is in {rows:?}");

    // A closer that continues with its own cut-off. Its archive lacks the act and is marked.
    let second = first(&ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    let week = "(SELECT id FROM centile_store.periods WHERE kind = 'week' AND label = '2024-01-08')";
    let at: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT centile_store.cut_off_period({week})")))
            .fetch_one(&pool)
            .await
            .unwrap();
    db.execute(&format!("SELECT centile.ban_user('arena', '{second}', true)")).await;
    db.execute(&format!("SELECT centile_store.build_archive({week})")).await;
    let differences: i64 =
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT centile_store.compare_archive({week})")))
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(differences, 0, "acts after the cut-off must not count as differences");
    let finish = format!("SELECT centile_store.finish_close({week}, $1)");
    sqlx::query(sqlx::AssertSqlSafe(finish)).bind(at).execute(&pool).await.unwrap();
    let needs_refresh = "SELECT count(*) FROM centile.archive_index WHERE needs_refresh";
    assert_eq!(count(&pool, needs_refresh).await, 1);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
    assert_eq!(count(&pool, needs_refresh).await, 0);
    let rows = archive(&pool, "arena_week_2024_01_08").await;
    assert!(rows.iter().all(|(_, user, _)| *user != second), "{second} is in {rows:?}");
}

#[tokio::test]
async fn a_refresh_does_not_hide_a_later_correction() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    let pool = db.pool().await;
    let mut correction = pool.begin().await.unwrap();
    sqlx::query("SELECT centile.correct_score('arena', 'p1', 1, '2024-01-09 12:00Z', 'late', 'dora')")
        .execute(&mut *correction)
        .await
        .unwrap();
    let refresh = spawn(db.url(), &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]);
    // The refresh has taken its cut-off and waits for the period's row.
    until("the refresh waits", async || {
        count(
            &pool,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND query LIKE '%refresh_archive%' AND wait_event_type = 'Lock'",
        )
        .await
            == 1
    })
    .await;
    correction.commit().await.unwrap();
    Ran::from(refresh.wait_with_output().unwrap()).well();
    assert_eq!(count(&pool, "SELECT archives_to_refresh FROM centile.upkeep").await, 1);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
    assert_eq!(count(&pool, "SELECT archives_to_refresh FROM centile.upkeep").await, 0);
}

#[tokio::test]
async fn a_correction_that_overflows_a_closed_period_is_refused() {
    let (db, _files) = board_with("week", &three_weeks()).await;
    run(&db, &["close", "--due"]).well();
    let most = i64::MAX.to_string();
    let correct =
        ["correct", "p1", &most, "--board", "arena", "--at", "2024-01-09T12:00:00Z", "--reason", "x", "--by", "dora"];
    run(&db, &correct).refused(1, &["range of 64 bits"]);
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
}

const VIEW: &str = "arena_week_2024_01_08";

/// It takes the same cut-off, so it adds no correction. The next refresh fills an emptied view.
#[tokio::test]
async fn a_dbas_refresh_of_an_archive_changes_nothing() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    let before = archive(&pool, VIEW).await;
    let correct = ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-09T12:00:00Z"];
    run(&db, &[&correct[..], &["--reason", "counted twice", "--by", "dora"]].concat()).well();
    for how in ["", "CONCURRENTLY"] {
        db.execute(&format!("REFRESH MATERIALIZED VIEW {how} centile_archive.{VIEW}")).await;
        assert_eq!(archive(&pool, VIEW).await, before);
    }
    let state: (bool, i32, String) = sqlx::query_as(
        "SELECT needs_refresh, revision, obj_description(archive::regclass, 'pg_class') FROM centile.archive_index",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((state.0, state.1), (true, 1));
    for words in ["centile.ranking('arena', 'week:2024-01-08')", "gives the same rows", "only centile refresh"] {
        assert!(state.2.contains(words), "{words}: {}", state.2);
    }
    db.execute(&format!("REFRESH MATERIALIZED VIEW centile_archive.{VIEW} WITH NO DATA")).await;
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "dora"]).well();
    assert_eq!(archive(&pool, VIEW).await, ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    run(&db, &["verify", "--board", "arena"]).well();
}

/// Its snapshot is older than the refresh for which it has waited.
#[tokio::test]
async fn a_dbas_refresh_restores_no_earlier_revision() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let ranked = async || ranked(&pool, "2024-01-08Z", "2024-01-15Z").await;
    let correct = || {
        let correct = ["correct", "p1", "-3", "--board", "arena", "--at", "2024-01-09T12:00:00Z"];
        run(&db, &[&correct[..], &["--reason", "counted twice", "--by", "dora"]].concat()).well();
    };
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    correct();
    let refresh =
        "SELECT centile_store.refresh_archive(period_id, 'dora', 'x') FROM centile.periods WHERE label = '2024-01-08'";
    let mut first = db.hold(refresh).await;
    let second = db.spawn(&format!("REFRESH MATERIALIZED VIEW centile_archive.{VIEW}"));
    db.until_waiting(1, || second.is_finished()).await;
    sqlx::raw_sql("COMMIT").execute(&mut first).await.unwrap();
    let refused = second.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("was refreshed while this REFRESH waited"), "{refused}");
    assert_eq!(archive(&pool, VIEW).await, ranked().await);

    let mut old = db.hold("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM centile.boards").await;
    correct();
    db.execute(refresh).await;
    let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("REFRESH MATERIALIZED VIEW centile_archive.{VIEW}")));
    let refused = refused.execute(&mut old).await.unwrap_err().to_string();
    assert!(refused.contains("needs the isolation level read committed"), "{refused}");
    drop(old);
    assert_eq!(archive(&pool, VIEW).await, ranked().await);
    db.execute(&format!("REFRESH MATERIALIZED VIEW centile_archive.{VIEW}")).await;
    assert_eq!(archive(&pool, VIEW).await, ranked().await);
}
