//! `centile import`: formats, rejects, names, times, and interrupted runs.

mod damage;
mod standing;

use std::io::Write as _;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use serde_json::json;

use self::standing::{ledger_rows, make_board, names, same_standings, standings, whole};
use crate::support::{
    Files, Imported, TestDb, amount, import, import_stdin, make_key, spawn_import, spawn_serve, wait::until,
};

const HEADER: &str = "id,user_id,name,points,occurred_at,reason\n";

/// Returns lines of `events` events of 400 players over 40 days, with ids, in random order of time.
fn random_lines(seed: u64, events: u32) -> Vec<String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut lines: Vec<String> = (0..events)
        .map(|event| {
            let (player, points) = (rng.random_range(0..400), rng.random_range(-5..100));
            let (day, second) = (rng.random_range(0..40), rng.random_range(0..86_400));
            let at = chrono::DateTime::from_timestamp(1_704_067_200 + day * 86_400 + second, 0).unwrap();
            format!("e{event},p{player},Player {player},{points},{},match {event}\n", at.to_rfc3339())
        })
        .collect();
    lines.shuffle(&mut rng);
    lines
}

fn csv(lines: &[String]) -> String {
    format!("{HEADER}{}", lines.concat())
}

#[tokio::test]
async fn every_file_format_imports_the_same() {
    let (db, files) = (TestDb::new().await, Files::new());
    let plain = "user_id,name,points,occurred_at,id,reason\n\
                 ann,\"Ann \"\"A\"\", B.\",10,2024-01-15T20:00:00Z,e1,won\n\
                 bob,,-3,2024-01-15T21:00:00.5+01:00,,\n\
                 zoë,Zoë,7,2024-02-01T00:00:00Z,e3,\"a, b\"\n";
    let ndjson = r#"{"user_id":"ann","points":10,"name":"Ann \"A\", B.","occurred_at":"2024-01-15T20:00:00Z","id":"e1","reason":"won"}

        {"points": -3, "user_id": "bob", "occurred_at": "2024-01-15T20:00:00.5Z", "id": null}
        {"user_id":"zo\u00eb","name":"Zoë","points":7,"occurred_at":"2024-02-01T00:00:00Z","id":"e3","reason":"a, b"}
        "#;
    let dos = format!("\u{feff}{}\r\n", plain.replace('\n', "\r\n\r\n"));
    for (board, name, content) in
        [("plain", "a.csv", plain), ("dos", "B.CSV", &dos), ("json", "c.ndjson", ndjson), ("jsonl", "d.jsonl", ndjson)]
    {
        make_board(&db, board, &["--periods", "all_time,day,week,month"]);
        import(&db, &files.write(name, content), board, &[]).well(3, 0);
    }
    make_board(&db, "piped", &["--periods", "all_time,day,week,month"]);
    let rejects = files.path("rejects.csv");
    import_stdin(&db, ndjson.as_bytes(), "piped", &rejects, &["--format", "ndjson"]).well(3, 0);
    let wanted = standings(&db, "plain").await;
    // All time, and two days, weeks and months.
    assert_eq!(wanted.len(), 3 + 3 * 3, "{wanted:?}");
    for board in ["dos", "json", "jsonl", "piped"] {
        assert_eq!(standings(&db, board).await, wanted, "{board}");
    }
    assert_eq!(names(&db).await, json!({"ann": "Ann \"A\", B.", "bob": "bob", "zoë": "Zoë"}));
}

