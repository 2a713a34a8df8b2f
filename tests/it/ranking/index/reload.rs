//! Causes of a reload: answers stay right, and come from the index again.

use std::fmt::Write as _;

use rand::{SeedableRng as _, rngs::StdRng};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Pair, Sums, from_index, source};
use crate::support::{Files, TestDb, amount, audit, import, layout, ranking_reads, run, wait::until};

/// Log message of a load.
const LOADED: &str = "rank index loaded";

/// Creates a board with players and an index.
async fn played(pair: &Pair) -> Sums {
    pair.index.board(json!({"periods": ["all_time"]}), &[]).await;
    let mut sums = Sums::default();
    let mut events = Vec::new();
    for n in 0..120 {
        let (user, points) = (format!("p{n}"), n * 7 % 31);
        sums.add(&user, points);
        events.push(json!({"user_id": user, "points": points}));
    }
    pair.index.post("/v1/boards/main/scores", Value::from(events)).await.is(200);
    pair.shows("main", &sums).await;
    assert_eq!(loads(pair), 1, "{}", pair.index.serve.output());
    sums
}

fn loads(pair: &Pair) -> usize {
    pair.index.serve.output().matches(LOADED).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_beyond_the_log_reloads() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let mut sums = played(&pair).await;
    for round in 0..amount(6, 60) {
        // Deletes the log in the same transaction, so that no round sees the batch: a new player,
        // a player who moves, or a ban.
        let (user, points) = (format!("p{}", [3, 500 + round][usize::try_from(round % 2).unwrap()]), 40 + round);
        db.execute(&format!(
            "BEGIN; SELECT testing.submit_score('main', '{user}', {points}); DELETE FROM centile_store.batch_log; COMMIT"
        ))
        .await;
        sums.add(&user, points);
        pair.shows("main", &sums).await;
        assert!(loads(&pair) > usize::try_from(round).unwrap() + 1, "round {round}: it did not reload");
        // A batch that the log still has causes no reload.
        let before = loads(&pair);
        db.execute("SELECT testing.submit_score('main', 'p4', 2)").await;
        sums.add("p4", 2);
        pair.shows("main", &sums).await;
        assert_eq!(loads(&pair), before, "the log has that batch");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_of_a_stopped_instance_reloads() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let mut sums = played(&pair).await;
    centile::dev::local::signal(pair.index.serve.id(), "STOP").unwrap();
    for n in 0..30 {
        let user = format!("p{}", n * 11 % 150);
        sums.add(&user, n);
        pair.sql.post("/v1/boards/main/scores", json!({"user_id": user, "points": n})).await.is(200);
    }
    audit::apply(&db.pool().await).await;
    // No batch is old enough to be deleted. Deleting all but the newest of each lane forces a reload.
    db.execute("SELECT centile_store.forget_batches()").await;
    let pool = db.pool().await;
    let count = "SELECT count(*) FROM centile_store.batch_log";
    assert!(sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap() > 30);
    db.execute("SELECT centile_store.forget_batches('0')").await;
    let lanes = "SELECT count(DISTINCT lane) FROM centile_store.batch_log";
    let lanes = sqlx::query_scalar::<_, i64>(lanes).fetch_one(&pool).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap(), lanes);
    centile::dev::local::signal(pair.index.serve.id(), "CONT").unwrap();
    pair.shows("main", &sums).await;
    assert_eq!(loads(&pair), 2, "{}", pair.index.serve.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_ranking_is_loaded_while_answers_stay_right() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let mut sums = played(&pair).await;
    let url = db.url().to_owned();
    let rebuild = tokio::task::spawn_blocking(move || {
        crate::support::run_at(
            &url,
            &["rebuild", "--board", "main", "--period", "all_time", "--by", "dora", "--reason", "to see"],
        )
    });
    let mut is_done = false;
    while !is_done {
        is_done = rebuild.is_finished();
        let output = pair.index.get("/v1/boards/main/scores/p30?around=2").await.is(200);
        assert_eq!((&output["score"], &output["rank"]), (&json!(sums.0["p30"]), &json!(sums.rank("p30"))), "{output}");
    }
    rebuild.await.unwrap().well();
    pair.shows("main", &sums).await;
    until("the new ranking is loaded", async || loads(&pair) == 2).await;
    pair.sql.post("/v1/boards/main/scores", json!({"user_id": "p30", "points": 100})).await.is(200);
    sums.add("p30", 100);
    pair.shows("main", &sums).await;
    // The old ranking's index is gone.
    let metrics = pair.index.get("/metrics").await.text;
    assert_eq!(metrics.matches("centile_index_players{index=\"main/all_time\"} 120\n").count(), 1, "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_period_leaves_the_index_and_others_stay() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    pair.index.board(json!({"periods": ["all_time", "week"]}), &[]).await;
    let (files, mut sums, mut file) = (Files::new(), Sums::default(), String::from("user_id,points,occurred_at\n"));
    for n in 0..90 {
        let (user, points) = (format!("p{}", n % 40), n * 7 % 31);
        sums.add(&user, points);
        writeln!(file, "{user},{points},2024-01-16T12:00:00Z").unwrap();
    }
    import(&db, &files.write("week.csv", file), "main", &[]).well(90, 0);
    pair.shows("main", &sums).await;
    let week = ranking_reads("p7").map(|rest| format!("/v1/boards/main/{rest}period=week:2024-01-15"));
    let mut open = Vec::new();
    for path in &week {
        open.push(pair.read(path).await);
    }
    run(&db, &["close", "--board", "main", "--period", "week:2024-01-15"]).well();
    for (path, open) in week.iter().zip(open) {
        let (index, sql) = (pair.index.get(path).await, pair.sql.get(path).await);
        assert_eq!((source(&index), &index.body), (source(&sql), &sql.body), "{path}");
        assert_eq!(index.body["period"]["state"], "closed", "{index:?}");
        for part in ["players", "scores", "rank", "above", "below", "percentiles", "histogram"] {
            assert_eq!(index.body[part], open[part], "{part} of {path}");
        }
    }
    // A correction of the closed week changes the open period.
    run(&db, &["correct", "p7", "7", "--board", "main", "--at", "2024-01-16T13:00:00Z", "--reason", "a match"]).well();
    sums.add("p7", 7);
    pair.shows("main", &sums).await;
    until("the closed week is not in memory", async || {
        !pair.index.get("/metrics").await.text.contains("index=\"main/week:2024-01-15\"")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_events_are_in_the_index_when_the_import_ends() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let files = Files::new();
    let mut sums = Sums::default();
    pair.index.board(json!({"periods": ["all_time"]}), &[]).await;
    // Reads the empty ranking, which loads it if there is one.
    pair.index.get("/v1/boards/main/distribution").await.is(200);
    for round in 0..3 {
        // The first round may load an empty board; the others add to it.
        let mut file = String::from("id,user_id,points,occurred_at\n");
        let lines = amount([1_500, 900, 1], [100_000, 60_000, 1])[round];
        for n in 0..lines {
            let (user, points) =
                (format!("p{}", n * 13 % 700 + 300 * u64::try_from(round).unwrap()), i64::try_from(n % 23).unwrap());
            sums.add(&user, points);
            writeln!(file, "{round}-{n},{user},{points},2024-01-16T12:00:00Z").unwrap();
        }
        import(&db, &files.write(&format!("{round}.csv"), file), "main", &[]).well(lines, 0);
        pair.shows("main", &sums).await;
        pair.sql.post("/v1/boards/main/scores", json!({"user_id": "p1", "points": 5})).await.is(200);
        sums.add("p1", 5);
        pair.shows("main", &sums).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_layout_changes_no_version_and_causes_no_reload() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    let mut sums = played(&pair).await;
    let mut connection = db.pool().await.acquire().await.unwrap();
    let ranking: i64 = sqlx::query_scalar("SELECT ranking_id FROM centile.periods WHERE kind = 'all_time'")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    for seed in [8, 3] {
        let mut random = StdRng::seed_from_u64(seed);
        let before = from_index(&pair.index, "/v1/boards/main/distribution").await["version"].clone();
        assert!(layout::scatter(&mut connection, ranking, &mut random, layout::MANY).await > 0);
        pair.shows("main", &sums).await;
        let after = from_index(&pair.index, "/v1/boards/main/distribution").await["version"].clone();
        assert_eq!(before, after);
        pair.sql.post("/v1/boards/main/scores", json!({"user_id": "p1", "points": 5})).await.is(200);
        sums.add("p1", 5);
        pair.shows("main", &sums).await;
    }
    assert_eq!(loads(&pair), 1, "{}", pair.index.serve.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buckets_in_any_order_of_their_numbers_are_loaded() {
    let db = TestDb::new().await;
    let mut sums = Sums::default();
    let mut scores = "SELECT centile.create_board('main', '{\"periods\": [\"all_time\"], \"lanes\": 2}')".to_owned();
    for n in 0..120 {
        let (user, points) = (format!("p{n}"), n * 7 % 31);
        sums.add(&user, points);
        write!(scores, "; SELECT testing.submit_score('main', '{user}', {points})").unwrap();
    }
    db.execute(&scores).await;
    let mut connection = db.pool().await.acquire().await.unwrap();
    let ranking: i64 =
        sqlx::query_scalar("SELECT ranking_id FROM centile.periods").fetch_one(&mut *connection).await.unwrap();
    layout::scatter(&mut connection, ranking, &mut StdRng::seed_from_u64(1), layout::MANY).await;
    let buckets: Vec<i16> = sqlx::query_scalar(
        "SELECT bucket FROM centile.bucket_occupancy WHERE ranking_id = $1 AND players > 0 ORDER BY place",
    )
    .bind(ranking)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert!(buckets.len() > 3 && !buckets.is_sorted(), "{buckets:?}");
    let pair = Pair::start(&db).await;
    pair.shows("main", &sums).await;
    assert_eq!(loads(&pair), 1, "{}", pair.index.serve.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directory_keeps_the_names_of_a_load() {
    let db = TestDb::new().await;
    let pair = Pair::start(&db).await;
    played(&pair).await;
    let users = "centile_directory_users";
    let metrics = pair.index.get("/metrics").await.text;
    assert!(metrics.contains(&format!("{users} 120\n")), "{metrics}");
    // A changed name is updated there, and no other name is evicted.
    pair.sql.admin(Method::PUT, "/v1/users/p3", json!({"name": "Three"})).await.is(200);
    assert_eq!(pair.index.get("/v1/boards/main/scores/p3").await.is(200)["name"], "Three");
    // More changes than a round can carry: the directory starts again, and every name is right.
    db.execute(
        "SELECT centile.put_user('q' || n, 'Q ' || n) FROM generate_series(1, 1100) AS n;
         SELECT centile.put_user('p' || n, 'P ' || n) FROM generate_series(0, 119) AS n",
    )
    .await;
    let output = pair.read("/v1/boards/main/scores?from=2&limit=1000").await;
    for row in output["data"].as_array().unwrap() {
        let user = row["user_id"].as_str().unwrap();
        assert_eq!(row["name"], format!("P {}", user.trim_start_matches('p')), "{row}");
    }
}
