//! Clients that are slow in every way, a thousand at a time in the long run: the service closes
//! them, and other clients are unaffected.

use std::{fs, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{interval, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    SCORES,
    wire::{Wire, answer},
};
use crate::{
    http::api::site::Site,
    support::{
        Serve, TestDb, amount,
        wait::{until, within},
    },
};

/// Interval at which a slow client sends or reads a byte.
const PACE: Duration = Duration::from_millis(700);
/// Number of normal callers.
const CALLERS: usize = 4;

/// Returns the number of client connections that the service at this port has not closed.
fn connections(port: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let is_its = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Leaves out subscribers and connections that only the kernel still holds: these have no
        // inode.
        fields[1].ends_with(&format!(":{port:04X}")) && fields[3] != "0A" && fields[9] != "0"
    };
    table.lines().skip(1).filter(is_its).count()
}

/// Sends `first` at once and then single bytes until the service closes the connection. Returns the
/// service's answer.
async fn send_slowly(mut wire: Wire, first: String, bytes: &str) -> String {
    wire.send(&first).await.unwrap();
    let (mut from, mut to) = wire.0.into_inner().into_split();
    let mut said = Vec::new();
    let dribbling = async {
        let mut ticks = interval(PACE);
        for byte in bytes.bytes().cycle() {
            ticks.tick().await;
            if to.write_all(&[byte]).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let reading = async {
        let mut part = [0; 4096];
        // A reset also ends the answer.
        while let Ok(length @ 1..) = from.read(&mut part).await {
            said.extend_from_slice(&part[..length]);
        }
    };
    tokio::select! {
        () = dribbling => {}
        () = within("the end of a slow connection", reading) => {}
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// Reads a byte of an answer now and then until the connection is reset.
async fn read_slowly(mut stream: TcpStream) {
    let mut ticks = interval(PACE);
    loop {
        ticks.tick().await;
        if stream.read_u8().await.is_err() {
            return;
        }
    }
}

/// Calls until `stop`; returns the number of calls. Each must succeed.
async fn call(site: &Site, stop: &CancellationToken) -> usize {
    let mut calls = 0;
    let client = crate::support::client();
    while !stop.is_cancelled() {
        let answer = if calls % 4 == 3 {
            let event = json!({"user_id": "ada", "points": 1});
            client.post(site.serve.at(SCORES)).bearer_auth(&site.server_key).json(&event).send().await
        } else {
            client.get(site.serve.at(SCORES)).send().await
        };
        let answer = answer.expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        calls += 1;
        sleep(Duration::from_millis(20)).await;
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_closed_and_delay_no_other() {
    // Connections of each of five kinds.
    let of_each_kind = amount(40, 200);
    let db = TestDb::new().await;
    // Looking up so many keys at once takes long on a busy machine.
    let site = Arc::new(Site::start(&db, &["--client-timeout", "4", "--pool-wait", "60000"]).await);
    site.board(json!({}), &[("ada", 1)]).await;
    let stop = CancellationToken::new();
    let mut others = JoinSet::new();
    for _ in 0..CALLERS {
        let (site, stop) = (Arc::clone(&site), stop.clone());
        others.spawn(async move { call(&site, &stop).await });
    }
    let port = site.serve.url.rsplit_once(':').unwrap().1.parse().unwrap();

    let key = &site.server_key;
    let submit = format!(
        "POST {SCORES} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    );
    let get = "GET /healthz HTTP/1.1\r\nhost: x\r\n";
    let too_slow = "HTTP/1.1 408";
    let kinds = [
        ("the first head", get.to_owned(), "h: x\r\n", ""),
        ("the second head", format!("{get}\r\n{get}"), "h: x\r\n", "HTTP/1.1 200"),
        ("a body", format!("{submit}content-length: 1000\r\n\r\n{{"), " ", too_slow),
        ("a body in chunks", format!("{submit}transfer-encoding: chunked\r\n\r\n"), "1\r\n \r\n", too_slow),
    ];
    let mut slow = JoinSet::new();
    let mut slow_readers = JoinSet::new();
    for of_kind in 0..of_each_kind {
        for (kind, first, bytes, wanted) in &kinds {
            let (kind, first, bytes, wanted) = (*kind, first.clone(), *bytes, *wanted);
            let wire = Wire::to(&site.serve).await;
            slow.spawn(async move {
                let said = send_slowly(wire, first, bytes).await;
                assert!(said.starts_with(wanted), "slow with {kind}: {said:?}");
            });
        }
        // More than the socket buffer holds, or just as much.
        let (path, times) = if of_kind % 2 == 0 { ("/docs/swagger-ui-bundle.js", 16) } else { ("/openapi.json", 1) };
        let mut stream = connect_with_small_buffer(&site.serve).await;
        let many = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(times);
        stream.write_all(many.as_bytes()).await.unwrap();
        slow_readers.spawn(read_slowly(stream));
    }
    slow.join_all().await;
    // The normal callers' connections remain.
    until("slow connections are closed", async || connections(port) <= 2 * CALLERS).await;
    slow_readers.abort_all();
    // The normal callers got answers all the time.
    stop.cancel();
    let calls: usize = others.join_all().await.into_iter().sum();
    eprintln!("{calls} calls of others");
    assert!(calls >= CALLERS, "{calls}");
    // The metrics count the closed connections.
    let numbers = site.get("/metrics").await.text;
    for (why, least) in [("head", of_each_kind / 2), ("body", 1), ("response", of_each_kind / 4)] {
        let name = format!("centile_http_connections_cut_total{{why=\"{why}\"}} ");
        let count = numbers.lines().find_map(|line| line.strip_prefix(&name)).expect("a number");
        assert!(count.parse::<f64>().unwrap() >= f64::from(least), "{why}: {count}");
    }
}

/// Returns the number of bytes from port `from` that the service at `port` has not read.
fn unread(port: u16, from: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_its = |fields: &Vec<&str>| {
        fields[1].ends_with(&format!(":{port:04X}")) && fields[2].ends_with(&format!(":{from:04X}"))
    };
    let line = lines.find(is_its).expect("the connection");
    usize::from_str_radix(line[4].split_once(':').unwrap().1, 16).unwrap()
}

/// Number of requests for the largest file at the beginning.
const BUNDLES: usize = 8;

/// Sends more requests on a connection that has read no answer yet, and then reads all answers. The
/// service at `port` has one worker; `ask` sends it a request on another connection.
pub async fn request_more_and_read_late<F: Future<Output = ()>>(
    port: u16,
    from: u16,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ask: impl Fn() -> F,
) {
    // Once other requests are answered, the worker has seen the bytes sent before.
    let others = async || {
        for _ in 0..10 {
            ask().await;
        }
    };
    let bundle = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n";
    // More than the socket buffer holds.
    stream.write_all(bundle.repeat(BUNDLES).as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    others().await;
    assert_eq!(unread(port, from), 0);
    let body = format!(r#"{{"user_ids":["ada"]}}{}"#, " ".repeat(20_000));
    let query = format!("POST {SCORES}/query HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
    let query = format!("{query}content-length: {}\r\n\r\n{body}", body.len());
    let more = ["GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", &query, bundle, &query].concat();
    stream.write_all(more.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    others().await;
    let waiting = unread(port, from);
    assert!(waiting >= more.len(), "{waiting} of {} bytes wait with the system", more.len());

    let mut answers = Vec::new();
    for _ in 0..BUNDLES + 4 {
        let output = answer(stream).await;
        assert_eq!(output.status, 200);
        answers.push(output.body);
    }
    let [bundles @ .., alive, players, last, others] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert!(last.len() > 1_000_000 && bundles.iter().all(|bundle| bundle == last));
    assert_eq!(alive, "ok");
    assert!(players.contains("\"ada\"") && players == others, "{players}");
}

/// Opens a connection with a small receive buffer.
async fn connect_with_small_buffer(serve: &Serve) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(serve.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_an_unread_answer_is_read_later() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--workers", "1", "--client-timeout", "60"]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let mut stream = connect_with_small_buffer(&site.serve).await;
    let (port, from) = (stream.peer_addr().unwrap().port(), stream.local_addr().unwrap().port());
    let ask = async || assert_eq!(site.get("/healthz").await.status, 200);
    request_more_and_read_late(port, from, &mut stream, ask).await;
}
