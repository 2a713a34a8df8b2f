//! Writers and readers at the same time: every answer is exact for the version it names, and none is older than what was
//! acknowledged before it was asked for.
//!
//! `CENTILE_TEST_SECONDS` makes the load longer.

use std::{env, sync::Arc, time::Duration};

use crate::support::{
    Serve, TestDb, audit,
    load::{Load, key, stop_after},
    record::Record,
    redis_url, spawn_serve, verdict,
};

/// For how long a load runs.
fn duration(seconds: u64) -> Duration {
    let wanted = env::var("CENTILE_TEST_SECONDS").ok();
    let wanted = wanted.map(|text| text.parse().unwrap_or_else(|_| panic!("CENTILE_TEST_SECONDS={text} is no number")));
    Duration::from_secs(wanted.unwrap_or(seconds))
}

/// Compares everything that a load was answered with what the ledger says, and looks at the rankings as they are.
async fn examine(db: &TestDb, load: &Load, record: &Record, what: &str) {
    let pool = db.pool().await;
    let verdict = verdict::of(&pool, load, record).await;
    verdict.expect_right(what);
    // The load was one: everything happened, and it met many states.
    assert_eq!(verdict.answers.len(), 9, "a kind of answer is missing");
    assert!(verdict.answers.values().all(|count| *count >= 10) && verdict.versions > 100 && verdict.repeated > 10);
    assert!(verdict.layout > 1, "no stripe was split");
    assert_eq!(audit::rankings_are_sound(&pool).await, 2 * load.boards.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_and_four_lanes() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint,
             p_layout_bounds => '{-10,0,3,10,30,50}');
         SELECT centile.create_board('first', p_mode => 'latest', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 4::smallint)",
    )
    .await;
    let redis = redis_url().await;
    let instances: [Serve; 2] = [spawn_serve(&db, Some(&redis), &[]).await, spawn_serve(&db, Some(&redis), &[]).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    record.join(load.run(&stop_after(duration(30))).await);
    examine(&db, &load, &record, "two instances, four lanes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_instance_and_one_lane() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_mode => 'best', p_periods => '{all_time,week}', p_lanes => 1::smallint);
         SELECT centile.create_board('first', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 1::smallint, p_layout_bounds => '{5,20}')",
    )
    .await;
    let instance = spawn_serve(&db, None, &[]).await;
    let load = Arc::new(Load::new(vec![instance.url.clone()], &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    record.join(load.run(&stop_after(duration(10))).await);
    examine(&db, &load, &record, "one instance, one lane").await;
}
