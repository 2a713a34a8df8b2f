//! The end of streams: by their key, by their reader, by the service.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
};

use super::{EVENTS, open_all, post, stream::Stream, until_number};
use crate::{
    http::api::site::Site,
    support::{TestDb, make_key, wait::until},
};

#[tokio::test]
async fn a_stream_ends_with_its_key() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let mut open = Stream::open(&site.serve, EVENTS, &[]).await;
    open.one("started").await;
    let key = make_key(db.url(), "reader", &[]);
    let (bearer, kept) = (format!("Bearer {key}"), format!("Bearer {}", site.server_key));
    let mut with_key = Stream::open(&site.serve, EVENTS, &[("authorization", &bearer)]).await;
    let mut with_other = Stream::open(&site.serve, EVENTS, &[("authorization", &kept)]).await;
    with_key.one("started").await;
    with_other.one("started").await;
    // Readers without a key may no longer read.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"reading": "key"})).await.is(200);
    post(&site, "ada", 1).await;
    // Not even one more event.
    assert_eq!(open.next().await.map(|event| event.data), None);
    assert_eq!(super::ask(&site.serve, EVENTS, &[]).await.status(), 401);
    with_key.one("changed").await;
    // Not through this instance, which would notice at once.
    let id = key.split('_').nth(1).unwrap();
    db.execute(&format!("SELECT centile.revoke_key('{id}')")).await;
    with_key.end().await;
    // The other stream continues.
    post(&site, "ada", 1).await;
    with_other.until(|event| event.data["scores"][0]["score"] == 42).await;
}

#[tokio::test]
async fn a_subscriber_that_reads_nothing_is_dropped() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--client-timeout", "1"]).await;
    let players: Vec<String> = (0..100).map(|player| format!("{player:0>120}")).collect();
    let scores: Vec<(&str, i64)> = players.iter().map(|id| (&**id, 5)).collect();
    site.board(json!({}), &scores).await;
    let slow = open_unread_stream(&site).await;
    until_number(&site.serve, "centile_live_subscribers", |subscribers| (0.5..1.5).contains(&subscribers)).await;
    // Another subscriber reads everything, for much longer than the slow one may wait.
    let mut healthy = Stream::open(&site.serve, &format!("{EVENTS}?limit=100"), &[]).await;
    healthy.one("started").await;
    until("the slow subscriber is dropped", async || {
        post(&site, &players[0], 1).await;
        healthy.one("changed").await;
        site.serve.metric("centile_live_subscribers_dropped_total").await >= 1.0
    })
    .await;
    until_number(&site.serve, "centile_live_subscribers", |subscribers| (0.5..1.5).contains(&subscribers)).await;
    post(&site, &players[1], 100).await;
    healthy.until(|event| event.data["scores"][0]["score"] == 105 || event.data["scores"][1]["score"] == 105).await;
    drop(slow);
}

/// Subscribes to long events and reads nothing. The receive buffer is small, so that little data is
/// in flight.
async fn open_unread_stream(site: &Site) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let place = site.serve.url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = socket.connect(place).await.unwrap();
    stream.write_all(format!("GET {EVENTS}?limit=100 HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_disconnected_subscriber_frees_its_place() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    drop(stream);
    // Long before the next event or keep-alive.
    until_number(&site.serve, "centile_live_subscribers", |subscribers| subscribers < 0.5).await;
    // The instance stops reading for it, too.
    let reads = site.serve.metric("centile_live_reads_total").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let more = site.serve.metric("centile_live_reads_total").await - reads;
    assert!(more <= 1.0, "{more} reads without a subscriber");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_streams() {
    let db = TestDb::new().await;
    // Other requests in progress would have until after the deadline.
    let mut site = Site::start(&db, &["--stop-within", "600"]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let streams = open_all(&site.serve, (0..20).map(|_| EVENTS.to_owned())).await;
    assert!(site.serve.stop().await.success());
    for mut stream in streams {
        stream.end().await;
    }
}
