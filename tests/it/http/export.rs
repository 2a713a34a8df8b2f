//! Exports of whole periods: every player once, in order, and of one state, whatever happens
//! meanwhile.
//!
//! The expected standings are computed here from the events, without code of the service.

mod events;
mod slow;

use std::{io::Read as _, time::Duration};

use reqwest::{
    Method,
    header::{CONTENT_DISPOSITION, RETRY_AFTER},
};
use serde_json::{Value, json};
use sqlx::{PgPool, query_scalar};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::{
    http::api::site::Site,
    periods::closed::period::Past,
    support::{
        Files, Serve, TestDb, import, is_cluster,
        proxy::{Proxy, Way},
        run, spawn,
        wait::{until, until_some},
    },
};
use events::{Event, Line, recorded, standings};
use slow::Slow;

/// Names with characters that are special in CSV, JSON, HTML or a terminal.
const SPECIAL_NAMES: [&str; 6] = ["a,b", "say \"hi\"", "semi;colon's", "<b>&amp;</b>", "\u{202e}desrever", "=1+1 👩‍👩‍👧"];
const COLUMNS: [&str; 6] = ["position", "rank", "user_id", "name", "score", "reached_at"];
/// Players whose export is larger than the buffers between the service and a client that reads
/// nothing.
const MANY: usize = 20_000;
/// The export of the board.
const FILE: &str = "/v1/boards/main/scores.ndjson";
/// Keeps the service from disconnecting slow clients, however busy the machine is.
const LONG_CLIENT_TIMEOUT: [&str; 2] = ["--client-timeout", "600"];

/// Parses CSV as RFC 4180 defines it, without the crate that wrote it.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted => {
                assert_eq!(letters.next(), Some('\n'), "a line ends with CR LF");
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    assert!(cell.is_empty() && row.is_empty(), "the text ends within a row");
    rows
}

/// Parses NDJSON line by line.
fn read_ndjson(text: &str) -> Vec<Line> {
    text.lines()
        .map(|text| {
            let row: Value = serde_json::from_str(text).unwrap();
            assert_eq!(row.as_object().unwrap().len(), COLUMNS.len(), "{text}");
            let number = |name: &str| row[name].as_i64().unwrap();
            let string = |name: &str| row[name].as_str().unwrap().to_owned();
            Line {
                position: number("position"),
                rank: number("rank"),
                user_id: string("user_id"),
                name: string("name"),
                score: number("score"),
                reached_at: string("reached_at"),
            }
        })
        .collect()
}

/// Returns events of this many players; many players reach equal scores.
fn many(players: usize, id: impl Fn(usize) -> String) -> Vec<Event> {
    let event = |number: usize| {
        let player = number % players;
        let points = i64::try_from(number * 7_919 % 1_000).unwrap();
        Event { user_id: id(player), name: SPECIAL_NAMES.get(player).map(|name| (*name).to_owned()), points, number }
    };
    // A second event for one in five.
    (0..players + players / 5).map(event).collect()
}

/// Creates a board with these events, at times of their own.
async fn board(db: &TestDb, site: &Site, events: &[Event]) {
    site.board(json!({"lanes": 2}), &[]).await;
    let lines: Vec<String> = events.iter().map(Event::as_imported).collect();
    let files = Files::new();
    import(db, &files.write("events.ndjson", lines.join("\n")), "main", &[]).well(events.len() as u64, 0);
}

/// Returns a database with a board whose export takes a long time to send. Ids and names have the
/// maximum length, and names consist of quotes, which both formats escape. Each test gets a copy.
async fn long_board() -> TestDb {
    static FILLED: OnceCell<TestDb> = OnceCell::const_new();
    let create = async || {
        let db = TestDb::new().await;
        let mut site = Site::start(&db, &[]).await;
        let mut events = many(MANY, |player| format!("{player:0>128}"));
        for event in &mut events {
            event.name = Some(format!("{}{:0>8}", "\"".repeat(120), event.number));
        }
        board(&db, &site, &events).await;
        // A database can be copied only without sessions.
        assert!(site.serve.stop().await.success());
        db
    };
    // Databases of a cluster have sessions of Citus.
    if is_cluster() { create().await } else { FILLED.get_or_init(create).await.copy().await }
}

