//! What `HAProxy` forwards, and what it sends twice.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use reqwest::{Client, Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::Group;
use crate::support::{
    Serve, TestDb,
    balancer::{Balancer, own_loopback},
    client,
    load::key,
    wait::{until, within},
};

/// A server that passes checks, and closes the connection of any other request without an answer.
struct Mute {
    address: String,
    accepting: JoinHandle<()>,
}

/// The received requests, by their header `Case`.
type Received = Arc<Mutex<Vec<String>>>;

impl Mute {
    async fn start(received: &Received) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, received) = (listener.local_addr().unwrap().to_string(), Arc::clone(received));
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(receive(stream, Arc::clone(&received)));
            }
        });
        Self { address, accepting }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Reads one request.
async fn receive(mut stream: TcpStream, received: Received) -> Option<()> {
    let mut request = Vec::new();
    let (head, length) = loop {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let body = value(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        break (head.clone(), head.len() + 4 + body);
    };
    while request.len() < length {
        stream.read_buf(&mut request).await.ok()?;
    }
    if ["get /readyz ", "get /healthz "].iter().any(|check| head.starts_with(check)) {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.ok()?;
    } else {
        received.lock().unwrap().push(value(&head, "case").unwrap_or_default().to_owned());
    }
    Some(())
}

/// Returns the value of a header.
fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn only_reads_and_scores_with_ids_are_sent_again() {
    let received = Received::default();
    let servers = [Mute::start(&received).await, Mute::start(&received).await, Mute::start(&received).await];
    let addresses = servers.each_ref().map(|server| server.address.clone());
    let balancer = tokio::task::spawn_blocking(move || Balancer::start(&addresses)).await.unwrap();
    let (scores, batch) = ("/v1/boards/arena/scores", "/v1/boards/arena/scores/batch");
    let with_id = json!({"user_id": "a", "points": 1, "id": "x"});
    // Three instances receive what is sent again twice.
    let cases = [
        ("a top", Method::GET, scores, json!(null), 3),
        ("a query", Method::POST, "/v1/boards/arena/scores/query", json!({"user_ids": ["a"]}), 3),
        ("a score with an id", Method::POST, scores, with_id.clone(), 3),
        ("a score", Method::POST, scores, json!({"user_id": "a", "points": 1}), 1),
        ("no id", Method::POST, scores, json!({"user_id": "a", "points": 1, "id": null}), 1),
        ("another id", Method::POST, scores, json!({"user_id": "a", "points": 1, "metadata": {"id": "x"}}), 1),
        ("a quoted id", Method::POST, scores, json!({"user_id": r#"","id":"x"#, "points": 1}), 1),
        ("a long score", Method::POST, scores, json!({"user_id": "a".repeat(40_000), "points": 1, "id": "x"}), 1),
        ("a batch", Method::POST, batch, json!({"events": [with_id, {"user_id": "b", "points": 1}]}), 1),
        ("an array", Method::POST, "/v1/scores", json!([with_id, {"user_id": "b", "points": 1}]), 1),
        ("a void", Method::POST, "/v1/boards/arena/transactions/1/void", json!({"reason": "x", "id": "x"}), 1),
        ("a profile", Method::PUT, "/v1/users/a", json!({"name": "x", "id": "x"}), 1),
        ("a setting", Method::PATCH, "/v1/boards/arena", json!({"title": "x", "id": "x"}), 1),
        ("an erasure", Method::DELETE, "/v1/users/a", json!(null), 1),
        ("metrics", Method::GET, "/metrics", json!(null), 0),
        ("a check", Method::GET, "/readyz?", json!(null), 0),
        ("a page of operators", Method::GET, "/ops/", json!(null), 0),
    ];
    for (case, method, path, body, _) in &cases {
        let request = client().request(method.clone(), balancer.at(path)).header("case", *case);
        let request = if body.is_null() { request } else { request.json(body) };
        let refused = within("an answer", request.send()).await.unwrap().status();
        assert!(refused == StatusCode::NOT_FOUND || refused.is_server_error(), "{case}: {refused}");
    }
    let received = received.lock().unwrap();
    for (case, .., times) in &cases {
        assert_eq!(received.iter().filter(|received| received == case).count(), *times, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_and_live_streams_pass() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena')").await;
    let group = Group::start(&db, [db.url(); 3], &["--trusted-proxies", "127.0.0.1"]).await;
    let own = own_loopback();
    let client = Client::builder().local_address(Some(own.into())).build().unwrap();
    let mut live = client.get(group.balancer.at("/v1/boards/arena/live")).send().await.unwrap();
    assert_eq!(live.status(), StatusCode::OK);
    let first = group.new_first(&key(db.url(), "server"), 0).await;
    let mut text = String::new();
    while !text.contains(&first) {
        let chunk = within("an event", live.chunk()).await.unwrap().expect("the stream continues");
        text.push_str(str::from_utf8(&chunk).unwrap());
    }
    // An address that the client names itself does not count.
    for _ in 0..3 {
        let request = client.get(group.balancer.at("/v1/boards/arena")).header("x-forwarded-for", "203.0.113.9");
        request.send().await.unwrap().error_for_status().unwrap();
    }
    let lines = || -> Vec<String> {
        let outputs: Vec<String> = group.instances.iter().map(Serve::output).collect();
        let is_read =
            |line: &&str| line.contains("GET") && line.contains("/v1/boards/arena") && !line.contains("/live");
        outputs.iter().flat_map(|output| output.lines()).filter(is_read).map(ToOwned::to_owned).collect()
    };
    until("the requests are logged", async || lines().len() == 3).await;
    for line in lines() {
        assert!(line.contains(&own.to_string()), "{line}");
    }
}