#[tokio::test]
async fn an_import_that_cannot_begin_writes_nothing() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &[]);
    let refused = |imported: &Imported, code, words: &[&str]| {
        assert_eq!((imported.code, imported.out.as_str(), &imported.rejects), (Some(code), "", &None), "{imported:?}");
        assert!(words.iter().all(|word| imported.err.contains(word)), "{words:?} in {imported:?}");
    };
    let good = files.write("good.csv", format!("{HEADER}e1,ann,,1,,\n"));
    refused(&import(&db, &good, "other", &[]), 1, &["error: no board \"other\""]);
    refused(&import(&db, &good, "Main", &[]), 2, &["--board"]);
    refused(&import(&db, &good, "main", &["--batch-size", "0"]), 2, &["--batch-size"]);
    refused(&import(&db, &files.path("none.csv"), "main", &[]), 1, &["error: FILE: cannot read", "none.csv"]);
    refused(&import(&db, &files.path(""), "main", &["--format", "csv"]), 1, &["FILE: cannot"]);
    let nowhere = files.path("no/where");
    let rejects = import(&db, &good, "main", &["--rejects", nowhere.to_str().unwrap()]);
    refused(&rejects, 1, &["--rejects: cannot write", "no/where"]);
    refused(&import(&db, &good, "main", &["--rejects", good.to_str().unwrap()]), 1, &["--rejects", "imported file"]);
    refused(&import(&db, &files.write("good.txt", "user_id"), "main", &[]), 1, &["--format", ".ndjson"]);
    for (header, words) in [
        ("", ["FILE", "empty"]),
        ("user_id,points,colour\nann,1,red\n", ["header", "\"colour\""]),
        ("user_id,points,points\nann,1,1\n", ["\"points\"", "twice"]),
        ("user_id\nann\n", ["lacks", "\"points\""]),
        ("points,id\n1,e1\n", ["lacks", "\"user_id\""]),
        ("ann,1\n", ["header", "\"ann\""]),
        ("user_id,points,\"id\nann,1,e1\n", ["header", "quote"]),
    ] {
        refused(&import(&db, &files.write("bad.csv", header), "main", &[]), 1, &words);
    }
    assert_eq!((names(&db).await, ledger_rows(&db, "main").await), (json!({}), 0));
    assert!(good.exists(), "the file to import was emptied");
    import(&db, &files.write("only_a_header.csv", HEADER), "main", &[]).well(0, 0);
}

#[tokio::test]
async fn existing_names_stay_unless_an_update_is_requested() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &[]);
    let first = files.write("first.csv", format!("{HEADER}1,ann,,1,,\n2,ann,Ann,1,,\n3,ann,Anna,1,,\n4,bob,,1,,\n"));
    import(&db, &first, "main", &["--batch-size", "1"]).well(4, 0);
    assert_eq!(names(&db).await, json!({"ann": "Ann", "bob": "bob"}));
    let second = format!("{HEADER}5,bob,Bob,1,,\n6,bob,Bobby,1,,\n7,ann,,1,,\n8,cid,Cid,1,,\n");
    let second = files.write("second.csv", second);
    import(&db, &second, "main", &[]).well(4, 0);
    assert_eq!(names(&db).await, json!({"ann": "Ann", "bob": "bob", "cid": "Cid"}));
    import(&db, &second, "main", &["--update-names"]).well(0, 4);
    assert_eq!(names(&db).await, json!({"ann": "Ann", "bob": "Bobby", "cid": "Cid"}));
}

#[tokio::test]
async fn lines_without_a_time_count_now_and_once_per_id() {
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &["--periods", "all_time,day", "--lanes", "4"]);
    let mut lines: Vec<String> = (0..40).map(|event| format!("e{event},p{},,1,,\n", event % 9)).collect();
    lines.push("old,p1,,1,2024-01-15T20:00:00Z,\n".to_owned());
    let file = files.write("now.csv", csv(&lines));
    import(&db, &file, "main", &[]).well(41, 0);
    let pool = db.pool().await;
    let recent = "SELECT count(*) FROM centile_store.score_transactions WHERE occurred_at BETWEEN now() - interval '1 hour' AND now()";
    assert_eq!(sqlx::query_scalar::<_, i64>(recent).fetch_one(&pool).await.unwrap(), 40);
    let before = standings(&db, "main").await;
    // The current time has changed since.
    import(&db, &file, "main", &[]).well(0, 41);
    assert_eq!(standings(&db, "main").await, before);
    // An explicit time makes it another event.
    let other = files.write("other.csv", format!("{HEADER}e3,p3,,1,2024-01-15T20:00:00Z,\n"));
    let imported = import(&db, &other, "main", &[]);
    assert_eq!((imported.code, imported.count("rejected")), (Some(1), 1), "{imported:?}");
}