/// Returns the number of sessions that hold a snapshot for an export.
async fn snapshots(pool: &PgPool) -> i64 {
    query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'centile export'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Waits until no session holds a snapshot.
async fn until_no_snapshot(db: &TestDb) {
    let pool = db.pool().await;
    until("no session holds a snapshot", async || snapshots(&pool).await == 0).await;
}

#[tokio::test]
async fn an_export_has_every_player_once_and_in_order() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"slug": "none"}), &[]).await;
    for period in ["", "?period=week"] {
        let file = site.get(&format!("/v1/boards/none/scores.csv{period}")).await;
        assert_eq!((file.status, &*file.text), (200, &*format!("{}\r\n", COLUMNS.join(","))));
        assert_eq!(site.get(&format!("/v1/boards/none/scores.ndjson{period}")).await.text, "");
    }
    let events = many(5_001, |player| format!("p{player}"));
    board(&db, &site, &events).await;
    let wanted = standings(events.iter().cloned());
    assert_eq!(wanted.len(), 5_001);

    let ndjson = site.get("/v1/boards/main/scores.ndjson").await;
    assert_eq!((ndjson.status, &ndjson.headers["content-type"]), (200, &"application/x-ndjson".parse().unwrap()));
    assert!(read_ndjson(&ndjson.text) == wanted, "not the standings of the events");
    let page = site.get("/v1/boards/main/scores?limit=1").await.is(200);
    assert_eq!(ndjson.headers["centile-version"], page["version"].as_str().unwrap());

    let csv = site.get("/v1/boards/main/scores.csv?period=all_time").await;
    assert_eq!(csv.headers[CONTENT_DISPOSITION], "attachment; filename=\"main-all_time.csv\"");
    let mut rows = read_csv(&csv.text).into_iter();
    assert_eq!(rows.next().unwrap(), COLUMNS);
    assert!(rows.eq(wanted.iter().map(Line::cells)), "CSV and NDJSON differ");

    let head = site.send(Method::HEAD, "/v1/boards/main/scores.csv", &[], String::new()).await;
    assert_eq!(csv.headers["centile-players"], "5001");
    for name in ["centile-version", "centile-players", "content-type", "content-disposition", "cache-control"] {
        assert_eq!(head.headers[name], csv.headers[name], "{name}");
    }
    assert_eq!((head.status, &*head.text), (200, ""));

    let (version, printed) =
        (csv.headers["centile-version"].to_str().unwrap(), run(&db, &["export", "--board", "main"]));
    assert!(printed.err.contains(version), "{}", printed.err);
    assert!(printed.well() == csv.text, "the command writes another file");
    assert!(run(&db, &["export", "--board", "main", "--format", "ndjson"]).well() == ndjson.text, "the command");
    run(&db, &["export", "--board", "main", "--period", "week:2999-01-07"]).refused(1, &["week:2999-01-07"]);
    run(&db, &["export", "--board", "nowhere"]).refused(1, &["nowhere"]);
    for (path, status) in
        [("main/scores.csv?limit=3", 422), ("main/scores.csv?period=week:2999-01-07", 404), ("nowhere/scores.csv", 404)]
    {
        site.get(&format!("/v1/boards/{path}")).await.is(status);
    }
    until_no_snapshot(&db).await;
}

#[tokio::test]
async fn a_closed_period_exports_the_same_rows_with_current_names() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 2_500, 3_000, "2024-01-15");
    let path = "/v1/boards/main/scores.ndjson?period=week:2024-01-15";
    let before = site.get(path).await;
    past.close("week:2024-01-15").await;
    let after = site.get(path).await;
    assert_eq!(before.text.lines().count(), 2_500);
    assert!(after.text == before.text, "the close changed the file");
    assert_ne!(after.headers["centile-version"], before.headers["centile-version"]);
    assert_eq!(after.headers[CONTENT_DISPOSITION], "attachment; filename=\"main-week-2024-01-15.ndjson\"");

    site.admin(Method::PUT, "/v1/users/p7", json!({"name": "Seven, of nine"})).await.is(200);
    site.admin(Method::DELETE, "/v1/users/p8", Value::Null).await;
    let file = site.get(path).await;
    let mut rows = Vec::new();
    for from in [1, 1_001, 2_001] {
        let page = site.get(&format!("/v1/boards/main/scores?period=week:2024-01-15&limit=1000&from={from}")).await;
        assert_eq!(file.headers["centile-version"], page.body["version"].as_str().unwrap());
        rows.extend(page.is(200)["data"].as_array().unwrap().clone());
    }
    let of_page = |row: &Value| {
        let at = row["reached_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        Line {
            position: row["position"].as_i64().unwrap(),
            rank: row["rank"].as_i64().unwrap(),
            user_id: text("user_id"),
            name: text("name"),
            score: row["score"].as_i64().unwrap(),
            reached_at: at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        }
    };
    let lines = read_ndjson(&file.text);
    assert!(lines == rows.iter().map(of_page).collect::<Vec<_>>(), "the export and the pages differ");
    assert!(lines.iter().any(|line| line.name == "Seven, of nine"));
    assert!(lines.iter().all(|line| line.user_id != "p8" && line.name != "p8"));
}

