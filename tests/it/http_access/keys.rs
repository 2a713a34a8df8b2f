//! Making, listing and revoking keys over HTTP and on the command line.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::raw_sql;
use tokio::time::{Duration, sleep};

use crate::{
    http_api::site::Site,
    http_limits::wire::Wire,
    support::{TestDb, redis_url, run, spawn_serve, wait::until},
};

#[tokio::test]
async fn a_key_made_over_http_works_is_listed_without_its_secret_and_is_revoked_everywhere() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let other = spawn_serve(&db, Some(&redis_url().await), &[]).await;
    site.board(json!({}), &[]).await;
    let wanted =
        json!({"name": "match server", "role": "server", "boards": ["main"], "expires_at": "2040-01-01T00:00:00Z"});
    let made = site.admin(Method::POST, "/v1/keys", wanted).await.is(201);
    let (text, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert_eq!((text.len(), &text[..21]), (4 + 16 + 1 + 64, &*format!("ctl_{id}_")));
    let event = json!({"user_id": "ada", "points": 1}).to_string();
    site.json(Method::POST, "/v1/boards/main/scores", text, event.clone()).await.is(200);

    let list = site.admin(Method::GET, "/v1/keys", Value::Null).await;
    assert!(!list.text.contains(&text[21..]), "{}", list.text);
    let list = list.is(200);
    let listed = list["keys"].as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
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
    until("a revoked key works nowhere", async || elsewhere().await == 401).await;
    let state = run(&db, &["key", "list", "--json"]).json();
    assert!(state.as_array().unwrap().iter().any(|key| key["id"] == id && key["state"] == "revoked"), "{state}");
    site.admin(Method::DELETE, "/v1/keys/0000000000000000", Value::Null).await.is(404);
    site.admin(Method::DELETE, "/v1/keys/nobody", Value::Null).await.is(404);
}

#[tokio::test]
async fn a_key_that_is_revoked_while_a_body_comes_does_nothing_with_it() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let made = site.admin(Method::POST, "/v1/keys", json!({"name": "slow", "role": "admin"})).await.is(201);
    let (text, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let body = json!({"name": "Ada"}).to_string();
    let (length, (beginning, end)) = (body.len(), body.split_at(body.len() - 1));
    let mut wire = Wire::to(&site.serve).await;
    let head = format!("PUT /v1/users/ada HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {text}\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    wire.send(&format!("{head}{beginning}")).await.unwrap();
    let is_seen = async || {
        let list = site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200);
        list["keys"].as_array().unwrap().iter().any(|key| key["id"] == id && key["last_used_at"].is_string())
    };
    until("the key has been seen", is_seen).await;
    site.admin(Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.is(204);
    // As long as a key may be acted with that was looked at.
    sleep(Duration::from_millis(600)).await;
    wire.send(end).await.unwrap();
    assert_eq!(wire.answer().await.status, 401);
    site.get("/v1/users/ada").await.is(404);
}

/// Each counts the other, though neither sees what the other has not committed.
#[tokio::test]
async fn of_two_keys_that_are_made_at_the_same_moment_the_second_is_refused_where_there_is_one() {
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
    // Keys of other clients wait for nobody.
    let _held = db.hold("SELECT centile.revoke_key('1111111111111111'); SELECT centile.create_key('4444444444444444', 'match server', 'server', '{}', NULL, sha256('4'))").await;
    db.execute(&create('5').replace("match server", "another")).await;
}

#[tokio::test]
async fn of_each_name_two_keys_work_however_many_are_asked_for_at_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let ask =
        || site.admin(Method::POST, "/v1/keys", json!({"name": "match server", "role": "reader", "all_boards": true}));
    let made = join_all((0..10).map(|_| ask())).await;
    let statuses: Vec<u16> = made.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|&&status| status == 201).count(), 2, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|&&status| status == 409).count(), 8, "{statuses:?}");
    let ids: Vec<&str> = made.iter().filter_map(|answer| answer.body["id"].as_str()).collect();
    let refused = ask().await.is(409);
    for id in &ids {
        assert!(refused["detail"].as_str().unwrap().contains(id), "{refused}");
    }
    // One that is revoked or over makes room for another.
    site.admin(Method::DELETE, &format!("/v1/keys/{}", ids[0]), Value::Null).await.is(204);
    ask().await.is(201);
    ask().await.is(409);
    db.execute(&format!("UPDATE centile_store.api_keys SET expires_at = now() WHERE id = '{}'", ids[1])).await;
    ask().await.is(201);
    run(&db, &["key", "create", "--name", "match server", "--role", "reader", "--all-boards"])
        .refused(1, &["two working keys"]);
}

#[tokio::test]
async fn a_key_that_could_not_be_used_is_refused_with_the_field_at_fault() {
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
    assert_eq!(site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200)["keys"].as_array().unwrap().len(), 2);
}
