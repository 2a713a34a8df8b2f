//! A killed close and a restored dump give the same bytes as an undisturbed run, and a killed
//! snapshot the ranking of the ledger.

use std::{
    cell::OnceCell,
    process::{Command, Stdio},
};

use centile::dev::local::PostgresOptions;
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool, query_as, query_scalar};

use crate::support::{Serve, amount, killing::Killing, own_postgres, own_redis, run_at};

/// A board of 1,000 players and four lanes over five past weeks, with ties, a ban and a void.
pub const PAST: &str = "
    SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) n));
    SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-28');
    SELECT centile_store.open_periods(1, ARRAY(SELECT generate_series('2024-01-01 12:00Z'::timestamptz, '2024-02-03', '1 week')));
    SELECT count(r)
    FROM (SELECT n / 1000 AS batch, centile.lane_hash('p' || n % 1000 + 1) % 4 AS lane, array_agg('p' || n % 1000 + 1 ORDER BY n) AS users,
                 array_agg((n * 7919::bigint) % 500 ORDER BY n) AS points,
                 array_agg('2024-01-01Z'::timestamptz + n * interval '1000 seconds' ORDER BY n) AS times
          FROM generate_series(1, 3000) n GROUP BY 1, 2) e
    CROSS JOIN LATERAL testing.record_scores(1, e.lane::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r;
    SELECT centile.ban_user('arena', 'p5', true);
    SELECT centile.void_score('arena', 100)";

/// Digests of every archive and of its period's row, without creation times.
const DIGESTS: &str = "
    SELECT p.kind || ':' || p.label || ' ' || p.archive_name || ' r' || p.archive_revision || ' ' || p.archive_players || ' '
           || (SELECT c.batches::text FROM centile_store.cut_offs c WHERE c.period_id = p.id) || ' ' || md5(p.frozen_top) || ' '
           || md5(query_to_xml(format('SELECT * FROM centile_archive.%I ORDER BY position', p.archive_name), true, false, '')::text)
           || (SELECT string_agg(i.indexdef, ';' ORDER BY i.indexdef) FROM pg_indexes i
               WHERE i.schemaname = 'centile_archive' AND i.tablename = p.archive_name)
    FROM centile_store.periods p WHERE p.state = 'closed' ORDER BY p.id";

/// Reads [`DIGESTS`].
pub async fn digests(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(DIGESTS).fetch_all(pool).await.expect("digests")
}

/// Statements of the steps of closing.
pub const STEPS: [&str; 4] = ["cut_off_period", "build_archive", "compare_archive", "finish_close"];

/// Closing, killed in the steps that these statements begin.
pub fn closing<'a>(steps: &'a [&'a str], kills: usize) -> Killing<'a> {
    Killing { command: &["close", "--due"], steps, kills, busy: "another process is closing" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_close_ends_like_an_undisturbed_one() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let pool = PgPool::connect(&postgres.url("postgres")).await.expect("a connection");
    sqlx::raw_sql(PAST).execute(&pool).await.expect("scores of the past");
    pool.close().await;
    let wanted = OnceCell::new();
    closing(&STEPS, amount(1, 9))
        .run(
            &postgres,
            async |_| {},
            async |pool| {
                let found = digests(pool).await;
                expect_closed(pool, wanted.get_or_init(|| found)).await;
            },
        )
        .await;
}

/// Fails unless the weeks of [`PAST`] are closed once, with these digests.
pub async fn expect_closed(pool: &PgPool, wanted: &[String]) {
    let found = digests(pool).await;
    assert_eq!(found.len(), 5);
    assert_eq!(found, wanted);
    let messages = "SELECT count(*) FROM centile_store.outbox";
    assert_eq!(query_scalar::<_, i64>(messages).fetch_one(pool).await.expect("the outbox"), 5);
    assert_eq!(archives(pool).await, 5);
}

/// Number of archives, also of those that no period names.
async fn archives(pool: &PgPool) -> i64 {
    let count =
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'centile_archive'::regnamespace AND relkind IN ('m', 'r')";
    query_scalar(count).fetch_one(pool).await.expect("the archives")
}

/// A board of 1,000 players with scores in the last five months, a ban and a void. Three snapshots
/// are due after an earlier one, which is due too.
const SNAPSHOTS: &str = "
    SELECT centile.create_board('arena', '{\"periods\": [\"all_time\"], \"lanes\": 4}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) n));
    SELECT centile.ensure_ledger_months(now() - interval '6 months', now());
    SELECT centile_store.open_periods(1, ARRAY[now()]);
    SELECT count(r)
    FROM (SELECT n / 1000 AS batch, centile.lane_hash('p' || n % 1000 + 1) % 4 AS lane, array_agg('p' || n % 1000 + 1 ORDER BY n) AS users,
                 array_agg((n * 7919::bigint) % 500 + 1 ORDER BY n) AS points,
                 array_agg(now() - interval '5 months' + n * interval '50 minutes' ORDER BY n) AS times
          FROM generate_series(1, 4000) n GROUP BY 1, 2) e
    CROSS JOIN LATERAL testing.record_scores(1, e.lane::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r;
    SELECT centile.ban_user('arena', 'p5', true);
    SELECT centile.void_score('arena', 100);
    UPDATE centile_store.boards SET snapshots = 'month';
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
    SELECT 1, 'snapshot', 'month-' || to_char(p.ends_at - interval '1 day', 'YYYY-MM'), '-infinity', p.ends_at AT TIME ZONE 'UTC'
    FROM (SELECT date_trunc('month', now() AT TIME ZONE 'UTC') - interval '3 months') AS p (ends_at)";

/// End and cut-off of a snapshot, with name, players and revision of its archive.
type Snapshot = (DateTime<Utc>, DateTime<Utc>, String, i64, i64);

/// Position, rank, player, score and its time.
type Row = (i64, i64, i64, i64, DateTime<Utc>);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_snapshot_is_the_ranking_of_the_ledger() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let pool = PgPool::connect(&postgres.url("postgres")).await.expect("a connection");
    sqlx::raw_sql(SNAPSHOTS).execute(&pool).await.expect("scores of the past");
    pool.close().await;
    let steps = ["open_snapshots", "cut_off_period", "build_archive", "compare_archive", "finish_close"];
    // The archive of a killed attempt lacks this ban.
    let ban = async |pool: &PgPool| {
        sqlx::raw_sql("SELECT centile.ban_user('arena', 'p7', true)").execute(pool).await.expect("a ban");
    };
    closing(&steps, amount(1, 30))
        .run(&postgres, ban, async |pool| {
            let snapshots: Vec<Snapshot> = query_as(
                "SELECT p.ends_at, p.cut_off_at, p.archive_name, p.archive_players, p.archive_revision::bigint FROM centile_store.periods p
                 WHERE p.kind = 'snapshot' AND p.state = 'closed' AND p.frozen_top IS NOT NULL ORDER BY p.ends_at",
            )
            .fetch_all(pool)
            .await
            .expect("the snapshots");
            let ends: Vec<DateTime<Utc>> = query_scalar(
                "SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') - n * interval '1 month') AT TIME ZONE 'UTC' FROM generate_series(3, 0, -1) n",
            )
            .fetch_all(pool)
            .await
            .expect("the ends of months");
            assert_eq!(snapshots.iter().map(|snapshot| snapshot.0).collect::<Vec<_>>(), ends);
            for (end, cut_off, archive, players, revision) in snapshots {
                let found: Vec<Row> = query_as(AssertSqlSafe(format!(
                    "SELECT position, rank, user_id, score, reached_at FROM centile_archive.\"{archive}\" ORDER BY position"
                )))
                .fetch_all(pool)
                .await
                .expect("an archive");
                // Scores before the end, without voids and players banned before the cut-off.
                let wanted: Vec<Row> = query_as(
                    "SELECT row_number() OVER (ORDER BY score DESC, reached_at, user_id), rank() OVER (ORDER BY score DESC), user_id, score, reached_at
                     FROM (SELECT t.user_id, sum(t.points)::bigint AS score, max(t.occurred_at) AS reached_at
                           FROM centile_store.score_transactions t
                           WHERE t.kind = 'score' AND t.occurred_at < $1
                             AND NOT EXISTS (SELECT FROM centile_store.score_transactions v WHERE v.voids_id = t.id)
                             AND NOT EXISTS (SELECT FROM centile_store.score_transactions b
                                             WHERE b.kind = 'ban' AND b.user_id = t.user_id AND b.occurred_at < $2)
                           GROUP BY t.user_id) s
                     ORDER BY 1",
                )
                .bind(end)
                .bind(cut_off)
                .fetch_all(pool)
                .await
                .expect("a ranking");
                assert!(found == wanted, "{archive} differs from the ledger");
                assert_eq!((players, revision), (i64::try_from(wanted.len()).unwrap(), 1));
            }
            assert_eq!(archives(pool).await, 4);
            let left: (i64, i64) = query_as(
                "SELECT (SELECT count(*) FROM centile_store.outbox), (SELECT count(*) FROM centile_store.periods WHERE state <> 'closed' AND kind <> 'all_time')",
            )
            .fetch_one(pool)
            .await
            .expect("what is left");
            assert_eq!(left, (0, 0));
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_keeps_its_archives_and_ignores_old_caches() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let redis = own_redis();
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    sqlx::raw_sql(PAST).execute(&pool).await.expect("scores of the past");
    run_at(&url, &["close", "--due"]).well();
    // In the ledger but not in the archive until a refresh. The refresh that pg_restore runs must
    // not include it.
    let correct = |user: &str| {
        let what = ["correct", user, "100000", "--board", "arena", "--at", "2024-01-09T00:00:00Z"];
        run_at(&url, &[&what[..], &["--reason", "x", "--by", "me"]].concat()).well();
    };
    correct("p11");
    let kept = digests(&pool).await;
    let tool = |name: &str, arguments: &[&str]| {
        let output = Command::new(postgres.program(name)).args(arguments).stdin(Stdio::null()).output().expect(name);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let file = std::env::temp_dir().join(format!("centile-{}-dump", std::process::id()));
    let file = file.to_str().expect("a path");
    tool("pg_dump", &["--format", "custom", "--file", file, &url]);

    // The original database continues: its all-time ranking changes, and the caches hold that
    // state.
    let spawn = |url: String| {
        let redis = redis.url();
        tokio::task::spawn_blocking(move || Serve::spawn(&url, Some(&redis), "kept", &["--no-maintenance".to_owned()]))
    };
    let read = async |serve: &Serve, path: &str| -> Value {
        let answer =
            serve.client.get(serve.at(&format!("/v1/boards/arena/scores{path}"))).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {answer:?}");
        serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON")
    };
    let old = spawn(url.clone()).await.expect("a service");
    sqlx::raw_sql("SELECT testing.submit_score('arena', 'p7', 1000000)").execute(&pool).await.expect("a score");
    correct("p9");
    run_at(&url, &["refresh", "--board", "arena", "--period", "week:2024-01-08", "--by", "me"]).well();
    assert_eq!(read(&old, "/p7").await["rank"], 1);
    assert_eq!(read(&old, "?limit=1").await["data"][0]["user_id"], "p7");
    let score =
        async |serve: &Serve| read(serve, "/p9?period=week:2024-01-08").await["score"].as_i64().expect("a score");
    assert!(score(&old).await > 100_000);
    drop(old);
    pool.close().await;

    let admin = PgPool::connect(&postgres.url("template1")).await.expect("a connection");
    sqlx::raw_sql("DROP DATABASE postgres WITH (FORCE)")
        .execute(&admin)
        .await
        .expect("the original database is dropped");
    sqlx::raw_sql("CREATE DATABASE postgres TEMPLATE template0").execute(&admin).await.expect("a new one");
    tool("pg_restore", &["--exit-on-error", "--dbname", &url, file]);
    std::fs::remove_file(file).ok();
    let pool = PgPool::connect(&url).await.expect("a connection");
    assert_eq!(digests(&pool).await, kept);
    // Each frozen top matches the first rows of its archive.
    let tops: Vec<bool> = sqlx::query_scalar(
        "SELECT p.frozen_top = centile_store.freeze_top(p.id) FROM centile_store.periods p WHERE p.state = 'closed'",
    )
    .fetch_all(&pool)
    .await
    .expect("tops");
    assert_eq!(tops, [true; 5]);

    let new = spawn(url).await.expect("a service");
    assert_ne!(read(&new, "/p7").await["rank"], 1);
    assert_ne!(read(&new, "?limit=1").await["data"][0]["user_id"], "p7");
    assert!(score(&new).await < 100_000);
}
