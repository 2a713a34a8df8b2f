//! Invalid input gets a clear answer, and leaves no partial change.
//!
//! Each case gives the status and the invalid field.

mod database;

use reqwest::{
    Method,
    header::{ALLOW, CONTENT_TYPE},
};
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{
    http::api::site::{Answer, Site},
    support::TestDb,
};

const SCORES: &str = "/v1/boards/main/scores";
/// Body limit of the service in these tests.
const BODY_LIMIT: usize = 40_000;

/// Starts a service with an empty board.
async fn site(db: &TestDb, rules: Value) -> Site {
    let site = Site::start(db, &["--body-limit", &BODY_LIMIT.to_string()]).await;
    site.board(rules, &[]).await;
    site
}

/// Fails unless the answer is a problem document with this status and field; an empty `field` means
/// none.
#[track_caller]
pub fn refused(answer: &Answer, status: u16, field: &str, what: &str) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert_eq!(answer.headers[CONTENT_TYPE], "application/problem+json", "{what}");
    problem(&answer.body, status, field, what);
}

#[track_caller]
fn problem(body: &Value, status: u16, field: &str, what: &str) {
    assert_eq!(body["status"], json!(status), "{what}: {body}");
    assert_eq!(body["field"].as_str().unwrap_or_default(), field, "{what}: {body}");
    assert!(body["type"].as_str().is_some_and(|kind| kind.starts_with("urn:centile:problem:")), "{what}: {body}");
    for member in ["title", "detail"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
    }
}

/// Fails unless the ledger has this many rows and the database this many players.
async fn holds(db: &TestDb, rows: i64, users: i64) {
    let pool = db.pool().await;
    let found: (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM centile_store.score_transactions), (SELECT count(*) FROM centile_store.users)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(found, (rows, users), "rows of the ledger, and players");
}

