//! Dumps and upgrades with combined boards.

use std::process::{Command, Stdio};

use centile::dev::local::PostgresOptions;
use sqlx::{PgPool, query_scalar};

use crate::support::{own_postgres, run_at};

/// A board with a closed week and present scores, without service.
const SCORES: &str = "
    SELECT centile.create_board('main', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 1}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 50) n));
    SELECT centile.ensure_ledger_months('2024-01-15', '2024-01-22');
    SELECT count(r) FROM testing.record_scores(1, 0::smallint, ARRAY(SELECT 'p' || n FROM generate_series(1, 50) n ORDER BY n),
        ARRAY(SELECT n % 7 FROM generate_series(1, 50) n ORDER BY n), '{}', '{}', '{}',
        ARRAY(SELECT timestamptz '2024-01-15 12:00Z' + n * interval '1 hour' FROM generate_series(1, 50) n ORDER BY n)) r;
    SELECT testing.submit_score('main', 'p3', 40)";

/// The rankings of all combined boards.
const RANKINGS: &str = "
    SELECT string_agg(concat_ws(' ', b.slug, r.position, r.rank, r.user_id, r.score, r.reached_at), ',' ORDER BY b.slug, r.position)
    FROM centile.boards b CROSS JOIN LATERAL centile.page(b.slug, 'all_time', 1, 1000) r WHERE b.mode = 'combined'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_computes_its_combined_boards() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let (url, restored) = (postgres.url("postgres"), postgres.url("restored"));
    let pool = PgPool::connect(&url).await.unwrap();
    sqlx::raw_sql(SCORES).execute(&pool).await.unwrap();
    run_at(&url, &["close", "--due"]).well();
    // pg_restore builds views in the order of their names: one before its sources, one after.
    for slug in ["aa", "zz"] {
        run_at(&url, &["board", "combine", slug, "--source", "main@week:2024-01-15", "--source", "main@all_time*2"])
            .well();
    }
    let rankings: Option<String> = query_scalar(RANKINGS).fetch_one(&pool).await.unwrap();
    assert_eq!(rankings.as_ref().unwrap().matches("aa ").count(), 50);
    let tool = |name: &str, arguments: &[&str]| {
        let output = Command::new(postgres.program(name)).args(arguments).stdin(Stdio::null()).output().expect(name);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let file = std::env::temp_dir().join(format!("centile-{}-combined", std::process::id()));
    let file = file.to_str().unwrap();
    tool("pg_dump", &["--format", "custom", "--file", file, &url]);
    sqlx::raw_sql("CREATE DATABASE restored TEMPLATE template0").execute(&pool).await.unwrap();
    tool("pg_restore", &["--exit-on-error", "--dbname", &restored, file]);
    std::fs::remove_file(file).ok();

    // The live source has not changed since, so neither does the result.
    let printed = run_at(&restored, &["refresh", "--due"]).well();
    assert!(printed.ends_with("2 refreshed\n"), "{printed}");
    let pool = PgPool::connect(&restored).await.unwrap();
    assert_eq!(query_scalar::<_, Option<String>>(RANKINGS).fetch_one(&pool).await.unwrap(), rankings);
    run_at(&restored, &["verify"]).well();
    assert_eq!(run_at(&restored, &["refresh", "--due"]).well(), "nothing is due\n");

    // An upgrade replaces the functions, although views depend on one of them.
    sqlx::raw_sql("UPDATE centile_store.applied_sql SET hash = 'another'").execute(&pool).await.unwrap();
    run_at(&restored, &["migrate"]).well();
    assert_eq!(query_scalar::<_, Option<String>>(RANKINGS).fetch_one(&pool).await.unwrap(), rankings);
    run_at(&restored, &["refresh", "--board", "zz"]).well();
}