#[tokio::test]
async fn the_order_of_the_file_makes_no_difference() {
    let (db, files) = (TestDb::new().await, Files::new());
    let events = amount(600, 3_000);
    let periods = amount("all_time,week,month", "all_time,day,week,month");
    let mut lines = random_lines(1, events);
    let shuffled = files.write("shuffled.csv", csv(&lines));
    lines.sort_by_key(|line| line.split(',').nth(4).unwrap().to_owned());
    let sorted = files.write("sorted.csv", csv(&lines));
    for mode in ["sum", "best", "latest"] {
        for (file, lanes) in [(&shuffled, "4"), (&sorted, "1")] {
            let board = format!("{mode}-{lanes}");
            make_board(&db, &board, &["--mode", mode, "--ties", "first", "--periods", periods, "--lanes", lanes]);
            import(&db, file, &board, &["--batch-size", "70"]).well(events.into(), 0);
            whole(&db, &board).await;
        }
        same_standings(&db, &format!("{mode}-1"), &format!("{mode}-4")).await;
    }
}

#[tokio::test]
async fn a_killed_import_can_be_repeated_without_double_counts() {
    let (db, files) = (TestDb::new().await, Files::new());
    let (events, kills_at) = amount((3_000, [300, 1_200]), (20_000, [2_000, 9_000]));
    let file = files.write("scores.csv", csv(&random_lines(2, events)));
    let flags = ["--periods", "all_time,week,month", "--lanes", "4"];
    make_board(&db, "killed", &flags);
    make_board(&db, "clean", &flags);
    for kill_at in kills_at {
        let mut child = spawn_import(&db, &file, "killed", &["--batch-size", "50"]);
        until("the import reaches the next kill", async || {
            assert!(child.try_wait().unwrap().is_none(), "the import has ended");
            ledger_rows(&db, "killed").await >= kill_at
        })
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    whole(&db, "killed").await;
    let again = import(&db, &file, "killed", &[]);
    let (events, repeated) = (u64::from(events), again.count("repeated"));
    assert!((u64::try_from(kills_at[1]).unwrap()..events).contains(&repeated), "{again:?}");
    again.well(events - repeated, repeated);
    import(&db, &file, "killed", &[]).well(0, events);
    import(&db, &file, "clean", &[]).well(events, 0);
    assert_eq!(ledger_rows(&db, "killed").await, i64::try_from(events).unwrap());
    whole(&db, "killed").await;
    same_standings(&db, "killed", "clean").await;
}

#[tokio::test]
async fn live_writes_continue_during_an_import() {
    /// Live events that must be acknowledged before the import gets its last line.
    const LIVE: u32 = 20;
    let (db, files) = (TestDb::new().await, Files::new());
    make_board(&db, "main", &["--periods", "all_time,week,month", "--lanes", "4"]);
    let key = make_key(db.url(), "server", &[]);
    let serve = spawn_serve(&db, None, &[]).await;
    // The import begins to write once it has read 4,000 lines.
    let events = amount(4_100, 20_000);
    let mut lines = random_lines(3, events);
    let last = lines.pop().unwrap();
    let rejects = files.path("rejects.csv");
    let flags = ["--batch-size", "50", "--format", "csv", "--rejects", rejects.to_str().unwrap()];
    let mut child = spawn_import(&db, "-".as_ref(), "main", &flags);
    let mut input = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        input.write_all(csv(&lines).as_bytes()).unwrap();
        input
    });
    until("the import writes", async || ledger_rows(&db, "main").await > 0).await;
    for live in 0..LIVE {
        let event = json!({ "user_id": format!("p{live}"), "points": 1, "id": format!("live-{live}") });
        let request = serve.client.post(serve.at("/v1/boards/main/scores")).bearer_auth(&key).json(&event);
        let status = request.send().await.unwrap().status();
        assert!(status.is_success(), "{status}");
    }
    assert!(child.try_wait().unwrap().is_none(), "the import still runs");
    let mut input = feeding.join().unwrap();
    input.write_all(last.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(ledger_rows(&db, "main").await, i64::from(events + LIVE));
    whole(&db, "main").await;
}
