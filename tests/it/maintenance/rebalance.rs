//! Layouts under a running service: the timer keeps them balanced as scores arrive, and `centile
//! maintain` reports its changes.

use std::{fs, sync::Arc};

use centile::dev::local::PostgresOptions;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use crate::{
    store::property::layout::check_ranking,
    support::{
        PATIENT, Serve, TestDb, amount, audit, layout,
        load::{Load, key},
        own_postgres, redis_url, run, spawn_serve, verdict, wait,
    },
};

/// Players of one unit of balance in rankings of up to 100,000 players.
const UNIT: i64 = 1_000;

/// Returns the players of a ranking's fullest bucket, and of all buckets.
async fn fullest(pool: &PgPool, ranking: i64) -> (i64, i64) {
    let (_, players) = layout::occupied(&mut pool.acquire().await.unwrap(), ranking).await;
    (players.iter().copied().max().unwrap(), players.iter().sum())
}

/// Reads pages and players until `stop`. Every answer must be consistent: positions are
/// consecutive, scores descend, and equal scores share a rank. Returns the number of answers.
async fn read(serve: Arc<Serve>, stop: CancellationToken) -> usize {
    let mut answers = 0;
    while !stop.is_cancelled() {
        let get = async |path: String| -> Value {
            let answer = serve.client.get(serve.at(&path)).send().await.unwrap();
            assert!(answer.status() == 200 || answer.status() == 404, "{path}: {}", answer.status());
            answer.json().await.unwrap()
        };
        let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} of {row}"));
        let from = 1 + answers * 331 % 6_000;
        let page = get(format!("/v1/boards/arena/scores?from={from}&limit=200")).await;
        let around = get(format!("/v1/boards/arena/scores/p{}?around=20", answers % 6_000)).await;
        let list = |name: &str| around[name].as_array().into_iter().flatten();
        let near: Vec<&Value> = list("above").chain(around.get("rank").map(|_| &around)).chain(list("below")).collect();
        for rows in [page["data"].as_array().into_iter().flatten().collect::<Vec<_>>(), near] {
            for pair in rows.windows(2) {
                let [above, below] =
                    [pair[0], pair[1]].map(|row| ["position", "rank", "score"].map(|name| number(row, name)));
                assert_eq!(above[0] + 1, below[0], "{pair:?}");
                assert_eq!(below[1], if above[2] == below[2] { above[1] } else { below[0] }, "{pair:?}");
                assert!(above[2] >= below[2], "{pair:?}");
            }
        }
        answers += 1;
    }
    answers
}

/// Half of all newcomers have the same score, the others a lower score than anybody before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timer_spreads_new_players_under_reads_and_writes() {
    const BULK: i64 = 1_000;
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 2}')").await;
    let serve = Arc::new(spawn_serve(&db, None, &[&PATIENT[..], &["--maintenance-every", "1"]].concat()).await);
    let key = key(db.url(), "server");
    let pool = db.pool().await;
    let stop = CancellationToken::new();
    let reader = tokio::spawn(read(Arc::clone(&serve), stop.clone()));
    let post = async |events: Vec<Value>| {
        let sent = serve
            .client
            .post(serve.at("/v1/boards/arena/scores/batch"))
            .bearer_auth(&key)
            .json(&json!({"events": events}))
            .send();
        let answer = sent.await.unwrap();
        assert_eq!(answer.status(), 200);
        let answer: Value = answer.json().await.unwrap();
        assert!(answer["results"].as_array().unwrap().iter().all(|result| result["state"] == "accepted"), "{answer}");
    };
    let score = |n: i64| if n % 2 == 0 { 7 } else { -n };
    let write = async || {
        for bulk in 0..6 {
            let numbers = bulk * BULK..(bulk + 1) * BULK;
            post(numbers.map(|n| json!({"user_id": format!("p{n}"), "points": score(n)})).collect()).await;
            if bulk == 0 {
                continue;
            }
            // Another player scores until this bulk is spread, so that the ranking keeps changing.
            wait::until("the new players are spread", async || {
                post(vec![json!({"user_id": "busy", "points": 1})]).await;
                audit::apply(&pool).await;
                let ranking = sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods");
                let (most, players) = fullest(&pool, ranking.fetch_one(&pool).await.unwrap()).await;
                assert!(most * 10 <= UNIT * 18 + BULK * 10, "{most} in a bucket after {players}");
                most * 10 <= UNIT * 18
            })
            .await;
        }
    };
    Box::pin(write()).await;
    let ranking: i64 =
        sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods").fetch_one(&pool).await.unwrap();
    // There are no more writes, and there are empty buckets, so a lower bound holds.
    wait::until("the ranking is at rest", async || fullest(&pool, ranking).await.0 * 10 <= UNIT * 13).await;
    let layout = check_ranking(&mut pool.acquire().await.unwrap(), ranking, "newcomers").await;
    assert!(layout.occupied().len() >= 5, "{:?}", layout.players());
    stop.cancel();
    assert!(reader.await.unwrap() > 20);
    for n in [0, 1, 2, 999, 3_000, 3_001, 5_998, 5_999] {
        let answer =
            serve.client.get(serve.at(&format!("/v1/boards/arena/scores/p{n}?around=0"))).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        // This player's score depends on how long the test waited.
        let busy: i64 = sqlx::query_scalar("SELECT score FROM centile.player_rank('arena', 'busy')")
            .fetch_one(&pool)
            .await
            .unwrap();
        let better = (0..6_000).map(score).chain([busy]).filter(|other| *other > score(n)).count();
        assert_eq!((&answer["rank"], &answer["players"]), (&json!(better + 1), &json!(6_001)), "p{n}");
    }
    audit::rankings_are_sound(&pool).await;
}

