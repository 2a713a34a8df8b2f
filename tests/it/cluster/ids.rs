//! A worker of a cluster skips ids if another server has drawn higher ones. The test needs PostgreSQL
//! with Citus.

use futures::future::try_join_all;
use sqlx::{AssertSqlSafe, PgPool};

use crate::support::{cluster, wait::until};

const NEXT_ID: &str = "SELECT nextval('centile_lanes.ids')";

const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_session_that_skips_ids_blocks_no_other() {
    let cluster = cluster::start();
    let url = cluster::create_database(&cluster, "boards").await;
    let coordinator = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql("SELECT centile.create_board('arena')").execute(&coordinator).await.unwrap();
    let worker = cluster::workers(&url).await.remove(0);
    let lane: i16 = sqlx::query_scalar("SELECT min(lane) FROM centile_lanes.lanes").fetch_one(&worker).await.unwrap();
    let hold = || sqlx::raw_sql(AssertSqlSafe(format!("SELECT centile_store.hold_lane(1, {lane}::smallint)")));
    let others_drew = async |id: i64| {
        let statement = format!("UPDATE centile_lanes.last_id SET id = {id}");
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&coordinator).await.unwrap();
    };

    let mut first = worker.begin().await.unwrap();
    hold().execute(&mut *first).await.unwrap();
    others_drew(10_000).await;
    // The second session skips ids, then waits for the lane, which the first one holds.
    let (pool, statement) = (worker.clone(), hold());
    let second = tokio::spawn(async move { statement.execute(&pool).await });
    until("the second session waits", async || {
        sqlx::query_scalar::<_, i64>(WAITING).fetch_one(&worker).await.unwrap() == 1
    })
    .await;
    let id: i64 = sqlx::query_scalar(NEXT_ID).fetch_one(&mut *first).await.expect("no deadlock");
    assert!(id > 10_000, "{id}");
    first.commit().await.unwrap();
    second.await.unwrap().unwrap();

    // Concurrent sessions share the work.
    let wanted = id + 64 * 100_000;
    let skips = (0..8).map(|_| sqlx::query("SELECT centile_lanes.draw_above($1)").bind(wanted).execute(&worker));
    try_join_all(skips).await.unwrap();
    let id: i64 = sqlx::query_scalar(NEXT_ID).fetch_one(&worker).await.unwrap();
    assert!((wanted..wanted + 64 * 16).contains(&id), "{id}, not {wanted}");

    // More than a million ids: ALTER SEQUENCE skips them.
    others_drew(100_000_000).await;
    hold().execute(&worker).await.unwrap();
    let id: i64 = sqlx::query_scalar(NEXT_ID).fetch_one(&worker).await.unwrap();
    assert!(id > 100_000_000, "{id}");
}
