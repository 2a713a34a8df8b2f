//! A killed close and a restored dump give the same bytes as an undisturbed run.

use std::{
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use centile::dev::local::PostgresOptions;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};

use crate::support::{Serve, amount, own_postgres, own_redis, run_at, spawn, wait::until_blocking};

/// A board of 1,000 players and four lanes over five past weeks, with ties, a ban and a void.
const PAST: &str = "
    SELECT centile.create_board('arena', p_periods => '{all_time,week}', p_lanes => 4::smallint);
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 1000) n));
    SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-28');
    SELECT centile.open_periods(1, ARRAY(SELECT generate_series('2024-01-01 12:00Z'::timestamptz, '2024-02-03', '1 week')));
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

async fn digests(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(DIGESTS).fetch_all(pool).await.expect("digests")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_close_ends_like_an_undisturbed_one() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let url = |name: &str| postgres.url(name);
    let admin = PgPool::connect(&url("template1")).await.expect("a connection");
    let pool = PgPool::connect(&url("postgres")).await.expect("a connection");
    sqlx::raw_sql(PAST).execute(&pool).await.expect("scores of the past");
    pool.close().await;
    let copy = async |name: &str| {
        let statement = format!("CREATE DATABASE {name} TEMPLATE postgres STRATEGY file_copy");
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&admin).await.expect("a copy");
    };
    copy("undisturbed").await;
    let begin = Instant::now();
    run_at(&url("undisturbed"), &["close", "--due"]).well();
    let mut whole = begin.elapsed();
    let pool = PgPool::connect(&url("undisturbed")).await.expect("a connection");
    let wanted = digests(&pool).await;
    assert_eq!(wanted.len(), 5);

    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let all: u32 = amount(8, 30);
    let (mut rounds, mut kills) = (0, 0);
    while kills < all {
        let name = format!("killed_{rounds}");
        copy(&name).await;
        // Splits the duration of a close into as many parts as there are kills. Kills fall in the
        // first half and the second half in turn.
        let part = kills / 2;
        for part in [part, part + all / 2] {
            let moment = whole.mul_f64((f64::from(part) + random.random_range(0.0..1.0)) / f64::from(all));
            let begin = Instant::now();
            let mut closer = spawn(&url(&name), &["close", "--due"]);
            thread::sleep(moment);
            if closer.try_wait().expect("its state").is_some() {
                whole = whole.min(begin.elapsed());
                break;
            }
            closer.kill().expect("a kill");
            closer.wait().expect("its end");
            kills += 1;
        }
        // The killed closer's session may hold the lock for a moment.
        until_blocking("a new closer gets the lock", || {
            let output = run_at(&url(&name), &["close", "--due"]).well();
            !output.contains("another process is closing")
        });
        let pool = PgPool::connect(&url(&name)).await.expect("a connection");
        assert_eq!(digests(&pool).await, wanted, "seed {seed}, after {kills} kills");
        let output: i64 =
            sqlx::query_scalar("SELECT count(*) FROM centile_store.outbox").fetch_one(&pool).await.expect("the outbox");
        assert_eq!(output, 5, "seed {seed}");
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'")
            .fetch_one(&pool)
            .await
            .expect("the archives");
        assert_eq!(left, 5, "seed {seed}");
        rounds += 1;
    }
    eprintln!("seed {seed}: {kills} kills in {rounds} closings of {whole:?}");
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
