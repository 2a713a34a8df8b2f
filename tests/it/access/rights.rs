//! Access rights: this makes every request of the matrix in `docs/security.md`.

mod audit;
mod ban;
pub mod erase;
mod forget;
mod keys;
mod limited;
mod lookups;
mod profiles;

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, amount, make_key, next_number},
};

const DOCUMENT: &str = include_str!("../../../docs/security.md");

/// A line of the matrix.
struct Line {
    calls: Vec<(Method, String)>,
    /// How the boards restrict reading; empty if it does not matter.
    reading: String,
    /// Whether each caller is allowed, in the order of [`callers`].
    allowed: Vec<bool>,
}

/// Reads the matrix from the document.
fn matrix() -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in DOCUMENT
        .lines()
        .filter(|row| row.starts_with("| `GET") || row.starts_with("| `P") || row.starts_with("| the same"))
    {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(columns.len(), 9, "{row}");
        let calls = match columns[0] {
            "the same" => lines.last().unwrap().calls.clone(),
            named => named
                .split(", ")
                .map(|call| call.trim_matches('`').split_once(' ').unwrap())
                .map(|(method, path)| (method.parse().unwrap(), path.to_owned()))
                .collect(),
        };
        let allowed = columns[2..].iter().map(|cell| match *cell {
            "yes" => true,
            "no" => false,
            other => panic!("{other:?} in {row}"),
        });
        lines.push(Line { calls, reading: columns[1].to_owned(), allowed: allowed.collect() });
    }
    lines
}

/// Returns the keys of each column.
pub async fn callers(db: &TestDb, site: &Site) -> Vec<Vec<Option<String>>> {
    let key = |role: &str, board: &str| make_key(db.url(), role, &[board]);
    let (expired, revoked) = (make_key(db.url(), "admin", &[]), make_key(db.url(), "admin", &[]));
    let id = |key: &str| key.split('_').nth(1).unwrap().to_owned();
    db.execute(&format!(
        "UPDATE centile_store.api_keys SET expires_at = now() - interval '1 second' WHERE id = '{}'",
        id(&expired)
    ))
    .await;
    db.execute(&format!("SELECT centile.revoke_key('{}')", id(&revoked))).await;
    let mut wrong = site.admin_key.clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });
    let unknown = format!("ctl_0123456789abcdef_{}", "0".repeat(64));
    let one = |key: String| vec![Some(key)];
    vec![
        vec![None],
        vec![Some(wrong), Some(unknown), Some(expired), Some(revoked), Some("nonsense".to_owned())],
        one(key("reader", "other")),
        one(key("reader", "main")),
        one(key("server", "other")),
        one(key("server", "main")),
        one(site.admin_key.clone()),
    ]
}

/// Returns target and body of a request that succeeds for every allowed caller.
async fn prepared(site: &Site, method: &Method, path: &str, transaction_id: i64) -> (String, String) {
    let number = next_number();
    let body = match (method.as_str(), path) {
        ("POST", "/v1/boards") => json!({"slug": format!("made-{number}"), "mode": "sum", "reading": "key"}),
        ("PATCH", _) => json!({"title": format!("Title {number}")}),
        ("POST", "/v1/boards/{board}/seasons") => {
            json!({"name": format!("season-{number}"), "starts_at": "2040-01-01", "ends_at": "2040-02-01"})
        }
        ("POST", "/v1/boards/{board}/scores/query") => json!({"user_ids": ["ada"]}),
        ("POST", "/v1/boards/{board}/scores/batch") => {
            json!({"events": [{"user_id": "ada", "points": 1, "id": format!("{number}")}]})
        }
        ("POST", "/v1/scores/batch") => {
            json!({"events": [{"board": "main", "user_id": "ada", "points": 1, "id": format!("{number}")}]})
        }
        ("POST", "/v1/boards/{board}/scores" | "/v1/scores") => {
            json!({"user_id": "ada", "points": 1, "id": format!("{number}")})
        }
        ("POST", "/v1/keys") => json!({"name": format!("made {number}"), "role": "reader", "all_boards": true}),
        ("POST", "/v1/users/{user_id}/friends") => json!({"change": "add", "user_ids": ["cyd"]}),
        ("PUT", "/v1/users/{user_id}/friends/{friend_id}") => Value::Null,
        ("PUT", "/v1/templates/{template}") => json!({"pattern": format!("tpl-{number}-*")}),
        ("PUT", "/v1/leagues/{league}") => league("main"),
        ("PUT", _) => json!({"name": format!("Ada {number}")}),
        _ => Value::Null,
    };
    let user = match (method.as_str(), path) {
        // A player can be erased once only.
        ("DELETE", "/v1/users/{user_id}") => {
            let gone = format!("gone-{number}");
            site.admin(Method::PUT, &format!("/v1/users/{gone}"), json!({})).await.is(201);
            gone
        }
        ("DELETE", _) => "bob".to_owned(),
        _ if path.ends_with("ban") || path.ends_with("/reset") => "bob".to_owned(),
        _ => "ada".to_owned(),
    };
    // A board or template can be deleted once only.
    let board = match method.as_str() {
        "DELETE" if path == "/v1/boards/{board}" => {
            let gone = format!("gone-{number}");
            site.board(json!({"slug": gone}), &[]).await;
            gone
        }
        _ => "main".to_owned(),
    };
    let template = format!("tpl-{number}");
    if path.contains("{template}") && *method != Method::PUT {
        let pattern = json!({"pattern": format!("{template}-*")});
        site.admin(Method::PUT, &format!("/v1/templates/{template}"), pattern).await.is(200);
    }
    let league_name = match method.as_str() {
        "DELETE" if path == "/v1/leagues/{league}" => {
            let gone = format!("gone-{number}");
            site.board(json!({"slug": gone}), &[]).await;
            site.admin(Method::PUT, &format!("/v1/leagues/{gone}"), league(&gone)).await.is(200);
            gone
        }
        _ => "main-league".to_owned(),
    };
    let filled = path
        .replace("{board}", &board)
        .replace("{league}", &league_name)
        .replace("{cohort_id}", "1")
        .replace("{template}", &template)
        .replace("{user_id}", &user)
        .replace("{friend_id}", "cyd")
        .replace("{transaction_id}", &transaction_id.to_string());
    let filled = if filled.contains("{key_id}") { filled.replace("{key_id}", &spare_key(site).await) } else { filled };
    let filled = if filled.contains("{quarantine_id}") {
        filled.replace("{quarantine_id}", &spare_event(site).await)
    } else {
        filled
    };
    let query = match (method.as_str(), path) {
        (_, "/v1/boards/{board}/rank") => "?score=5",
        (
            "GET",
            "/v1/boards/{board}/scores/query" | "/v1/boards/{board}/league/history" | "/v1/boards/{board}/league/live",
        ) => "?user_id=ada",
        _ => "",
    };
    (format!("{filled}{query}"), if body.is_null() { String::new() } else { body.to_string() })
}

