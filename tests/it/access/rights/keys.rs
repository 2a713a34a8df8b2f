//! Creating, listing and revoking keys over HTTP and on the command line.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_scalar, raw_sql};
use tokio::time::{Duration, sleep};

use crate::{
    http::api::site::Site,
    http::limits::wire::Wire,
    support::{TestDb, make_key, redis_url, run, spawn_serve, wait::until},
};

#[tokio::test]
async fn a_key_created_over_http_works_hides_its_secret_and_is_revoked_everywhere() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let other = spawn_serve(&db, Some(&redis_url().await), &[]).await;
    site.board(json!({}), &[]).await;
    let wanted =
        json!({"name": "match server", "role": "server", "boards": ["main"], "expires_at": "2040-01-01T00:00:00Z"});
    let made = site.admin(Method::POST, "/v1/keys", wanted).await.is(201);
    let (text, id) = (made["key"].as_str().unwrap(), made["key_id"].as_str().unwrap());
    assert_eq!((text.len(), &text[..21]), (4 + 16 + 1 + 64, &*format!("ctl_{id}_")));
    let event = json!({"user_id": "ada", "points": 1}).to_string();
    site.json(Method::POST, "/v1/boards/main/scores", text, event.clone()).await.is(200);

    let list = site.admin(Method::GET, "/v1/keys", Value::Null).await;
    assert!(!list.text.contains(&text[21..]), "{}", list.text);
    let list = list.is(200);
    let listed = list["data"].as_array().unwrap().iter().find(|key| key["key_id"] == id).unwrap();
    for (member, value) in [
        ("name", json!("match server")),
        ("role", json!("server")),
        ("boards", json!(["main"])),
        ("state", json!("active")),
        ("expires_at", json!("2040-01-01T00:00:00Z")),
        ("revoked_at", Value::Null),
    ] {
        assert_eq!(listed[member], value, "{member} of {listed}");
    }
    assert!(listed["last_used_at"].is_string(), "{listed}");
    assert_eq!(run(&db, &["key", "list", "--json"]).json().as_array().unwrap().len(), 3);

    let elsewhere = async || {
        let request = other.client.post(other.at("/v1/boards/main/scores")).bearer_auth(text);
        request.header("content-type", "application/json").body(event.clone()).send().await.unwrap().status()
    };
    assert_eq!(elsewhere().await, 200);
    for _ in 0..2 {
        site.admin(Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.is(204);
    }
    site.json(Method::POST, "/v1/boards/main/scores", text, event.clone()).await.is(401);
    until("the revoked key is refused on both instances", async || elsewhere().await == 401).await;
    let state = run(&db, &["key", "list", "--json"]).json();
    assert!(state.as_array().unwrap().iter().any(|key| key["key_id"] == id && key["state"] == "revoked"), "{state}");
    site.admin(Method::DELETE, "/v1/keys/0000000000000000", Value::Null).await.is(404);
    site.admin(Method::DELETE, "/v1/keys/nobody", Value::Null).await.is(404);
}

#[tokio::test]
async fn a_key_revoked_during_its_request_body_does_nothing() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let made = site.admin(Method::POST, "/v1/keys", json!({"name": "slow", "role": "admin"})).await.is(201);
    let (text, id) = (made["key"].as_str().unwrap(), made["key_id"].as_str().unwrap());
    let body = json!({"name": "Ada"}).to_string();
    let (length, (beginning, end)) = (body.len(), body.split_at(body.len() - 1));
    let mut wire = Wire::to(&site.serve).await;
    let head = format!("PUT /v1/users/ada HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {text}\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    wire.send(&format!("{head}{beginning}")).await.unwrap();
    let is_seen = async || {
        let list = site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200);
        list["data"].as_array().unwrap().iter().any(|key| key["key_id"] == id && key["last_used_at"].is_string())
    };
    until("the key has been seen", is_seen).await;
    site.admin(Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.is(204);
    // Longer than a checked key is used without another check.
    sleep(Duration::from_millis(600)).await;
    wire.send(end).await.unwrap();
    assert_eq!(wire.answer().await.status, 401);
    site.get("/v1/users/ada").await.is(404);
}

