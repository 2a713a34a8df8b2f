//! What is shown while PostgreSQL cannot be asked, and after that.

use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::sleep;

use super::{
    EVENTS, rows,
    stream::{Event, Stream, ask},
};
use crate::{
    http_api::site::Site,
    support::{
        Serve, TestDb,
        proxy::{Proxy, Way},
    },
};

/// A service that reaches its database through a proxy, and a board on which ada has 40.
async fn behind_a_proxy() -> (TestDb, Proxy, Site) {
    let db = TestDb::new().await;
    let way = Proxy::to(db.port()).await;
    let (url, prefix) = (way.instead(db.url()), db.redis_prefix());
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &[])).await.unwrap();
    let site = Site::of(serve, db.url());
    site.board(json!({}), &[("ada", 40)]).await;
    (db, way, site)
}

#[tokio::test]
async fn while_postgresql_is_away_it_is_told_once() {
    let (db, way, site) = behind_a_proxy().await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    way.set(Way::Open);
    stream.one("continued").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    way.set(Way::Open);
    db.execute("SELECT centile.submit_score('main', 'bob', 50)").await;
    let next = stream.next().await.unwrap();
    let changed = if next.kind == "changed" { next.data } else { stream.one("changed").await };
    assert_eq!(rows(&changed["scores"]), [("bob".to_owned(), 50, 1), ("ada".to_owned(), 40, 2)]);
}

/// At some moment of the round the new score has been looked at, and not been shown yet.
#[tokio::test]
async fn what_changed_as_postgresql_went_away_is_shown_afterwards() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (db, way, site) = behind_a_proxy().await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    for round in 1..=12 {
        db.execute("SELECT centile.submit_score('main', 'ada', 1)").await;
        stream.until(|event| event.kind == "changed").await;
        db.execute(&format!("SELECT centile.submit_score('main', 'bob', {round})")).await;
        // Not waited for: which moment is met is what the rounds are for.
        sleep(Duration::from_millis(random.random_range(150..400))).await;
        way.set(Way::Reset);
        let bob = (1..=round).sum::<i64>();
        let shows = |event: &Event| {
            let scores = &event.data["scores"];
            scores.is_array() && rows(scores).iter().any(|(id, score, _)| id == "bob" && *score == bob)
        };
        let last = stream.until(|event| shows(event) || event.kind == "stale").await;
        way.set(Way::Open);
        if !shows(&last) {
            stream.until(shows).await;
        }
    }
}

#[tokio::test]
async fn who_comes_while_postgresql_is_away_is_shown_tops_alone() {
    let (_db, way, site) = behind_a_proxy().await;
    let chosen = format!("{EVENTS}?users=ada");
    let mut stream = Stream::open(&site.serve, &chosen, &[]).await;
    stream.one("started").await;
    way.set(Way::Reset);
    stream.one("stale").await;
    assert_eq!(ask(&site.serve, &chosen, &[]).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let mut tops = Stream::open(&site.serve, EVENTS, &[]).await;
    tops.one("started").await;
    tops.one("stale").await;
}

#[tokio::test]
async fn a_silent_postgresql_is_told_of_soon() {
    let (_db, way, site) = behind_a_proxy().await;
    let mut stream = Stream::open(&site.serve, EVENTS, &[]).await;
    stream.one("started").await;
    way.set(Way::Silent);
    let begun = Instant::now();
    stream.one("stale").await;
    // A statement is given up after twelve seconds, and a look may make several.
    assert!(begun.elapsed() < Duration::from_secs(8), "told after {:?}", begun.elapsed());
}
