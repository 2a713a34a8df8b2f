//! Rebuilding on a cluster: if the command is killed and repeated, the ranking is repaired. The tests
//! need PostgreSQL with Citus.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};

use crate::{
    cluster::past::Past,
    support::{amount, audit, cluster, killing::Killing, run_at},
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
        steps: &["begin_rebuild", "differing_players", "fill_bounds", "fill_rows", "swap_ranking"],
        kills: amount(3, 9),
        busy: "is rebuilding the period",
    };
    let check = async |pool: &PgPool| {
        run_at(&url, &["verify"]).well();
        assert!(audit::rankings_are_sound(pool).await >= 6);
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

/// Changes the number of a ranking's layout in a worker's copy.
const SET_LAYOUT: &str = "
    DO $$ BEGIN
        PERFORM set_config('citus.enable_manual_changes_to_shards', 'on', true);
        EXECUTE (SELECT format('UPDATE centile_lanes.%I SET layout = layout + $1 WHERE id = $2', 'rankings_' || s.shardid)
                 FROM pg_dist_shard s WHERE s.logicalrelid = 'centile_lanes.rankings'::regclass);
    END $$";

/// If a connection is lost, a worker may commit a new layout later than the coordinator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn rows_are_not_placed_by_an_earlier_layout() {
    let past = Past::new().await;
    let url = past.copy().await;
    let mut session = PgConnection::connect(&url).await.unwrap();
    let begin = "
        SELECT r.ranking_id
        FROM centile.periods p CROSS JOIN LATERAL centile_store.begin_rebuild(p.period_id) AS r (ranking_id) WHERE p.kind = 'all_time'";
    let ranking: i64 = sqlx::query_scalar(begin).fetch_one(&mut session).await.unwrap();
    let bounds = "SELECT centile_store.fill_bounds($1)";
    sqlx::query(bounds).bind(ranking).execute(&mut session).await.unwrap();
    let fill = "SELECT sum(f.players)::bigint FROM generate_series(0, 3) l CROSS JOIN LATERAL centile_store.fill_rows($1, l::smallint) f";
    for (change, succeeds) in [(-1, false), (1, true)] {
        for worker in cluster::workers(&url).await {
            let set = SET_LAYOUT.replace("$1", &change.to_string()).replace("$2", &ranking.to_string());
            sqlx::raw_sql(AssertSqlSafe(set)).execute(&worker).await.unwrap();
        }
        let players = sqlx::query_scalar::<_, i64>(fill).bind(ranking).fetch_one(&mut session).await;
        match players {
            Ok(players) => assert!(succeeds && players > 0),
            Err(error) => assert!(!succeeds && error.to_string().contains("older layout"), "{error}"),
        }
    }
}
