//! The procedures for psql and `pg_cron`, called by a login with the role `centile_operator`.

use chrono::DateTime;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, raw_sql};

use super::*;
use crate::{
    http::api::site::Site,
    periods::killed_close::{PAST, digests},
    store::contract::session::code_of,
    support::redis_url,
};

/// Returns the name of a new operator, and a session.
async fn operator(db: &TestDb) -> (String, PgConnection) {
    let (name, url) = db.login("IN ROLE centile_operator").await;
    (name, PgConnection::connect(&url).await.unwrap())
}

async fn call(session: &mut PgConnection, procedure: &str) -> sqlx::Result<()> {
    raw_sql(AssertSqlSafe(format!("CALL centile.{procedure}"))).execute(session).await.map(drop)
}

/// Adds points of p1 to the closed week of January 8.
fn correct(db: &TestDb, board: &str, points: &str) {
    let flags = ["--board", board, "--at", "2024-01-09T12:00:00Z", "--reason", "lost", "--by", "dora"];
    run(db, &[&["correct", "p1", points], &flags[..]].concat()).well();
}

async fn acts(pool: &PgPool, action: &str) -> Vec<(String, String, Option<String>)> {
    sqlx::query_as(
        "SELECT actor, subject, after ->> 'reason' FROM centile.audit_log WHERE action = $1 ORDER BY audit_id",
    )
    .bind(action)
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn an_operator_closes_periods() {
    let (db, _files) = board_with("all_time,week,month", &three_weeks()).await;
    let pool = db.pool().await;
    let (name, mut operator) = operator(&db).await;
    for _ in 0..2 {
        call(&mut operator, "close('arena', 'week:2024-01-08')").await.unwrap();
        assert_eq!(count(&pool, CLOSED).await, 1);
    }
    for _ in 0..2 {
        call(&mut operator, "close_due()").await.unwrap();
        assert_eq!(count(&pool, CLOSED).await, 4);
    }
    for (archive_name, from, until) in [
        ("arena_week_2024_01_01", "2024-01-01Z", "2024-01-08Z"),
        ("arena_week_2024_01_08", "2024-01-08Z", "2024-01-15Z"),
        ("arena_month_2024_01", "2024-01-01Z", "2024-02-01Z"),
    ] {
        assert_eq!(archive(&pool, archive_name).await, ranked(&pool, from, until).await, "{archive_name}");
    }
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
    run(&db, &["verify", "--whole"]).well();
    let closed = acts(&pool, "close").await;
    assert!(closed.len() == 4 && closed.iter().all(|(actor, ..)| *actor == name), "{closed:?}");
    assert_eq!(closed[0].1, "week:2024-01-08");

    for (procedure, code, words) in [
        ("close('arena', 'all_time')", "CB409", "all_time of board arena is not over yet"),
        ("close('none', 'week')", "CB404", "no board"),
        ("close('arena', 'season:none')", "CB404", "no period"),
        ("refresh('arena', 'all_time')", "CB409", "is not closed"),
        ("refresh('arena', NULL)", "CB409", "name a whole period"),
    ] {
        let error = call(&mut operator, procedure).await.unwrap_err();
        assert!(code_of(&error) == code && error.to_string().contains(words), "{procedure}: {error}");
    }
    for procedure in
        ["close_due()", "close('arena', 'week')", "refresh_due()", "refresh('arena', 'week')", "apply('arena')"]
    {
        let mut block = operator.begin().await.unwrap();
        assert_eq!(code_of(&call(&mut block, procedure).await.unwrap_err()), "2D000", "{procedure}");
    }
}

#[tokio::test]
async fn an_operator_refreshes_archives_and_readers_see_the_new_ones() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let site = Site::of(spawn_serve(&db, Some(&redis_url().await), &["--no-maintenance"]).await, db.url());
    let first = async || {
        let page = site.get("/v1/boards/arena/scores?period=week:2024-01-08&limit=1").await.is(200);
        page["data"][0]["score"].as_i64().unwrap_or_else(|| panic!("{page}"))
    };
    let (name, mut operator) = operator(&db).await;
    call(&mut operator, "close_due()").await.unwrap();
    let before = first().await;
    correct(&db, "arena", "1000");
    assert_eq!(first().await, before);
    call(&mut operator, "refresh('arena', 'week:2024-01-08', 'lost in the outage')").await.unwrap();
    // A top list may be 250 ms old.
    until("the new archive is shown", async || first().await > 999).await;
    let after = first().await;
    correct(&db, "arena", "1");
    for _ in 0..2 {
        call(&mut operator, "refresh_due()").await.unwrap();
        until("the new archive is shown", async || first().await == after + 1).await;
    }
    assert_eq!(archive(&pool, "arena_week_2024_01_08").await, ranked(&pool, "2024-01-08Z", "2024-01-15Z").await);
    let subject = "week:2024-01-08".to_owned();
    assert_eq!(
        acts(&pool, "refresh").await,
        [(name.clone(), subject.clone(), Some("lost in the outage".to_owned())), (name, subject, None)]
    );
}

