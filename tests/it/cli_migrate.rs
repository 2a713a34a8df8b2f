//! `centile migrate`: safe at once, and safe again.

use std::process::{Output, Stdio};

use centile::store::migrate::migrate;

use crate::support::{TestDb, centile};

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
