//! The audit log records every administrative act: the actor, the target and the change.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    http::api::site::Site,
    support::{TestDb, run},
};

/// Actor, action, board, target, state before and state after, in the order of the acts.
type Row = (String, String, Option<String>, Option<String>, Option<Value>, Option<Value>);

/// Returns the rows after the first `seen`.
async fn log(db: &TestDb, seen: &mut usize) -> Vec<Row> {
    let rows: Vec<Row> =
        sqlx::query_as("SELECT actor, action, board, subject, before, after FROM centile.audit_log ORDER BY audit_id")
            .fetch_all(&db.pool().await)
            .await
            .unwrap();
    let new = rows[*seen..].to_vec();
    *seen = rows.len();
    new
}

/// Returns action, board and target of each row.
fn done(rows: &[Row]) -> Vec<(&str, &str, &str)> {
    rows.iter()
        .map(|(_, action, board, subject, ..)| {
            (action.as_str(), board.as_deref().unwrap_or_default(), subject.as_deref().unwrap_or_default())
        })
        .collect()
}

#[tokio::test]
async fn every_change_over_http_is_audited_under_its_key() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    let score = site.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": 5})).await.is(200);
    let void = format!("/v1/boards/main/transactions/{}/void", score["transaction_id"]);
    let key = site
        .admin(Method::POST, "/v1/keys", json!({"name": "spare", "role": "reader", "all_boards": true}))
        .await
        .is(201);
    let key_path = format!("/v1/keys/{}", key["key_id"].as_str().unwrap());
    let (key_id, season) = (
        key_path.rsplit('/').next().unwrap(),
        json!({"name": "spring", "starts_at": "2040-03-01", "ends_at": "2040-06-01"}),
    );

    let mut seen = 0;
    let before = log(&db, &mut seen).await;
    let actor = format!("key {}", site.admin_key.split('_').nth(1).unwrap());
    let (made, by_http): (Vec<_>, Vec<_>) = before.into_iter().partition(|row| row.1 == "create_key" && row.0 != actor);
    assert_eq!(made.len(), 2, "the keys of the command line: {made:?}");
    assert_eq!(done(&by_http), [("create_board", "main", "main"), ("create_key", "", &format!("key {key_id}"))]);
    assert!(by_http.iter().all(|row| row.0 == actor), "{by_http:?}");

    let acts = [
        (Method::PATCH, "/v1/boards/main", json!({"title": "Main", "points_max": 100}), 200),
        (Method::POST, "/v1/boards/main/seasons", season, 201),
        (Method::POST, &void, json!({"reason": "a bug"}), 204),
        (Method::POST, "/v1/boards/main/scores/bob/reset", json!({"reason": "asked for it"}), 204),
        (Method::POST, "/v1/users/ada/ban", json!({"reason": "cheated"}), 200),
        (Method::POST, "/v1/users/ada/unban", Value::Null, 200),
        (Method::DELETE, &key_path, Value::Null, 204),
    ];
    for (method, path, body, status) in acts.clone() {
        site.admin(method, path, body).await.is(status);
    }
    let rows = log(&db, &mut seen).await;
    assert_eq!(
        done(&rows),
        [
            ("change_board", "main", "main"),
            ("create_season", "main", "season:spring"),
            ("void", "main", "ada"),
            ("reset", "main", "bob"),
            ("ban", "", "ada"),
            ("ban", "main", "ada"),
            ("unban", "main", "ada"),
            ("unban", "", "ada"),
            ("revoke_key", "", &format!("key {key_id}")),
        ]
    );
    assert!(rows.iter().all(|row| row.0 == actor), "{rows:?}");
    let changes: Vec<(Value, Value)> =
        rows.iter().map(|row| (row.4.clone().unwrap_or_default(), row.5.clone().unwrap_or_default())).collect();
    assert_eq!(
        changes[0],
        (
            json!({"title": "main", "points_max": 9_007_199_254_740_991_i64}),
            json!({"title": "Main", "points_max": 100})
        )
    );
    assert_eq!(changes[2].1["reason"], "a bug");
    assert_eq!(changes[2].1["voids"], score["transaction_id"]);
    assert_eq!(changes[4], (json!({"banned": false}), json!({"banned": true, "reason": "cheated"})));
    assert_eq!(changes[8], (json!({"revoked": false}), json!({"revoked": true})));

    // Repeated, these acts change nothing. Exceptions: the season is refused, and every reset is an
    // act.
    for (method, path, body, _) in acts {
        if path != "/v1/users/ada/ban" {
            site.admin(method, path, body).await;
        }
    }
    assert_eq!(done(&log(&db, &mut seen).await), [("reset", "main", "bob")]);
    // Writes with a server key are not administrative acts.
    site.json(Method::PUT, "/v1/users/ada", &site.server_key, json!({"name": "Ada"}).to_string()).await.is(200);
    site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200);
    assert_eq!(done(&log(&db, &mut seen).await), []);
}