/// Each insert counts the other one, although neither sees the other's uncommitted row.
#[tokio::test]
async fn the_second_of_two_concurrent_keys_of_a_name_with_one_key_is_refused() {
    let db = TestDb::new().await;
    let create = |id: char| {
        let id = String::from(id).repeat(16);
        format!("SELECT centile.create_key('{id}', 'match server', 'server', '{{}}', NULL, sha256('{id}'))")
    };
    db.execute(&create('1')).await;
    let mut first = db.hold(&create('2')).await;
    let second = db.spawn(&create('3'));
    db.until_waiting(1, || second.is_finished()).await;
    raw_sql("COMMIT").execute(&mut first).await.unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(
        error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
        Some("CB409"),
        "{error}"
    );
    // Keys under other names do not wait.
    let _held = db.hold("SELECT centile.revoke_key('1111111111111111'); SELECT centile.create_key('4444444444444444', 'match server', 'server', '{}', NULL, sha256('4'))").await;
    db.execute(&create('5').replace("match server", "another")).await;
}

/// A request that repeats another one is not told that there are too many keys.
#[tokio::test]
async fn the_second_of_two_concurrent_requests_with_one_idempotency_key_has_to_retry() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_key('1111111111111111', 'match server', 'server', '{}', NULL, sha256('1'))")
        .await;
    let create = |id: char| {
        let id = String::from(id).repeat(16);
        format!(
            "SELECT centile.create_key('{id}', 'match server', 'server', '{{}}', NULL, sha256('{id}'),
                p_request_sha256 => sha256('request'), p_request_salt => sha256('{id}'))"
        )
    };
    let mut first = db.hold(&create('2')).await;
    let second = db.spawn(&create('3'));
    db.until_waiting(1, || second.is_finished()).await;
    raw_sql("COMMIT").execute(&mut first).await.unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(centile::Error::from(error).code(), centile::Code::ConcurrentChange);
}

#[tokio::test]
async fn each_client_has_at_most_two_active_keys() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let ask =
        || site.admin(Method::POST, "/v1/keys", json!({"name": "match server", "role": "reader", "all_boards": true}));
    let made = join_all((0..10).map(|_| ask())).await;
    let statuses: Vec<u16> = made.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|&&status| status == 201).count(), 2, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|&&status| status == 409).count(), 8, "{statuses:?}");
    let ids: Vec<&str> = made.iter().filter_map(|answer| answer.body["key_id"].as_str()).collect();
    let refused = ask().await.is(409);
    for id in &ids {
        assert!(refused["detail"].as_str().unwrap().contains(id), "{refused}");
    }
    // A revoked or expired key no longer counts.
    site.admin(Method::DELETE, &format!("/v1/keys/{}", ids[0]), Value::Null).await.is(204);
    ask().await.is(201);
    ask().await.is(409);
    db.execute(&format!("UPDATE centile_store.api_keys SET expires_at = now() WHERE id = '{}'", ids[1])).await;
    ask().await.is(201);
    run(&db, &["key", "create", "--name", "match server", "--role", "reader", "--all-boards"])
        .refused(1, &["two active keys"]);
}

