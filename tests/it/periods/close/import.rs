//! Interactions of closing and imports.

use centile::tested::{Batches, Event};
use sqlx::{Connection as _, PgConnection};

use super::*;

#[tokio::test]
async fn an_import_cancels_a_close_in_progress() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let week: i64 = sqlx::query_scalar("SELECT min(id) FROM centile_store.periods WHERE kind = 'week'")
        .fetch_one(&pool)
        .await
        .unwrap();
    let cut_off = async || -> Option<chrono::DateTime<chrono::Utc>> {
        sqlx::query_scalar("SELECT centile_store.cut_off_period($1)").bind(week).fetch_one(&pool).await.unwrap()
    };
    let finish = async |at: chrono::DateTime<chrono::Utc>| -> bool {
        sqlx::query_scalar("SELECT centile_store.finish_close($1, $2)")
            .bind(week)
            .bind(at)
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    let at = cut_off().await.unwrap();
    sqlx::query("SELECT centile_store.build_archive($1)").bind(week).execute(&pool).await.unwrap();
    let first = at;
    let at = cut_off().await.unwrap();
    assert!(at > first, "each attempt takes its own cut-off");
    assert!(!finish(first).await, "an archive of an earlier cut-off must not close the period");
    let batches = Batches::new(db.url()).unwrap();
    let p1_lane: i16 =
        sqlx::query_scalar("SELECT (centile.lane_hash('p1') % 2)::smallint").fetch_one(&pool).await.unwrap();
    let event = Event {
        user_id: "p1".parse().unwrap(),
        points: 500,
        tiebreak: None,
        reason: None,
        id: None,
        occurred_at: Some("2024-01-03T12:00:00Z".parse().unwrap()),
        metadata: None,
    };
    let late = async || batches.write(1, p1_lane, true, std::slice::from_ref(&event)).await.unwrap().1[0].0;
    assert_eq!(late().await, "period_closed", "nothing enters after the cut-off");
    sqlx::query("SELECT centile_store.build_archive($1)").bind(week).execute(&pool).await.unwrap();
    let import: i64 =
        sqlx::query_scalar("SELECT centile_store.begin_import(1, 'more.csv')").fetch_one(&pool).await.unwrap();
    assert!(!finish(at).await);
    assert_eq!(cut_off().await, None, "no cut-off may exist while an import is announced");
    // The import's events are in an archive that is built after it.
    assert_eq!(late().await, "accepted");
    sqlx::query("SELECT centile_store.end_import($1)").bind(import).execute(&pool).await.unwrap();
    run(&db, &["close", "--due"]).well();
    let first = archive(&pool, "arena_week_2024_01_01").await;
    assert_eq!(first, ranked(&pool, "2024-01-01Z", "2024-01-08Z").await);
    assert!(first[0].2 >= 500, "{first:?}");
}

#[tokio::test]
async fn an_import_during_a_comparison_is_no_difference() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let week = "(SELECT min(id) FROM centile_store.periods WHERE kind = 'week')";
    let run_sql = async |sql: String| sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await;
    run_sql(format!("SELECT centile_store.cut_off_period({week})")).await.unwrap();
    run_sql(format!("SELECT centile_store.build_archive({week})")).await.unwrap();

    // The comparison has read its cut-off and waits to read the ledger.
    let mut importer = pool.begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE centile_store.score_transactions IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *importer)
        .await
        .unwrap();
    let comparison = tokio::spawn({
        let pool = pool.clone();
        async move {
            let statement = format!("SELECT centile_store.compare_archive({week})");
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await
        }
    });
    until("the comparison waits", async || {
        count(
            &pool,
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%compare_archive%'",
        )
        .await
            > 0
    })
    .await;
    sqlx::raw_sql(
        "SELECT centile_store.begin_import(1, 'more.csv');
         SELECT testing.record_scores(1, (centile.lane_hash('p1') % 2)::smallint, '{p1}', '{500}', '{}', '{}', '{}', '{2024-01-03 12:00Z}')",
    )
    .execute(&mut *importer)
    .await
    .unwrap();
    importer.commit().await.unwrap();
    comparison.await.unwrap().expect("no error: the closing was called off meanwhile");
}

