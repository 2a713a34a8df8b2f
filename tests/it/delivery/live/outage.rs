//! Live events while PostgreSQL is unreachable, and afterwards.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use super::{
    EVENTS, rows,
    stream::{Stream, ask},
};
use crate::{
    http::api::site::{Answer, Site},
    support::{
        Serve, TestDb,
        proxy::{Proxy, Way},
        wait::until_some,
    },
};

/// Starts a service with these flags that reaches its database through a proxy, and a board on
/// which ada has 40.
async fn behind_a_proxy(flags: &[&str]) -> (TestDb, Proxy, Site) {
    let db = TestDb::new().await;
    let way = Proxy::to(db.port()).await;
    let (url, prefix) = (way.instead(db.url()), db.redis_prefix());
    let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.unwrap();
    let site = Site::of(serve, db.url());
    site.board(json!({}), &[("ada", 40)]).await;
    (db, way, site)
}

#[tokio::test]
async fn an_unreachable_postgresql_is_reported_once() {
    let (db, way, site) = behind_a_proxy(&[]).await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    way.set(Way::Open);
    stream.one("continued").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    way.set(Way::Open);
    db.execute("SELECT testing.submit_score('main', 'bob', 50)").await;
    let next = stream.next().await.unwrap();
    let changed = if next.kind == "changed" { next.data } else { stream.one("changed").await };
    assert_eq!(rows(&changed["scores"]), [("bob".to_owned(), 50, 1), ("ada".to_owned(), 40, 2)]);
}

#[tokio::test]
async fn a_new_subscriber_gets_top_lists_only_while_postgresql_is_unreachable() {
    let (_db, way, site) = behind_a_proxy(&[]).await;
    let chosen = format!("{EVENTS}?user_id=ada");
    let mut stream = Stream::open(&site.serve, &chosen, &[]).await;
    stream.one("started").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    assert_eq!(ask(&site.serve, &chosen, &[]).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let mut tops = Stream::open(&site.serve, EVENTS, &[]).await;
    tops.one("started").await;
    tops.one("stale").await;
}

/// PostgreSQL answers, but a lock delays all reads. Five rankings are followed, and four are read
/// at once, so one read waits for a permit.
#[tokio::test]
async fn a_busy_postgresql_is_not_reported_as_unreachable() {
    const TOP: &str = "/v1/boards/main/scores";
    const BOARDS: [&str; 5] = ["main", "second", "third", "fourth", "fifth"];
    let db = TestDb::new().await;
    // A loaded rank index would answer: no transaction commits meanwhile.
    let site = Site::start(&db, &["--statement-timeout", "3", "--index-memory", "0"]).await;
    let mut streams = Vec::new();
    for slug in BOARDS {
        site.board(json!({"slug": slug}), &[("ada", 40)]).await;
        let mut stream = Stream::open(&site.serve, &format!("/v1/boards/{slug}/live"), &[]).await;
        stream.one("started").await;
        streams.push(stream);
    }
    site.get(TOP).await.is(200);
    let locked = db.hold("LOCK TABLE centile_store.board_lanes, centile_store.applied IN ACCESS EXCLUSIVE MODE").await;
    let is_busy = |answer: &Answer| {
        answer.status == 503 && ["overloaded", "database_busy"].iter().any(|code| answer.body["code"] == *code)
    };
    let chosen = format!("{EVENTS}?user_id=ada");
    // A list may lag by 250 ms.
    let top = until_some("the top is read again", async || {
        let top = site.get(TOP).await;
        (top.status != 200 || top.body["stale"] == true).then_some(top)
    });
    let (top, late) = tokio::join!(top, site.get(&chosen));
    assert!(is_busy(&top), "{top:?}");
    // Its read may time out before the subscription does.
    assert!(is_busy(&late), "{late:?}");
    // One of them reads the list, and the others wait for it.
    for top in join_all((0..8).map(|_| site.get(TOP))).await {
        assert!(is_busy(&top), "{top:?}");
    }
    drop(locked);
    for (slug, stream) in BOARDS.iter().zip(&mut streams) {
        db.execute(&format!("SELECT testing.submit_score('{slug}', 'bob', 50)")).await;
        let next = stream.next().await.unwrap();
        assert_eq!(next.kind, "changed", "{slug}: {next:?}");
    }
}

/// As after a firewall has forgotten all connections: PostgreSQL accepts new ones.
#[tokio::test]
async fn statements_without_an_answer_are_not_reported_as_an_outage() {
    let (db, way, site) = behind_a_proxy(&["--statement-timeout", "1"]).await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    way.set(Way::SilentBefore(Instant::now()));
    db.execute("SELECT testing.submit_score('main', 'bob', 50)").await;
    let next = stream.next().await.unwrap();
    assert_eq!(next.kind, "changed", "{next:?}");
}

#[tokio::test]
async fn a_silent_postgresql_is_reported_soon() {
    // The statement timeout would end after the deadline.
    let (_db, way, site) = behind_a_proxy(&["--statement-timeout", "600"]).await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    way.set(Way::Silent);
    stream.one("stale").await;
}
