//! Readers of a profile: those that the profile names, or else those of the service.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, make_key, redis_url, run, spawn_serve},
};

#[tokio::test]
async fn a_profile_says_who_may_read_it() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"reading": "key"}), &[("ada", 5), ("bob", 6)]).await;
    let closed = Site::of(spawn_serve(&db, Some(&redis_url().await), &["--profiles", "key"]).await, db.url());
    let reader = make_key(db.url(), "reader", &["main"]);
    let put = async |user: &str, reading: Value| {
        site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"reading": reading})).await
    };
    let got = |answer: Answer| (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned());
    let refused = |status, code: &str| (status, code.to_owned());
    // Without a key, a profile that needs one is like that of an unknown player.
    for (reading, open, shut) in
        [(Value::Null, 200, 401), (json!("public"), 200, 200), (json!("key"), 404, 401), (Value::Null, 200, 401)]
    {
        assert_eq!(put("ada", reading.clone()).await.is(200)["reading"], reading);
        for (site, status, otherwise) in
            [(&site, open, refused(404, "user_not_found")), (&closed, shut, refused(401, "key_required"))]
        {
            let wanted = if status == 200 { (200, String::new()) } else { otherwise.clone() };
            assert_eq!(got(site.get("/v1/users/ada").await), wanted, "{reading}");
            assert_eq!(got(site.get("/v1/users/nobody").await), otherwise, "{reading}");
            // Any valid key reads all profiles. Only servers and administrators see the setting.
            let read = site.json(Method::GET, "/v1/users/ada", &reader, String::new()).await.is(200);
            assert_eq!(read, json!({"user_id": "ada", "name": "ada", "avatar_url": null}));
            let read = site.json(Method::GET, "/v1/users/ada", &site.server_key, String::new()).await.is(200);
            assert_eq!(read["reading"], reading);
            assert_eq!(
                got(site.json(Method::GET, "/v1/users/ada", "x", String::new()).await),
                refused(401, "key_invalid")
            );
        }
    }
    // Boards do not matter to profiles, but to friends.
    put("ada", json!("key")).await.is(200);
    site.admin(Method::PATCH, "/v1/boards/main", json!({"reading": "public"})).await.is(200);
    assert_eq!(got(site.get("/v1/users/ada").await), refused(404, "user_not_found"));
    assert_eq!(got(site.get("/v1/users/ada/friends").await), refused(404, "user_not_found"));
    assert_eq!(got(closed.get("/v1/users/ada/friends").await), refused(401, "key_required"));
    site.get("/v1/users/bob/friends").await.is(200);
    // Without a score on the public boards, the player is like an unknown one there, too.
    site.admin(Method::PUT, "/v1/users/spy", json!({"reading": "key"})).await.is(201);
    site.board(json!({"slug": "vault", "reading": "key"}), &[("spy", 7)]).await;
    site.admin(Method::PUT, "/v1/users/spy/friends/bob", Value::Null).await.is(204);
    let seen = async |site: &Site, path: &str, user: &str| {
        let answer = site.get(&path.replace("{}", user)).await;
        let version = answer.headers.get("centile-version").map(|version| version.to_str().unwrap().to_owned());
        (answer.status, answer.text.replace(user, "X"), version)
    };
    for (site, reading) in [(&site, json!("key")), (&closed, json!("key")), (&closed, Value::Null)] {
        put("spy", reading.clone()).await.is(200);
        for path in [
            "/v1/users/{}",
            "/v1/users/{}/friends",
            "/v1/users/{}/standings",
            "/v1/users/{}/standings?period=week:previous",
            "/v1/scores/{}",
            "/v1/boards/main/scores/{}",
            "/v1/boards/main/scores/{}?period=week:previous",
            "/v1/boards/main/scores/{}/history",
            "/v1/boards/main/scores/{}/progress",
            "/v1/boards/main/scores?friends_of={}",
            "/v1/boards/main/scores?friends_of={}&around=1",
            "/v1/boards/main/scores/query?user_id={}",
            "/boards/main?player={}",
            "/boards/main?player={}&among=friends",
        ] {
            assert_eq!(seen(site, path, "spy").await, seen(site, path, "who").await, "{path}, {reading}");
        }
        let answer = site.json(Method::GET, "/v1/boards/main/scores/spy", &reader, String::new()).await;
        assert_eq!(got(answer), refused(404, "score_not_found"));
        let shown = site.json(Method::GET, "/v1/users/spy/standings", &site.server_key, String::new()).await.is(200);
        assert_eq!(shown["data"][0]["board"], "vault", "{shown}");
    }
    // A public board shows its players, and everyone may know of the player of a public profile.
    for site in [&site, &closed] {
        assert_eq!(site.get("/v1/users/ada/standings").await.is(200)["data"][0]["score"], 5);
        site.get("/v1/boards/main/scores/ada/history").await.is(200);
        site.get("/v1/boards/main/scores/ada/progress").await.is(200);
        put("spy", json!("public")).await.is(200);
        assert_eq!(got(site.get("/v1/boards/main/scores/spy").await), refused(404, "score_not_found"));
        site.get("/v1/users/spy/standings").await.is(200);
    }
    // The command line and SQL.
    let shown = || run(&db, &["user", "show", "ada", "--json"]).json()["reading"].clone();
    run(&db, &["user", "set", "ada", "--reading", "public"]).well();
    assert_eq!((shown(), site.get("/v1/users/ada").await.status), (json!("public"), 200));
    run(&db, &["user", "set", "ada", "--name", "Ada"]).well();
    assert_eq!(shown(), "public", "other changes keep it");
    run(&db, &["user", "set", "ada", "--reading", "default"]).well();
    assert_eq!(shown(), Value::Null);
    run(&db, &["user", "set", "ada", "--reading", "none"]).refused(2, &["--reading"]);
    db.execute("SELECT centile.put_user('ada', p_reading => 'key')").await;
    assert_eq!(shown(), "key");
    let answer = put("ada", json!("private")).await;
    assert_eq!((answer.status, &answer.body["field"]), (422, &json!("reading")), "{answer:?}");
}
