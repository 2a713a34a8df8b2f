//! Limits for clients: size, time, rate and origin.

mod expect;
mod keys;
mod overload;
mod rate;
mod size;
pub mod slow;
pub mod wire;

use std::fs;

use futures::{StreamExt as _, stream::FuturesUnordered};
use reqwest::{Method, header::VARY};
use serde_json::{Value, json};

use crate::{
    http::api::site::{Answer, Site},
    support::{
        TestDb,
        wait::{until_some, within},
    },
};
use wire::Wire;

const SCORES: &str = "/v1/boards/main/scores";

/// Returns a number of kilobytes from a process's status in /proc.
fn kilobytes(process: u32, what: &str) -> i64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn only_named_origins_may_read_cross_origin() {
    let db = TestDb::new().await;
    let ask = async |site: &Site, method: Method, origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        site.send(method.clone(), SCORES, &headers[..if method == Method::OPTIONS { 2 } else { 1 }], String::new())
            .await
    };
    let output = |answer: &Answer, name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let (home, other) = ("https://game.example", "https://game.example.evil.example");

    let closed = Site::start(&db, &[]).await;
    closed.board(json!({}), &[("ada", 1)]).await;
    for method in [Method::GET, Method::OPTIONS] {
        let answer = ask(&closed, method.clone(), home).await;
        assert_eq!(answer.status, if method == Method::GET { 200 } else { 405 });
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")), "{answer:?}");
    }
    drop(closed);

    let named = Site::start(&db, &["--cors-origins", "https://game.example,http://localhost:3000"]).await;
    for origin in [home, "http://localhost:3000"] {
        let answer = ask(&named, Method::GET, origin).await;
        assert_eq!((answer.status, output(&answer, "access-control-allow-origin").as_deref()), (200, Some(origin)));
        assert_eq!(output(&answer, "vary").as_deref(), Some("Origin"));
        let exposed = output(&answer, "access-control-expose-headers").unwrap();
        for name in ["ETag", "Retry-After", "RateLimit-Remaining", "X-Request-Id"] {
            assert!(exposed.split(", ").any(|one| one == name), "{name} is not in {exposed}");
        }
        assert_eq!(output(&answer, "access-control-allow-credentials"), None);
        let answer = ask(&named, Method::OPTIONS, origin).await;
        assert_eq!((answer.status, output(&answer, "access-control-allow-origin").as_deref()), (204, Some(origin)));
        assert!(output(&answer, "access-control-allow-methods").unwrap().contains("PATCH"));
        assert!(output(&answer, "access-control-allow-headers").unwrap().contains("Authorization"));
    }
    for origin in [other, "https://GAME.example", "http://game.example", "https://game.example:8443", "null"] {
        for method in [Method::GET, Method::OPTIONS] {
            let answer = ask(&named, method.clone(), origin).await;
            assert_eq!(answer.status, if method == Method::GET { 200 } else { 405 }, "{origin}");
            assert_eq!(output(&answer, "access-control-allow-origin"), None, "{origin}");
            assert_eq!(answer.headers[VARY], "Origin", "{origin}");
        }
    }
    // An error also has the CORS headers.
    let answer = named.send(Method::GET, "/v1/boards/none", &[("origin", home)], String::new()).await;
    assert_eq!((answer.status, output(&answer, "access-control-allow-origin").as_deref()), (404, Some(home)));
    drop(named);

    let open = Site::start(&db, &["--cors-origins", "*"]).await;
    assert_eq!(output(&ask(&open, Method::GET, other).await, "access-control-allow-origin").as_deref(), Some("*"));
}

#[tokio::test]
async fn the_log_has_the_client_address_behind_a_trusted_proxy() {
    let db = TestDb::new().await;
    let logged = async |flags: &[&str]| {
        let flags = [&["--log", "info", "--log-format", "json"], flags].concat();
        let site = Site::start(&db, &flags).await;
        let headers = [("x-forwarded-for", "203.0.113.9, 198.51.100.7"), ("x-request-id", "who")];
        site.send(Method::GET, "/v1/boards/none", &headers, String::new()).await.is(404);
        // The log line may arrive later than the answer.
        let line = until_some("the log line of the request", async || {
            let output = site.serve.output();
            let mut lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.find(|line| line["path"] == "/v1/boards/none")
        })
        .await;
        line["address"].as_str().expect("an address").to_owned()
    };
    assert_eq!(logged(&[]).await, "127.0.0.1");
    assert_eq!(logged(&["--trusted-proxies", "10.0.0.0/8"]).await, "127.0.0.1");
    assert_eq!(logged(&["--trusted-proxies", "127.0.0.0/8"]).await, "198.51.100.7");
    assert_eq!(logged(&["--trusted-proxies", "127.0.0.1,198.51.100.0/24"]).await, "203.0.113.9");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--connections", "4", "--workers", "1"]).await;
    let healthz = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::to(&site.serve).await;
        wire.send(healthz).await.unwrap();
        assert_eq!(wire.answer().await.status, 200);
        open.push(wire);
    }
    let mut waiting = [Wire::to(&site.serve).await, Wire::to(&site.serve).await];
    for wire in &mut waiting {
        wire.send(healthz).await.unwrap();
    }
    // The only worker has time to accept them.
    for _ in 0..50 {
        open[0].send(healthz).await.unwrap();
        assert_eq!(open[0].answer().await.status, 200);
    }
    // The worker accepts one connection before it notices the limit.
    let answered = waiting.iter().filter(|wire| wire.0.get_ref().try_read(&mut []).is_ok());
    let answered = answered.count();
    assert!(answered <= 1, "there is no limit");
    open.clear();
    for wire in &mut waiting {
        assert_eq!(wire.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_request_without_a_connection_to_postgresql_gets_503_soon() {
    let db = TestDb::new().await;
    let flags = ["--read-connections", "1", "--pool-wait", "500", "--statement-timeout", "600"];
    let site = Site::start(&db, &flags).await;
    // Waits until the connection exists, which may take longer on a busy machine.
    while site.get("/v1/users/ada").await.status == 503 {}
    let pool = db.pool().await;
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE centile_store.users IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    // The first request has the connection, and waits for the table.
    let asked = ["ada", "bob", "cyd"].map(|user| format!("/v1/users/{user}"));
    let mut answers: FuturesUnordered<_> = asked.iter().map(|path| site.get(path)).collect();
    let mut next = async || within("an answer", answers.next()).await.unwrap();
    let refused = [next().await, next().await];
    lock.rollback().await.unwrap();
    assert!(next().await.status < 500);
    for refused in refused {
        assert_eq!(refused.headers["retry-after"], "1");
        refused.is(503);
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_idle_connections() {
    let db = TestDb::new().await;
    // A stop that waited for connections would reach the test's deadline.
    let mut site = Site::start(&db, &["--stop-within", "600", "--client-timeout", "600"]).await;
    let mut idle = Wire::to(&site.serve).await;
    idle.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert_eq!(idle.answer().await.status, 200);
    // One connection without any bytes, and one with half a request.
    let _silent = Wire::to(&site.serve).await;
    let mut half = Wire::to(&site.serve).await;
    half.send("GET /healthz HT").await.unwrap();
    assert!(site.serve.stop().await.success());
}