#[tokio::test]
async fn the_end_of_an_import_ends_interrupted_ones_of_the_same_file() {
    const OPEN: &str =
        "SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM centile_store.imports WHERE ended_at IS NULL";
    let db = TestDb::new().await;
    run(&db, &["board", "create", "arena"]).well();
    let pool = db.pool().await;
    let mut sessions = Vec::new();
    // All run at the same time, so each gets a number of its own.
    for (number, source) in (1_i64..).zip(["a.csv", "a.csv", "a.csv", "b.csv", "stdin", "stdin"]) {
        let mut session = PgConnection::connect(db.url()).await.unwrap();
        let import: i64 = sqlx::query_scalar("SELECT centile_store.begin_import(1, $1)")
            .bind(source)
            .fetch_one(&mut session)
            .await
            .unwrap();
        assert_eq!(import, number);
        sessions.push(session);
    }
    let unlock = "SELECT pg_advisory_unlock(1128615509, $1::integer)";
    for (number, session) in (1_i32..).zip(&mut sessions).filter(|(number, _)| [1, 5].contains(number)) {
        assert!(sqlx::query_scalar::<_, bool>(unlock).bind(number).fetch_one(session).await.unwrap());
    }
    let end = async |import: i64| -> bool {
        sqlx::query_scalar("SELECT centile_store.end_import($1)").bind(import).fetch_one(&pool).await.unwrap()
    };
    let open = async || -> Vec<i64> { sqlx::query_scalar(OPEN).fetch_one(&pool).await.unwrap() };
    // The third still runs.
    assert!(end(2).await);
    assert_eq!(open().await, [3, 4, 5, 6]);
    assert!(!end(1).await, "it has ended");
    // Each import from standard input has events of its own.
    assert!(end(6).await);
    assert_eq!(open().await, [3, 4, 5]);
}

/// Lines that an import reads before it begins to write.
const CHUNK: u32 = 4_000;

/// Starts an import into `arena` from standard input that has read `lines` and waits for more
/// input. A thread does the blocking writes and returns the input.
fn half_an_import(
    db: &TestDb,
    files: &Files,
    lines: String,
) -> (std::process::Child, std::thread::JoinHandle<std::process::ChildStdin>) {
    let rejects = files.path("rejects.csv");
    let flags = ["--format", "csv", "--batch-size", "50", "--rejects", rejects.to_str().unwrap()];
    let mut child = spawn_import(db, "-".as_ref(), "arena", &flags);
    let mut input = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        // A killed import stops reading.
        input.write_all(format!("id,user_id,points,occurred_at\n{lines}").as_bytes()).ok();
        input
    });
    (child, feeding)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_waits_for_an_import_of_past_events() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,day,week", "--lanes", "2"]).well();
    run(&db, &["board", "create", "other", "--periods", "all_time,week", "--lanes", "1"]).well();
    let pool = db.pool().await;
    // Lines of January 2024, which are due as soon as they are imported.
    let all = lines(CHUNK + 100);
    let (first, second) = all.split_at(all.match_indices('\n').nth(CHUNK as usize + 49).unwrap().0 + 1);
    let (child, feeding) = half_an_import(&db, &files, first.to_owned());
    until("the import writes its first lines", async || count(&pool, EVENTS).await > 1_000).await;
    assert_eq!(import(&db, &files.write("other.csv", three_weeks()), "other", &[]).code, Some(0));
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    // The timer has closed the other board's weeks, so it has checked these periods too.
    until("the other board's weeks are closed", async || count(&pool, CLOSED).await == 3).await;
    let output = run(&db, &["close", "--due"]).well();
    assert!(output.contains("waiting  arena day:2024-01-01: stdin is being imported"), "{output}");
    run(&db, &["import", "--abandon", "--board", "arena"]).refused(1, &["stdin", "is running"]);

    let mut input = feeding.join().unwrap();
    input.write_all(second.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!files.path("rejects.csv").exists());
    assert_eq!(count(&pool, EVENTS).await, i64::from(20 + CHUNK + 100));
    // The 20 days and 3 weeks are closed now.
    until("the imported periods are closed", async || count(&pool, CLOSED).await == 3 + 23).await;
    let numbers = async || serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
    until("no period is due", async || numbers().await.contains("\ncentile_periods_due 0\n")).await;
    // Counted a moment after the commit.
    for line in ["centile_periods_closed_total 26", "centile_archive_differences_total 0"] {
        until(line, async || numbers().await.lines().any(|there| there == line)).await;
    }
    let arena = "SELECT count(*) FROM centile_archive.arena_week_2024_01_01";
    let wanted = "SELECT count(DISTINCT user_id) FROM centile_store.score_transactions
        WHERE board_id = 1 AND occurred_at >= '2024-01-01Z' AND occurred_at < '2024-01-08Z'";
    assert_eq!(count(&pool, arena).await, count(&pool, wanted).await);
    drop(serve);
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
}

