//! Bodies that are too large are refused early, and never kept in memory.

use std::{
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    SCORES, kilobytes,
    wire::{RawAnswer, Wire, answer},
};
use crate::{
    http::api::site::{Answer, Site},
    support::{
        TestDb,
        wait::{until_some, within},
    },
};

/// Body limit of the service, which is its default.
const BODY_LIMIT: usize = 1 << 20;
/// The same in kilobytes.
const BODY_LIMIT_KB: i64 = 1 << 10;
/// Reads chosen players; needs no key.
const QUERY: &str = "/v1/boards/main/scores/query";
/// Body limit of that call.
const QUERY_LIMIT: usize = 384 << 10;
/// A short body for it.
const SMALL: &str = r#"{"user_ids":["ada"]}"#;
/// Maximum growth of a process's memory, in kilobytes, for any input.
const MAX_GROWTH_KB: i64 = 10 << 10;

/// Returns a request's head that ends with `more`.
fn head(key: Option<&str>, more: &str) -> String {
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    format!("POST {SCORES} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{key}{more}\r\n\r\n")
}

/// Sends a body of one gibibyte for as long as the service reads it. Returns the number of bytes
/// sent, and the answer.
async fn send_endless_body(site: &Site, head: &str, is_chunked: bool) -> (usize, RawAnswer) {
    let mut wire = Wire::to(&site.serve).await;
    wire.send(head).await.unwrap();
    let bytes = vec![b' '; 1 << 16];
    let chunk = if is_chunked { [b"10000\r\n", &bytes[..], b"\r\n"].concat() } else { bytes };
    let (mut from, mut to) = wire.0.get_mut().split();
    let pouring = async {
        let mut sent = 0;
        while sent < 1 << 30 && to.write_all(&chunk).await.is_ok() {
            sent += 1 << 16;
        }
        sent
    };
    tokio::join!(pouring, answer(&mut from))
}

/// Returns a hundred million bytes, compressed to a hundred thousand.
fn gzip_bomb() -> Vec<u8> {
    let mut child = Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut into = child.stdin.take().unwrap();
    let filling = std::thread::spawn(move || {
        for _ in 0..2_000 {
            into.write_all(&vec![b' '; 50_000]).unwrap();
        }
    });
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    filling.join().unwrap();
    assert!(child.wait().unwrap().success());
    bytes
}

