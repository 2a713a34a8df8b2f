//! Callers and user ids: keys, ids of every form, clients of the paths without a board, operators.

use std::process::Stdio;

use futures::future::join_all;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    Method,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::site::Site;
use crate::support::{
    TestDb, centile, make_key,
    wait::{until, until_some},
};

#[tokio::test]
async fn the_paths_without_a_board_keep_their_shapes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--default-board", "arena"]).await;
    site.get("/v1/scores").await.is(404);
    site.board(json!({"slug": "arena"}), &[("ada", 40)]).await;
    let answer = site.post("/v1/scores", json!({"user_id": "bob", "points": 50})).await.is(200);
    assert_eq!(answer, json!({"user_info": {"user_id": "bob", "score": 50, "rank": 1}}));
    let list = json!([{"user_id": "cyd", "points": 45}, {"user_id": "cyd", "points": 0.5}]);
    let answer = site.post("/v1/scores", list).await.is(200);
    let (first, second) = (&answer["results"][0], &answer["results"][1]);
    assert_eq!((&first["periods"]["all_time"]["rank"], &second["error"]["field"]), (&json!(2), &json!("[1].points")));
    let row = |user, rank, score| json!({"user_id": user, "user_name": user, "rank": rank, "score": score});
    let rows = json!([row("bob", 1, 50), row("cyd", 2, 45), row("ada", 3, 40)]);
    assert_eq!(site.get("/v1/scores").await.is(200), json!({"data": rows, "total": 3}));
    assert_eq!(site.get("/v1/scores?limit=1").await.is(200), json!({"data": [rows[0]], "total": 1}));
    let cyd = json!({"user_info": {"user_id": "cyd", "score": 45, "rank": 2}});
    assert_eq!(site.get("/v1/scores/cyd").await.is(200), cyd);
    site.get("/v1/scores/nobody").await.is(404);
}

#[tokio::test]
async fn a_user_id_may_be_any_text() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let long = "é".repeat(64);
    let ids = [
        "🏆👩‍🚀",
        "guild/ada",
        "a b  c",
        "שלום עולם",
        "مرحبا",
        "100%",
        "%2F",
        "a+b",
        "?x=1&y#z",
        "query",
        "batch",
        "history",
        "\"\\'",
        "e\u{301}",
        "é",
        &long,
    ];
    for (place, id) in ids.iter().enumerate() {
        let points = 1000 - place;
        site.post("/v1/boards/main/scores", json!({"user_id": id, "points": points, "id": id, "reason": id}))
            .await
            .is(200);
    }
    let top = site.get("/v1/boards/main/scores?limit=100").await.is(200);
    assert_eq!(top["players"], ids.len());
    for (place, id) in ids.iter().enumerate() {
        let escaped = utf8_percent_encode(id, NON_ALPHANUMERIC);
        // The path of the player `query` is that of chosen players.
        let standing = match *id {
            "query" => site.get("/v1/boards/main/scores/query?user_id=query").await.is(200)["data"][0].clone(),
            _ => site.get(&format!("/v1/boards/main/scores/{escaped}")).await.is(200),
        };
        assert_eq!((&standing["user_id"], &standing["rank"]), (&json!(id), &json!(place + 1)));
        assert_eq!((&top["data"][place]["user_id"], &top["data"][place]["name"]), (&json!(id), &json!(id)));
        let history =
            site.admin(Method::GET, &format!("/v1/boards/main/scores/{escaped}/history"), Value::Null).await.is(200);
        assert_eq!((&history["data"][0]["reason"], &history["next_cursor"]), (&json!(id), &Value::Null));
        let friends = site.get(&format!("/v1/boards/main/scores/query?user_id={escaped}")).await.is(200);
        assert_eq!(friends["data"][0]["user_id"], json!(id));
        let user = site.admin(Method::PUT, &format!("/v1/users/{escaped}"), json!({"name": format!("<{id}")})).await;
        assert_eq!(user.status, if id.len() < 128 { 200 } else { 422 }, "{user:?}");
    }
}