#[tokio::test]
async fn an_interrupted_import_is_repeated_or_abandoned() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,week", "--lanes", "1"]).well();
    let pool = db.pool().await;
    let many = lines(CHUNK + 50);
    let ended = "SELECT count(*) FROM centile_store.imports WHERE ended_at IS NOT NULL";
    for is_given_up in [false, true] {
        let (mut child, feeding) = half_an_import(&db, &files, many.clone());
        until("the import is announced", async || {
            count(&pool, "SELECT count(*) FROM centile_store.imports WHERE ended_at IS NULL").await == 1
        })
        .await;
        until("the import writes", async || count(&pool, EVENTS).await > 0).await;
        child.kill().unwrap();
        child.wait().unwrap();
        feeding.join().unwrap();
        let ran = run(&db, &["close", "--due"]);
        if is_given_up {
            let output = run(&db, &["import", "--abandon", "--board", "arena"]).well();
            assert!(output.starts_with("1 import of board arena abandoned"), "{output}");
            assert!(run(&db, &["close", "--due"]).code == Some(0));
            assert_eq!(count(&pool, CLOSED).await, 3);
        } else {
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.out.contains("stdin was interrupted"), "{ran:?}");
            assert!(ran.err.contains("--abandon"), "{ran:?}");
            assert_eq!(count(&pool, CLOSED).await, 0);
            let whole = format!("id,user_id,points,occurred_at\n{many}");
            let again = import_stdin(&db, whole.as_bytes(), "arena", &files.path("again.csv"), &["--format", "csv"]);
            assert_eq!(again.code, Some(0), "{again:?}");
            assert_eq!(count(&pool, ended).await, 1);
        }
    }
    assert_eq!(count(&pool, EVENTS).await, i64::from(CHUNK + 50));
    assert_eq!(
        run(&db, &["import", "--abandon", "--board", "arena"]).well(),
        "no import of board arena was interrupted\n"
    );
}

#[tokio::test]
async fn an_import_stops_when_it_loses_its_announcement() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time,week", "--lanes", "1"]).well();
    let pool = db.pool().await;
    let (child, feeding) = half_an_import(&db, &files, lines(CHUNK + 50));
    until("the import writes", async || count(&pool, EVENTS).await > 0).await;
    let ended: bool = sqlx::query_scalar(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1128615509
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(ended);
    // Only now let the import read the last lines.
    drop(feeding.join().unwrap());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the connection that announces the import was lost"), "{ran:?}");
    assert!(count(&pool, EVENTS).await <= i64::from(CHUNK));
}