#[tokio::test]
async fn large_bodies_are_refused_early_without_using_memory() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let list = json!(vec![json!({"user_id": "ada", "points": 1}); 1_000]).to_string();
    for _ in 0..20 {
        site.post(SCORES, &list).await.is(200);
    }
    let process = site.serve.id();
    let before = kilobytes(process, "VmRSS");
    // Resets the peak.
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    let grown = |what: &str, most: i64| {
        let more = kilobytes(process, "VmHWM") - before;
        eprintln!("{what}: {more} kB more than before");
        assert!(more <= most, "{what}: {more} kB more");
    };

    let key = Some(&*site.server_key);
    let gibibyte = format!("content-length: {}", 1_usize << 30);
    for (what, key, length, status) in [
        ("chunks without end", key, "transfer-encoding: chunked", 413),
        ("chunks without end or key", None, "transfer-encoding: chunked", 401),
        ("a length of a gibibyte", key, &*gibibyte, 413),
        ("a length of a gibibyte without a key", None, &gibibyte, 401),
    ] {
        let (sent, output) = send_endless_body(&site, &head(key, length), length.starts_with("transfer")).await;
        assert_eq!(output.status, status, "{what}: {output:?}");
        eprintln!("{what}: {sent} bytes went off");
        // Some bytes are in the socket buffers of both sides.
        assert!(sent < 1 << 26, "{what}: {sent} bytes");
        grown(what, MAX_GROWTH_KB);
    }
    let deep = [
        "[".repeat(10_000),
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
        format!("{{\"user_id\":\"ada\",\"points\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000)),
    ];
    for body in deep {
        let answer = site.post(SCORES, &body).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    grown("JSON ten thousand deep", MAX_GROWTH_KB);

    let gzip_bomb = gzip_bomb();
    for coding in ["gzip", "x-gzip", "deflate", "gzip, gzip"] {
        let request = site.serve.client.post(site.serve.at(SCORES)).bearer_auth(&site.server_key);
        let request = request.header("content-type", "application/json").header("content-encoding", coding);
        assert_eq!(request.body(gzip_bomb.clone()).send().await.unwrap().status(), 415, "{coding}");
    }
    grown("a gzip bomb", MAX_GROWTH_KB);

    let chunked = head(key, "transfer-encoding: chunked");
    let output = futures::future::join_all((0..8).map(|_| send_endless_body(&site, &chunked, true))).await;
    assert!(output.iter().all(|(sent, output)| output.status == 413 && *sent < 1 << 26), "{output:?}");
    // Each body is kept up to the limit, in a buffer that has grown to it.
    grown("eight bodies at once", 8 * 2 * BODY_LIMIT_KB);
    site.post(SCORES, json!({"user_id": "ada", "points": 1})).await.is(200);
}

#[tokio::test]
async fn a_body_of_the_limit_is_accepted_and_one_byte_more_is_not() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let event = json!({"user_id": "ada", "points": 1}).to_string();
    for (length, status) in [(BODY_LIMIT, 200), (BODY_LIMIT + 1, 413)] {
        let body = format!("{event}{}", " ".repeat(length - event.len()));
        assert_eq!(site.post(SCORES, &body).await.status, status, "{length} bytes");
        // The same in a chunk, which does not announce the total. The connection stays usable.
        let mut wire = Wire::to(&site.serve).await;
        let chunked = head(Some(&site.server_key), "transfer-encoding: chunked");
        wire.send(&format!("{chunked}{length:x}\r\n{body}\r\n0\r\n\r\n")).await.unwrap();
        let output = wire.answer().await;
        assert_eq!(output.status, status, "{length} bytes in a chunk");
        if status == 413 {
            let problem: Value = serde_json::from_str(&output.body).unwrap();
            assert_eq!(problem["type"], "urn:centile:problem:body_too_large");
        }
        wire.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(wire.answer().await.status, 200, "after {length} bytes");
    }
    // Chunks that break off are malformed, and the connection ends.
    let chunked = "transfer-encoding: chunked";
    for broken in ["x\r\n", "-1\r\n", "\r\n", "1\r\n{}\r\n", "fffffffffffffffff\r\n", "2\r\n{}\r\nq\r\n"] {
        for (key, status) in [(Some(&*site.server_key), 400), (None, 401)] {
            let mut wire = Wire::to(&site.serve).await;
            wire.send(&format!("{}{broken}", head(key, chunked))).await.unwrap();
            let output = wire.answer().await;
            assert_eq!(output.status, status, "{broken:?}: {output:?}");
            assert!(status == 401 || output.body.contains("malformed_body"), "{broken:?}: {output:?}");
            let end = within("the end of the connection", wire.0.read(&mut [0; 1])).await;
            assert!(matches!(end, Ok(0) | Err(_)), "{broken:?}: {end:?}");
        }
    }
    // A body without a coding may say so.
    for (coding, status) in
        [("identity", 200), ("IDENTITY", 200), ("gzip", 415), ("identity\r\ncontent-encoding: gzip", 415)]
    {
        let mut wire = Wire::to(&site.serve).await;
        let length = format!("content-encoding: {coding}\r\ncontent-length: {}", event.len());
        wire.send(&format!("{}{event}", head(Some(&site.server_key), &length))).await.unwrap();
        assert_eq!(wire.answer().await.status, status, "{coding}");
    }
    // Proxies and servers disagree about which of two keys counts.
    let other = format!("authorization: Bearer {}\r\n", site.admin_key);
    let same = format!("authorization: Bearer {}\r\n", site.server_key);
    for again in [other, same, "authorization: Basic eDp4\r\n".to_owned()] {
        for (method, path) in [("POST", SCORES), ("GET", "/v1/boards"), ("GET", SCORES), ("GET", "/v1/users/ada")] {
            let mut wire = Wire::to(&site.serve).await;
            let length = if method == "POST" { event.len() } else { 0 };
            let head = head(Some(&site.server_key), &format!("{again}content-length: {length}"));
            let head = head.replacen(&format!("POST {SCORES}"), &format!("{method} {path}"), 1);
            wire.send(&format!("{head}{}", &event[..length])).await.unwrap();
            let output = wire.answer().await;
            assert_eq!(output.status, 401, "{method} {path}: {output:?}");
            assert!(output.body.contains("key_invalid"), "{output:?}");
        }
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let many = |headers: usize| "h: x\r\n".repeat(headers - 1);
    let long = |bytes: usize| format!("h: {}\r\n", "x".repeat(bytes));
    for (what, path, headers, statuses) in [
        ("96 headers", "healthz", many(96), 200..=200),
        ("97 headers", "healthz", many(97), 400..=431),
        ("a header of 100,000 bytes", "healthz", long(100_000), 200..=200),
        ("a header of 200,000 bytes", "healthz", long(200_000), 431..=431),
        ("a path of 70,000 bytes", &*"x".repeat(70_000), String::new(), 400..=431),
    ] {
        let mut wire = Wire::to(&site.serve).await;
        // The service need not read it to the end.
        wire.send(&format!("GET /{path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await.ok();
        let output = wire.answer().await;
        assert!(statuses.contains(&output.status), "{what}: {output:?}");
    }
    // A proxy may read another length. The rest of such a body is never a request of its own.
    let rest = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    for framing in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 5",
        "content-length: +5",
        "content-length: 0x5",
        "content-length: -1",
        "content-length : 5",
        "content-length:\r\n 5",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding : chunked",
        "transfer-encoding:\u{b}chunked",
    ] {
        let mut wire = Wire::to(&site.serve).await;
        wire.send(&format!("POST /v1/boards/main/scores HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n0\r\n\r\n{rest}"))
            .await
            .ok();
        let mut answers = String::new();
        within("the end of the connection", wire.0.read_to_string(&mut answers)).await.ok();
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{framing}: {answers}");
        assert!(answers.starts_with("HTTP/1.1 400 "), "{framing}: {answers}");
    }
}

#[tokio::test]
async fn the_limit_of_a_query_fits_its_longest_list() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    // The maximum number of ids, each of the maximum length and with every character escaped.
    let ids = (0..500).map(|id| format!("{id:0>128}"));
    let escaped = |id: String| id.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<Vec<_>>().concat();
    let users = ids.map(|id| format!("\"{}\"", escaped(id))).collect::<Vec<_>>().join(", ");
    let body = format!("{{\n  \"user_ids\": [{users}],\n  \"period\": \"all_time\"\n}}\n");
    assert_eq!(site.post(QUERY, &body).await.is(200)["missing"].as_array().unwrap().len(), 500);
    let query = |length: usize| format!("{{\"user_ids\":[\"ada\"]}}{}", " ".repeat(length - 20));
    site.post(QUERY, query(QUERY_LIMIT)).await.is(200);
    site.post(QUERY, query(QUERY_LIMIT + 1)).await.is(413);
}

/// Repeats a request until the answer matches.
async fn until<F: Future<Output = Answer>>(is_wanted: impl Fn(&Answer) -> bool, ask: impl Fn() -> F) -> Answer {
    until_some("the expected answer", async || Some(ask().await).filter(|answer| is_wanted(answer))).await
}

/// Sends all but the last byte of a request. Returns the connection, and the first answer of `ask`
/// that finds no memory left. If `ask` took the memory first, sends the request again.
async fn all_but_the_end<F: Future<Output = Answer>>(
    site: &Site,
    head: &str,
    body: &str,
    ask: impl Fn() -> F,
) -> (Wire, Answer) {
    let sending = async {
        loop {
            let mut slow = Wire::to(&site.serve).await;
            slow.send(head).await.unwrap();
            slow.send(&format!("{body}{}", " ".repeat(QUERY_LIMIT - body.len() - 1))).await.unwrap();
            tokio::select! {
                refused = until(|answer| answer.status != 200, &ask) => return (slow, refused),
                output = slow.answer() => assert_eq!(output.status, 503, "{output:?}"),
            }
        }
    };
    within("memory for one body", sending).await
}

#[tokio::test]
async fn bodies_share_a_memory_limit_and_those_without_a_key_have_their_own() {
    let db = TestDb::new().await;
    // Memory for one body of the maximum length of that call.
    let limit = QUERY_LIMIT.to_string();
    let site = Site::start(&db, &["--body-limit", &limit, "--bodies-limit", &limit]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let small = || site.send(Method::POST, QUERY, &[("content-type", "application/json")], SMALL.to_owned());
    small().await.is(200);

    // An announced length alone reserves no memory.
    let long = format!("POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
    let long = format!("{long}content-length: {QUERY_LIMIT}\r\n\r\n");
    let mut announced = Wire::to(&site.serve).await;
    announced.send(&long).await.unwrap();
    small().await.is(200);
    // All but the last byte arrives, and the request waits.
    let (mut slow, refused) = all_but_the_end(&site, &long, SMALL, small).await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (503, &HeaderValue::from_static("1")), "{refused:?}");
    assert_eq!(refused.body["type"], "urn:centile:problem:overloaded");
    // Clients with a key are not affected.
    site.post(SCORES, json!({"user_id": "ada", "points": 1})).await.is(200);
    slow.send(" ").await.unwrap();
    assert_eq!(slow.answer().await.status, 200);
    // The request has released its memory before its answer.
    small().await.is(200);

    // The same with a key.
    let event = json!({"user_id": "ada", "points": 1}).to_string();
    let long = head(Some(&site.server_key), &format!("content-length: {QUERY_LIMIT}"));
    let (slow, refused) = all_but_the_end(&site, &long, &event, || site.post(SCORES, &event)).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    small().await.is(200);
    // A client that disconnects also releases its memory.
    drop(slow);
    until(|answer| answer.status == 200, || site.post(SCORES, &event)).await;
    let numbers = site.get("/metrics").await.text;
    assert!(numbers.contains("centile_http_requests_refused_total{why=\"bodies\"}"), "{numbers}");
}

#[tokio::test]
async fn a_connection_ends_after_a_large_head() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    for (length, more, connection) in
        [(1_000, "", ""), (20_000, "", "close"), (20_000, "content-length: 0\r\n", "close")]
    {
        let mut wire = Wire::to(&site.serve).await;
        let filling = format!("x-filling: {}\r\n{more}", "x".repeat(length));
        wire.send(&format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{filling}\r\n")).await.unwrap();
        let output = wire.answer().await;
        assert_eq!((output.status, output.header("connection")), (200, connection), "{length} {more:?}");
    }
    // The head arrived together with the request before it.
    let mut wire = Wire::to(&site.serve).await;
    let filling = format!("x-filling: {}\r\n", "x".repeat(20_000));
    let two = format!("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n{filling}\r\n");
    wire.send(&two).await.unwrap();
    assert_eq!(wire.answer().await.header("connection"), "");
    assert_eq!(wire.answer().await.header("connection"), "close");
}

#[tokio::test]
async fn queued_requests_of_a_connection_do_not_keep_a_core_busy() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "120", "--pool-wait", "60000"]).await;
    site.get("/readyz").await.is(200);
    let held = db.hold("LOCK TABLE centile_store.applied_sql").await;
    let mut wire = Wire::to(&site.serve).await;
    // One request that waits, and after it more requests than actix parses ahead and more bytes
    // than it reads ahead.
    let small = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(40);
    wire.send(&format!("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n{small}")).await.unwrap();
    wire.send(&format!("GET /healthz HTTP/1.1\r\nx-filling: {}", "x".repeat(300_000))).await.unwrap();
    let end = within("the end of the connection", wire.0.read(&mut [0; 1_000])).await;
    assert!(end.is_err() || matches!(end, Ok(0)), "{end:?}");
    let numbers = site.get("/metrics").await.text;
    assert!(numbers.contains("centile_http_connections_cut_total{why=\"unread\"} 1\n"), "{numbers}");
    drop(held);
}

