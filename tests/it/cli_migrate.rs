//! `centile migrate`: run concurrently and repeatedly.

mod locks;
mod serving;

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use centile::store::migrate::{Files, LOCK_WAIT, migrate, migrate_to};
use sqlx::query_as;

use crate::support::{TestDb, centile, folder, run};

/// Starts the command.
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
async fn six_concurrent_runs_succeed_and_one_does_the_work() {
    let db = TestDb::empty().await;
    let runs: Vec<_> = (0..6).map(|_| centile_migrate(db.url())).collect();
    let outputs: Vec<String> = runs.into_iter().map(|run| printed(&run.wait_with_output().unwrap())).collect();
    let workers = outputs.iter().filter(|output| output.contains("V1__")).count();
    let idle = outputs.iter().filter(|output| output.contains("nothing to do")).count();
    assert_eq!((workers, idle), (1, 5), "{outputs:?}");
    assert_eq!(db.dump(), TestDb::new().await.dump());
}

#[tokio::test]
async fn a_second_run_reports_that_nothing_changed() {
    let db = TestDb::new().await;
    let before = db.dump();
    let output = printed(&centile_migrate(db.url()).wait_with_output().unwrap());
    assert_eq!(output.trim(), "nothing to do: the schema is current");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn earlier_functions_and_views_are_replaced() {
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
async fn an_object_that_depends_on_a_view_stops_the_upgrade_and_is_named() {
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
async fn an_unreachable_database_is_reported() {
    let output = centile_migrate("postgres://centile@127.0.0.1:1/none").wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot connect to PostgreSQL"), "{text}");
}

#[tokio::test]
async fn a_schema_older_than_the_baseline_is_refused_in_one_line() {
    let db = TestDb::new().await;
    db.execute(
        "DELETE FROM centile_store.schema_history;
         INSERT INTO centile_store.schema_history (version, name, applied_on, checksum) VALUES
             (1, 'schemas_and_tables', '2026-11-01T12:00:00Z', '1'), (2, 'periods_close', '2026-11-02T12:00:00Z', '2')",
    )
    .await;
    let before = db.dump();
    let cause = "a development version before the baseline (V1__schemas_and_tables)";
    run(&db, &["migrate"]).refused(1, &[cause, "create a new database", "export", "import"]);
    assert_eq!(db.dump(), before);
    // Those migrations include every version of the current ones.
    run(&db, &["board", "list"]).refused(1, &["another edition", "`centile migrate`"]);
}

/// Returns a copy of the files that make the schema, after `change` has changed the copy.
fn changed_files(change: impl FnOnce(&Path)) -> Files {
    let root = folder("changed-files");
    for path in ["migrations", "sql/functions", "sql/views"] {
        fs::create_dir_all(root.join(path)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), root.join(path).join(entry.file_name())).unwrap();
        }
    }
    fs::copy("sql/grants.sql", root.join("sql/grants.sql")).unwrap();
    change(&root);
    let files = Files::read(&root).unwrap();
    fs::remove_dir_all(&root).unwrap();
    files
}

/// The name of a migration in a later release.
const LATER: &str = "V1000__later";

/// Returns the files of that release.
fn later_files(migration: &str) -> Files {
    changed_files(|root| fs::write(root.join(format!("migrations/{LATER}.sql")), migration).unwrap())
}

#[tokio::test]
async fn a_later_migration_is_applied_once_and_keeps_the_data() {
    let db = TestDb::new().await;
    db.execute("INSERT INTO centile_store.users (external_id, name, lane_hash) VALUES ('ann', 'Ann', 18833)").await;
    let later = later_files("ALTER TABLE centile_store.users ADD COLUMN later integer NOT NULL DEFAULT 7;");
    let report = migrate_to(db.url(), &later, LOCK_WAIT).await.unwrap();
    assert_eq!((report.migrations, report.objects), (vec![LATER.to_owned()], 0));
    let user: (String, i32) =
        query_as("SELECT name, later FROM centile_store.users").fetch_one(&db.pool().await).await.unwrap();
    assert_eq!(user, ("Ann".to_owned(), 7));
    let report = migrate_to(db.url(), &later, LOCK_WAIT).await.unwrap();
    assert_eq!((report.migrations, report.objects), (Vec::new(), 0));
}
