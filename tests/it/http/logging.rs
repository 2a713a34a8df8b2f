//! The log of an instance, which a separate thread writes.

use std::{net::TcpListener, process::Stdio, time::Duration};

use centile::dev::local::signal;
use chrono::{DateTime, Utc};
use futures::join;
use reqwest::Method;
use sqlx::{Connection as _, PgConnection};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe,
    runtime::Handle,
    time::sleep,
};

use crate::{
    http::limits::wire::Wire,
    support::{
        Serve, TestDb, centile, client, run, spawn_serve,
        wait::{until, within},
    },
};

/// Enough to fill a buffer of the log, which holds 1 MiB.
const REQUESTS: usize = 12_000;
/// Requests in flight at a time.
const AT_ONCE: usize = 10;

/// A path that is longer than the log shows.
fn long_path(n: usize) -> String {
    format!("/nowhere/{n}/{}", "x".repeat(300))
}

#[tokio::test]
async fn each_request_is_logged_before_an_instance_stops() {
    let db = TestDb::new().await;
    // Lines of different workers may be out of order.
    let mut serve = spawn_serve(&db, None, &["--log", "info", "--workers", "1"]).await;
    for n in 0..300 {
        serve.client.get(serve.at(&format!("/nowhere/{n}"))).send().await.unwrap();
    }
    assert!(serve.stop().await.success());
    let output = serve.output();
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("answered")).collect();
    assert_eq!(lines.len(), 300, "{output}");
    for (n, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("path=\"/nowhere/{n}\"")), "{n}: {line}");
    }
    assert!(output.lines().last().is_some_and(|line| line.contains("stopped")), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unread_log_delays_no_request_and_reports_lost_lines() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
    let requests = async {
        let mut wire = Wire::to(&serve).await;
        for from in (0..REQUESTS).step_by(AT_ONCE) {
            let request = |n| format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", long_path(n));
            wire.send(&(from..from + AT_ONCE).map(request).collect::<String>()).await.unwrap();
            for _ in 0..AT_ONCE {
                assert_eq!(wire.answer().await.status, 404);
            }
        }
    };
    tokio::task::block_in_place(|| {
        let _unread = serve.leave_unread();
        Handle::current().block_on(requests);
    });
    serve.logged("log lines were lost", 1).await;
    assert!(serve.stop().await.success());
    let output = serve.output();
    let of = |words: &str| output.lines().filter(|line| line.contains(words)).collect::<Vec<_>>();
    let lost = |line: &&str| line.rsplit_once("lines=").unwrap().1.parse::<usize>().unwrap();
    let lost: usize = of("log lines were lost").iter().map(lost).sum();
    assert!(lost > 0);
    assert_eq!(of("answered").len() + lost, REQUESTS, "{lost} lines lost");
}

/// Returns the lines with this text, without their timestamps, which `end` follows.
fn lines_with<'a>(output: &'a str, text: &str, end: &str) -> Vec<&'a str> {
    let lines = output.lines().filter(|line| line.contains(text));
    let without = |line: &'a str| {
        let at = line.find("20").unwrap();
        let (time, rest) = line[at..].split_once(end).unwrap();
        assert!(time.len() == "2026-11-25T11:01:08.403198Z".len() && time.ends_with('Z'), "{line}");
        time.parse::<DateTime<Utc>>().unwrap();
        rest
    };
    lines.map(without).collect()
}

