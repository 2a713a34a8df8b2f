//! Snapshots of the all-time ranking, compared with a rank over the ledger.

use rand::RngExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, query_as, query_scalar, raw_sql};

use crate::{
    http::api::site::Site,
    maintenance::layout::rows_read_of,
    support::{Files, Ran, TestDb, amount, import, random::seeded, run},
};

const SCORES: &str = "/v1/boards/arena/scores";

/// Position, rank, player and score.
type Row = (i64, i64, String, i64);

/// Returns the all-time ranking of the scores before a time, by a rank over the ledger.
async fn before(db: &TestDb, end: &str) -> Vec<Row> {
    query_as(
        "SELECT row_number() OVER (ORDER BY x.score DESC, x.reached_at, x.id), rank() OVER (ORDER BY x.score DESC), x.external_id, x.score
         FROM (SELECT u.id, u.external_id, sum(t.points)::bigint AS score, max(t.occurred_at) AS reached_at
               FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
               WHERE t.kind = 'score' AND t.occurred_at < $1::text::timestamptz GROUP BY u.id, u.external_id) x
         ORDER BY 1",
    )
    .bind(end)
    .fetch_all(&db.pool().await)
    .await
    .unwrap()
}

async fn page(site: &Site, period: &str) -> Vec<Row> {
    let page = site.get(&format!("{SCORES}?period={period}&limit=1000")).await.is(200);
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap();
    let row = |row: &Value| {
        (
            number(row, "position"),
            number(row, "rank"),
            row["user_id"].as_str().unwrap().to_owned(),
            number(row, "score"),
        )
    };
    page["data"].as_array().unwrap().iter().map(row).collect()
}

/// Returns the names of the archives that are tables, after a check that none is missing.
async fn tables(db: &TestDb) -> Vec<String> {
    let pool = db.pool().await;
    let agree = "SELECT bool_and(agrees IS DISTINCT FROM false) FROM centile.periods WHERE kind = 'snapshot'";
    assert!(query_scalar::<_, bool>(agree).fetch_one(&pool).await.unwrap());
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = 'centile_archive'::regnamespace AND relkind = 'r' ORDER BY 1";
    query_scalar(tables).fetch_all(&pool).await.unwrap()
}

