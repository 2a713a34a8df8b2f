//! `centile import-friends`: formats, rejects, the limit, and repeated runs.

use std::{collections::BTreeMap, io::Write as _, path::Path, process::Stdio, thread};

use serde_json::Value;
use sqlx::query_as;

use crate::support::{Files, Ran, TestDb, centile};

/// Runs `centile import-friends`. Returns its output and the rejects by line, if there is a file.
fn import(db: &TestDb, file: &Path, flags: &[&str], input: &str) -> (Ran, Option<BTreeMap<u64, String>>) {
    let mut command = centile();
    command.arg("import-friends").arg(file).args(flags).env("DATABASE_URL", db.url());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        child.wait_with_output().unwrap()
    });
    let path = match flags {
        ["--rejects", path, ..] => (*path).to_owned(),
        _ => format!("{}.rejects.csv", file.display()),
    };
    let rejects = csv::Reader::from_path(path).ok().map(|mut reader| {
        let rows = reader.deserialize::<(u64, String, String)>().map(Result::unwrap);
        rows.map(|(line, reason, _)| (line, reason)).collect()
    });
    (output.into(), rejects)
}

/// Returns the numbers of accepted, repeated and rejected lines that a summary prints.
fn counts(out: &str) -> [u64; 3] {
    ["accepted", "repeated", "rejected"].map(|name| {
        let line = out.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {out}")).trim().replace(',', "").parse().unwrap()
    })
}

async fn edges(db: &TestDb) -> Vec<(String, String)> {
    query_as("SELECT user_id, friend_id FROM centile.friends ORDER BY user_id, friend_id")
        .fetch_all(&db.pool().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn friends_are_imported_from_every_format_and_once() {
    let (db, files) = (TestDb::new().await, Files::new());
    let csv = files.write("a.csv", "friend_id,user_id\nbob,ann\nann,bob\n\"zoë, the\",ann\nbob,ann\n");
    let (ran, rejects) = import(&db, &csv, &[], "");
    assert_eq!((counts(&ran.well()), rejects), ([3, 1, 0], None));
    let json = "{\"user_id\":\"ann\",\"friend_id\":\"cyd\"}\n\n{\"friend_id\":\"bob\",\"user_id\":\"ann\"}\n";
    let (ran, _) = import(&db, &files.write("b.ndjson", json), &[], "");
    assert_eq!(counts(&ran.well()), [1, 1, 0]);
    let rejects = files.path("stdin.rejects");
    let flags = ["--rejects", rejects.to_str().unwrap(), "--format", "csv", "--by", "dora"];
    let (ran, rejects) = import(&db, Path::new("-"), &flags, "user_id,friend_id\ncyd,ann\n");
    assert_eq!((counts(&ran.well()), rejects), ([1, 0, 0], None));
    let wanted = [("ann", "bob"), ("ann", "cyd"), ("ann", "zoë, the"), ("bob", "ann"), ("cyd", "ann")];
    assert_eq!(edges(&db).await, wanted.map(|(user, friend)| (user.to_owned(), friend.to_owned())));
    let audited: Vec<(String, Value)> = query_as(
        "SELECT actor, after FROM centile.audit_log WHERE action = 'import_friends' ORDER BY audit_id DESC LIMIT 1",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(audited, [("dora".to_owned(), serde_json::json!({"source": "stdin"}))]);
}

#[tokio::test]
async fn lines_that_cannot_be_imported_are_rejected_alone() {
    let (db, files) = (TestDb::new().await, Files::new());
    db.execute("SELECT centile.ensure_users('{eve}'); SELECT centile.erase_user('eve')").await;
    let erased: String = sqlx::query_scalar("SELECT user_id FROM centile.users WHERE user_id LIKE 'erased-%'")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    let full = (0..5_001).map(|n| format!("max,f{n}\n")).collect::<Vec<_>>().concat();
    let lines =
        format!("user_id,friend_id\nann,ann\nann,bob\nann\n,bob\nann,{erased}\n{}\n{full}max,f0\n", "x".repeat(200));
    let (ran, rejects) = import(&db, &files.write("bad.csv", lines), &[], "");
    let rejects = rejects.unwrap();
    assert_eq!((ran.code, counts(&ran.out)), (Some(1), [5_001, 1, 6]), "{ran:?}");
    assert!(ran.err.contains("6 of 5,008 lines were rejected"), "{ran:?}");
    let wanted = [
        (2, "friend_id: must be another player"),
        (4, "has 1 fields"),
        (5, "user_id: is missing"),
        (6, "was erased"),
        (7, "has 1 fields"),
        (5_008, "\"max\" has 5000 friends"),
    ];
    assert_eq!(rejects.keys().copied().collect::<Vec<_>>(), wanted.map(|(line, _)| line));
    for (line, reason) in wanted {
        assert!(rejects[&line].contains(reason), "{line}: {}", rejects[&line]);
    }
    // Whole chunks of rejected lines come before and after one that is accepted.
    let refused = "ann,ann\n".repeat(9_000);
    let (ran, rejects) =
        import(&db, &files.write("refused.csv", format!("user_id,friend_id\n{refused}ann,zoe\n{refused}")), &[], "");
    assert_eq!((ran.code, counts(&ran.out)), (Some(1), [1, 0, 18_000]), "{ran:?}");
    assert_eq!(rejects.unwrap().len(), 18_000);
    for (content, words) in [
        ("user_id\nann\n", "lacks the column \"friend_id\""),
        ("user_id,friend_id,points\n", "known are user_id, friend_id"),
    ] {
        let (ran, _) = import(&db, &files.write("header.csv", content), &[], "");
        ran.refused(1, &["FILE", words]);
    }
}
