//! A refresh that is killed at any moment leaves the last ranking, and the next one completes.

use std::{thread, time::Instant};

use rand::RngExt as _;
use sqlx::{PgPool, query_scalar};

use crate::support::{TestDb, amount, run, spawn, wait::until_blocking};

/// Two boards of 4,000 players, without service.
const PLAYERS: &str = "
    SELECT centile.create_board('one', '{\"periods\": [\"all_time\"], \"lanes\": 1}'), centile.create_board('two', '{\"periods\": [\"all_time\"], \"lanes\": 1}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 4000) n));
    SELECT count(r) FROM generate_series(1, 2) b
    CROSS JOIN LATERAL testing.record_scores(b, 0::smallint, ARRAY(SELECT 'p' || n FROM generate_series(1, 4000) n ORDER BY n),
        ARRAY(SELECT n * b % 77 FROM generate_series(1, 4000) n ORDER BY n)) r";

/// Digest of the ranking that answers, and of the scores that the sources have.
async fn digests(pool: &PgPool) -> (Option<String>, String) {
    let answers = "SELECT md5(string_agg(concat_ws(' ', position, rank, user_id, score), ',' ORDER BY position)) FROM centile.page('hero', 'all_time', 1, 10000)";
    let sources = "
        SELECT md5(string_agg(concat_ws(' ', x.position, x.rank, x.external_id, x.score), ',' ORDER BY x.position))
        FROM (SELECT row_number() OVER (ORDER BY x.score DESC, x.at, x.id) AS position, rank() OVER (ORDER BY x.score DESC) AS rank, x.external_id, x.score
              FROM (SELECT u.id, u.external_id, sum(t.points) AS score, max(t.occurred_at) AS at
                    FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id GROUP BY u.id, u.external_id) x) x";
    (query_scalar(answers).fetch_one(pool).await.unwrap(), query_scalar(sources).fetch_one(pool).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_refresh_leaves_the_last_ranking_and_can_be_repeated() {
    let db = TestDb::new().await;
    db.execute(PLAYERS).await;
    let pool = db.pool().await;
    run(&db, &["board", "combine", "hero", "--source", "one@all_time", "--source", "two@all_time"]).well();
    let refresh = ["refresh", "--board", "hero"];
    let begin = Instant::now();
    run(&db, &refresh).well();
    let mut whole = begin.elapsed();
    let (mut kills, all) = (0, amount(8_u32, 30));
    while kills < all {
        let (before, sources) = digests(&pool).await;
        assert_eq!(before, Some(sources));
        db.execute("SELECT testing.submit_score('one', 'p7', 3), testing.submit_score('two', 'p8', 5)").await;
        let (_, after) = digests(&pool).await;
        let moment = whole.mul_f64((f64::from(kills) + rand::rng().random_range(0.0..1.0)) / f64::from(all));
        let begin = Instant::now();
        let mut process = spawn(db.url(), &refresh);
        thread::sleep(moment);
        if process.try_wait().unwrap().is_none() {
            process.kill().unwrap();
            kills += 1;
        } else {
            // The first refresh may have been slower than the others.
            whole = whole.min(begin.elapsed());
        }
        process.wait().unwrap();
        // One of the two, never a part of one.
        let (now, _) = digests(&pool).await;
        assert!(now == before || now.as_ref() == Some(&after), "after {kills} kills");
        // The killed session may hold the lock for a moment.
        until_blocking("a new refresh gets the lock", || run(&db, &refresh).code == Some(0));
        assert_eq!(digests(&pool).await, (Some(after.clone()), after), "after {kills} kills");
        run(&db, &["verify", "--board", "hero"]).well();
        let kept: (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'),
                    (SELECT 1 + cardinality(old_views)::bigint FROM centile_store.combinations)",
        )
        .fetch_one(&pool)
        .await
        .unwrap();
        assert_eq!(kept.0, kept.1, "no view is forgotten, after {kills} kills");
    }
    db.execute("UPDATE centile_store.periods SET closed_at = closed_at - interval '1 minute'").await;
    run(&db, &["refresh", "--due"]).well();
    let left: i64 = query_scalar("SELECT count(*) FROM pg_matviews").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 1);
}