/// Three weeks of January 2024, with two equal scores.
fn events() -> String {
    let line = |n: i64| format!("p{},{},2024-01-{:02}T{:02}:00:00Z", n % 10, n * 7 % 30 + 1, 1 + n % 21, n % 24);
    format!("user_id,points,occurred_at\n{}\n", (0..60).map(line).collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn a_snapshot_is_the_all_time_ranking_at_the_end_of_its_period() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &[]).await;
    run(&db, &["board", "create", "arena", "--periods", "all_time,day", "--time-zone", "America/New_York"]).well();
    import(&db, &files.write("events.csv", events()), "arena", &[]).well(60, 0);
    // As if the service had taken the last snapshot three weeks ago.
    site.admin(Method::PATCH, "/v1/boards/arena", json!({"snapshots": "week"})).await.is(200);
    db.execute(
        "INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
         SELECT id, 'snapshot', 'week-2024-01-01', '-infinity', '2024-01-08 05:00Z' FROM centile_store.boards",
    )
    .await;
    site.get(&format!("{SCORES}?period=snapshot:week-2024-01-01")).await.is(404);
    let closed = run(&db, &["close", "--due"]).well();
    assert!(closed.contains("snapshot:week-2024-01-01"), "{closed}");
    for (name, end) in [("01-01", "2024-01-08 05:00Z"), ("01-08", "2024-01-15 05:00Z"), ("01-15", "2024-01-22 05:00Z")]
    {
        assert_eq!(page(&site, &format!("snapshot:week-2024-{name}")).await, before(&db, end).await, "{name}");
    }
    // One snapshot for each week until now, each taken once, and none announced.
    let weeks: (i64, i64, i64) = query_as(
        "SELECT count(*), extract(epoch FROM max(ends_at) - min(ends_at))::bigint / 604800 + 1,
                (SELECT count(*) FROM centile.outbox o WHERE o.period LIKE 'snapshot%')
         FROM centile.periods WHERE kind = 'snapshot' AND state = 'closed'",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    assert_eq!((weeks.0, weeks.2), (weeks.1, 0));
    assert_eq!(run(&db, &["close", "--due"]).well().matches("closed").count(), 0);
    run(&db, &["verify"]).well();

    // A player's progress, newest first.
    let progress = site.get(&format!("{SCORES}/p3/progress?snapshots=2")).await.is(200);
    let rows = progress["data"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["period"]["ends_at"].as_str() > rows[1]["period"]["ends_at"].as_str(), "{progress}");
    for row in rows {
        let ranking = page(&site, row["period"]["name"].as_str().unwrap()).await;
        let player = ranking.iter().find(|row| row.2 == "p3").unwrap();
        assert_eq!((&row["players"], &row["position"]), (&json!(ranking.len()), &json!(player.0)));
        assert_eq!((&row["rank"], &row["score"]), (&json!(player.1), &json!(player.3)));
    }
    let wanted = before(&db, "2024-01-08 05:00Z").await;
    let player = wanted.iter().find(|row| row.2 == "p3").unwrap();
    let oldest: (String, i64, i64, i64, i64) = query_as(
        "SELECT label, players, position, rank, score FROM centile.progress('arena', 'p3', 1000) ORDER BY ends_at LIMIT 1",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    let players = i64::try_from(wanted.len()).unwrap();
    assert_eq!(oldest, ("week-2024-01-01".to_owned(), players, player.0, player.1, player.3));
    let stranger = site.get(&format!("{SCORES}/late/progress")).await;
    stranger.is(404);
    site.post(SCORES, json!({"user_id": "late", "points": 1})).await.is(200);
    let late = site.get(&format!("{SCORES}/late/progress?snapshots=1")).await.is(200);
    assert_eq!((&late["data"][0]["rank"], &late["next_cursor"]), (&Value::Null, &Value::Null));

    // How far players have moved since the newest snapshot.
    let newest = page(&site, rows[0]["period"]["name"].as_str().unwrap()).await;
    run(&db, &["score", "submit", &newest[9].2, "100000", "--board", "arena"]).well();
    let list = site.get(&format!("{SCORES}?moved=true&limit=1000")).await.is(200);
    let moved: Vec<(&str, Value)> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["user_id"].as_str().unwrap(), row["moved"].clone()))
        .collect();
    let old = |user: &str| newest.iter().find(|row| row.2 == user).map(|row| row.0);
    let expected: Vec<(&str, Value)> =
        (1..).zip(&moved).map(|(now, (user, _))| (*user, json!(old(user).map(|old| old - now)))).collect();
    assert_eq!(moved, expected);
    assert_eq!((&moved[0].1, &moved[1].1, &moved[10].1), (&json!(9), &json!(-1), &Value::Null));
    let standing = site.get(&format!("{SCORES}/{}?moved=true&around=1", moved[1].0)).await.is(200);
    let near = [&standing["above"][0]["moved"], &standing["moved"], &standing["below"][0]["moved"]];
    assert_eq!(near, [&moved[0].1, &moved[1].1, &moved[2].1]);
    assert_eq!(site.get(&format!("{SCORES}?moved=true&period=day")).await.is(422)["field"], "moved");

    // A correction is in the snapshots after it, once they are refreshed.
    run(
        &db,
        &[
            "correct",
            "p3",
            "1000",
            "--board",
            "arena",
            "--at",
            "2024-01-10T12:00:00Z",
            "--reason",
            "late",
            "--by",
            "dora",
        ],
    )
    .well();
    run(&db, &["refresh", "--board", "arena", "--period", "snapshot:week-2024-01-08", "--by", "dora"]).well();
    assert_eq!(page(&site, "snapshot:week-2024-01-08").await, before(&db, "2024-01-15 05:00Z").await);
    assert_eq!(page(&site, "snapshot:week-2024-01-01").await, wanted);
    run(&db, &["verify"]).well();
    // A snapshot is a table, which pg_restore copies. Retention drops it.
    assert_eq!(i64::try_from(tables(&db).await.len()).unwrap(), weeks.0);
    // An import cannot change a snapshot.
    let file = files.write("more.csv", "user_id,points,occurred_at\np1,5,2024-01-10T12:00:00Z\n");
    let rejects = import(&db, &file, "arena", &[]).rejects.unwrap();
    assert_eq!(rejects[&2].0, "a period that holds this time is closed");
    run(&db, &["board", "change", "arena", "--keep", "snapshot=2"]).well();
    run(&db, &["maintain"]).well();
    assert_eq!(tables(&db).await.len(), 2);
}

