//! Closing and refreshing on a cluster. After a kill of `close` or of a server, the archives are those
//! of a single server. After a kill of `refresh`, the archive is that of the ledger. The tests need
//! PostgreSQL with Citus.

use std::time::Duration;

use rand::RngExt as _;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{
    cluster::past::Past,
    periods::killed_close::{STEPS, closing, expect_closed},
    support::{amount, killing::Killing, random::seeded, run_at, spawn, wait::until_blocking},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_killed_close_ends_like_one_of_a_single_server() {
    let past = Past::new().await;
    closing(&STEPS, amount(3, 9))
        .run_on(async || past.copy().await, async |_| {}, async |pool| expect_closed(pool, &past.wanted).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_close_with_killed_servers_ends_like_one_of_a_single_server() {
    let mut past = Past::new().await;
    let mut random = seeded();
    let command = ["close", "--due"];
    let mut interrupted = 0;
    for kill in 0..amount(6, 30) {
        let url = past.copy().await;
        let mut child = spawn(&url, &command);
        // At a random moment of the command.
        sleep(Duration::from_millis(random.random_range(0..2_000))).await;
        let is_running = child.try_wait().unwrap().is_none();
        let server = match kill % 3 {
            0 => &mut past.cluster.coordinator,
            worker => &mut past.cluster.workers[worker - 1],
        };
        tokio::task::block_in_place(|| server.kill_hard().and_then(|()| server.start_again())).unwrap();
        let ran = tokio::task::block_in_place(|| child.wait_with_output()).unwrap();
        interrupted += u32::from(is_running);
        eprintln!("kill {kill}: running: {is_running}, {}", ran.status);
        until_blocking("the command succeeds", || {
            let again = run_at(&url, &command);
            again.code == Some(0) && !again.out.contains(closing(&[], 0).busy)
        });
        expect_closed(&PgPool::connect(&url).await.unwrap(), &past.wanted).await;
    }
    assert!(interrupted > 0, "each close had ended before the kill");
}

/// Whether an archive and its frozen top are those of the ledger. Counts scores within the week that
/// are not voided, of players who are not banned.
const IS_REFRESHED: &str = "
    SELECT p.corrected_at IS NULL
       AND (SELECT array_agg((a.user_id, a.score) ORDER BY a.position) FROM centile_archive.arena_week_2024_01_08 a)
         = (SELECT array_agg((s.user_id, s.score) ORDER BY s.score DESC, s.reached_at, s.user_id)
            FROM (SELECT t.user_id, sum(t.points)::bigint AS score, max(t.occurred_at) AS reached_at FROM centile_store.score_transactions t
                  WHERE t.kind = 'score' AND t.occurred_at >= '2024-01-08Z' AND t.occurred_at < '2024-01-15Z'
                    AND NOT EXISTS (SELECT FROM centile_store.score_transactions v WHERE v.voids_id = t.id)
                    AND NOT EXISTS (SELECT FROM centile_store.score_transactions b WHERE b.kind = 'ban' AND b.user_id = t.user_id)
                  GROUP BY t.user_id) s)
       AND p.frozen_top = centile_store.freeze_top(p.id)
    FROM centile_store.periods p WHERE p.kind = 'week' AND p.label = '2024-01-08'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_repeated_refresh_adds_the_correction_after_a_kill() {
    let past = Past::new().await;
    let url = past.copy().await;
    run_at(&url, &["close", "--due"]).well();
    let is_refreshed = async |pool: &PgPool| sqlx::query_scalar::<_, bool>(IS_REFRESHED).fetch_one(pool).await.unwrap();
    let pool = PgPool::connect(&url).await.unwrap();
    assert!(is_refreshed(&pool).await);
    let corrected = async || {
        let correction = ["correct", "p11", "100", "--board", "arena", "--at", "2024-01-09T00:00:00Z"];
        run_at(&url, &[&correction[..], &["--reason", "x", "--by", "me"]].concat()).well();
        assert!(!is_refreshed(&pool).await);
        url.clone()
    };
    let killing = Killing {
        command: &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "me"],
        steps: &["refresh_archive"],
        kills: amount(3, 9),
        busy: "another process is closing",
    };
    killing.run_on(corrected, async |_| {}, async |pool| assert!(is_refreshed(pool).await)).await;
}
