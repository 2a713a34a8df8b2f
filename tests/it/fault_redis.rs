//! Redis emptied, frozen, killed and filled with garbage in the middle of a load: no answer is wrong and none fails.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::cmd;
use tokio_util::sync::CancellationToken;

use crate::support::{
    TestDb, audit,
    load::{Load, key, stop_after},
    own_redis, redis_connection, spawn_serve,
    spoiler::Spoiler,
    verdict,
};

/// Each state of Redis lasts so long: longer than its failures take to be noticed, and to be got over.
const PHASE: Duration = Duration::from_millis(1_500);

/// Lets time pass while the load goes on.
async fn pass() {
    tokio::time::sleep(PHASE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_redis_does_no_answer_is_wrong() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint);
         SELECT centile.create_board('first', p_mode => 'best', p_ties => 'first', p_periods => '{all_time,week}',
             p_lanes => 1::smallint, p_layout_bounds => '{0,2,4}')",
    )
    .await;
    let mut redis = own_redis();
    let url = redis.url();
    let instances = [spawn_serve(&db, Some(&url), &[]).await, spawn_serve(&db, Some(&url), &[]).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });

    pass().await;
    cmd("FLUSHALL").exec_async(&mut redis_connection(&redis.url()).await).await.expect("an empty Redis");
    let mut spoiler = Spoiler::new(&redis, db.redis_prefix()).await;
    spoiler.go_on(2 * PHASE).await;
    redis.pause().expect("a frozen Redis");
    pass().await;
    redis.resume().expect("Redis goes on");
    pass().await;
    redis.kill_hard().expect("a dead Redis");
    pass().await;
    redis.start_again().expect("Redis is back");
    let mut again = Spoiler::new(&redis, db.redis_prefix()).await;
    again.go_on(2 * PHASE).await;

    stop.cancel();
    record.join(running.await.expect("the load"));
    // Instances that know nothing yet take what they find there, and nothing is written that would make it old.
    for number in 2..6 {
        let fresh = spawn_serve(&db, Some(&url), &[]).await;
        again.spoil(number % 2 == 0).await;
        let mut readers = Load::new(vec![fresh.url.clone()], &["shared", "first"], load.key.clone());
        readers.read_only = true;
        record.join(Arc::new(readers).run(&stop_after(PHASE / 2)).await.renumber(number));
    }
    let pool = db.pool().await;
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("Redis fails");
    let (first, second) = (spoiler.spoiled, again.spoiled);
    assert!(first > 50 && second > 50, "only {first} and {second} values were spoiled");
    for instance in instances {
        instance.told("Redis answers again", 1).await;
    }
    assert_eq!(audit::rankings_are_sound(&pool).await, 4);
}
