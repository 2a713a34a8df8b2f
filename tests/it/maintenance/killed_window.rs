//! A killed preparation of rolling windows: the next run fills them from the ledger.

use centile::dev::local::PostgresOptions;
use chrono::{DateTime, Utc};
use sqlx::{PgPool, query_as, query_scalar};

use crate::support::{amount, killing::Killing, own_postgres, run_at, wait::until_blocking};

/// A board of 1,000 players with scores in the last four weeks, a ban and a void. Two windows and the
/// next ones are due, and one is over.
const PAST: &str = "
    SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 4}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) n));
    SELECT centile.ensure_ledger_months(now() - interval '2 months', now());
    SELECT centile_store.open_periods(1, ARRAY[now()]);
    SELECT count(r)
    FROM (SELECT n / 1000 AS batch, centile.lane_hash('p' || n % 1000 + 1) % 4 AS lane, array_agg('p' || n % 1000 + 1 ORDER BY n) AS users,
                 array_agg((n * 7919::bigint) % 500 + 1 ORDER BY n) AS points,
                 array_agg(now() - interval '28 days' + n * interval '10 minutes' ORDER BY n) AS times
          FROM generate_series(1, 4000) n GROUP BY 1, 2) e
    CROSS JOIN LATERAL testing.record_scores(1, e.lane::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r;
    SELECT centile.ban_user('arena', 'p5', true);
    SELECT centile.void_score('arena', 3900);
    -- A day that ends within the hour, and not during the test.
    UPDATE centile_store.boards
    SET rolling = '{20d,7d}', time_zone = format('<test>%s', to_char(((now() AT TIME ZONE 'UTC')::time + interval '50 minutes')::time, 'HH24:MI:SS'));
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state)
    VALUES (1, 'rolling', '7d-2026-01-07', '2026-01-01Z', '2026-01-08Z', 'preparing')";

/// A score that the interrupted preparation may lack.
async fn score_between(pool: &PgPool) {
    sqlx::raw_sql("SELECT testing.submit_score('arena', 'p7', 9)").execute(pool).await.expect("a score");
}

/// Player and score.
type Entry = (i64, i64);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_preparations_end_like_an_undisturbed_one() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let pool = PgPool::connect(&postgres.url("postgres")).await.expect("a connection");
    sqlx::raw_sql(PAST).execute(&pool).await.expect("scores of the past");
    pool.close().await;
    let steps = [
        "release_unused_windows",
        "open_window",
        "begin_rebuild",
        "repair_players",
        "fill_bounds",
        "fill_rows",
        "swap_ranking",
        "only_zeros",
    ];
    let killing =
        Killing { command: &["close", "--due"], steps: &steps, kills: amount(1, 30), busy: "another process" };
    let url = postgres.url("killed");
    killing
        .run(&postgres, score_between, async |pool| {
            // The session of the killed process may hold a window for a moment.
            until_blocking("all windows are filled", || {
                run_at(&url, &["close", "--due"]).well();
                run_at(&url, &["maintain"]).well();
                run_at(&url, &["verify"]).well().matches("rolling:").count() == 4
            });
            let windows: Vec<(i64, DateTime<Utc>, DateTime<Utc>, String)> = query_as(
                "SELECT p.ranking_id, p.starts_at, p.ends_at, p.label FROM centile_store.periods p
                 WHERE p.kind = 'rolling' AND p.state = 'open' ORDER BY p.label",
            )
            .fetch_all(pool)
            .await
            .expect("the windows");
            assert_eq!(windows.len(), 4);
            for (ranking, starts_at, ends_at, label) in windows {
                let found: Vec<Entry> =
                    query_as("SELECT user_id, score FROM centile_store.leaderboard WHERE ranking_id = $1 ORDER BY user_id")
                        .bind(ranking)
                        .fetch_all(pool)
                        .await
                        .expect("the entries");
                let wanted: Vec<Entry> = query_as(
                    "SELECT t.user_id, sum(t.points)::bigint
                     FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
                     WHERE t.kind = 'score' AND t.occurred_at >= $1 AND t.occurred_at < $2 AND t.id <> 3900 AND u.external_id <> 'p5'
                     GROUP BY t.user_id ORDER BY t.user_id",
                )
                .bind(starts_at)
                .bind(ends_at)
                .fetch_all(pool)
                .await
                .expect("a window by SQL");
                assert!(found.len() > 700, "{label} has only {} players", found.len());
                assert!(found == wanted, "{label} differs from the ledger");
            }
            let left: (i64, i64) = query_as(
                "SELECT (SELECT count(*) FROM centile_store.rankings),
                        (SELECT count(*) FROM centile_store.periods WHERE kind = 'rolling' AND state = 'preparing')",
            )
            .fetch_one(pool)
            .await
            .expect("what is left");
            assert_eq!(left, (5, 0), "rankings, and windows that are not filled");
            let rows = "SELECT count(*) FROM centile_store.leaderboard l WHERE NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = l.ranking_id)";
            assert_eq!(query_scalar::<_, i64>(rows).fetch_one(pool).await.expect("rows"), 0);
        })
        .await;
}
