//! The time within which time limits take effect. The tests of the same behaviour have no such
//! limits.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Response;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

use crate::{
    report::{Trial, seconds},
    support::{
        Serve, TestDb,
        load::key,
        proxy::{Proxy, Way},
        wait::{until, within},
    },
};

const SUBMIT: &str = "POST /v1/boards/main/scores HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
/// Interval at which a slow client sends or reads a byte.
const PACE: Duration = Duration::from_millis(700);

/// Starts a service with a board that needs a key to read, behind a proxy to its database.
async fn service(flags: &[&str]) -> (TestDb, Proxy, Serve) {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"reading\": \"key\"}')").await;
    let proxy = Proxy::to(db.port()).await;
    let (url, prefix) = (proxy.instead(db.url()), db.redis_prefix());
    let flags = flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>();
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await;
    (db, proxy, serve.expect("a service"))
}

/// Returns the duration and the result of a future.
async fn time<T>(what: impl Future<Output = T>) -> (Duration, T) {
    let begun = Instant::now();
    let result = what.await;
    (begun.elapsed(), result)
}

/// Follows the board; returns once the stream has begun.
async fn follow(serve: &Serve, key: &str) -> Response {
    let request = serve.client.get(serve.at("/v1/boards/main/live")).bearer_auth(key);
    let mut stream = request.send().await.expect("a stream");
    assert!(comes(&mut stream, "event: started").await, "{stream:?}");
    stream
}

/// Reads until this text arrives; `false` if the stream ends before.
async fn comes(stream: &mut Response, wanted: &str) -> bool {
    let mut text = String::new();
    while let Ok(Some(chunk)) = within("an event", stream.chunk()).await {
        text.push_str(&String::from_utf8_lossy(&chunk));
        if text.contains(wanted) {
            return true;
        }
    }
    false
}

/// Opens a connection and sends these bytes.
async fn connect(serve: &Serve, first: &str) -> TcpStream {
    let address = serve.url.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(first.as_bytes()).await.expect("a connection that is open");
    stream
}

/// Sends `first`, and then the bytes of `more` one by one, or reads bytes if it is empty, until the
/// connection is closed.
async fn send_slowly(serve: &Serve, first: &str, more: &str) {
    let (mut stream, mut bytes) = (connect(serve, first).await, more.bytes().cycle());
    let mut is_open = true;
    // A reset is visible before all received bytes are read.
    while is_open && matches!(stream.take_error(), Ok(None)) {
        sleep(PACE).await;
        is_open = match bytes.next() {
            Some(byte) => stream.write_all(&[byte]).await.is_ok(),
            None => stream.read_u8().await.is_ok(),
        };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_closed_in_time() {
    let mut trial = Trial::begin("time-slow", "clients that send or read a byte every 0.7 s", "closed within 15 s");
    let (db, _proxy, serve) = service(&[]).await;
    let body = format!("{SUBMIT}authorization: Bearer {}\r\ncontent-length: 1000\r\n\r\n{{", key(db.url(), "server"));
    let answers = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n".repeat(16);
    let kinds = [("head", "GET /healthz HTTP/1.1\r\n", "h: x\r\n"), ("body", &*body, " "), ("response", &*answers, "")];
    let closing = |(_, first, more)| time(within("the end of a slow connection", send_slowly(&serve, first, more)));
    for ((kind, ..), (time, ())) in kinds.iter().zip(join_all(kinds.map(closing)).await) {
        trial.expect(time <= Duration::from_secs(15), format!("slow with the {kind}: {}", seconds(time)));
    }
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_is_refused_in_time() {
    let asked = "refused within 5 s, and their streams ended within 7 s";
    let mut trial = Trial::begin("time-key", "5 keys revoked by SQL", asked);
    let (db, _proxy, serve) = service(&[]).await;
    let (mut refused, mut ended) = (Duration::ZERO, Duration::ZERO);
    for number in 0..5 {
        let key = key(db.url(), "reader");
        let mut stream = follow(&serve, &key).await;
        // A key is cached for some seconds: each time it is revoked at another point of them.
        sleep(number * Duration::from_millis(800)).await;
        db.execute(&format!("SELECT centile.revoke_key('{}')", key.split('_').nth(1).expect("its id"))).await;
        let ask = || serve.client.get(serve.at("/v1/boards/main")).bearer_auth(&key).send();
        let refusal = until("a refusal", async || ask().await.expect("an answer").status() == 401);
        let end = async { while comes(&mut stream, "event: ").await {} };
        let times = tokio::join!(time(refusal), time(end));
        (refused, ended) = (refused.max(times.0.0), ended.max(times.1.0));
    }
    trial.expect(refused <= Duration::from_secs(5), format!("refused after {} at most", seconds(refused)));
    trial.expect(ended <= Duration::from_secs(7), format!("streams ended after {} at most", seconds(ended)));
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_report_an_unreachable_postgresql_in_time() {
    let mut trial = Trial::begin("time-stale", "PostgreSQL cut off while a board is followed", "`stale` within 8 s");
    for way in [Way::Reset, Way::Silent] {
        let (db, proxy, serve) = service(&[]).await;
        let mut stream = follow(&serve, &key(db.url(), "reader")).await;
        proxy.set(way);
        let (time, comes) = time(comes(&mut stream, "event: stale")).await;
        trial.expect(comes && time <= Duration::from_secs(8), format!("{way:?}: after {}", seconds(time)));
    }
    trial.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_in_time() {
    let mut trial = Trial::begin("time-stop", "a stop while a body is outstanding", "status 0 within 30 s");
    let (db, _proxy, mut serve) = service(&["--client-timeout", "600"]).await;
    let key = key(db.url(), "server");
    let _stream = follow(&serve, &key).await;
    // The service answers "100 Continue" once it waits for the body.
    let head = format!("{SUBMIT}authorization: Bearer {key}\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n");
    let mut open = connect(&serve, &head).await;
    within("100 Continue", open.read_u8()).await.expect("an answer");
    let (time, status) = time(serve.stop()).await;
    trial.expect(status.success() && time <= Duration::from_secs(30), format!("{status} after {}", seconds(time)));
    trial.end();
}
