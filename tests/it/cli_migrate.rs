//! `centile migrate`: safe at once, and safe again.

use std::process::{Output, Stdio};

use centile::store::migrate::{Files, migrate, migrate_to};
use sqlx::query_scalar;

use crate::support::{TestDb, centile, folder};

/// The command, run to its end.
fn centile_migrate(url: &str) -> std::process::Child {
    let mut command = centile();
    command.arg("migrate").env("DATABASE_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[tokio::test]
async fn six_at_once_all_succeed_and_one_does_the_work() {
    let db = TestDb::empty().await;
    let runs: Vec<_> = (0..6).map(|_| centile_migrate(db.url())).collect();
    let outputs: Vec<String> = runs.into_iter().map(|run| printed(&run.wait_with_output().unwrap())).collect();
    let workers = outputs.iter().filter(|output| output.contains("V1__")).count();
    let idle = outputs.iter().filter(|output| output.contains("nothing to do")).count();
    assert_eq!((workers, idle), (1, 5), "{outputs:?}");
    assert_eq!(db.dump(), TestDb::new().await.dump());
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_says_so() {
    let db = TestDb::new().await;
    let before = db.dump();
    let output = printed(&centile_migrate(db.url()).wait_with_output().unwrap());
    assert_eq!(output.trim(), "nothing to do: the schema is current");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn an_earlier_edition_of_functions_and_views_is_replaced() {
    let db = TestDb::new().await;
    let before = db.dump();
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         CREATE VIEW centile.obsolete_lower AS SELECT centile.obsolete() AS one;
         CREATE VIEW centile.obsolete_upper AS SELECT one FROM centile.obsolete_lower",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert!(report.migrations.is_empty() && report.objects > 0, "{report:?}");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn what_a_user_built_on_our_views_stops_the_upgrade_and_is_named() {
    let db = TestDb::new().await;
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         CREATE SCHEMA report;
         CREATE VIEW report.mine AS SELECT centile.obsolete() AS one",
    )
    .await;
    let before = db.dump();
    let error = migrate(&db.pool().await).await.unwrap_err().to_string();
    assert!(error.contains("report.mine"), "{error}");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_said_to_be() {
    let output = centile_migrate("postgres://centile@127.0.0.1:1/none").wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot connect to PostgreSQL"), "{text}");
}

/// What the first schema, filled with a score by hand, becomes: data stay, and rights are those of now.
#[tokio::test]
async fn the_first_schema_with_data_is_brought_up_to_date() {
    let root = folder("first-schema");
    for path in ["migrations", "sql/functions", "sql/views"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    std::fs::copy("migrations/V1__schemas_and_tables.sql", root.join("migrations/V1__schemas_and_tables.sql")).unwrap();
    std::fs::write(root.join("sql/grants.sql"), "").unwrap();
    let first = Files::read(&root).unwrap();
    std::fs::remove_dir_all(&root).unwrap();

    let db = TestDb::empty().await;
    migrate_to(db.url(), &first).await.unwrap();
    db.execute(
        "INSERT INTO centile_store.users (external_id, name, lane_hash) VALUES ('ann', 'Ann', 18833);
         INSERT INTO centile_store.boards (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max)
         VALUES ('main', 'Main', 'sum', 'desc', 'shared', '{all_time}', 1, 'UTC', 0, 100);
         INSERT INTO centile_store.board_lanes (board_id, lane, batch, last_at) VALUES (1, 0, 1, '2024-01-15 12:00Z');
         CREATE TABLE centile_store.score_transactions_2024_01 PARTITION OF centile_store.score_transactions
             FOR VALUES FROM ('2024-01-01Z') TO ('2024-02-01Z');
         COMMENT ON TABLE centile_store.score_transactions_2024_01 IS 'The ledger of 2024-01 (UTC).';
         GRANT SELECT ON centile_store.score_transactions_2024_01 TO centile_reader;
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         VALUES (1, 1, 7, '2024-01-15 12:00Z', 0, 1);
         INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state) VALUES
             (1, 'all_time', 'all_time', '-infinity', 'infinity', 'closed');
         INSERT INTO centile_store.rankings (board_id, period_id) VALUES (1, 1);
         UPDATE centile_store.periods SET state = 'open', ranking_id = 1",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert!(report.migrations.iter().all(|name| !name.starts_with("V1")) && report.objects > 0, "{report:?}");

    let pool = db.pool().await;
    let score: i64 = query_scalar("SELECT score FROM centile.entries_from_ledger(1)").fetch_one(&pool).await.unwrap();
    assert_eq!(score, 7);
    let others: Vec<String> = query_scalar(
        "SELECT DISTINCT a.grantee::regrole::text FROM pg_class c, aclexplode(c.relacl) a
         WHERE c.oid = 'centile_store.score_transactions_2024_01'::regclass AND a.grantee <> c.relowner",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(others.is_empty(), "{others:?} have rights on a month of the ledger");
}