/// Readers, writers and the timers of two instances run against each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_timers_keep_layouts_balanced_under_reads_and_writes() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.create_board('first', '{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 2}')",
    )
    .await;
    let redis = redis_url().await;
    let flags = [&PATIENT[..], &["--maintenance-every", "1"]].concat();
    let instances = [spawn_serve(&db, Some(&redis), &flags).await, spawn_serve(&db, Some(&redis), &flags).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["shared", "first"], key(db.url(), "admin"));
    load.players = amount(3_000, 6_000);
    let load = Arc::new(load);
    let stop = CancellationToken::new();
    let mut record = load.begin().await;
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });
    let pool = db.pool().await;
    // A failed load reports its reason below.
    wait::until("players of every ranking are in several buckets", async || {
        let spread = sqlx::query_scalar::<_, bool>(
            "SELECT bool_and((SELECT count(*) FROM unnest(centile_store.bucket_totals(p.ranking_id)) AS c WHERE c > 0) > 1)
             FROM centile_store.periods p",
        );
        running.is_finished() || spread.fetch_one(&pool).await.unwrap()
    })
    .await;
    // Continues the load with the timer, until every instance has answered at many more versions.
    let batches = async || -> i64 {
        let batches = "SELECT sum(batch)::bigint FROM centile_store.board_lanes";
        sqlx::query_scalar(batches).fetch_one(&pool).await.unwrap()
    };
    let wanted = batches().await + amount(100, 500);
    let layouts = async || -> i32 {
        sqlx::query_scalar("SELECT max(layout) FROM centile_store.rankings").fetch_one(&pool).await.unwrap()
    };
    wait::until("more batches, and several layouts", async || {
        running.is_finished() || batches().await >= wanted && layouts().await > 5
    })
    .await;
    stop.cancel();
    record.join(running.await.unwrap());
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("layouts kept by two timers");
    assert!(layouts().await > 5);
    assert!(audit::rankings_are_sound(&pool).await >= 4);
    for instance in &instances {
        assert!(!instance.output().contains("could not be"), "{}", instance.output());
    }
    let mut moved = 0.0;
    for instance in &instances {
        let text = instance.client.get(instance.at("/metrics")).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("centile_layout_rows_moved_total "));
        moved += line.map_or(0.0, |number| number.parse::<f64>().unwrap());
    }
    // At least one unit of each ranking.
    assert!(moved >= 4_000.0, "{moved} rows moved");
}

/// Creates a board with one lane and this many players, each with a different score.
async fn board(db: &TestDb, slug: &str, players: u32) -> i64 {
    db.execute(&format!(
        "SELECT centile.create_board('{slug}', '{{\"periods\": [\"all_time\"], \"lanes\": 1}}');
         SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, {players}) AS n));
         SELECT count(*) FROM testing.record_scores((SELECT id FROM centile_store.boards WHERE slug = '{slug}'), 0::smallint,
             ARRAY(SELECT 'p' || n FROM generate_series(1, {players}) AS n), ARRAY(SELECT n::bigint FROM generate_series(1, {players}) AS n))"
    ))
    .await;
    let ranking = "SELECT p.ranking_id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE b.slug = $1";
    sqlx::query_scalar(ranking).bind(slug).fetch_one(&db.pool().await).await.unwrap()
}