/// Returns the ledger rows that a snapshot reads, of a player who has scored since its end and of one
/// who has not.
async fn rows_of_a_snapshot(connection: &mut PgConnection, n: i32) -> i64 {
    let cut_off = format!(
        "INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at) VALUES (1, 'snapshot', 'day-{n}', '-infinity', clock_timestamp());
         SELECT testing.submit_score('arena', 'p2', 5);
         SELECT centile_store.cut_off_period(id) FROM centile_store.periods WHERE label = 'day-{n}'"
    );
    raw_sql(AssertSqlSafe(cut_off)).execute(&mut *connection).await.unwrap();
    let before = rows_read_of(connection, "^score_transactions").await;
    let build = format!(
        "SELECT centile_store.build_archive(id), centile_store.compare_archive(id), centile_store.finish_close(id, cut_off_at)
         FROM centile_store.periods WHERE label = 'day-{n}'"
    );
    raw_sql(AssertSqlSafe(build)).execute(&mut *connection).await.unwrap();
    rows_read_of(connection, "^score_transactions").await - before
}

#[tokio::test]
async fn snapshots_and_verifications_read_the_rows_since_the_last_and_agree_with_the_ledger() {
    let db = TestDb::new().await;
    db.execute(include_str!("snapshots/random.sql")).await;
    db.execute("SELECT testing.allow_damage()").await;
    let seed: f64 = seeded().random();
    let days = amount(6, 100);
    db.execute(&format!(
        "SELECT setseed({seed});
         DO $$ BEGIN FOR v_n IN 1..{days} LOOP CALL testing.take_snapshot(v_n); END LOOP; EXCEPTION WHEN assert_failure THEN RAISE EXCEPTION '% (seed {seed})', SQLERRM; END $$"
    ))
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    rows_of_a_snapshot(&mut connection, -1).await;
    let first = rows_of_a_snapshot(&mut connection, -2).await;
    let more = "SELECT count(*) FROM testing.record_scores(1, (centile.lane_hash('p1') % 2)::smallint, array_fill('p1'::text, '{3000}'),
                    array_fill(1::bigint, '{3000}'), p_times => ARRAY(SELECT '2024-01-02Z'::timestamptz + n * interval '1 minute' FROM generate_series(1, 3000) n))";
    raw_sql(more).execute(&mut connection).await.unwrap();
    rows_of_a_snapshot(&mut connection, -3).await;
    let last = rows_of_a_snapshot(&mut connection, -4).await;
    assert!(first < 500 && last < first + 50, "{first}, then {last}");
    run(&db, &["verify", "--whole"]).well();
}

/// Opens a snapshot of the first board, and closes it.
async fn take(db: &TestDb, label: &str, end: &str) -> Ran {
    db.execute(&format!(
        "INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
         VALUES (1, 'snapshot', 'day-2024-01-{label}', '-infinity', '{end}')"
    ))
    .await;
    run(db, &["close", "--due"])
}

fn refresh(db: &TestDb, label: &str) -> Ran {
    let period = format!("snapshot:day-2024-01-{label}");
    run(db, &["refresh", "--board", "arena", "--period", &period, "--by", "dora"])
}

#[tokio::test]
async fn a_snapshot_lacks_corrections_after_its_end() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 1}');
         SELECT centile.ensure_users('{ann,bob}'), centile.ensure_ledger_months('2024-01-01', '2024-01-31');
         SELECT testing.record_scores(1, 0::smallint, '{ann,bob}', '{5,6}', p_times => '{2024-01-05,2024-01-06}')",
    )
    .await;
    // The first cut-off sets the lane to January 10. The correction is earlier, and later than the end
    // of the next snapshots.
    take(&db, "01", "2024-01-10Z").await.well();
    db.execute("SELECT centile.correct_score('arena', 'ann', 100, '2024-01-09Z', 'late', 'dora')").await;
    take(&db, "02", "2024-01-08Z").await.well();
    take(&db, "03", "2024-01-10Z").await.well();
    refresh(&db, "01").well();
    take(&db, "04", "2024-01-08 12:00Z").await.well();
    run(&db, &["verify", "--whole"]).well();
    let scores = "SELECT array_agg(score ORDER BY label) FROM centile.progress('arena', 'ann', 10)";
    assert_eq!(query_scalar::<_, Vec<i64>>(scores).fetch_one(&db.pool().await).await.unwrap(), [105, 5, 105, 5]);
}