#[tokio::test]
async fn an_operator_applies_batches() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    run(&db, &["board", "create", "arena", "--periods", "all_time", "--lanes", "2"]).well();
    db.execute("SELECT centile.ensure_users('{ann}'); SET testing.defers = 'on'; SELECT testing.submit_score('arena', 'ann', 5)").await;
    let ranked = "SELECT count(*) FROM centile.ranking('arena')";
    assert_eq!(count(&pool, ranked).await, 0);
    let (name, mut operator) = operator(&db).await;
    for _ in 0..2 {
        call(&mut operator, "apply('arena')").await.unwrap();
        assert_eq!(count(&pool, ranked).await, 1);
    }
    // The second call changed nothing.
    assert_eq!(acts(&pool, "apply").await, [(name.clone(), "bucket rows".to_owned(), None)]);

    // Batches that do not exist yet are not applied, and one call leaves one row.
    for (until, code) in [("{}", "CB422"), ("{1}", "CB422"), ("{1000000,1000000}", ""), ("{NULL,NULL}", "")] {
        let step = format!("SELECT centile_store.apply_step('arena', '{until}')");
        let done = raw_sql(AssertSqlSafe(step)).execute(&mut operator).await;
        assert_eq!(done.as_ref().map_or_else(code_of, |_| String::new()), code, "{until}");
    }
    let mut events = String::from("SET testing.defers = 'on';");
    for n in 0..3 {
        write!(events, "SELECT testing.submit_score('arena', 'ann', {n});").unwrap();
    }
    db.execute(&events).await;
    call(&mut operator, "apply('arena')").await.unwrap();
    assert_eq!(acts(&pool, "apply").await.len(), 2);
    run(&db, &["verify"]).well();
}

/// The statement timeout ends it at a different point each time.
#[tokio::test]
async fn an_interrupted_call_ends_like_an_undisturbed_command() {
    let (left, right) = (TestDb::new().await, TestDb::new().await);
    for db in [&left, &right] {
        db.execute(PAST).await;
    }
    run(&left, &["close", "--due"]).well();
    let (_, mut operator) = operator(&right).await;
    let mut interruptions = 0;
    for timeout in (1..).map(|n| n * 15) {
        raw_sql(AssertSqlSafe(format!("SET statement_timeout = {timeout}"))).execute(&mut operator).await.unwrap();
        match call(&mut operator, "close_due()").await {
            Ok(()) => break,
            Err(error) => assert_eq!(code_of(&error), "57014", "{error}"),
        }
        interruptions += 1;
    }
    assert!(interruptions > 0);
    assert_eq!(digests(&right.pool().await).await, digests(&left.pool().await).await);
}

#[tokio::test]
async fn an_operator_waits_for_no_other_process() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let (_, mut operator) = operator(&db).await;
    call(&mut operator, "close('arena', 'week:2024-01-08')").await.unwrap();
    let other = db.hold("SELECT centile_store.try_closing_lock()").await;
    call(&mut operator, "close_due()").await.unwrap();
    assert_eq!(count(&pool, CLOSED).await, 1);
    for named in ["refresh('arena', 'week:2024-01-08')", "close('arena', 'week:2024-01-15')"] {
        let busy = call(&mut operator, named).await.unwrap_err();
        assert_eq!(code_of(&busy), "CB001", "{busy}");
    }
    // pg_cron would show an error, but the other process does the work.
    correct(&db, "arena", "1");
    call(&mut operator, "refresh_due()").await.unwrap();
    drop(other);
    until("the lock is free", async || {
        call(&mut operator, "close_due()").await.unwrap();
        count(&pool, CLOSED).await == 3
    })
    .await;
}