#[tokio::test]
async fn maintain_reports_its_layout_changes() {
    let db = TestDb::new().await;
    let (small, large) = (board(&db, "small", 1_300).await, board(&db, "large", 5_000).await);
    // Of five units in one bucket, four move to others in steps of 400, 400 and 200 rows: one to
    // the next bucket above, the others to empty buckets that are repositioned below. The last
    // bucket need not be filled, because 1,200 players are within the limit.
    let output = run(&db, &["maintain"]).well();
    assert!(output.contains("layouts     11 boundaries moved with 3,800 rows, 3 buckets repositioned\n"), "{output}");
    let mut connection = db.pool().await.acquire().await.unwrap();
    let before = check_ranking(&mut connection, large, "maintained").await;
    assert_eq!(before.players(), [[1_000, 1_000, 800, 1_200, 1_000].as_slice(), &[0; 95]].concat());
    assert_eq!(check_ranking(&mut connection, small, "maintained").await.occupied(), [1]);
    let output = run(&db, &["maintain"]).well();
    assert!(output.contains("layouts     0 boundaries moved with 0 rows, 0 buckets repositioned\n"), "{output}");
    assert_eq!(check_ranking(&mut connection, large, "again").await, before);
    let output = run(&db, &["verify"]).well();
    assert!(!output.contains("layout differences"), "{output}");
}

#[tokio::test]
async fn a_damaged_ranking_does_not_stop_the_rebalancing_of_others() {
    let db = TestDb::new().await;
    let (damaged, sound) = (board(&db, "damaged", 2_000).await, board(&db, "sound", 2_000).await);
    db.execute(&format!("DELETE FROM centile_store.leaderboard_bucket WHERE ranking_id = {damaged}")).await;
    let ran = run(&db, &["maintain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("layouts     2 boundaries moved with 800 rows, 0 buckets repositioned\n"), "{ran:?}");
    assert!(ran.err.contains("a layout could not be rebalanced") && ran.err.contains("CB900"), "{ran:?}");
    let mut connection = db.pool().await.acquire().await.unwrap();
    assert_eq!(check_ranking(&mut connection, sound, "sound").await.players()[..3], [1_200, 800, 0]);
    assert_eq!(layout::occupied(&mut connection, damaged).await.1[..2], [2_000, 0]);
}

#[tokio::test]
async fn a_missing_lane_row_does_not_stop_the_rebalancing_of_others() {
    let db = TestDb::new().await;
    let (_, sound) = (board(&db, "damaged", 2_000).await, board(&db, "sound", 2_000).await);
    db.execute("DELETE FROM centile_store.board_lanes l USING centile_store.boards b WHERE b.id = l.board_id AND b.slug = 'damaged'")
        .await;
    let ran = run(&db, &["maintain"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut connection = db.pool().await.acquire().await.unwrap();
    assert_eq!(check_ranking(&mut connection, sound, "sound").await.players()[..3], [1_200, 800, 0]);
}

/// Starting a process takes twenty times as long as reading a rank. The planner starts workers for
/// any divisible statement once a bucket is large; here it would from the first row.
#[tokio::test]
async fn neither_reading_nor_writing_starts_parallel_workers() {
    let settings = vec![("log_min_messages".to_owned(), "debug1".to_owned())];
    let postgres = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let url = postgres.url("postgres");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let name = if postgres.version() < 16 { "force_parallel_mode" } else { "debug_parallel_query" };
    sqlx::raw_sql(AssertSqlSafe(format!(
        "SELECT centile.create_board('arena', '{{\"lanes\": 2}}'); ALTER DATABASE postgres SET {name} = on; SET {name} = on"
    )))
    .execute(&mut connection)
    .await
    .unwrap();
    let serve = Serve::spawn(&url, None, "workers:", &[]);
    let key = key(&url, "admin");
    let workers = || {
        let log = fs::read_to_string(postgres.log()).unwrap();
        log.lines().filter(|line| line.contains("starting background worker process \"parallel worker")).count()
    };
    let before = workers();
    for _ in 0..2 {
        let events: Vec<_> =
            (0..40).map(|n| json!({"user_id": format!("p{n}"), "points": n, "id": format!("e{n}")})).collect();
        let sent = serve
            .client
            .post(serve.at("/v1/boards/arena/scores/batch?ranks=true"))
            .bearer_auth(&key)
            .json(&json!({"events": events}))
            .send();
        assert_eq!(sent.await.unwrap().status(), 200);
        for path in [
            "/scores",
            "/scores?limit=5&from=10",
            "/scores/query?user_id=p1&user_id=p2",
            "/scores/p7?around=0",
            "/scores/p7?around=4",
            "/scores/p7/history",
            "/rank?score=5",
            "/distribution",
            "/periods",
        ] {
            let request = serve.client.get(serve.at(&format!("/v1/boards/arena{path}"))).bearer_auth(&key);
            assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
        }
    }
    assert_eq!(workers() - before, 0);
    // Other statements may use workers.
    sqlx::query("SELECT count(*) FROM centile_store.players").execute(&mut connection).await.unwrap();
    assert_eq!(workers() - before, 1);
}
