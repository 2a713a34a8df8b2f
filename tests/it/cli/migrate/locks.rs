//! `centile migrate` while another session has left a transaction open: the migration waits, but
//! other sessions do not.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    time::Duration,
};

use centile::store::migrate::{LOCK_WAIT, migrate_to};
use sqlx::{Connection as _, PgConnection, raw_sql};

use super::{LATER, later_files};
use crate::support::{TestDb, centile, wait::within};

fn start(db: &TestDb, flags: &[&str]) -> Child {
    let mut command = centile();
    command.arg("migrate").args(flags).env("DATABASE_URL", db.url());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns its first message, which names the blocking session and shows that it has tried, and the
/// rest of its standard error.
fn first_words(migrating: &mut Child) -> (String, BufReader<std::process::ChildStderr>) {
    let mut said = BufReader::new(migrating.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (line, said)
}

/// Runs a statement in another session a few times while the migration waits for a lock.
async fn others_do(db: &TestDb, statement: &'static str) {
    let mut other = PgConnection::connect(db.url()).await.unwrap();
    // From its first attempt on.
    db.until_waiting(1, || false).await;
    for _ in 0..20 {
        let doing = raw_sql(statement).execute(&mut other);
        within("a statement of another session while the transaction is open", doing).await.unwrap();
    }
}

/// Opens a transaction with `statement` and leaves it open. Returns the session and its process id.
async fn left_open(db: &TestDb, statement: &str) -> (PgConnection, i32) {
    let mut session = db.hold(statement).await;
    let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut session).await.unwrap();
    (session, pid)
}

/// Functions and views have changed, and a transaction has read one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_sessions_continue_while_a_migration_waits_to_replace_a_view() {
    const READ: &str = "SELECT count(*) FROM centile.boards";
    let db = TestDb::new().await;
    db.execute("UPDATE centile_store.applied_sql SET hash = 'earlier'").await;
    let before = db.dump();
    let (mut reader, pid) = left_open(&db, READ).await;
    // When the wait exceeds its limit, the migration gives up without a change.
    let output = tokio::task::block_in_place(|| start(&db, &["--lock-wait", "1"]).wait_with_output().unwrap());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.starts_with("error: ") && last.contains(&format!("session {pid}")) && last.contains("for 1 s"),
        "{said}"
    );
    assert!(db.dump() == before, "something was changed");

    // With the default limit, it retries until the transaction ends.
    let mut migrating = start(&db, &[]);
    others_do(&db, READ).await;
    let (line, mut said) = tokio::task::block_in_place(|| first_words(&mut migrating));
    assert!(line.contains(&format!("session {pid}")) && line.contains("centile"), "{line}");
    raw_sql("COMMIT").execute(&mut reader).await.unwrap();
    let output = tokio::task::block_in_place(|| migrating.wait_with_output().unwrap());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && printed.contains("replaced"), "{printed}{rest}");
}

/// A migration changes a table that a transaction has read.
#[tokio::test]
async fn other_sessions_continue_while_a_migration_waits_to_change_a_table() {
    let db = TestDb::new().await;
    let later = later_files("ALTER TABLE centile_store.users ADD COLUMN later integer;");
    let before = db.dump();
    let (mut reader, pid) = left_open(&db, "SELECT count(*) FROM centile_store.users").await;
    let refused = migrate_to(db.url(), &later, Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("session {pid}")) && refused.contains("for 1 s"), "{refused}");
    assert!(db.dump() == before, "something was changed");

    let insert = "INSERT INTO centile_store.users (external_id, name, lane_hash) SELECT gen_random_uuid(), 'N', 1";
    let others = async {
        others_do(&db, insert).await;
        raw_sql("COMMIT").execute(&mut reader).await.unwrap();
    };
    let (report, ()) = tokio::join!(migrate_to(db.url(), &later, LOCK_WAIT), others);
    assert_eq!(report.unwrap().migrations, [LATER]);
}

/// A transaction with an old snapshot delays the index of names, and a later run completes it.
#[tokio::test]
async fn the_index_of_names_waits_for_earlier_transactions() {
    let db = TestDb::new().await;
    db.execute("DROP INDEX centile_store.users_search_idx").await;
    let before = db.hold("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    let output = start(&db, &["--lock-wait", "1"]).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the index of names is incomplete"), "{said}");
    let migrating = start(&db, &[]);
    db.until_waiting(1, || false).await;
    drop(before);
    let output = migrating.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(db.dump(), TestDb::new().await.dump());
}