#[tokio::test]
async fn an_export_is_of_one_state_while_scores_arrive() {
    let db = long_board().await;
    let site = Site::start(&db, &LONG_CLIENT_TIMEOUT).await;
    let pool = db.pool().await;
    let (stop, path) = (CancellationToken::new(), "/v1/boards/main/scores");
    let write = async |caller: usize| {
        let mut scores = 0;
        while !stop.is_cancelled() {
            // One player moves from the middle to the top, one is new, and one moves a little.
            let players =
                [format!("{:0>128}", caller * 97 + scores), format!("new {caller} {scores}"), "0".repeat(128)];
            let points = [5_000, i64::try_from(scores).unwrap(), 1];
            let events: Vec<Value> =
                players.iter().zip(points).map(|(user, points)| json!({"user_id": user, "points": points})).collect();
            site.post(path, Value::from(events)).await.is(200);
            scores += 1;
        }
        scores
    };
    let read = async {
        let counted = async || -> i64 {
            query_scalar("SELECT count(*) FROM centile_store.score_transactions").fetch_one(&pool).await.unwrap()
        };
        let until_more =
            async |than: i64| until("sixty more scores are accepted", async || counted().await >= than + 60).await;
        until_more(counted().await).await;
        let mut slow = Slow::ask(&site.serve, FILE).await;
        let at_begin = counted().await;
        until_more(at_begin).await;
        assert_eq!(snapshots(&pool).await, 1, "the export is still being read");
        let version = slow.header("centile-version").to_owned();
        let file = slow.rest().await;
        stop.cancel();
        assert!(file.is_whole);
        (version, file.text, counted().await - at_begin)
    };
    let ((version, text, meanwhile), ..) = tokio::join!(read, write(1), write(2), write(3));
    assert!(meanwhile >= 60);
    let wanted = standings(recorded(&db, &version).await);
    assert!(wanted.len() > MANY, "there are newcomers from before the export began");
    assert!(read_ndjson(&text) == wanted, "not the state of {version}");
}

#[tokio::test]
async fn an_address_gets_two_exports_at_a_time_and_a_key_gets_more() {
    let db = long_board().await;
    let site = Site::start(&db, &LONG_CLIENT_TIMEOUT).await;
    let pool = db.pool().await;
    let (one, mut other) = (Slow::ask(&site.serve, FILE).await, Slow::ask(&site.serve, FILE).await);
    let busy = site.get("/v1/boards/main/scores.csv").await;
    assert_eq!(busy.headers[RETRY_AFTER], "10");
    busy.is(429);
    assert_eq!(snapshots(&pool).await, 2);
    let keyed = site.admin(Method::GET, "/v1/boards/main/scores.csv", Value::Null).await;
    assert_eq!((keyed.status, read_csv(&keyed.text).len()), (200, MANY + 1));
    drop(one);
    let whole = until_some("a free place for an export", async || {
        let file = site.get("/v1/boards/main/scores.csv").await;
        (file.status == 200).then_some(file.text)
    });
    assert_eq!(read_csv(&whole.await).len(), MANY + 1);
    assert!(other.rest().await.is_whole);
    until_no_snapshot(&db).await;
}

/// The limit is 32 KiB within each client timeout. This client reads 20,000 bytes a second, for
/// longer than the default timeout. With a receive window of a few KiB, Linux itself would cut it
/// (`TCP_USER_TIMEOUT` of zero-window probes).
#[tokio::test]
async fn a_slow_client_gets_the_whole_export() {
    let db = long_board().await;
    let site = Site::start(&db, &["--client-timeout", "10"]).await;
    let mut slow = Slow::ask_with(&site.serve, FILE, 64 << 10).await;
    slow.read_slowly(2_000, Duration::from_millis(100), 150).await;
    let file = slow.rest().await;
    assert!(file.is_whole);
    assert_eq!(read_ndjson(&file.text).len(), MANY);
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_connection_and_snapshot() {
    let db = long_board().await;
    let site = Site::start(&db, &["--client-timeout", "1"]).await;
    let mut slow = Slow::ask(&site.serve, FILE).await;
    until_no_snapshot(&db).await;
    assert!(!slow.rest().await.is_whole);
}

// With several threads, the proxy to PostgreSQL works while the test waits for a process.
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_export_can_be_detected() {
    let db = long_board().await;
    let way = Proxy::to(db.port()).await;
    let url = way.instead(db.url());
    let flags = LONG_CLIENT_TIMEOUT.map(str::to_owned);
    let site = Site::of(Serve::spawn(&url, None, &db.redis_prefix(), &flags), db.url());
    let mut slow = Slow::ask(&site.serve, FILE).await;
    let mut command = spawn(&url, &["export", "--board", "main", "--format", "ndjson"]);
    let mut out = command.stdout.take().unwrap();
    // The export has begun and waits for its reader.
    let mut first = [0; 1];
    out.read_exact(&mut first).unwrap();
    assert_eq!(snapshots(&db.pool().await).await, 2);

    way.set(Way::Reset);
    let part = slow.rest().await;
    assert!(!part.is_whole, "a cut file must not look complete");
    assert!((1..MANY).contains(&part.text.lines().count()), "only a part of the file");
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    let ended = command.wait_with_output().unwrap();
    let output = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{output}");
    assert!(output.lines().last().unwrap().starts_with("error: "), "{output}");
    assert!(text.lines().count() < MANY);
    site.serve.logged("download aborted", 1).await;
}