#[tokio::test]
async fn an_invalid_key_is_refused_with_its_field() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    for (changed, status, field) in [
        (json!({"name": ""}), 422, "name"),
        (json!({"role": "king"}), 422, "role"),
        (json!({"boards": ["No Board"]}), 422, "boards[0]"),
        (json!({"boards": ["none"]}), 404, ""),
        (json!({"role": "admin", "boards": ["main"]}), 422, "boards"),
        (json!({"boards": null, "role": "server"}), 422, "boards"),
        (json!({"boards": []}), 422, "boards"),
        (json!({"boards": ["main", "laps", "main"]}), 422, "boards"),
        (json!({"boards": ["main"], "all_boards": true}), 422, "boards"),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), 422, "expires_at"),
        (json!({"expires_at": "2030-01-31"}), 422, "expires_at"),
        (json!({"secret": "mine"}), 422, "secret"),
        (json!({"id": "0123456789abcdef"}), 422, "id"),
        (json!({"created_at": "2020-01-01T00:00:00Z"}), 422, "created_at"),
    ] {
        let mut wanted = json!({"name": "game", "role": "server"});
        if changed.get("boards").is_none() {
            wanted["all_boards"] = json!(true);
        }
        wanted.as_object_mut().unwrap().extend(changed.as_object().cloned().unwrap());
        let refused = site.admin(Method::POST, "/v1/keys", wanted).await.is(status);
        assert_eq!(refused["field"].as_str().unwrap_or_default(), field, "{refused}");
    }
    assert_eq!(site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200)["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_repeated_request_for_a_key_gets_the_same_key() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let wanted =
        json!({"name": "match server", "role": "server", "all_boards": true, "expires_at": "2040-01-01T00:00:00Z"});
    let create = async |admin: &str, idempotency_key: &str, body: &Value| {
        let authorization = format!("Bearer {admin}");
        let headers = [
            ("authorization", &*authorization),
            ("content-type", "application/json"),
            ("idempotency-key", idempotency_key),
        ];
        site.send(Method::POST, "/v1/keys", &headers, body.to_string()).await
    };
    let (one, two) = ("2b1f6f0e-5d0c-4a53-9a43-1de4e7e6cf11", "2b1f6f0e-5d0c-4a53-9a43-1de4e7e6cf12");
    // The client has another key, so the request takes its last place.
    site.admin(Method::POST, "/v1/keys", wanted.clone()).await.is(201);
    // All of them create one key. A request that meets another one may have to be repeated.
    let mut answers = Vec::new();
    for answer in join_all((0..8).map(|_| create(&site.admin_key, one, &wanted))).await {
        assert!([201, 503].contains(&answer.status), "{answer:?}");
        answers.extend((answer.status == 201).then_some(answer.body));
    }
    let first = create(&site.admin_key, one, &wanted).await.is(201);
    assert!(!answers.is_empty() && answers.iter().all(|answer| *answer == first), "{answers:?}");
    let event = json!({"user_id": "ada", "points": 1}).to_string();
    site.board(json!({}), &[]).await;
    let text = first["key"].as_str().unwrap();
    site.json(Method::POST, "/v1/boards/main/scores", text, event).await.is(200);

    let mut other = wanted.clone();
    other["name"] = json!("another server");
    let refused = create(&site.admin_key, one, &other).await.is(409);
    assert_eq!(refused["code"], "idempotency_key_reused", "{refused}");
    let refused = create(&site.admin_key, two, &wanted).await.is(409);
    assert_eq!(refused["code"], "too_many_keys", "{refused}");
    let second = create(&site.admin_key, two, &other).await.is(201);
    assert_ne!(second["key_id"], first["key_id"]);
    for bad in ["too short", &"x".repeat(129), "0123456789 abcdef"] {
        let refused = create(&site.admin_key, bad, &wanted).await.is(422);
        assert_eq!(refused["field"], "Idempotency-Key", "{bad}: {refused}");
    }
    // Another administrator's request is another one.
    let admin = make_key(db.url(), "admin", &[]);
    assert_eq!(create(&admin, one, &wanted).await.is(409)["code"], "too_many_keys");

    // The digest is forgotten after seven days, and with it the way to derive the secret.
    let id = first["key_id"].as_str().unwrap();
    db.execute(&format!(
        "UPDATE centile_store.api_keys SET created_at = created_at - interval '8 days' WHERE id = '{id}'; SELECT centile_store.forget_expired_ids()"
    ))
    .await;
    let known: Vec<String> = query_scalar("SELECT id FROM centile_store.api_keys WHERE request_salt IS NOT NULL")
        .fetch_all(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(known, [second["key_id"].as_str().unwrap()]);
}
