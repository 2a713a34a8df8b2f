//! More scores than can be written: excess requests are refused before their bodies are read, and
//! other requests are unaffected.

use std::{collections::BTreeSet, time::Duration};

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{PgPool, Postgres, Transaction};
use tokio::{task::JoinSet, time::sleep};

use super::{SCORES, wire::Wire};
use crate::{
    http::api::site::Site,
    support::{TestDb, audit, wait::until},
};

/// Requests that are always accepted, whatever their number of events.
const ALWAYS_ACCEPTED_REQUESTS: usize = 16;
/// Events that may always wait, however long it takes.
const ALWAYS_ACCEPTED_EVENTS: usize = 1_024;
/// Longest expected wait of accepted scores.
const WRITE_WAIT: Duration = Duration::from_millis(400);

/// Blocks writes to every lane of a board.
async fn hold(pool: &PgPool, board: &str) -> Transaction<'static, Postgres> {
    let mut holding = pool.begin().await.unwrap();
    let lanes = "SELECT 1 FROM centile_store.board_lanes l JOIN centile_store.boards b ON b.id = l.board_id
                 WHERE b.slug = $1 FOR UPDATE OF l";
    sqlx::query(lanes).bind(board).execute(&mut *holding).await.unwrap();
    holding
}

/// Returns the value of a metric.
async fn number(site: &Site, name: &str) -> f64 {
    let text = site.get("/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// Waits until this many events are queued or being written.
async fn until_waiting(site: &Site, events: usize) {
    until("the events wait", async || number(site, "centile_queue_events").await >= events as f64).await;
}

/// Sends a body with the server key; returns the answer's status and text.
fn send(site: &Site, path: &str, body: &Value) -> impl Future<Output = (StatusCode, String)> + use<> {
    let (path, body) = match body {
        Value::Array(events) => (format!("{path}/batch"), json!({"events": events})),
        event => (path.to_owned(), event.clone()),
    };
    let request = site.serve.client.post(site.serve.at(&path)).bearer_auth(&site.server_key).json(&body);
    async move {
        let answer = request.send().await.expect("an answer");
        (answer.status(), answer.text().await.expect("a body"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn excess_scores_are_refused_unread_and_reads_continue() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "60"]).await;
    site.board(json!({"lanes": 2}), &[("ada", 1)]).await;
    site.board(json!({"slug": "other"}), &[("ada", 1)]).await;
    let pool = db.pool().await;
    let holding = hold(&pool, "main").await;

    let mut lists = JoinSet::new();
    for list in 0..ALWAYS_ACCEPTED_REQUESTS {
        let event = |n: usize| json!({"user_id": format!("p{n}"), "points": 1, "id": format!("list {list}, {n}")});
        lists.spawn(send(&site, SCORES, &(0..100).map(event).collect()));
    }
    until_waiting(&site, ALWAYS_ACCEPTED_REQUESTS * 100).await;
    // Sends single events until the queue has waited for too long.
    let mut singles = JoinSet::new();
    let single = |n: usize| json!({"user_id": "bob", "points": 1, "id": format!("single {n}")});
    let refused = loop {
        let number = singles.len();
        let body = single(number);
        let mut sent = Box::pin(send(&site, SCORES, &body));
        tokio::select! {
            (status, text) = &mut sent => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
                break number;
            }
            () = until_waiting(&site, ALWAYS_ACCEPTED_REQUESTS * 100 + number + 1) => {}
        }
        singles.spawn(sent);
        sleep(Duration::from_millis(100)).await;
        assert!(number < 600, "no request was refused");
    };
    assert!(refused < ALWAYS_ACCEPTED_EVENTS, "refused only because the queue was full");

    // Refused at once, before the body arrives and the key is checked.
    for key in [&*site.server_key, "none"] {
        let mut wire = Wire::to(&site.serve).await;
        let head = format!(
            "POST {SCORES} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nx-request-id: mine\r\n\
             content-type: application/json\r\ncontent-length: 1000000\r\n\r\n"
        );
        wire.send(&head).await.unwrap();
        let output = wire.answer().await;
        assert_eq!((output.status, output.header("retry-after"), output.header("x-request-id")), (503, "1", "mine"));
        let problem: Value = serde_json::from_str(&output.body).unwrap();
        assert_eq!(problem["type"], "urn:centile:problem:overloaded", "{problem}");
    }
    assert!(number(&site, "centile_http_requests_refused_total{why=\"scores\"}").await >= 3.0);
    for path in
        [SCORES, "/v1/boards/main/scores/ada", "/v1/boards/main/scores?from=1&limit=3", "/v1/boards/main/rank?score=1"]
    {
        site.get(path).await.is(200);
    }
    site.post("/v1/boards/other/scores", json!({"user_id": "ada", "points": 1})).await.is(200);

    holding.rollback().await.unwrap();
    for (status, text) in lists.join_all().await {
        assert_eq!(status, StatusCode::OK, "{text}");
        assert_eq!(text.matches("\"accepted\"").count(), 100, "{text}");
    }
    for (status, text) in singles.join_all().await {
        assert_eq!(status, StatusCode::OK, "{text}");
    }
    // A refused event left no trace; an accepted one is stored once.
    for (number, repeated) in [(refused, false), (refused, true), (0, true)] {
        assert_eq!(site.post(SCORES, single(number)).await.is(200)["repeated"], repeated, "{number}");
    }
    let counted: (i64, i64) = sqlx::query_as(
        "SELECT count(*), sum(points)::bigint FROM centile.score_history WHERE board = 'main' AND kind = 'score'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let events = i64::try_from(1 + ALWAYS_ACCEPTED_REQUESTS * 100 + refused + 1).unwrap();
    assert_eq!(counted, (events, events));
    audit::rankings_are_sound(&pool).await;
}

/// Lanes of a board with many lanes.
const LANES: i32 = 64;

/// Returns a list of 100 events for lane 0, and an event for another lane.
async fn of_two_lanes(pool: &PgPool) -> (Value, Value) {
    let players = "SELECT p FROM (SELECT 'p' || n AS p FROM generate_series(1, 20000) AS n) AS many
                   WHERE (centile.lane_hash(p) % $1 = 0) = $2 LIMIT 100";
    let players = async |first: bool| -> Vec<String> {
        sqlx::query_scalar(players).bind(LANES).bind(first).fetch_all(pool).await.unwrap()
    };
    let event = |player: &String| json!({"user_id": player, "points": 1});
    (players(true).await.iter().map(event).collect(), event(&players(false).await[0]))
}

/// Sends as many lists as are always accepted, and waits until all of them are queued.
async fn fill_always_accepted_requests(site: &Site, list: &Value) -> JoinSet<(StatusCode, String)> {
    let mut lists = JoinSet::new();
    for _ in 0..ALWAYS_ACCEPTED_REQUESTS {
        lists.spawn(send(site, SCORES, list));
    }
    until_waiting(site, ALWAYS_ACCEPTED_REQUESTS * 100).await;
    lists
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_slowest_lane_decides_whether_scores_are_accepted() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "60", "--write-wait", "4000"]).await;
    site.board(json!({"lanes": LANES}), &[]).await;
    // At the slowest lane's pace the queue takes more than two minutes, at the average over all
    // lanes under three seconds. The first batch has a hundred events and takes ten seconds, so
    // that the other requests arrive in time.
    db.execute(
        "CREATE TABLE public.pace AS SELECT 0.1::float8 AS seconds;
         CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN IF NEW.lane = 0 THEN PERFORM pg_sleep(seconds) FROM public.pace; END IF; RETURN NEW; END';
         CREATE TRIGGER dawdle BEFORE INSERT ON centile_store.score_transactions
         FOR EACH ROW EXECUTE FUNCTION public.dawdle()",
    )
    .await;
    let (list, other) = of_two_lanes(&db.pool().await).await;
    // Fifty events establish the time per event.
    let fifty = list.as_array().unwrap()[..50].to_vec().into();
    assert_eq!(send(&site, SCORES, &fifty).await.0, StatusCode::OK);
    let lists = fill_always_accepted_requests(&site, &list).await;
    let (status, text) = send(&site, SCORES, &other).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    db.execute("UPDATE public.pace SET seconds = 0").await;
    for (status, text) in lists.join_all().await {
        assert_eq!(status, StatusCode::OK, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_lane_does_not_stop_others() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "60"]).await;
    site.board(json!({"lanes": LANES}), &[]).await;
    let pool = db.pool().await;
    let (list, other) = of_two_lanes(&pool).await;
    assert_eq!(send(&site, SCORES, &list).await.0, StatusCode::OK);
    let mut holding = pool.begin().await.unwrap();
    let lane = "SELECT 1 FROM centile_store.board_lanes WHERE lane = 0 FOR UPDATE";
    sqlx::query(lane).execute(&mut *holding).await.unwrap();
    let lists = fill_always_accepted_requests(&site, &list).await;
    // At the latest when the lane has stood still for longer than its events take.
    until("the other lanes accept events", async || send(&site, SCORES, &other).await.0 == StatusCode::OK).await;
    // A thousand events wait for that lane already, so more are refused.
    assert_eq!(send(&site, SCORES, &list[0]).await.0, StatusCode::SERVICE_UNAVAILABLE);
    holding.rollback().await.unwrap();
    for (status, text) in lists.join_all().await {
        assert_eq!(status, StatusCode::OK, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_events_are_accepted_however_long_they_wait() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--statement-timeout", "60"]).await;
    site.board(json!({"lanes": 1}), &[("ada", 1)]).await;
    let pool = db.pool().await;
    let holding = hold(&pool, "main").await;
    let mut callers = JoinSet::new();
    let mut waiting = 0;
    // The first request alone, the others once it has waited for longer than the limit: the lane
    // stands still. Events arrive one by one, and in lists of eight.
    for (requests, events, wait) in [(1, 1, 2 * WRITE_WAIT), (255, 1, Duration::ZERO), (93, 8, Duration::ZERO)] {
        for _ in 0..requests {
            let event = |player| json!({"user_id": format!("p{player}"), "points": 1});
            callers.spawn(send(&site, SCORES, &(waiting..waiting + events).map(event).collect()));
            waiting += events;
        }
        until_waiting(&site, waiting).await;
        sleep(wait).await;
    }
    assert_eq!(waiting, 1_000);
    holding.rollback().await.unwrap();
    let (mut statuses, mut accepted) = (BTreeSet::new(), 0);
    for (status, text) in callers.join_all().await {
        statuses.insert(status.as_u16());
        accepted += text.matches("\"accepted\"").count();
    }
    assert_eq!((statuses, accepted), (BTreeSet::from([200]), 1_000));
    assert_eq!(site.get(SCORES).await.is(200)["players"], 1_001);
}