#[tokio::test]
async fn each_role_may_do_what_it_is_for() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    site.board(json!({"slug": "other"}), &[]).await;
    let event = json!({"user_id": "ada", "points": 1});
    let (main, other) = ("/v1/boards/main/scores", "/v1/boards/other/scores");
    let send = async |path: &str, key: &str| site.json(Method::POST, path, key, event.to_string()).await;

    let none = site.send(Method::POST, main, &[("content-type", "application/json")], event.to_string()).await;
    assert_eq!(none.headers[WWW_AUTHENTICATE], "Bearer");
    assert_eq!(none.headers[CONTENT_TYPE], "application/problem+json");
    none.is(401);
    let mut changed = site.server_key.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == '0' { '1' } else { '0' });
    for key in ["", "ctl_", "secret", &changed, &"x".repeat(5000), "ctl_0123456789abcdef_é"] {
        send(main, key).await.is(401);
    }
    for (name, value) in
        [("authorization", format!("Basic {}", site.server_key)), ("x-api-key", site.server_key.clone())]
    {
        site.send(Method::POST, main, &[(name, &value)], event.to_string()).await.is(401);
    }
    let lower_case = [("authorization", &*format!("bearer {}", site.server_key)), ("content-type", "application/json")];
    assert_eq!(
        site.send(Method::POST, main, &lower_case, event.to_string()).await.status,
        200,
        "the scheme ignores case"
    );
    assert_eq!(send(main, &site.admin_key).await.status, 200, "an admin may write");

    let limited = make_key(db.url(), "server", &["main"]);
    send(main, &limited).await.is(200);
    send(other, &limited).await.is(403);
    send("/v1/boards/none/scores", &limited).await.is(403);
    send("/v1/scores", &limited).await.is(200);

    for (method, path) in [
        (Method::POST, "/v1/boards"),
        (Method::PATCH, "/v1/boards/main"),
        (Method::POST, "/v1/users/ada/ban"),
        (Method::POST, "/v1/users/ada/unban"),
        (Method::POST, "/v1/boards/main/scores/ada/reset"),
        (Method::POST, "/v1/boards/main/transactions/1/void"),
    ] {
        let refused = site.json(method.clone(), path, &site.server_key, "{}".to_owned()).await;
        assert_eq!(refused.is(403)["type"], "urn:centile:problem:forbidden", "{method} {path}");
        site.send(method, path, &[], String::new()).await.is(401);
    }

    let id = limited.split('_').nth(1).unwrap();
    let revoke = centile().args(["key", "revoke", id]).env("DATABASE_URL", db.url()).stdout(Stdio::null()).status();
    assert!(revoke.unwrap().success());
    until("a revoked key is refused", async || send(main, &limited).await.status == 401).await;
    send(main, &site.server_key).await.is(200);
}

/// Returns the value of a metric at `/metrics`.
fn number(numbers: &str, name: &str) -> f64 {
    let value = numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {numbers}")).parse().unwrap()
}

#[tokio::test]
async fn concurrent_readiness_checks_share_one_query() {
    let db = TestDb::new().await;
    let site =
        Site::start(&db, &["--read-connections", "8", "--pool-wait", "60000", "--statement-timeout", "60"]).await;
    site.get("/readyz").await.is(200);
    let held = db.hold("LOCK TABLE centile_store.applied_sql").await;
    let asking = join_all((0..50).map(|_| site.get("/readyz")));
    let others = async {
        // All of these requests, and the one for the metric.
        until("all requests are in progress", async || {
            number(&site.get("/metrics").await.text, "centile_http_requests_in_progress") >= 51.0
        })
        .await;
        db.until_waiting(1, || false).await;
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&db.pool().await).await.unwrap();
        held.close().await.unwrap();
        waiting
    };
    let (answers, waiting) = tokio::join!(asking, others);
    assert_eq!(waiting, 1);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
}

#[tokio::test]
async fn health_readiness_and_documentation_are_served() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let answer = site.get("/healthz").await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "ok"));
    // On a busy machine the call to Redis may time out.
    let ready = until_some("Redis is reachable", async || {
        Some(site.get("/readyz").await.is(200)).filter(|ready| ready["cache"] != "unreachable")
    })
    .await;
    assert_eq!(ready, json!({"state": "ready", "schema": "same", "cache": "reachable"}));
    // During an upgrade, the migration runs first, so a newer schema is usable. A schema that lacks
    // objects is not.
    db.execute("UPDATE centile_store.applied_sql SET hash = 'later'").await;
    assert_eq!(site.get("/readyz").await.is(200)["schema"], "newer");
    db.execute("UPDATE centile_store.schema_history SET version = 999 WHERE version = 1").await;
    site.get("/readyz").await.is(503);
    let document = site.get("/openapi.json").await.is(200);
    assert!(document["openapi"].as_str().unwrap().starts_with('3') && document["paths"]["/v1/boards"].is_object());
    // Every file that /docs loads comes from this service.
    let page = site.get("/docs").await;
    assert_eq!(page.status, 200);
    let mut pages = vec![page.text];
    let is_file = |text: &&str| [".js", ".css"].iter().any(|end| text.ends_with(end));
    let links = pages[0].split(['"', '\'']).filter(is_file);
    let links: Vec<String> = links.map(|link| link.trim_start_matches("./").to_owned()).collect();
    assert!(links.iter().any(|link| link == "swagger-initializer.js"), "{links:?}");
    for link in links {
        let file = site.get(&format!("/docs/{link}")).await;
        assert_eq!(file.status, 200, "{link}");
        // The bundle contains addresses in texts and XML names, but loads none of them.
        if link == "swagger-initializer.js" {
            assert!(file.text.contains("/openapi.json"), "{}", file.text);
            pages.push(file.text);
        }
    }
    for page in pages {
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("\"//"), "{page}");
    }
}
