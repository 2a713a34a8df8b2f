//! Limits of live streams, and their cost.

use std::time::Instant;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{
    EVENTS, ask, open_all,
    stream::{Event, Stream},
    until_number,
};
use crate::{http::api::site::Site, support::TestDb};

const READS_METRIC: &str = "centile_live_reads_total";

#[tokio::test]
async fn the_number_of_subscribers_is_limited() {
    let db = TestDb::new().await;
    let flags = ["--subscribers", "3", "--address-subscribers", "2", "--trusted-proxies", "127.0.0.1"];
    let site = Site::start(&db, &flags).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let from = async |address: &str| ask(&site.serve, EVENTS, &[("x-forwarded-for", address)]).await;
    let first = from("192.0.2.1").await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = from("192.0.2.1").await;
    assert_eq!(second.status(), StatusCode::OK);
    let refused = from("192.0.2.1").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    let third = from("192.0.2.2").await;
    assert_eq!(third.status(), StatusCode::OK);
    let refused = from("192.0.2.3").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(site.serve.metric("centile_http_requests_refused_total{why=\"subscribers\"}").await >= 2.0);
    drop(second);
    until_number(&site.serve, "centile_live_subscribers", |subscribers| (1.5..2.5).contains(&subscribers)).await;
    assert_eq!(from("192.0.2.1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn invalid_subscriptions_are_refused_with_their_field() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let many = (0..21).map(|n| format!("&user_id=p{n}")).collect::<Vec<_>>().concat();
    for (query, field) in [
        ("?limit=0".to_owned(), "limit"),
        ("?limit=101".to_owned(), "limit"),
        (format!("?limit=1{many}"), "user_id"),
        ("?user_id=".to_owned(), "user_id[0]"),
        ("?period=fortnight".to_owned(), "period"),
        ("?from=3".to_owned(), "from"),
    ] {
        assert_eq!(site.get(&format!("{EVENTS}{query}")).await.is(422)["field"], field, "{query}");
    }
    site.get("/v1/boards/none/live").await.is(404);
}

#[tokio::test]
async fn a_stream_is_neither_cached_nor_buffered() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--cors-origins", "https://game.example", "--heartbeat", "1"]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let headers = [("origin", "https://game.example"), ("accept-encoding", "gzip, br, zstd")];
    let mut stream = Stream::open(&site.serve, EVENTS, &headers).await;
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
        ("access-control-allow-origin", "https://game.example"),
        ("transfer-encoding", "chunked"),
    ] {
        assert_eq!(stream.response.headers()[name], value, "{name}");
    }
    assert!(!stream.response.headers().contains_key("content-encoding"));
    stream.one("started").await;
    // Without changes there are keep-alives.
    for _ in 0..2 {
        let part = stream.part().await.expect("a keep-alive");
        assert!(part.kind.is_empty(), "{part:?}");
    }
    let head = site.send(Method::HEAD, EVENTS, &[], String::new()).await;
    assert_eq!((head.status, &*head.text), (200, ""));
    assert_eq!(head.headers["content-type"], "text/event-stream");
}

/// Maximum statements of one read: for the board, the period, the ranking's state, and the rows
/// that are followed.
const STATEMENTS_PER_READ: f64 = 4.0;

/// Returns the log up to a request that is logged last: lines keep their order.
async fn logged(site: &Site, mark: &str) -> String {
    let path = format!("/nowhere/{mark}");
    site.get(&path).await.is(404);
    site.serve.logged(&path, 1).await
}

#[tokio::test]
async fn fifty_subscribers_cost_no_more_statements_than_one() {
    const CHANGES: i64 = 6;
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--log", "centile=info,sqlx::query=debug"]).await;
    site.board(json!({}), &[("ada", 100), ("bob", 30)]).await;
    let (mut streams, mut score) = (Vec::new(), 30);
    for subscribers in [1, 50] {
        let paths = (streams.len()..subscribers).map(|number| {
            let users = (0..number % 20).map(|n| format!("&user_id=p{n}")).collect::<Vec<_>>().concat();
            format!("{EVENTS}?limit={}{users}", 2 + number % 7)
        });
        streams.extend(open_all(&site.serve, paths).await);
        let (begun, reads) = (Instant::now(), site.serve.metric(READS_METRIC).await);
        let before = logged(&site, &format!("before-{subscribers}")).await;
        for _ in 0..CHANGES {
            // Written by SQL, so that the service runs hardly any statements but its live reads.
            db.execute("SELECT testing.submit_score('main', 'bob', 1)").await;
            score += 1;
            let is_shown = |event: &Event| event.data["scores"][1]["score"] == score;
            join_all(streams.iter_mut().map(|stream| stream.until(is_shown))).await;
        }
        let after = logged(&site, &format!("after-{subscribers}")).await;
        let (reads, seconds) = (site.serve.metric(READS_METRIC).await - reads, begun.elapsed().as_secs_f64());
        // An instance looks for submitted scores every 25 ms.
        let is_read = |line: &&str| line.contains("sqlx::query") && !line.contains("boards_in_inbox");
        let statements = after[before.len()..].lines().filter(is_read).count() as f64;
        eprintln!("{subscribers} subscribers: {statements} statements of {reads} reads in {seconds:.1} s");
        assert!(reads <= 4.0 * seconds + 2.0, "{reads} reads in {seconds} s");
        // Includes the read that was in progress when counting began.
        let most = STATEMENTS_PER_READ * (reads + 1.0);
        assert!((CHANGES as f64..=most).contains(&statements), "{statements} statements of {reads} reads");
    }
    // Ended periods are read every five seconds, under any name and without scores too. One name of
    // the week before is another one's feed.
    site.board(json!({"slug": "past", "periods": ["all_time", "day", "week"]}), &[]).await;
    let periods = ["day:-1", "day:-2", "day:2024-01-15", "week:previous", "week:-1", "week:2024-01-15"];
    let ended = open_all(&site.serve, periods.map(|period| format!("/v1/boards/past/live?period={period}"))).await;
    let (begun, before) = (Instant::now(), site.serve.metric(READS_METRIC).await);
    for _ in 0..2 * CHANGES {
        db.execute("SELECT testing.submit_score('main', 'bob', 1)").await;
        score += 1;
        streams[0].until(|event| event.data["scores"][1]["score"] == score).await;
    }
    let (reads, seconds) = (site.serve.metric(READS_METRIC).await - before, begun.elapsed().as_secs_f64());
    let feeds = (periods.len() - 1) as f64;
    assert!(reads <= 4.0 * seconds + 2.0 + feeds * (seconds / 5.0 + 1.0), "{reads} reads in {seconds} s");
    drop(ended);
}