#[tokio::test]
async fn invalid_reads_are_refused() {
    let db = TestDb::new().await;
    let site = site(&db, json!({"time_zone": "Pacific/Apia"})).await;
    site.board(json!({"slug": "weekly", "periods": ["week"]}), &[("ada", 1)]).await;
    let (long, control) = (format!("{SCORES}/{}", "x".repeat(129)), format!("{SCORES}/a%0Ab"));
    let many = format!("{SCORES}?{}", (0..501).map(|user| format!("user_id={user}")).collect::<Vec<_>>().join("&"));
    let page = site.get("/v1/boards/weekly/scores?period=week&limit=1").await.is(200);
    let of_another_board = format!("{SCORES}?cursor={}", page["next_cursor"].as_str().unwrap_or("1.2.3"));
    let cases = [
        ("/v1/boards/none", 404, ""),
        ("/v1/boards/NONE/scores", 404, ""),
        ("/v1/boards/none/scores", 404, ""),
        ("/v1/boards/none/scores/ada", 404, ""),
        ("/v1/boards/none/scores/ada/history", 404, ""),
        ("/v1/boards/none/periods", 404, ""),
        ("/v1/boards/none/distribution", 404, ""),
        ("/v1/boards/none/tiers", 404, ""),
        ("/v1/boards/none/rank?score=1", 404, ""),
        ("/v1/boards/main/scores/nobody", 404, ""),
        ("/v1/boards/main/scores/ada", 404, ""),
        ("/v1/boards/main/scores/nobody/history", 404, ""),
        ("/v1/users/nobody", 404, ""),
        ("/v1/boards/weekly/scores?period=day", 404, ""),
        ("/v1/boards/main/scores?period=day:2011-12-30", 404, ""),
        ("/v1/boards/main/scores/ada?period=day:2011-12-30", 404, ""),
        ("/v1/boards/main/scores?period=day:2999-12-31", 404, ""),
        ("/v1/boards/main/scores?period=decade", 422, "period"),
        ("/v1/boards/main/scores?period=", 422, "period"),
        ("/v1/boards/main/scores?period=day:2024-02-30", 422, "period"),
        ("/v1/boards/main/scores?period=day:2024-2-3", 422, "period"),
        ("/v1/boards/main/scores?period=week:2024-01-16", 422, "period"),
        ("/v1/boards/main/scores?period=month:2024-13", 422, "period"),
        ("/v1/boards/main/scores?period=month:2024-01-01", 422, "period"),
        ("/v1/boards/main/scores?period=all_time:previous", 422, "period"),
        ("/v1/boards/main/scores?period=day:%00", 422, "period"),
        ("/v1/boards/main/scores/ada?period=day:2024-02-30", 422, "period"),
        ("/v1/boards/main/rank?score=1&period=day:2024-02-30", 422, "period"),
        ("/v1/boards/main/scores?limit=0", 422, "limit"),
        ("/v1/boards/main/scores?limit=1001", 422, "limit"),
        ("/v1/boards/main/scores?limit=99999999999999999999", 422, "limit"),
        ("/v1/boards/main/scores?limit=-1", 422, "limit"),
        ("/v1/boards/main/scores?limit=ten", 422, "limit"),
        ("/v1/boards/main/scores?limit=5&limit=6", 422, "limit"),
        ("/v1/scores?limit=0", 422, "limit"),
        ("/v1/boards/main/periods?limit=0", 422, "limit"),
        ("/v1/boards/main/scores?from=0", 422, "from"),
        ("/v1/boards/main/scores?from=9223372036854775808", 422, "from"),
        ("/v1/boards/main/scores?from=9223372036854775807&limit=1000", 200, ""),
        ("/v1/boards/main/scores?from=2&cursor=x", 422, "from"),
        ("/v1/boards/main/scores?cursor=x", 422, "cursor"),
        ("/v1/boards/main/scores?cursor=", 422, "cursor"),
        (&of_another_board, 422, "cursor"),
        ("/v1/boards/main/scores/ada/history?cursor=x.y", 422, "cursor"),
        ("/v1/boards/main/scores/query?user_id=ada&limit=5", 422, "limit"),
        ("/v1/boards/main/scores/query?user_id=ada&user_id=", 422, "user_id[1]"),
        (&many, 422, "user_id"),
        ("/v1/boards/main/scores?nonsense=1", 422, "nonsense"),
        ("/v1/boards/main/scores?Limit=1", 422, "Limit"),
        ("/v1/boards?limit=0", 422, "limit"),
        ("/v1/boards?cursor=None", 422, "cursor"),
        ("/v1/boards/main/periods?cursor=week:2024-01-15", 422, "cursor"),
        ("/v1/boards/main/periods?cursor=week", 422, "cursor"),
        ("/v1/boards/main/periods?kind=decade", 422, "kind"),
        ("/v1/boards/main?x", 422, "x"),
        ("/v1/boards/main/scores/ada?around=101", 422, "around"),
        ("/v1/boards/main/scores/ada?around=-1", 422, "around"),
        ("/v1/boards/main/scores/ada?around=4&around=4", 422, "around"),
        ("/v1/boards/main/rank", 422, "score"),
        ("/v1/boards/main/rank?score=1.5", 422, "score"),
        ("/v1/boards/main/rank?score=9223372036854775808", 422, "score"),
        (&long, 422, "user_id"),
        (&control, 422, "user_id"),
        ("/v1/users/%FF", 422, "user_id"),
        ("/v1/users/a%00b", 422, "user_id"),
    ];
    for (path, status, field) in cases {
        let answer = site.get(path).await;
        if status == 200 {
            answer.is(200);
        } else {
            refused(&answer, status, field, path);
        }
    }
    for (body, field) in [
        (json!({"user_ids": []}), "user_ids"),
        (json!({"user_ids": ["a", ""]}), "user_ids[1]"),
        (json!({"user_ids": [1.5]}), "user_ids[0]"),
        (json!({"user": ["a"]}), "user"),
        (json!({"user_ids": ["a"], "period": "day:2024-02-30"}), "period"),
        (json!({"user_ids": vec!["a"; 501]}), "user_ids"),
    ] {
        refused(&site.post("/v1/boards/main/scores/query", &body).await, 422, field, &body.to_string());
    }
    holds(&db, 1, 1).await;
}