/// Each look for due periods reads all open ones.
#[tokio::test]
async fn an_operator_looks_for_due_periods_once_for_many() {
    let (db, _files) = board_with("all_time,week,day", &three_weeks()).await;
    let mut session = PgConnection::connect(db.url()).await.unwrap();
    for statement in ["SET track_functions = 'all'", "CALL centile.close_due()"] {
        raw_sql(statement).execute(&mut session).await.unwrap();
    }
    session.close().await.unwrap();
    let calls = async |name: &str| -> Option<i64> {
        let calls = "SELECT calls FROM pg_stat_user_functions WHERE funcname = $1";
        sqlx::query_scalar(calls).bind(name).fetch_optional(&db.pool().await).await.unwrap()
    };
    // 23 periods, of which a look takes 20; the last look finds none.
    until("the statistics are there", async || calls("close_step").await == Some(23 * 3)).await;
    assert_eq!(calls("due_periods").await, Some(3));
}

#[tokio::test]
async fn a_step_of_closing_says_why_the_period_is_still_open() {
    let (db, _files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    let (_, mut operator) = operator(&db).await;
    let id = async |kind: &str| {
        let id = "SELECT period_id FROM centile.periods WHERE kind = $1 ORDER BY starts_at LIMIT 1";
        sqlx::query_scalar::<_, i64>(id).bind(kind).fetch_one(&pool).await.unwrap()
    };
    let (week, all_time) = (id("week").await, id("all_time").await);
    let mut step = async |period: i64,
                          cut_off_at: Option<DateTime<Utc>>|
           -> sqlx::Result<(Option<DateTime<Utc>>, Option<String>)> {
        let step = "SELECT s.cut_off_at, s.result FROM centile_store.close_step($1, $2) s";
        sqlx::query_as(step).bind(period).bind(cut_off_at).fetch_one(&mut operator).await
    };
    assert_eq!(code_of(&step(all_time, None).await.unwrap_err()), "CB409");
    step(-1, None).await.unwrap_err();
    let cut_off_at = step(week, None).await.unwrap().0;
    assert_eq!(step(week, cut_off_at).await.unwrap(), (cut_off_at, None));
    db.execute(&format!("SELECT centile_store.cut_off_period({week})")).await;
    let words = |result: Option<String>| result.unwrap_or_default();
    let changed = step(week, cut_off_at).await.unwrap();
    assert_eq!((changed.0, words(changed.1)), (None, "has changed while it was being closed: call again".to_owned()));
    db.execute("UPDATE centile_store.imports SET ended_at = NULL").await;
    let waits = words(step(week, None).await.unwrap().1);
    assert!(waits.starts_with("waits for the import of "), "{waits}");
    db.execute("UPDATE centile_store.imports SET ended_at = now()").await;
    run(&db, &["close", "--due"]).well();
    // PostgreSQL releases the command's lock a moment after its end.
    until("the lock is free", async || words(step(week, None).await.unwrap().1) == "was closed by another process")
        .await;

    // Windows that are not archived are not closed, but released.
    run(&db, &["board", "change", "arena", "--rolling", "366d"]).well();
    run(&db, &["close", "--due"]).well();
    db.execute("UPDATE centile_store.periods SET starts_at = '2024-01-01', ends_at = now() - interval '1 hour' WHERE kind = 'rolling'").await;
    let refused = step(id("rolling").await, None).await.unwrap_err().to_string();
    assert!(refused.contains("archives no rolling windows"), "{refused}");
}

/// Nothing closes a period whose archive has not been compared since the cut-off.
#[tokio::test]
async fn no_step_of_closing_can_be_left_out() {
    let (db, _files) = board_with("week", &three_weeks()).await;
    let pool = db.pool().await;
    for _ in 0..2 {
        db.execute("SELECT centile_store.build_archive(c.id), centile_store.compare_archive(c.id) FROM (SELECT id, centile_store.cut_off_period(id) FROM centile_store.periods WHERE label = '2024-01-08') c").await;
        db.execute("SELECT centile_store.cut_off_period(id) FROM centile_store.periods WHERE label = '2024-01-08'")
            .await;
        let finish =
            "SELECT centile_store.finish_close(id, cut_off_at) FROM centile_store.periods WHERE label = '2024-01-08'";
        let error = raw_sql(finish).execute(&pool).await.unwrap_err().to_string();
        assert!(error.contains("has not been built and compared"), "{error}");
    }
}

#[tokio::test]
async fn corrected_archives_are_refreshed_on_boards_that_say_so() {
    let (db, files) = board_with("all_time,week", &three_weeks()).await;
    let pool = db.pool().await;
    run(&db, &["board", "create", "calm", "--periods", "all_time,week", "--refresh-corrected", "false"]).well();
    import(&db, &files.write("calm.csv", three_weeks()), "calm", &[]).well(20, 0);
    run(&db, &["board", "change", "arena", "--refresh-corrected", "true"]).well();
    run(&db, &["close", "--due"]).well();
    let lacking = async || -> Vec<String> {
        let boards = "SELECT board FROM centile.periods WHERE needs_refresh ORDER BY board";
        sqlx::query_scalar(boards).fetch_all(&pool).await.unwrap()
    };
    for board in ["arena", "calm"] {
        correct(&db, board, "1000");
    }
    assert_eq!(lacking().await, ["arena", "calm"]);
    let refreshed = run(&db, &["refresh", "--due"]).well();
    assert_eq!(refreshed, "refreshed arena week:2024-01-08: revision 2, 7 players\n1 refreshed\n");
    assert_eq!(lacking().await, ["calm"]);
    let first = async || archive(&pool, "arena_week_2024_01_08").await.swap_remove(0);
    let (_, player, score) = first().await;
    assert!(player == "p1" && score > 999, "{player}: {score}");
    assert_eq!(run(&db, &["refresh", "--due"]).well(), "nothing is due\n");

    // The service, too, a minute after the last correction.
    correct(&db, "arena", "1");
    let aged = async || {
        db.execute("UPDATE centile_store.periods SET corrected_at = corrected_at - interval '1 minute'").await;
    };
    let chosen = "SELECT count(*) FROM centile_store.corrected_archives('1 minute')";
    assert_eq!(count(&pool, chosen).await, 0);
    aged().await;
    assert_eq!(count(&pool, chosen).await, 1);
    let serve = spawn_serve(&db, None, &["--maintenance-every", "1"]).await;
    until("the service has refreshed it", async || lacking().await == ["calm"]).await;
    assert_eq!(first().await.2, score + 1);

    // After a failure it waits as long again.
    let rename = async |from: &str, to: &str| {
        db.execute(&format!("ALTER MATERIALIZED VIEW centile_archive.{from} RENAME TO {to}")).await;
    };
    rename("arena_week_2024_01_08", "away").await;
    correct(&db, "arena", "1");
    aged().await;
    until("the refresh has failed", async || count(&pool, chosen).await == 0).await;
    assert_eq!(lacking().await, ["arena", "calm"]);
    rename("away", "arena_week_2024_01_08").await;
    aged().await;
    until("the service has refreshed it", async || lacking().await == ["calm"]).await;
    drop(serve);
    let (_, mut operator) = operator(&db).await;
    call(&mut operator, "refresh_due()").await.unwrap();
    assert!(lacking().await.is_empty());
}

#[tokio::test]
async fn a_board_says_whether_its_corrected_archives_are_refreshed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "plain"}), &[]).await;
    site.board(json!({"refresh_corrected": true}), &[("ada", 5)]).await;
    let rule = async |board: &str| site.get(&format!("/v1/boards/{board}")).await.is(200)["refresh_corrected"].clone();
    assert_eq!((rule("plain").await, rule("main").await), (json!(false), json!(true)));
    let change = async |change: Value| site.admin(Method::PATCH, "/v1/boards/main", change).await;
    assert_eq!(change(json!({"refresh_corrected": false})).await.is(200)["refresh_corrected"], false);
    assert_eq!(change(json!({"refresh_corrected": null})).await.is(200)["refresh_corrected"], false);
    change(json!({"refresh_corrected": "yes"})).await.is(422);
    run(&db, &["board", "combine", "hero", "--source", "main@all_time"]).well();
    site.admin(Method::PATCH, "/v1/boards/hero", json!({"refresh_corrected": true})).await.is(422);
    for (rules, words) in [
        (r#"'main', '{"refresh_corrected": "yes"}'"#, "must be true or false"),
        (r#"'hero', '{"refresh_corrected": true}'"#, "does not apply to a combined board"),
    ] {
        let error =
            raw_sql(AssertSqlSafe(format!("SELECT centile.update_board({rules})"))).execute(&db.pool().await).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
