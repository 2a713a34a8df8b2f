//! Limits that a database approaches over months: expired ids, rows to freeze, numbers beyond 32
//! bits, and a clock that was ahead.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, query_as, query_scalar};

use crate::{
    http::{api::site::Site, metrics::numbers},
    support::{TestDb, folder, run},
};

#[tokio::test]
async fn a_call_reads_only_the_ids_that_it_deletes() {
    let db = TestDb::new().await;
    // In the order of the primary key, the ids that have expired come last.
    db.execute(
        "INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at, expires_at)
         SELECT 1, n, 0, 'event', n, now(), now() + interval '1 second' * (5000 - n) FROM generate_series(1, 20000) AS n;
         ANALYZE centile_store.transaction_ids",
    )
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    let deleted: i64 =
        query_scalar("SELECT centile_store.forget_expired_ids(100)").fetch_one(&mut *transaction).await.unwrap();
    let read: i64 = query_scalar(
        "SELECT sum(pg_stat_get_xact_tuples_returned(r.oid))::bigint
         FROM (SELECT 'centile_store.transaction_ids'::regclass::oid
               UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = 'centile_store.transaction_ids'::regclass) AS r (oid)",
    )
    .fetch_one(&mut *transaction)
    .await
    .unwrap();
    assert_eq!(deleted, 100);
    assert!(read <= 1_000, "{read} rows read for {deleted} of 15,000");
    let oldest: Option<i64> = query_scalar("SELECT max(user_id) FROM centile_store.transaction_ids")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(oldest, Some(19_900), "the ids that expired first are deleted first");
    transaction.commit().await.unwrap();
    while query_scalar::<_, i64>("SELECT centile_store.forget_expired_ids()").fetch_one(&mut connection).await.unwrap()
        > 0
    {}
    let left: (i64, bool) =
        query_as("SELECT count(*), min(expires_at) >= now() - interval '1 minute' FROM centile_store.transaction_ids")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert!((4_990..=5_000).contains(&left.0) && left.1, "{left:?}");
}

/// Whether a month of the ledger waits to be frozen, and whether all of its rows are frozen.
async fn month(db: &TestDb, month: &str) -> (bool, bool) {
    query_as(sqlx::AssertSqlSafe(format!(
        "SELECT m.freeze_due, (SELECT bool_and(age(c.relfrozenxid) < age(t.xmin)) FROM centile_store.score_transactions_{month} t)
         FROM centile.ledger_months m JOIN pg_class c ON c.oid = m.table_name::regclass
         WHERE m.table_name = 'centile_store.score_transactions_{month}'"
    )))
    .fetch_one(&db.pool().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn the_owner_freezes_each_month_that_is_over_once() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main'); SELECT centile.ensure_users('{ann}');
         SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-01'), centile.ensure_ledger_months();
         SELECT centile.correct_score('main', 'ann', 5, '2024-01-15 12:00Z', 'first', 'dora');
         SELECT centile.correct_score('main', 'ann', 5, '2024-02-15 12:00Z', 'second', 'dora')",
    )
    .await;
    assert_eq!(month(&db, "2024_01").await, (true, false));
    // The service owns no table. Its maintenance leaves the months to the owner, and does the rest.
    let service = db.login("IN ROLE centile_service").await.1;
    let mut command = crate::support::centile();
    command.arg("maintain").env("DATABASE_URL", service);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 ended months frozen"), "{output:?}");
    assert_eq!(month(&db, "2024_01").await, (true, false));

    assert!(run(&db, &["maintain"]).well().contains("2 ended months frozen"));
    assert_eq!((month(&db, "2024_01").await, month(&db, "2024_02").await), ((false, true), (false, true)));
    assert!(run(&db, &["maintain"]).well().contains("0 ended months frozen"));
    // An import into an old month: at most once a day.
    db.execute("SELECT centile.correct_score('main', 'ann', 5, '2024-01-16 12:00Z', 'third', 'dora')").await;
    assert_eq!(month(&db, "2024_01").await, (false, false));
}

