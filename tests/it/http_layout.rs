//! The layout under a running service: split as scores arrive, moved on the timer, and what `centile maintain` says of it.

use std::{fs, sync::Arc};

use centile::local::PostgresOptions;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use crate::{
    sql_property::layout::check_ranking,
    support::{
        PATIENT, Serve, TestDb, amount, audit, layout,
        load::{Load, key},
        own_postgres, redis_url, run, spawn_serve, verdict, wait,
    },
};

/// Waits until a statement says true.
async fn until(pool: &PgPool, statement: &'static str, what: &str) {
    wait::until(what, async || sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()).await;
}

#[tokio::test]
async fn newcomers_on_one_score_are_split_while_they_come() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('arena', p_periods => '{all_time}', p_lanes => 2::smallint);
         UPDATE centile_store.boards SET stripe_target = 20",
    )
    .await;
    // Without the timer: it is the writers who notice.
    let serve = spawn_serve(&db, None, &PATIENT).await;
    let key = key(db.url(), "server");
    let pool = db.pool().await;
    for batch in 0..4 {
        let events: Vec<_> = (0..1_000).map(|n| json!({"user_id": format!("p{batch}-{n}"), "points": 7})).collect();
        let sent = serve
            .client
            .post(serve.at("/v1/boards/arena/scores"))
            .bearer_auth(&key)
            .json(&events)
            .send()
            .await
            .unwrap();
        assert_eq!(sent.status(), 200);
        until(
            &pool,
            "SELECT NOT EXISTS (SELECT FROM centile_store.periods p CROSS JOIN LATERAL centile_store.buckets_to_tidy(p.ranking_id))",
            "stripes split",
        )
        .await;
        let ranking: i64 =
            sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods").fetch_one(&pool).await.unwrap();
        let layout = check_ranking(&mut pool.acquire().await.unwrap(), ranking, "a burst").await;
        let largest = layout.stripes().into_iter().map(|stripe| stripe.1).max();
        assert!(largest <= Some(40), "{largest:?} after {batch} batches");
    }
    let answer = serve.client.get(serve.at("/v1/boards/arena/scores/p3-999?around=0")).send().await.unwrap();
    let answer: serde_json::Value = answer.json().await.unwrap();
    assert_eq!((&answer["rank"], &answer["players"]), (&json!(1), &json!(4_000)));
    audit::rankings_are_sound(&pool).await;
}

/// Readers, writers and the timers of two instances, each against all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripes_move_on_the_timer_under_readers_and_writers() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint);
         SELECT centile.create_board('first', p_mode => 'latest', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 2::smallint);
         UPDATE centile_store.boards SET stripe_target = 10, balance_from = 100",
    )
    .await;
    let redis = redis_url().await;
    let flags = [&PATIENT[..], &["--maintenance-every", "1"]].concat();
    let instances = [spawn_serve(&db, Some(&redis), &flags).await, spawn_serve(&db, Some(&redis), &flags).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["shared", "first"], key(db.url(), "admin"));
    load.players = amount(700, 3_000);
    let load = Arc::new(load);
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });
    let pool = db.pool().await;
    until(
        &pool,
        "SELECT bool_and((SELECT count(*) FROM unnest(centile_store.bucket_totals(p.ranking_id)) AS c WHERE c > 0) > 10)
         FROM centile_store.periods p",
        "stripes in many buckets of all rankings",
    )
    .await;
    // Some more of it with the timer going on: until every instance has met many states since.
    let batches = async || -> i64 {
        let batches = "SELECT sum(batch)::bigint FROM centile_store.board_lanes";
        sqlx::query_scalar(batches).fetch_one(&pool).await.unwrap()
    };
    let wanted = batches().await + amount(100, 500);
    // Where the load has failed, it says so below.
    wait::until("more batches", async || running.is_finished() || batches().await >= wanted).await;
    stop.cancel();
    record.join(running.await.unwrap());
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("layouts kept by two timers");
    assert!(verdict.layout > 20, "{} layouts", verdict.layout);
    assert_eq!(audit::rankings_are_sound(&pool).await, 4);
    for instance in &instances {
        assert!(!instance.output().contains("could not be"), "{}", instance.output());
    }
    let mut moved = 0.0;
    for instance in &instances {
        let text = instance.client.get(instance.at("/metrics")).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("centile_layout_rows_moved_total "));
        moved += line.map_or(0.0, |number| number.parse::<f64>().unwrap());
    }
    assert!(moved > amount(100.0, 500.0), "{moved} rows moved");
}

#[tokio::test]
async fn maintain_says_what_it_did_to_layouts() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('arena', p_periods => '{all_time}', p_lanes => 1::smallint);
         UPDATE centile_store.boards SET stripe_target = 10, balance_from = 500;
         SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) AS n));
         SELECT centile.ensure_ledger_months();
         SELECT count(*) FROM testing.record_scores(1, 0::smallint, ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) AS n),
             ARRAY(SELECT n::bigint FROM generate_series(1, 1000) AS n))",
    )
    .await;
    // A thousand in one stripe become a hundred stripes of ten, and these two hundred of five, for they are to be moved: all but
    // the two that stay leave bucket 50.
    let told = run(&db, &["maintain"]).well();
    assert!(told.contains("layouts     199 stripes split or merged, 198 moved with 990 rows\n"), "{told}");
    let told = run(&db, &["maintain"]).well();
    assert!(told.contains("layouts     0 stripes split or merged, 0 moved with 0 rows\n"), "{told}");
    let mut connection = db.pool().await.acquire().await.unwrap();
    let layout = check_ranking(&mut connection, 1, "maintained").await;
    assert_eq!(layout.buckets(), vec![10; 100]);
    assert!(layout::steps(&mut connection, 1).await.is_empty());
}

/// To start a process takes twenty times as long as to read a rank, and the planner does it once a bucket is large. Here it would for
/// whatever statement may be divided.
#[tokio::test]
async fn neither_reading_nor_writing_starts_parallel_workers() {
    let settings = vec![("log_min_messages".to_owned(), "debug1".to_owned())];
    let postgres = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let url = postgres.url("postgres");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let name = if postgres.version() < 16 { "force_parallel_mode" } else { "debug_parallel_query" };
    sqlx::raw_sql(AssertSqlSafe(format!(
        "SELECT centile.create_board('arena', p_lanes => 2::smallint); ALTER DATABASE postgres SET {name} = on; SET {name} = on"
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
        let sent =
            serve.client.post(serve.at("/v1/boards/arena/scores?ranks=true")).bearer_auth(&key).json(&events).send();
        assert_eq!(sent.await.unwrap().status(), 200);
        for path in [
            "/scores",
            "/scores?limit=5&from=10",
            "/scores?users=p1&users=p2",
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
    // Others are free to.
    sqlx::query("SELECT count(*) FROM centile_store.leaderboard").execute(&mut connection).await.unwrap();
    assert_eq!(workers() - before, 1);
}