#[tokio::test]
async fn invalid_events_are_refused() {
    let db = TestDb::new().await;
    let site = site(&db, json!({"points_min": -10, "points_max": 10})).await;
    let (id, reason) = ("x".repeat(129), "x".repeat(257));
    let cases = [
        ("", 400, ""),
        ("{", 400, ""),
        ("nonsense", 400, ""),
        (r#"{"user_id":"a","points":1"#, 400, ""),
        (r#"{"user_id":"a","points":1} x"#, 400, ""),
        (r#"{"user_id":"a","points":NaN}"#, 400, ""),
        (r#"{"user_id":"a","points":Infinity}"#, 400, ""),
        (r#"{"user_id":"a","points":01}"#, 400, ""),
        (r#"{"user_id":"a","points":0x1}"#, 400, ""),
        ("5", 422, "body"),
        ("null", 422, "body"),
        ("{}", 422, "user_id"),
        (r#"{"user_id":"a"}"#, 422, "points"),
        (r#"{"points":1}"#, 422, "user_id"),
        (r#"{"user_id":7.5,"points":1}"#, 422, "user_id"),
        (r#"{"user_id":null,"points":1}"#, 422, "user_id"),
        (r#"{"user_id":["a"],"points":1}"#, 422, "user_id"),
        (r#"{"user_id":"","points":1}"#, 422, "user_id"),
        (r#"{"user_id":"LONG","points":1}"#, 422, "user_id"),
        (r#"{"user_id":"a\u0000","points":1}"#, 422, "user_id"),
        (r#"{"user_id":"a\nb","points":1}"#, 422, "user_id"),
        (r#"{"user_id":"a\u0085","points":1}"#, 422, "user_id"),
        (r#"{"user_id":"a","points":1.5}"#, 422, "points"),
        (r#"{"user_id":"a","points":1e-1}"#, 422, "points"),
        (r#"{"user_id":"a","points":9007199254740993.0}"#, 422, "points"),
        (r#"{"user_id":"a","points":4503599627370497.5}"#, 422, "points"),
        (r#"{"user_id":"a","points":1e-400}"#, 422, "points"),
        (r#"{"user_id":"a","points":1e400}"#, 422, "points"),
        (r#"{"user_id":"a","points":1.1e1}"#, 422, "points"),
        (r#"{"user_id":"a","points":"1"}"#, 422, "points"),
        (r#"{"user_id":"a","points":null}"#, 422, "points"),
        (r#"{"user_id":"a","points":9223372036854775808}"#, 422, "points"),
        (r#"{"user_id":"a","points":-9223372036854775808}"#, 422, "points"),
        (r#"{"user_id":"a","points":11}"#, 422, "points"),
        (r#"{"user_id":"a","points":-11}"#, 422, "points"),
        (r#"{"user_id":"a","points":1,"points":2}"#, 422, "points"),
        (r#"{"user_id":"a","points":1,"id":""}"#, 422, "id"),
        (r#"{"user_id":"a","points":1,"id":"LONG"}"#, 422, "id"),
        (r#"{"user_id":"a","points":1,"id":true}"#, 422, "id"),
        (r#"{"user_id":"a","points":1,"reason":"a\tb"}"#, 422, "reason"),
        (r#"{"user_id":"a","points":1,"reason":"WHY"}"#, 422, "reason"),
        (r#"{"user_id":"a","points":1,"score":1}"#, 422, "score"),
        (r#"{"user_id":"a","points":1,"occurred_at":"2024-01-01T00:00:00Z"}"#, 422, "occurred_at"),
        (r#"{"user_id":"a","points":1,"tiebreak":1}"#, 422, "tiebreak"),
        (r#"{"user_id":"a","points":1,"tiebreak":2048}"#, 422, "tiebreak"),
        (r#"{"user_id":"a","points":1,"tiebreak":0.5}"#, 422, "tiebreak"),
    ];
    for (body, status, field) in cases {
        let body = body.replace("LONG", &id).replace("WHY", &reason);
        refused(&site.post(SCORES, &body).await, status, field, &body);
        // In a list, a valid JSON event is refused on its own.
        if status == 422 && field != "body" {
            let answer = site.post(SCORES, format!("[{body}]")).await.is(200);
            assert_eq!(answer["results"][0]["state"], "refused", "{body}");
            problem(&answer["results"][0]["error"], 422, &format!("events[0].{field}"), &body);
        } else if status == 400 && body.contains("user_id") {
            refused(&site.post(SCORES, format!("[{body}]")).await, 400, "", &body);
        }
    }
    let event = r#"{"user_id":"a","points":1}"#;
    refused(&site.post("/v1/boards/none/scores", event).await, 404, "", "no board");
    refused(&site.post("/v1/boards/main/scores?ranks=yes", event).await, 422, "ranks", "ranks=yes");
    refused(&site.post("/v1/boards/main/scores?rank=true", event).await, 422, "rank", "rank=true");
    refused(&site.post(SCORES, "[]").await, 422, "events", "no events");
    let list = |events: usize| format!("[{}]", vec![event; events].join(","));
    refused(&site.post(SCORES, list(1_001)).await, 422, "events", "1,001 events");
    // Players are created in a separate transaction, before the rules are checked.
    holds(&db, 0, 1).await;
    site.post(SCORES, list(1_000)).await.is(200);
    holds(&db, 1_000, 1).await;
}

#[tokio::test]
async fn an_event_that_breaks_a_rule_leaves_the_others() {
    let db = TestDb::new().await;
    let most = i64::MAX;
    let site = site(&db, json!({"points_min": -most, "points_max": most})).await;
    site.board(json!({"slug": "laps", "mode": "best", "ties": "tiebreak"}), &[]).await;
    site.post(SCORES, json!({"user_id": "ada", "points": most})).await.is(200);
    let event = |user: &str, points: i64| json!({"user_id": user, "points": points});
    refused(&site.post(SCORES, event("ada", 1)).await, 422, "points", "overflow");
    let events =
        json!([event("bob", 5), event("ada", 1), event("ada", -1), event("ada", 1), event("ada", 1), event("bob", 6)]);
    let answer = site.post(SCORES, events).await.is(200);
    let results = answer["results"].as_array().unwrap();
    let taken: Vec<bool> = results.iter().map(|result| result["state"] == "accepted").collect();
    assert_eq!(taken, [true, false, true, true, false, true], "{answer}");
    problem(&results[1]["error"], 422, "events[1].points", "overflow in a list");
    let score = async |user: &str| site.get(&format!("{SCORES}/{user}")).await.is(200)["score"].as_i64().unwrap();
    assert_eq!((score("ada").await, score("bob").await), (most, 11));

    for (tiebreak, status) in [(-2048, 200), (2047, 200), (2048, 422), (-2049, 422), (i64::MIN, 422)] {
        let event = json!({"user_id": "ada", "points": 1, "tiebreak": tiebreak});
        let answer = site.post("/v1/boards/laps/scores", &event).await;
        if status == 200 { drop(answer.is(200)) } else { refused(&answer, status, "tiebreak", &event.to_string()) }
    }
}

#[tokio::test]
async fn invalid_boards_are_refused() {
    let db = TestDb::new().await;
    let site = site(&db, json!({})).await;
    let cases = [
        (json!({"slug": "main"}), 409, ""),
        (json!({"slug": ""}), 422, "slug"),
        (json!({"slug": "Main"}), 422, "slug"),
        (json!({"slug": "x".repeat(41)}), 422, "slug"),
        (json!({"title": ""}), 422, "title"),
        (json!({"title": "a\u{0}"}), 422, "title"),
        (json!({"mode": "median"}), 422, "mode"),
        (json!({"mode": null}), 422, "mode"),
        (json!({"order": "up"}), 422, "order"),
        (json!({"ties": "tiebreak"}), 422, "ties"),
        (json!({"periods": []}), 422, "periods"),
        (json!({"periods": ["day", "day"]}), 422, "periods"),
        (json!({"periods": ["decade"]}), 422, "periods[0]"),
        (json!({"lanes": 0}), 422, "lanes"),
        (json!({"lanes": 65}), 422, "lanes"),
        (json!({"lanes": 100_000}), 422, "lanes"),
        (json!({"lanes": 1.5}), 422, "lanes"),
        (json!({"time_zone": "Mars/Olympus"}), 422, "time_zone"),
        (json!({"time_zone": ""}), 422, "time_zone"),
        (json!({"time_zone": "UTC+2"}), 422, "time_zone"),
        (json!({"time_zone": "a\u{0}"}), 422, "time_zone"),
        (json!({"points_min": 2, "points_max": 1}), 422, "points_min"),
        (json!({"points_min": i64::MIN}), 422, "points_min"),
        (json!({"points_max": 1e30}), 422, "points_max"),
        (json!({"first_layout": {"bounds": [2, 1]}}), 422, "first_layout.bounds"),
        (json!({"first_layout": {"expected_points": 0}}), 422, "first_layout.expected_points"),
        (json!({"first_layout": {}}), 422, "first_layout"),
        (json!({"colour": "red"}), 422, "colour"),
    ];
    for (change, status, field) in cases {
        let mut board = json!({"slug": "new", "mode": "sum"});
        board.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        refused(&site.admin(Method::POST, "/v1/boards", board).await, status, field, &change.to_string());
    }
    for (change, field) in [
        (json!({"lanes": 65}), "lanes"),
        (json!({"points_min": i64::MAX}), "points_min"),
        (json!({"time_zone": "Mars/Olympus"}), "time_zone"),
        (json!({"ties": "tiebreak"}), "ties"),
        (json!({"slug": "other"}), "slug"),
        (json!({"title": "\u{7}"}), "title"),
    ] {
        let answer = site.admin(Method::PATCH, "/v1/boards/main", change.clone()).await;
        refused(&answer, 422, field, &change.to_string());
    }
    let boards: i64 =
        query_scalar("SELECT count(*) FROM centile_store.boards").fetch_one(&db.pool().await).await.unwrap();
    assert_eq!(boards, 1);
}

#[tokio::test]
async fn invalid_players_and_acts_are_refused() {
    let db = TestDb::new().await;
    let site = site(&db, json!({})).await;
    let long = "x".repeat(129);
    let metadata = json!({"metadata": {"a": "x".repeat(8_192)}});
    let cases = [
        (json!({"name": ""}), "name"),
        (json!({"name": long}), "name"),
        (json!({"name": "a\u{0}"}), "name"),
        (json!({"name": "a\u{1b}[31m"}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"avatar_url": "x".repeat(1_025)}), "avatar_url"),
        (json!({"avatar_url": "a\u{0}"}), "avatar_url"),
        (json!({"avatar_url": {}}), "avatar_url"),
        (json!({"metadata": {"a": "\u{0}"}}), "metadata"),
        (json!({"metadata": {"a": [{"\u{0}": 1}]}}), "metadata"),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": "text"}), "metadata"),
        (metadata, "metadata"),
        (json!({"banned": true}), "banned"),
        (json!([]), "body"),
    ];
    for (body, field) in cases {
        refused(&site.admin(Method::PUT, "/v1/users/ada", body.clone()).await, 422, field, &body.to_string());
    }
    for (path, field) in [(format!("/v1/users/{long}"), "user_id"), ("/v1/users/a%07".to_owned(), "user_id")] {
        refused(&site.admin(Method::PUT, &path, json!({"name": "a"})).await, 422, field, &path);
        refused(&site.admin(Method::POST, &format!("{path}/ban"), Value::Null).await, 422, field, &path);
    }
    holds(&db, 0, 0).await;
    site.board(json!({"slug": "other"}), &[("ada", 5)]).await;
    let void = |id: &str| format!("/v1/boards/main/transactions/{id}/void");
    for (method, path, body, status, field) in [
        (Method::POST, "/v1/users/ada/ban", json!({"reason": ""}), 422, "reason"),
        (Method::POST, "/v1/users/ada/ban", json!({"reason": "a\u{0}"}), 422, "reason"),
        (Method::POST, "/v1/users/ada/ban", json!({"until": "tomorrow"}), 422, "until"),
        (Method::POST, "/v1/users/ada/unban", json!({"reason": "x".repeat(257)}), 422, "reason"),
        (Method::POST, &void("one"), Value::Null, 422, "transaction_id"),
        (Method::POST, &void("99999999999999999999"), Value::Null, 422, "transaction_id"),
        (Method::POST, &void("1"), Value::Null, 404, ""),
        (Method::POST, &void("-1"), Value::Null, 404, ""),
        (Method::POST, "/v1/boards/main/scores/nobody/reset", Value::Null, 404, ""),
        (Method::POST, "/v1/boards/none/scores/ada/reset", Value::Null, 404, ""),
        (Method::POST, "/v1/boards/main/scores/ada/reset", json!({"reason": ""}), 422, "reason"),
        (Method::POST, "/v1/boards/main/scores/ada/reset?why=x", Value::Null, 422, "why"),
    ] {
        refused(&site.admin(method, path, body.clone()).await, status, field, &format!("{path} {body}"));
    }
    holds(&db, 1, 1).await;
}

#[tokio::test]
async fn unreadable_requests_are_refused() {
    let db = TestDb::new().await;
    let site = site(&db, json!({})).await;
    let key = format!("Bearer {}", site.server_key);
    let event = json!({"user_id": "a", "points": 1}).to_string();
    for kind in ["", "text/plain", "application/x-www-form-urlencoded", "text/json", "application/xml", "nonsense"] {
        let headers = [("authorization", key.as_str()), ("content-type", kind)];
        refused(&site.send(Method::POST, SCORES, &headers, event.clone()).await, 415, "", kind);
    }
    let gzip = [("authorization", key.as_str()), ("content-type", "application/json"), ("content-encoding", "gzip")];
    refused(&site.send(Method::POST, SCORES, &gzip, event.clone()).await, 415, "", "gzip");
    for path in [SCORES, "/v1/scores", "/v1/boards/main/scores/query"] {
        let body = format!("{event}{}", " ".repeat(BODY_LIMIT));
        // The classic call answers 400 to every invalid request.
        let status = if path == "/v1/scores" { 400 } else { 413 };
        refused(&site.post(path, &body).await, status, "", path);
        let alone = site.send(Method::POST, path, &[("content-type", "application/json")], body).await;
        let status = if path.ends_with("query") { 413 } else { 401 };
        refused(&alone, status, "", "nobody without a key has a body read");
    }
    for path in
        ["/nothing", "/v1", "/v2/boards", "/v1/boards/", "/v1/boards/main/nonsense", "/v1/users/", "/docs/nonsense"]
    {
        refused(&site.get(path).await, 404, "", path);
    }
    for (method, path, allow) in [
        (Method::DELETE, "/v1/boards", "GET, HEAD, POST"),
        (Method::POST, "/v1/boards/main", "GET, HEAD, PATCH, DELETE"),
        (Method::PUT, SCORES, "GET, HEAD, POST"),
        (Method::POST, "/v1/users/ada", "GET, HEAD, PUT, DELETE"),
        (Method::GET, "/v1/users/ada/ban", "POST"),
        (Method::POST, "/v1/boards/main/scores/ada", "GET, HEAD"),
        (Method::PUT, "/v1/boards/main/scores/query", "GET, HEAD, POST"),
        (Method::OPTIONS, "/v1/boards/main/scores/query", "GET, HEAD, POST"),
        (Method::POST, "/v1/boards/main/rank", "GET, HEAD"),
        (Method::POST, "/healthz", "GET, HEAD"),
        (Method::OPTIONS, "/v1/scores", "GET, HEAD, POST"),
    ] {
        let answer = site.send(method.clone(), path, &[], String::new()).await;
        refused(&answer, 405, "", &format!("{method} {path}"));
        assert_eq!(answer.headers[ALLOW], allow, "{method} {path}");
    }
    holds(&db, 0, 0).await;
}
