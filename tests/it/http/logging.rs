//! The log of an instance, which separate threads write.

use std::{net::TcpListener, process::Stdio};

use centile::dev::local::signal;
use reqwest::Method;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe,
    runtime::Handle,
};

use crate::{
    http::limits::wire::Wire,
    support::{Serve, TestDb, centile, client, spawn_serve, wait::within},
};

/// Enough to fill the queue of the log, which holds 8,192 lines.
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
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
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
async fn an_aborted_request_is_logged() {
    let db = TestDb::new().await;
    let serve = spawn_serve(&db, None, &["--log", "info"]).await;
    let held = db.hold("LOCK TABLE centile_store.boards").await;
    let mut wire = Wire::to(&serve).await;
    wire.send("GET /v1/boards HTTP/1.1\r\nHost: x\r\nX-Request-Id: gone\r\n\r\n").await.unwrap();
    db.until_waiting(1, || false).await;
    wire.0.get_ref().set_zero_linger().unwrap();
    drop(wire);
    let output = serve.logged("client disconnected", 1).await;
    let line = output.lines().find(|line| line.contains("client disconnected")).unwrap();
    assert!(line.contains("request_id=gone") && line.contains(" status=499 "), "{line}");
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
