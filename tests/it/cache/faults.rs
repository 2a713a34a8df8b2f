//! Redis is emptied, frozen, killed and filled with garbage under load: no answer is wrong, and no
//! request fails.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::cmd;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::support::{
    PATIENT, Serve, TestDb, amount, audit,
    corrupter::Corrupter,
    load::{Load, key, stop_after},
    own_redis, redis_connection, spawn_serve, verdict,
    wait::until,
};

/// Duration of the reads from a new instance.
const READING: Duration = Duration::from_millis(500);

/// Returns once the load has written more batches.
async fn until_more_batches(pool: &PgPool) {
    let batches = async || -> i64 {
        let batches = "SELECT sum(batch)::bigint FROM centile_store.board_lanes";
        sqlx::query_scalar(batches).fetch_one(pool).await.expect("the lanes")
    };
    let wanted = batches().await + amount(30, 150);
    until("more batches", async || batches().await >= wanted).await;
}

/// Returns whether an instance bypasses Redis, by its last log line about it.
fn bypasses_redis(instance: &Serve) -> bool {
    let output = instance.output();
    output.rfind("skipping it") > output.rfind("Redis answers again")
}

/// Returns once all instances bypass Redis, or none does.
async fn all_bypass_redis(instances: &[Serve], wanted: bool) {
    for instance in instances {
        until("Redis is skipped or used", async || bypasses_redis(instance) == wanted).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failure_of_redis_makes_an_answer_wrong() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.create_board('first', '{\"mode\": \"best\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1, \"first_layout\": {\"bounds\": [0,2,4]}}')",
    )
    .await;
    let mut redis = own_redis();
    let url = redis.url();
    let instances = [spawn_serve(&db, Some(&url), &PATIENT).await, spawn_serve(&db, Some(&url), &PATIENT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["shared", "first"], key(db.url(), "admin"));
    load.players = amount(600, 3_000);
    let load = Arc::new(load);
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });

    let pool = db.pool().await;
    let values = amount(100, 1_000);
    until_more_batches(&pool).await;
    // A full Redis refuses writes only. Each instance logs the start and the end.
    for (limit, phrase) in [(1, "Redis refuses writes"), (0, "Redis accepts writes again")] {
        let mut connection = redis_connection(&redis.url()).await;
        cmd("CONFIG").arg("SET").arg("maxmemory").arg(limit).exec_async(&mut connection).await.expect("a limit");
        for instance in &instances {
            until(phrase, async || instance.output().contains(phrase)).await;
        }
        until_more_batches(&pool).await;
        assert!(instances.iter().all(|instance| instance.output().matches(phrase).count() == 1), "{phrase}");
    }
    cmd("FLUSHALL").exec_async(&mut redis_connection(&redis.url()).await).await.expect("an empty Redis");
    let mut corrupter = Corrupter::new(&redis, db.redis_prefix()).await;
    corrupter.corrupt_more(values).await;
    redis.pause().expect("a frozen Redis");
    all_bypass_redis(&instances, true).await;
    until_more_batches(&pool).await;
    redis.resume().expect("SIGCONT");
    all_bypass_redis(&instances, false).await;
    until_more_batches(&pool).await;
    redis.kill_hard().expect("a dead Redis");
    all_bypass_redis(&instances, true).await;
    until_more_batches(&pool).await;
    redis.start_again().expect("Redis is back");
    all_bypass_redis(&instances, false).await;
    let mut again = Corrupter::new(&redis, db.redis_prefix()).await;
    again.corrupt_more(values).await;

    stop.cancel();
    record.join(running.await.expect("the load"));
    // New instances use the values in Redis, and no write makes these outdated.
    for number in 2..amount(4, 6) {
        let fresh = spawn_serve(&db, Some(&url), &PATIENT).await;
        again.corrupt(number % 2 == 0).await;
        let mut readers = Load::new(vec![fresh.url.clone()], &["shared", "first"], load.key.clone());
        (readers.read_only, readers.players) = (true, load.players);
        record.join(Arc::new(readers).run(&stop_after(READING)).await.renumber(number));
    }
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("Redis fails");
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}
