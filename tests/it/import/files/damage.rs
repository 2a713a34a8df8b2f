//! Invalid lines: each is left out with its reason, and all others are imported.

use std::path::Path;

use serde_json::json;

use super::{HEADER, ledger_rows, make_board, names, standings};
use crate::support::{Files, TestDb, centile, import, import_stdin};

/// Imports `lines`, each surrounded by valid lines. Fails unless exactly the invalid ones are
/// rejected, for these reasons.
fn rejects(
    db: &TestDb,
    file: &Path,
    board: &str,
    header: &str,
    lines: &[(Vec<u8>, &str)],
    good: impl Fn(usize) -> String,
) {
    let mut content = header.as_bytes().to_vec();
    let first = u64::from(!header.is_empty()) + 1;
    for (number, (line, _)) in lines.iter().enumerate() {
        content.extend([line.as_slice(), b"\n", good(number).as_bytes(), b"\n"].concat());
    }
    std::fs::write(file, content).unwrap();
    let imported = import(db, file, board, &["--batch-size", "3"]);
    let count = lines.len() as u64;
    assert_eq!(imported.code, Some(1), "{imported:?}");
    let output = format!("error: {count} of {} lines were rejected; see the reasons in ", 2 * count);
    assert!(imported.err.lines().last().unwrap().starts_with(&output), "{}", imported.err);
    let counts = ["read", "accepted", "repeated", "rejected"].map(|name| imported.count(name));
    assert_eq!(counts, [2 * count, count, 0, count]);
    let mut rejects = imported.rejects.unwrap();
    let mut number = first;
    for (line, reason) in lines {
        let (found, raw) = rejects.remove(&number).unwrap_or_else(|| panic!("line {number} was taken: {line:?}"));
        assert!(found.contains(reason), "line {number} is rejected as {found:?}, not as {reason:?}");
        let whole = String::from_utf8_lossy(line);
        assert!(
            raw == whole || (line.len() > 60_000 && raw.len() == 1_000 && whole.starts_with(&raw)),
            "{number}: {raw}"
        );
        number += 1 + whole.lines().count() as u64;
    }
    assert!(rejects.is_empty(), "{rejects:?}");
}

fn bytes(lines: &[(&str, &'static str)]) -> Vec<(Vec<u8>, &'static str)> {
    lines.iter().map(|(line, reason)| (line.as_bytes().to_vec(), *reason)).collect()
}

#[tokio::test]
async fn rejected_csv_lines_have_a_reason_and_leave_no_trace() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &["--points-min", "-5", "--points-max", "100", "--periods", "all_time,month"]);
    let ban = centile().args(["user", "ban", "good"]).env("DATABASE_URL", db.url()).output().unwrap();
    assert!(!ban.status.success(), "the player must not exist yet");
    let made = centile().args(["user", "set", "banned"]).env("DATABASE_URL", db.url()).output().unwrap();
    let ban = centile().args(["user", "ban", "banned"]).env("DATABASE_URL", db.url()).output().unwrap();
    assert!(made.status.success() && ban.status.success(), "{made:?} {ban:?}");

    let soon = (chrono::Utc::now() + chrono::TimeDelta::hours(1)).to_rfc3339();
    let long = "x".repeat(129);
    let mut lines = bytes(&[
        (",bad,,,,,", "points: is missing"),
        (",,,1,,,", "user_id: is missing"),
        (",bad,,1.5,,,", "points: must be a whole number of 64 bits, not \"1.5\""),
        (",bad,,NaN,,,", "not \"NaN\""),
        (",bad,,1e400,,,", "not \"1e400\""),
        (",bad,, 1,,,", "not \" 1\""),
        (",bad,,9223372036854775808,,,", "not \"9223372036854775808\""),
        (",bad,,101,,,", "points: board main allows -5 to 100 points per event"),
        (",bad,,-6,,,", "points: board main allows -5 to 100 points per event"),
        (",bad,,1,yesterday,,", "occurred_at: must be a time with its offset"),
        (",bad,,1,2024-01-15T20:00:00,,", "occurred_at: must be a time with its offset"),
        (",bad,,1,2023-02-29T20:00:00Z,,", "occurred_at: must be a time"),
        (",bad,,1,1999-12-31T23:59:59Z,,", "occurred_at: must be from 2000 to 2070"),
        (",bad,,1,2080-01-01T00:00:00Z,,", "occurred_at: must not be in the future"),
        (",bad,,1,,,1", "tiebreak: board main does not use tiebreaks"),
        (",bad,,1,,,many", "tiebreak: must be a whole number"),
        (",bad,,1,", "has 5 fields; the header names 7"),
        (",bad,,1,,,,", "has 8 fields; the header names 7"),
        (",\"bad\nbad\",,1,,,", "user_id: must not contain control characters"),
        (",bad,Tab\there,1,,,", "name: must not contain control characters"),
        (",bad,,1,,\"\u{85}\",", "reason: must not contain control characters"),
        (",\"bad,,1,,,", "a quote is opened and not closed"),
        (",banned,,1,,,", "the player is banned"),
        ("e0,good,,99,,,", "this id belongs to an event with other content"),
    ]);
    lines.push((format!(",bad,,1,{soon},,").into_bytes(), "occurred_at: must not be in the future"));
    lines.push((format!(",{long},,1,,,").into_bytes(), "user_id: has 129 bytes; at most 128 are allowed"));
    lines.push((format!("{long},bad,,1,,,").into_bytes(), "id: has 129 bytes; at most 128 are allowed"));
    lines.push((format!(",bad,{long},1,,,").into_bytes(), "name: has 129 bytes; at most 128 are allowed"));
    lines.push((format!(",bad,,1,,{long}{long},").into_bytes(), "reason: has 258 bytes; at most 256 are allowed"));
    lines.push((b",b\xffd,,1,,,".to_vec(), "is not UTF-8 from byte 3 on"));
    lines.push((vec![b'x'; 10 << 20], "has more than 65,536 bytes"));
    let header = format!("{},tiebreak\n", HEADER.trim());
    let good = |number| format!("e{number},good,,1,2024-01-15T20:00:00Z,,");
    let file = files.path("damaged.csv");
    rejects(&db, &file, "main", &header, &lines, good);
    assert_eq!(names(&db).await, json!({"banned": "banned", "good": "good"}));
    assert_eq!(ledger_rows(&db, "main").await, i64::try_from(lines.len()).unwrap());

    // An import without rejects removes an outdated file of rejects.
    std::fs::write(&file, format!("{HEADER}e0,good,,1,2024-01-15T20:00:00Z,\n")).unwrap();
    import(&db, &file, "main", &[]).well(0, 1);
}