#[tokio::test]
async fn a_lane_set_back_and_a_table_of_another_stop_a_snapshot() {
    const SET_BACK: &str = "UPDATE centile_store.board_lanes SET batch = batch - 1";
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 1}');
         SELECT testing.submit_score('arena', 'p' || n, n) FROM generate_series(1, 4) n",
    )
    .await;
    // The first snapshot; no score since the last one; a score since then.
    for (label, damage) in
        [("01", SET_BACK), ("02", "UPDATE centile_store.board_lanes SET batch = 1"), ("03", SET_BACK)]
    {
        if label == "03" {
            run(&db, &["score", "submit", "p1", "5", "--board", "arena"]).well();
        }
        db.execute(damage).await;
        let closed = take(&db, label, "2024-01-10Z").await;
        let words = "the ledger has batches above the last one of their lane";
        assert!(closed.code == Some(1) && closed.out.contains(words), "{label}: {closed:?}");
        run(&db, &["rebuild", "--board", "arena", "--period", "all_time"]).well();
        run(&db, &["close", "--due"]).well();
    }

    // Neither a new archive, nor a refresh, nor retention replaces what Centile did not create.
    let name = "centile_archive.arena_snapshot_day_2024_01_04";
    db.execute(&format!("CREATE TABLE {name} AS SELECT 7 AS n")).await;
    let closed = take(&db, "04", "2024-01-10Z").await;
    assert!(closed.code == Some(1) && closed.out.contains(name), "{closed:?}");
    db.execute(
        "UPDATE centile_store.periods SET archive_name = 'other' WHERE label = 'day-2024-01-04';
         UPDATE centile_store.periods SET archive_name = 'arena_snapshot_day_2024_01_04' WHERE label = 'day-2024-01-03'",
    )
    .await;
    refresh(&db, "03").refused(1, &[name]);
    db.execute(
        "UPDATE centile_store.periods SET archive_dropped_at = now(), frozen_top = NULL WHERE label = 'day-2024-01-03'",
    )
    .await;
    let kept = run(&db, &["maintain"]);
    assert!(format!("{kept:?}").contains(name), "{kept:?}");
    let left = format!("SELECT n FROM {name}");
    assert_eq!(query_scalar::<_, i32>(AssertSqlSafe(left)).fetch_one(&db.pool().await).await.unwrap(), 7);
}

#[tokio::test]
async fn a_correction_waits_for_the_end_of_a_snapshot() {
    let (db, files) = (TestDb::new().await, Files::new());
    run(&db, &["board", "create", "arena", "--periods", "all_time", "--snapshots", "day"]).well();
    import(&db, &files.write("events.csv", events()), "arena", &[]).well(60, 0);
    // A young board takes no snapshot of the time before it.
    assert_eq!(run(&db, &["close", "--due"]).well().matches("snapshot").count(), 0);
    db.execute(
        "UPDATE centile_store.boards SET created_at = '2024-01-01';
         SELECT centile_store.open_snapshots();
         SELECT centile_store.cut_off_period(id) FROM centile_store.periods WHERE kind = 'snapshot'",
    )
    .await;
    let correct = || {
        let act = ["--at", "2024-01-10T12:00:00Z", "--reason", "late", "--by", "dora"];
        run(&db, &[["correct", "p3", "1000", "--board", "arena"].as_slice(), &act].concat())
    };
    correct().refused(1, &["is being closed"]);
    run(&db, &["close", "--due"]).well();
    correct().well();
    run(&db, &["maintain"]).well();
}

#[tokio::test]
async fn snapshots_are_set_shown_and_removed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"snapshots": "month"}), &[("ada", 1)]).await;
    let shown = async || site.get("/v1/boards/main").await.is(200)["snapshots"].clone();
    assert_eq!(shown().await, "month");
    run(&db, &["board", "change", "main", "--snapshots", "day"]).well();
    assert_eq!(run(&db, &["board", "show", "main", "--json"]).json()["snapshots"], "day");
    site.admin(Method::PATCH, "/v1/boards/main", json!({"snapshots": null})).await.is(200);
    assert_eq!(shown().await, Value::Null);
    assert_eq!(site.get("/v1/boards/main/scores/ada?moved=true").await.is(200)["moved"], Value::Null);
    let refused = site.admin(Method::PATCH, "/v1/boards/main", json!({"snapshots": "hour"})).await.is(422);
    assert_eq!(refused["field"], "snapshots");
    let weekly = json!({"slug": "weekly", "mode": "sum", "periods": ["week"], "snapshots": "week"});
    assert_eq!(site.admin(Method::POST, "/v1/boards", weekly).await.is(422)["field"], "snapshots");
}