#[tokio::test]
async fn each_line_of_a_request_contains_its_id() {
    let db = TestDb::new().await;
    let fail = async |flags: &[&str]| {
        let mut serve = spawn_serve(&db, None, flags).await;
        db.execute("ALTER TABLE centile_store.boards RENAME TO hidden").await;
        let request = serve.client.get(serve.at("/v1/boards?limit=1")).header("x-request-id", "a:1");
        assert_eq!(request.send().await.unwrap().status(), 503);
        db.execute("ALTER TABLE centile_store.hidden RENAME TO boards").await;
        assert!(serve.stop().await.success());
        serve.output()
    };
    let error = "ERROR request{request_id=a:1}: centile::store::error: the schema is missing or outdated: \
        run `centile migrate` error=\"relation \\\"centile_store.boards\\\" does not exist\"";
    assert_eq!(lines_with(&fail(&["--log", "warn"]).await, "a:1", " "), [error]);

    let output = fail(&["--log", "info"]).await;
    let lines = lines_with(&output, "a:1", " ");
    let answered = " INFO centile::request: answered request_id=a:1 method=GET path=\"/v1/boards\" \
        address=127.0.0.1 status=503 duration_ms=";
    let duration = |line: &str, begin: &str| line.strip_prefix(begin).unwrap().parse::<f64>();
    assert_eq!((lines.len(), lines[0]), (2, error), "{output}");
    assert!(duration(lines[1], answered).is_ok(), "{output}");
    assert!(!output.lines().any(|line| line.contains("stopped") && line.contains("request")), "{output}");

    let output = fail(&["--log", "info", "--log-format", "json"]).await;
    let lines = lines_with(&output, "a:1", "\",");
    let error = concat!(
        r#""level":"ERROR","message":"the schema is missing or outdated: run `centile migrate`","#,
        r#""error":"relation \"centile_store.boards\" does not exist","target":"centile::store::error","#,
        r#""span":{"request_id":"a:1","name":"request"},"spans":[{"request_id":"a:1","name":"request"}]}"#
    );
    assert_eq!(lines[0], error);
    let answered = concat!(
        r#""level":"INFO","message":"answered","request_id":"a:1","method":"GET","path":"/v1/boards","#,
        r#""address":"127.0.0.1","status":503,"duration_ms":"#
    );
    let (line, target) = lines[1].rsplit_once(',').unwrap();
    assert!(duration(line, answered).is_ok(), "{output}");
    assert_eq!(target, r#""target":"centile::request"}"#);
}

#[tokio::test]
async fn only_chosen_requests_are_logged() {
    let db = TestDb::new().await;
    for (requests, expected) in [("errors", &["/nowhere"][..]), ("slow", &["/v1/boards", "/nowhere"]), ("off", &[])] {
        let mut serve = spawn_serve(&db, None, &["--log", "info", "--log-requests", requests]).await;
        let get = async |path: &str| serve.client.get(serve.at(path)).send().await.unwrap().status();
        let held = db.hold("LOCK TABLE centile_store.boards").await;
        let release = async {
            db.until_waiting(1, || false).await;
            sleep(Duration::from_millis(100)).await;
            drop(held);
        };
        assert_eq!(join!(get("/v1/boards"), release).0, 200);
        assert_eq!(get("/nowhere").await, 404);
        assert!(serve.stop().await.success());
        let output = serve.output();
        let answered: Vec<&str> = output.lines().filter(|line| line.contains("answered")).collect();
        assert_eq!(answered.len(), expected.len(), "{requests}: {output}");
        for (line, path) in answered.iter().zip(expected) {
            assert!(line.contains(&format!(" path=\"{path}\" ")), "{requests}: {output}");
        }
    }
    run(&db, &["serve", "--log-requests", "some"]).refused(2, &["'some'", "--log-requests", "all, errors, slow, off"]);
}

#[tokio::test]
async fn lines_have_a_limited_length() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
    let method = Method::from_bytes("X".repeat(1_000).as_bytes()).unwrap();
    serve.client.request(method, serve.at(&long_path(0))).send().await.unwrap();
    assert!(serve.stop().await.success());
    let output = serve.output();
    let line = output.lines().find(|line| line.contains("answered")).unwrap();
    let path = format!("/nowhere/0/{}…", "x".repeat(256 - "/nowhere/0/".len()));
    assert!(line.contains(" method=other ") && line.contains(&format!(" path=\"{path}\" ")), "{line}");
}

#[tokio::test]
async fn invalid_requests_are_not_logged() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
    let mut wire = Wire::to(&serve).await;
    wire.send("sesame\r\n\r\n").await.unwrap();
    assert_eq!(wire.answer().await.status, 400);
    assert!(serve.stop().await.success());
    let output = serve.output();
    assert!(!output.contains("ERROR") && !output.contains("actix_http"), "{output}");
}

#[tokio::test]
async fn an_aborted_request_is_logged_and_its_statement_ends() {
    let db = TestDb::new().await;
    // The statement does not end by its timeout.
    let serve = spawn_serve(&db, None, &["--log", "info", "--statement-timeout", "3600"]).await;
    let mut held = db.hold("LOCK TABLE centile_store.boards").await;
    let mut wire = Wire::to(&serve).await;
    wire.send("GET /v1/boards HTTP/1.1\r\nHost: x\r\nX-Request-Id: gone\r\n\r\n").await.unwrap();
    db.until_waiting(1, || false).await;
    wire.0.get_ref().set_zero_linger().unwrap();
    drop(wire);
    let output = serve.logged("client disconnected", 1).await;
    let line = output.lines().find(|line| line.contains("client disconnected")).unwrap();
    assert!(line.contains("request_id=gone") && line.contains(" status=499 "), "{line}");
    let mut asking = PgConnection::connect(db.url()).await.unwrap();
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the statement ends", async || {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut asking).await.unwrap() == 0
    })
    .await;
    sqlx::query("SELECT 1").execute(&mut held).await.expect("the lock is still held");
    drop(held);
    let numbers = serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(numbers.lines().any(|line| line.contains("status=\"499\"")), "{numbers}");
}

/// A full pipe without a reader: the end for a process to write to, and the end to keep open.
async fn full_pipe() -> (Stdio, pipe::Receiver) {
    let (into, from) = pipe::pipe().unwrap();
    into.writable().await.unwrap();
    while into.try_write(&[b'x'; 4096]).is_ok() {}
    (into.into_blocking_fd().unwrap().into(), from)
}

#[tokio::test]
async fn an_instance_with_an_unread_log_stops() {
    let db = TestDb::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    let (log, _unread) = full_pipe().await;
    // By then it has logged that there is no Redis.
    let mut command = centile();
    command.args(["serve", "--listen", &in_use]).env("DATABASE_URL", db.url()).stdout(Stdio::null()).stderr(log);
    let ended = tokio::process::Command::from(command).kill_on_drop(true).status();
    assert_eq!(within("the end of the instance", ended).await.unwrap().code(), Some(1));

    let (log, _unread) = full_pipe().await;
    let mut command = Serve::command(db.url(), None, "log", &["--log".to_owned(), "info".to_owned()]);
    command.stdout(Stdio::piped()).stderr(log);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = output.next_line().await.unwrap().unwrap();
    let url = line.strip_prefix("listening on ").unwrap();
    let client = client();
    for _ in 0..100 {
        assert_eq!(client.get(format!("{url}/healthz")).send().await.unwrap().status(), 200);
    }
    signal(child.id().unwrap(), "TERM").unwrap();
    assert!(within("the end of the instance", child.wait()).await.unwrap().success());
}