#[tokio::test]
async fn rejected_ndjson_lines_have_a_reason() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "laps", &["--mode", "best", "--ties", "tiebreak"]);
    let mut lines = bytes(&[
        (r#"{"user_id":"bad"}"#, "points: is missing"),
        (r#"{"user_id":"bad","points":null}"#, "points: is missing"),
        (r#"{"points":1}"#, "user_id: is missing"),
        (r#"{"user_id":"","points":1}"#, "user_id: must not be empty"),
        (r#"{"user_id":5.5,"points":1}"#, "user_id: invalid type: floating point `5.5`"),
        (r#"{"user_id":"bad","points":1.5}"#, "points: must be a whole number of 64 bits, not \"1.5\""),
        (r#"{"user_id":"bad","points":1e3}"#, "not \"1e3\""),
        (r#"{"user_id":"bad","points":"5"}"#, "points: must be a whole number"),
        (r#"{"user_id":"bad","points":NaN}"#, "points: expected value at column 27"),
        (r#"{"user_id":"bad","points":1,"colour":1}"#, "unknown field `colour`"),
        (r#"{"user_id":"bad","points":1,"points":2}"#, "duplicate field `points`"),
        (r#"{"user_id":"bad","points":1,"tiebreak":2048}"#, "tiebreak: must be -2048 to 2047"),
        (r#"{"user_id":"a\u0000b","points":1}"#, "user_id: must not contain control characters"),
        (r#"{"user_id":"bad","points":1,"reason":""}"#, "reason: must not be empty"),
        (r#"{"user_id":"bad","points":1,"occurred_at":1705348800}"#, "occurred_at: invalid type"),
        (r#"{"user_id":"bad","points":1"#, "EOF while parsing an object at column 27"),
        (r#"{"user_id":"bad","points":1} {}"#, "trailing characters at column 30"),
        (r#"["bad", 1]"#, "must be a JSON object"),
        ("5", "must be a JSON object"),
    ]);
    lines.push((b"{\"user_id\":\"b\xffd\",\"points\":1}".to_vec(), "is not UTF-8 from byte 14 on"));
    let good = |number| format!(r#"{{"user_id":"good","points":{number},"tiebreak":{}}}"#, number % 3);
    rejects(&db, &files.path("damaged.jsonl"), "laps", "", &lines, good);
    assert_eq!(names(&db).await, json!({"good": "good"}));
}

#[tokio::test]
async fn a_sum_overflow_rejects_that_event_only() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &["--points-max", "9223372036854775807", "--periods", "all_time"]);
    let lines = "user_id,points\nann,9223372036854775000\nann,807\nann,1\nbob,1\n";
    let imported = import_stdin(&db, lines.as_bytes(), "main", &files.path("r.csv"), &["--format", "csv"]);
    assert_eq!((imported.code, imported.count("accepted")), (Some(1), 3), "{imported:?}");
    let (reason, raw) = &imported.rejects.as_ref().unwrap()[&4];
    assert!(reason.contains("64 bits") && raw == "ann,1", "{imported:?}");
    assert_eq!(standings(&db, "main").await.len(), 2);
}
