//! The duration of a page of a hundred rows, alone and while its board receives scores.

use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode, header::ACCEPT_ENCODING};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    common::percentile,
    report::Trial,
    support::{TestDb, load::key, redis_url, spawn_serve},
};

/// Players of the board.
const PLAYERS: u32 = 10_000;
/// Pages of each kind.
const PAGES: usize = 3_000;
/// Scores a second, if any.
const SCORES: u64 = 100;

/// Returns the durations of compressed pages, in milliseconds.
async fn times(client: &Client, path: impl Fn(usize) -> String) -> Vec<f64> {
    let mut times = Vec::with_capacity(PAGES);
    for page in 0..PAGES {
        let request = client.get(path(page)).header(ACCEPT_ENCODING, "gzip");
        let begun = Instant::now();
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let length = answer.bytes().await.expect("a body").len();
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        assert!(length > 1_000, "{length} bytes are no page");
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_hundred_rows_is_fast() {
    let mut trial = Trial::begin("page", "a page of 100 rows", "answered in under 5 ms at p99 with warm caches");
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 2}')").await;
    let serve = spawn_serve(&db, Some(&redis_url().await), &[]).await;
    let (client, key, address) = (serve.client.clone(), key(db.url(), "server"), serve.at("/v1/boards/arena/scores"));
    let post = async |events: Value| {
        let answer = client
            .post(format!("{address}/batch"))
            .bearer_auth(&key)
            .json(&json!({"events": events}))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    };
    let players: Vec<u32> = (0..PLAYERS).collect();
    for some in players.chunks(1_000) {
        let events = some.iter().map(|player| json!({"user_id": format!("p{player}"), "points": player % 977}));
        post(events.collect()).await;
    }
    let page = serve.at("/boards/arena?period=all_time&limit=100");
    let top = |_: usize| page.clone();
    let deep = |n: usize| format!("{page}&from={}", 1 + n * 3 % 9_000);
    let player = |n: usize| format!("{page}&player=p{}", n * 7 % 10_000);
    let writing = async {
        let mut ticks = interval(Duration::from_secs(1) / u32::try_from(SCORES).unwrap());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for n in 0_u64.. {
            ticks.tick().await;
            post(json!({"user_id": format!("p{}", n * 31 % u64::from(PLAYERS)), "points": 40})).await;
        }
    };
    // Warms up caches and connections.
    times(&client, top).await;
    times(&client, deep).await;
    let report = |kind: &str, times: &mut Vec<f64>| {
        let [p50, p99] = [50.0, 99.0].map(|share| percentile(times, share));
        (p99, format!("{kind} {p50:.1} ms at p50, {p99:.1} ms at p99"))
    };
    let (p99, output) = report("the top", &mut times(&client, top).await);
    trial.expect(p99 < 5.0, output);
    // These pages are read from the database.
    let (_, output) = report("from further down", &mut times(&client, deep).await);
    trial.saw(output);
    let (_, output) = report("with a player", &mut times(&client, player).await);
    trial.saw(output);
    let mut while_written = tokio::select! {
        () = writing => unreachable!(),
        times = times(&client, top) => times,
    };
    let (_, output) = report(&format!("the top during {SCORES} scores a second"), &mut while_written);
    trial.saw(output);
    trial.end();
}
