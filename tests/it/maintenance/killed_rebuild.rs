//! A killed rebuild: readers see no change, and the next run succeeds.

use std::{thread, time::Instant};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;

use crate::support::{
    TestDb, amount,
    random::seed,
    run_at, spawn,
    wait::{until, until_blocking},
};

/// 3,000 players with some events each, and many ties.
const PAST: &str = "
    SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 4}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 3000) n));
    SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-28');
    SELECT centile_store.open_periods(1, '{2024-01-03 12:00Z}');
    SELECT count(r)
    FROM (SELECT n / 1000 AS batch, centile.lane_hash('p' || n % 3000 + 1) % 4 AS lane, array_agg('p' || n % 3000 + 1 ORDER BY n) AS users,
                 array_agg((n * 7919::bigint) % 500 ORDER BY n) AS points,
                 array_agg('2024-01-01Z'::timestamptz + n * interval '200 seconds' ORDER BY n) AS times
          FROM generate_series(1, 6000) n GROUP BY 1, 2) e
    CROSS JOIN LATERAL testing.record_scores(1, e.lane::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r";

const REBUILD: &[&str] = &["rebuild", "--board", "arena", "--all", "--by", "dora"];

async fn rows(pool: &PgPool) -> (i64, i64, i64) {
    sqlx::query_as(
        "SELECT (SELECT count(*) FROM centile_store.leaderboard), (SELECT count(*) FROM centile_store.leaderboard_bucket),
                (SELECT count(*) FROM centile_store.rankings)",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_rebuild_leaves_the_ranking_unchanged() {
    let db = TestDb::new().await;
    let (url, pool) = (db.url(), db.pool().await);
    db.execute(PAST).await;
    let begin = Instant::now();
    run_at(url, REBUILD).well();
    let mut whole = begin.elapsed();
    // The ranking is damaged throughout.
    let damage = "DELETE FROM centile_store.leaderboard_bucket WHERE user_key = -7;
                  UPDATE centile_store.bucket_counts SET counts[40] = counts[40] + 3";
    sqlx::raw_sql(damage).execute(&pool).await.unwrap();
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let all: u32 = amount(5, 10);
    let mut kills = 0;
    while kills < all {
        // Each kill falls into another part of the rebuild's duration.
        let moment = whole.mul_f64((f64::from(kills) + random.random_range(0.0..1.0)) / f64::from(all));
        let begin = Instant::now();
        let mut rebuilding = spawn(url, REBUILD);
        thread::sleep(moment);
        if rebuilding.try_wait().unwrap().is_none() {
            rebuilding.kill().unwrap();
            kills += 1;
        } else {
            whole = whole.min(begin.elapsed());
        }
        let was_done = rebuilding.wait().unwrap().success();
        // The ranking is repaired, or unchanged. The server may complete a killed rebuild.
        let verified = run_at(url, &["verify"]);
        assert!(verified.code == Some(0) || !was_done, "seed {seed}, after {kills} kills: {verified:?}");
        if verified.code == Some(0) {
            sqlx::raw_sql(damage).execute(&pool).await.unwrap();
        } else {
            let kinds = ["bucket row missing: player p", "bucket count: bucket "];
            assert!(kinds.iter().all(|kind| verified.out.contains(kind)), "seed {seed}: {verified:?}");
            assert!(verified.err.contains("2 differences"), "seed {seed}: {verified:?}");
        }
    }
    // The session of the last killed rebuild may take a moment to end.
    until_blocking("a rebuild gets the lock", || {
        let ran = run_at(url, REBUILD);
        assert!(ran.code == Some(0) || ran.err.contains("is rebuilding the period"), "seed {seed}: {ran:?}");
        ran.code == Some(0)
    });
    run_at(url, &["verify"]).well();
    until("only the current ranking is left", async || {
        run_at(url, &["maintain"]).well();
        rows(&pool).await == (3_000, 3_000, 1)
    })
    .await;
    run_at(url, &["verify"]).well();
    eprintln!("seed {seed}: {kills} kills of rebuildings of {whole:?}");
}
