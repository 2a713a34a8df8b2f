//! A server key limited to some boards, and the profiles of players.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_as;

use crate::{
    http::api::site::Site,
    support::{TestDb, make_key},
};

#[tokio::test]
async fn a_limited_key_changes_players_of_its_boards_only() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    site.board(json!({"slug": "laps"}), &[]).await;
    site.post("/v1/boards/laps/scores", r#"{"user_id": "bob", "points": 1}"#).await.is(200);
    let key = make_key(db.url(), "server", &["main"]);
    let put = async |user: &str, profile: Value, status: u16| {
        site.json(Method::PUT, &format!("/v1/users/{user}"), &key, profile.to_string()).await.is(status)
    };
    put("ada", json!({"name": "Ada", "metadata": {"clan": "x"}}), 200).await;
    // Changes nothing, and leaves no audit entry.
    put("ada", json!({"name": "Ada"}), 200).await;
    let refused = put("bob", json!({"name": "Bob"}), 403).await;
    assert!(refused["detail"].as_str().unwrap().contains("other boards"), "{refused}");
    assert_eq!(site.get("/v1/users/bob").await.is(200)["name"], "bob");
    // A player without scores belongs to no other board.
    put("cyd", json!({"name": "Cyd"}), 201).await;
    put("cyd", json!({"avatar_url": "https://example.com/c.png"}), 200).await;

    let audited: Vec<(String, Value)> = query_as(
        "SELECT subject, after FROM centile.audit_log WHERE action = 'change_user' AND actor LIKE 'key %' ORDER BY audit_id",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    let wanted = [("ada", json!({"fields": ["name", "metadata"]})), ("cyd", json!({"fields": ["avatar"]}))];
    assert_eq!(audited, wanted.map(|(user, fields)| (user.to_owned(), fields)));
}

#[tokio::test]
async fn an_erased_player_cannot_be_named_again() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let erased = site.admin(Method::DELETE, "/v1/users/ada", Value::Null).await.is(200);
    let user = erased["new_user_id"].as_str().unwrap();
    site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"name": "Ada"})).await.is(409);
    db.execute(&format!("SELECT centile.rename_users('{{{user}}}', '{{Ada}}')")).await;
    assert_eq!(site.get(&format!("/v1/users/{user}")).await.is(200)["name"], "(erased)");
}

#[tokio::test]
async fn avatars_are_https_addresses() {
    let db = TestDb::new().await;
    let picture = json!({"avatar_url": "http://example.com/a.png"});
    for (flags, status) in [(&[][..], 422), (&["--allow-http-avatars"], 201)] {
        let site = Site::start(&db, flags).await;
        for avatar in ["javascript:alert(1)", "data:image/png;base64,AA", "//example.com/a.png", "https://", "a.png"] {
            let refused = site.admin(Method::PUT, "/v1/users/ada", json!({"avatar_url": avatar})).await.is(422);
            assert_eq!(refused["field"], "avatar_url", "{refused}");
        }
        site.admin(Method::PUT, "/v1/users/ada", picture.clone()).await.is(status);
    }
}