#[tokio::test]
async fn every_act_of_the_command_line_and_psql_is_audited_without_secrets() {
    let db = TestDb::new().await;
    let mut seen = 0;
    let by = ["--by", "dora"];
    let act = |arguments: &[&str]| run(&db, &[arguments, &by].concat()).well();
    act(&["board", "create", "main"]);
    act(&["board", "change", "main", "--reading", "key"]);
    act(&["season", "create", "spring", "--board", "main", "--starts", "2040-03-01", "--ends", "2040-06-01"]);
    let key = act(&["key", "create", "--name", "game", "--role", "server", "--all-boards"]);
    let key_id = key.trim().split('_').nth(1).unwrap().to_owned();
    act(&["key", "revoke", &key_id]);
    let secret = act(&["webhook", "set", "https://rewards.example.com/", "--board", "main"]);
    act(&["webhook", "set", "https://rewards.example.com/hook", "--board", "main"]);
    act(&["webhook", "remove", "--board", "main"]);
    db.execute("SELECT testing.submit_score('main', 'ada', 5), testing.submit_score('main', 'bob', 5)").await;
    act(&["score", "void", "1", "--board", "main"]);
    act(&["score", "reset", "ada", "--board", "main"]);
    act(&["user", "ban", "ada"]);
    act(&["correct", "bob", "5", "--board", "main", "--at", "2024-01-16T12:00:00Z", "--reason", "forgotten"]);
    let rows = log(&db, &mut seen).await;
    let name = format!("key {key_id}");
    assert_eq!(
        done(&rows),
        [
            ("create_board", "main", "main"),
            ("change_board", "main", "main"),
            ("create_season", "main", "season:spring"),
            ("create_key", "", &*name),
            ("revoke_key", "", &name),
            ("set_webhook", "main", "webhook"),
            ("set_webhook", "main", "webhook"),
            ("remove_webhook", "main", "webhook"),
            ("void", "main", "ada"),
            ("reset", "main", "ada"),
            ("ban", "", "ada"),
            ("ban", "main", "ada"),
            ("correct", "main", "bob"),
        ]
    );
    assert!(rows.iter().all(|row| row.0 == "dora"), "{rows:?}");
    let text = format!("{rows:?}");
    for secret in [key.trim().rsplit('_').next().unwrap(), secret.trim(), secret.trim().trim_start_matches("whsec_")] {
        assert!(!text.contains(secret), "the log contains a secret");
    }
    assert_eq!(rows[6].5, Some(json!({"url": "https://rewards.example.com/hook", "new_secret": true})));

    db.execute("SELECT centile.mark_banned('ada', false); SELECT centile.ban_user('main', 'ada', false)").await;
    let user: String = sqlx::query_scalar("SELECT session_user::text").fetch_one(&db.pool().await).await.unwrap();
    let rows = log(&db, &mut seen).await;
    assert!(!rows.is_empty() && rows.iter().all(|row| row.0 == user), "{rows:?}");
}