/// The rules of a board's league.
fn league(board: &str) -> Value {
    json!({"board": board, "period": "week", "size": 30, "divisions": ["bronze", "silver"], "promote": 7, "relegate": 7})
}

/// Sends a prepared request.
async fn request(site: &Site, method: &Method, path: &str, transaction_id: i64, key: Option<&str>) -> Answer {
    let (target, body) = prepared(site, method, path, transaction_id).await;
    let authorization = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    site.send(method.clone(), &target, &headers, body).await
}

/// Creates a key for a request to revoke, and returns its id.
async fn spare_key(site: &Site) -> String {
    let name = format!("spare {}", next_number());
    let made =
        site.admin(Method::POST, "/v1/keys", json!({"name": name, "role": "reader", "all_boards": true})).await.is(201);
    made["key_id"].as_str().unwrap().to_owned()
}

/// Creates an event that waits in quarantine, and returns its id.
async fn spare_event(site: &Site) -> String {
    let rules = json!({"points_max": 1_000, "on_violation": "quarantine"});
    site.admin(Method::PATCH, "/v1/boards/main", rules).await.is(200);
    let event = json!({"user_id": format!("cheat-{}", next_number()), "points": 1_001});
    site.post("/v1/boards/main/scores", event).await.is(202)["quarantine_id"].to_string()
}

#[tokio::test]
async fn every_call_follows_the_access_matrix() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    site.admin(Method::PUT, "/v1/leagues/main-league", league("main")).await.is(200);
    let scores = json!([{"user_id": "ada", "points": 40}, {"user_id": "bob", "points": 30}]);
    site.post("/v1/boards/main/scores", scores).await.is(200);
    site.board(json!({"slug": "other"}), &[]).await;
    let score = site.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": 5})).await.is(200);
    let transaction_id = score["transaction_id"].as_i64().unwrap();
    let callers = callers(&db, &site).await;

    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for line in matrix() {
        if !line.reading.is_empty() {
            // All boards, including those that this test has created meanwhile.
            for board in site.admin(Method::GET, "/v1/boards", Value::Null).await.is(200)["data"].as_array().unwrap() {
                let path = format!("/v1/boards/{}", board["slug"].as_str().unwrap());
                site.admin(Method::PATCH, &path, json!({"reading": line.reading})).await.is(200);
            }
        }
        assert_eq!(line.allowed.len(), callers.len());
        for (method, path) in &line.calls {
            seen.insert(format!("{} {path}", method.as_str()));
            for (caller, (keys, allowed)) in callers.iter().zip(&line.allowed).enumerate() {
                // A column of several invalid keys uses another one for each call.
                for key in keys.iter().cycle().skip(seen.len()).take(amount(1, keys.len())) {
                    let answer = request(&site, method, path, transaction_id, key.as_deref()).await;
                    let is_right = match (allowed, caller) {
                        (true, _) => (200..300).contains(&answer.status),
                        (false, 0 | 1) => answer.status == 401 && answer.headers.contains_key("www-authenticate"),
                        (false, _) => answer.status == 403,
                    };
                    if !is_right {
                        wrong.push(format!("{method} {path}, reading {:?}, caller {caller}: {answer:?}", line.reading));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    let document = site.get("/openapi.json").await.is(200);
    let paths = document["paths"].as_object().unwrap();
    let documented: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    assert_eq!(seen, documented, "the matrix has every call of the API");
}

#[tokio::test]
async fn shared_caches_keep_public_answers_only() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    erase::played(&db, &site).await;
    let lifetime = async |path: &str| {
        let answer = site.admin(Method::GET, path, Value::Null).await;
        (answer.status, answer.headers["cache-control"].to_str().unwrap().to_owned())
    };
    let closed = ["scores", "scores/bob", "scores?from=2&limit=1"].map(|path| {
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("/v1/boards/main/{path}{mark}period={}", erase::WEEK)
    });
    for path in &closed {
        assert_eq!(lifetime(path).await, (200, "max-age=60, must-revalidate".to_owned()), "{path}");
    }
    site.admin(Method::PATCH, "/v1/boards/main", json!({"reading": "key"})).await.is(200);
    for path in &closed {
        assert_eq!(lifetime(path).await, (200, "private, max-age=60, must-revalidate".to_owned()), "{path}");
    }
}