#[tokio::test]
async fn imports_and_rebuilds_have_numbers_beyond_32_bits() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main', '{\"periods\": [\"all_time\"]}'); SELECT testing.submit_score('main', 'ann', 5);
         SELECT setval('centile_store.rankings_id_seq', 5000000000), setval('centile_store.imports_id_seq', 5000000000)",
    )
    .await;
    run(&db, &["rebuild", "--board", "main", "--period", "all_time"]).well();
    let ranking = "SELECT max(ranking_id) FROM centile.periods";
    assert!(query_scalar::<_, i64>(ranking).fetch_one(&db.pool().await).await.unwrap() > 5_000_000_000);
    let interrupted = async || -> (i64, i64) {
        query_as("SELECT imports_open, imports_cut_short FROM centile.upkeep")
            .fetch_one(&db.pool().await)
            .await
            .unwrap()
    };
    let mut session = PgConnection::connect(db.url()).await.unwrap();
    sqlx::query("SELECT centile_store.begin_import(1, 'scores.csv')").execute(&mut session).await.unwrap();
    assert_eq!(interrupted().await, (1, 0), "the import runs");
    session.close().await.unwrap();
    crate::support::wait::until("its session has ended", async || interrupted().await == (1, 1)).await;
}

#[tokio::test]
async fn scores_are_refused_while_the_clock_is_behind_the_last_event() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"periods": ["all_time", "week"]}), &[("ada", 40)]).await;
    let score = r#"{"user_id": "ada", "points": 1}"#;
    let behind = async || numbers(&site.get("/metrics").await.text)["centile_clock_behind_seconds"];
    // As if the clock had been ahead, and set back.
    db.execute("UPDATE centile_store.board_lanes SET last_at = clock_timestamp() + interval '3 seconds'").await;
    site.post("/v1/boards/main/scores", score).await.is(200);
    assert_eq!(behind().await.max(5.0).to_string(), "5");
    db.execute("UPDATE centile_store.board_lanes SET last_at = clock_timestamp() + interval '1 hour'").await;
    let refused = site.post("/v1/boards/main/scores", score).await;
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(refused.is(503)["code"], "clock_behind");
    assert!((3_000.0..=3_600.0).contains(&behind().await));
    let page = async || site.admin(Method::GET, "/ops/", Value::Null).await.text;
    assert!(page().await.contains("clock-behind"));

    // Acts and imports go on.
    site.admin(Method::POST, "/v1/boards/main/scores/ada/reset", json!({"reason": "asked for it"})).await.is(204);
    let file = folder("clock").join("scores.csv");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "user_id,points,occurred_at\nbob,7,2026-01-05T12:00:00Z\n").unwrap();
    run(&db, &["import", file.to_str().unwrap(), "--board", "main"]).well();
    assert_eq!(site.get("/v1/boards/main/scores/bob").await.is(200)["score"], 7);
    site.post("/v1/boards/main/scores", score).await.is(503);

    // A cut-off sets the time to the end of its period: scores follow it, also after resets.
    db.execute("UPDATE centile_store.board_lanes SET last_at = (SELECT max(ends_at) FROM centile_store.periods WHERE kind = 'week')")
        .await;
    site.post("/v1/boards/main/scores", score).await.is(503);
    db.execute("UPDATE centile_store.periods SET cut_off_at = now() WHERE kind = 'week'").await;
    for _ in 0..2 {
        site.post("/v1/boards/main/scores", score).await.is(200);
        assert_eq!(behind().await.to_string(), "0");
        let reset = json!({"reason": "asked for it"});
        site.admin(Method::POST, "/v1/boards/main/scores/ada/reset", reset).await.is(204);
    }

    // Another limit of the page: rank indexes hold ids of 32 bits.
    db.execute(
        "INSERT INTO centile_store.users (id, external_id, name, lane_hash) OVERRIDING SYSTEM VALUE VALUES (2200000000, 'cyd', 'Cyd', 0)",
    )
    .await;
    let page = page().await;
    assert!(page.contains("user-ids-high") && !page.contains("clock-behind"), "{page}");
}