#[tokio::test]
async fn no_address_takes_all_memory_of_bodies_without_a_key() {
    let db = TestDb::new().await;
    let limit = (4 * BODY_LIMIT).to_string();
    let site = Site::start(&db, &["--bodies-limit", &limit, "--trusted-proxies", "127.0.0.1"]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let ask = async |from: &str, authorization: &str| {
        let headers =
            [("x-forwarded-for", from), ("authorization", authorization), ("content-type", "application/json")];
        site.send(Method::POST, QUERY, &headers, SMALL.to_owned()).await
    };
    // The longest query exceeds an eighth of the memory, and one of them is accepted.
    let head = format!("POST {QUERY} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 2001:db8::1\r\n");
    let head = format!("{head}content-length: {QUERY_LIMIT}\r\ncontent-type: application/json\r\n\r\n");
    let (mut slow, refused) = all_but_the_end(&site, &head, SMALL, || ask("2001:db8::2", "")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("your network"), "{refused:?}");
    ask("198.51.100.7", "").await.is(200);
    // An active key has its own share there; an invalid one has not.
    site.post(SCORES, json!({"user_id": "ada", "points": 1})).await.is(200);
    ask("2001:db8::3", &format!("Bearer {}", site.server_key)).await.is(200);
    ask("2001:db8::3", &format!("Bearer ctl_0123456789abcdef_{}", "0".repeat(64))).await.is(503);
    slow.send(" ").await.unwrap();
    assert_eq!(slow.answer().await.status, 200);
    ask("2001:db8::2", "").await.is(200);
}

/// Connections whose memory is measured.
const MANY: i64 = 200;

#[tokio::test]
async fn an_open_connection_keeps_no_memory_of_answered_requests() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let healthz = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let filled = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-filling: {}\r\n\r\n", "x".repeat(900));
    let query = format!("POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000");
    let query = format!("{query}\r\n\r\n{SMALL}{}", " ".repeat(100_000 - SMALL.len()));
    for (what, sent, answers) in [("a body", query, 1), ("a hundred requests", filled.repeat(100), 100)] {
        let mut wires = Vec::new();
        for _ in 0..MANY {
            let mut wire = Wire::to(&site.serve).await;
            wire.send(healthz).await.unwrap();
            assert_eq!(wire.answer().await.status, 200);
            wires.push(wire);
        }
        let before = kilobytes(site.serve.id(), "VmRSS");
        for wire in &mut wires {
            wire.send(&sent).await.unwrap();
            for _ in 0..answers {
                assert_eq!(wire.answer().await.status, 200, "{what}");
            }
        }
        let more = kilobytes(site.serve.id(), "VmRSS") - before;
        eprintln!("{what}: {more} kB more than before");
        assert!(more <= 80 * MANY, "{what}: {more} kB more");
    }
}
