//! What listeners may cost.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::PgPool;

use super::{EVENTS, ask, number, open_all, post, stream::Stream, until_number};
use crate::{http_api::site::Site, support::TestDb};

#[tokio::test]
async fn there_are_as_many_listeners_as_may_be() {
    let db = TestDb::new().await;
    let flags = ["--listeners", "3", "--address-listeners", "2", "--trusted-proxies", "127.0.0.1"];
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
    assert!(number(&site.serve, "centile_http_requests_refused_total{why=\"listeners\"}").await >= 2.0);
    drop(second);
    until_number(&site.serve, "centile_live_listeners", |listeners| (1.5..2.5).contains(&listeners)).await;
    assert_eq!(from("192.0.2.1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused_by_name() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let many = (0..21).map(|n| format!("&users=p{n}")).collect::<Vec<_>>().concat();
    for (query, field) in [
        ("?limit=0".to_owned(), "limit"),
        ("?limit=101".to_owned(), "limit"),
        (format!("?limit=1{many}"), "users"),
        ("?users=".to_owned(), "users[0]"),
        ("?period=fortnight".to_owned(), "period"),
        ("?from=3".to_owned(), "from"),
    ] {
        assert_eq!(site.get(&format!("{EVENTS}{query}")).await.is(422)["field"], field, "{query}");
    }
    site.get("/v1/boards/none/events").await.is(404);
}

#[tokio::test]
async fn a_stream_is_neither_kept_nor_held_back() {
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
    // Nothing happens, and there are signs of life.
    for _ in 0..2 {
        let part = stream.part().await.expect("a sign of life");
        assert!(part.kind.is_empty(), "{part:?}");
    }
    let head = site.send(Method::HEAD, EVENTS, &[], String::new()).await;
    assert_eq!((head.status, &*head.text), (200, ""));
    assert_eq!(head.headers["content-type"], "text/event-stream");
}

/// Transactions of the database so far, of which each statement of the service is one.
async fn transactions(pool: &PgPool) -> i64 {
    // What a session has counted is told a second later at most.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let counted = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    sqlx::query_scalar(counted).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn postgresql_is_asked_as_often_for_fifty_as_for_one() {
    const LOOKS: u32 = 6;
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let pool = db.pool().await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    let mut streams = Vec::new();
    let mut asked = Vec::new();
    for listeners in [1, 50] {
        let paths = (streams.len()..listeners).map(|number| {
            let users = (0..number % 20).map(|n| format!("&users=p{n}")).collect::<Vec<_>>().concat();
            format!("{EVENTS}?limit={}{users}", 1 + number % 7)
        });
        streams.extend(open_all(&site.serve, paths).await);
        let (before, from) = (transactions(&pool).await, number(&site.serve, "centile_live_looks_total").await);
        for written in 1..=LOOKS {
            // Something is new at each look, to all who listen.
            post(&site, "bob", 1).await;
            let looks = from + f64::from(written);
            until_number(&site.serve, "centile_live_looks_total", |now| now >= looks).await;
        }
        let looks = number(&site.serve, "centile_live_looks_total").await - from;
        asked.push((transactions(&pool).await - before) as f64 / looks);
        // Four seconds of looks, whoever listens.
        assert!(looks < 2.0 * f64::from(LOOKS), "{looks} looks");
    }
    eprintln!("transactions a look: {asked:?}");
    assert!(asked[1] < 1.5 * asked[0], "{asked:?} transactions a look");
}
