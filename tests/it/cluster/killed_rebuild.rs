//! Rebuilding on a cluster: if the command is killed and repeated, the ranking is repaired. The test
//! needs PostgreSQL with Citus.

use sqlx::PgPool;

use crate::{
    cluster::past::Past,
    support::{amount, audit, killing::Killing, run_at},
};

/// Damages the all-time ranking: a bucket row, and the counts of all lanes.
const DAMAGE: &str = "
    DELETE FROM centile_store.leaderboard_bucket b
    WHERE b.user_key = -7 AND b.ranking_id = (SELECT p.ranking_id FROM centile.periods p WHERE p.kind = 'all_time');
    UPDATE centile_store.bucket_counts c SET counts[40] = counts[40] + 3
    WHERE c.ranking_id = (SELECT p.ranking_id FROM centile.periods p WHERE p.kind = 'all_time')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_repeated_rebuild_repairs_the_ranking_after_a_kill() {
    let past = Past::new().await;
    let url = past.copy().await;
    let pool = PgPool::connect(&url).await.unwrap();
    let damaged = async || {
        sqlx::raw_sql(DAMAGE).execute(&pool).await.unwrap();
        let verified = run_at(&url, &["verify"]);
        assert!(verified.out.contains("bucket row missing") && verified.out.contains("bucket count"), "{verified:?}");
        url.clone()
    };
    let killing = Killing {
        command: &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"],
        steps: &["begin_rebuild", "fill_entries", "fill_buckets", "catch_up", "swap_ranking"],
        kills: amount(3, 9),
        busy: "is rebuilding the period",
    };
    let check = async |pool: &PgPool| {
        run_at(&url, &["verify"]).well();
        assert_eq!(audit::rankings_are_sound(pool).await, 6);
    };
    killing.run_on(damaged, async |_| {}, check).await;
    // The first run releases those of killed rebuilds, and the second one removes them.
    run_at(&url, &["maintain"]).well();
    let earlier = "UPDATE centile_store.rankings SET released_at = released_at - interval '1 hour'";
    sqlx::raw_sql(earlier).execute(&pool).await.unwrap();
    run_at(&url, &["maintain"]).well();
    let rankings = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM centile_store.rankings");
    assert_eq!(rankings.fetch_one(&pool).await.unwrap(), 6, "rankings of killed rebuilds are left");
}
