//! Friends: limits, errors, access, concurrent changes, erasure.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar, raw_sql};

use super::{column, pairs, site::Site};
use crate::{
    http::errors::refused,
    support::{Files, TestDb, import, make_key, run},
};

const ANN: &str = "/v1/users/ann/friends";

/// Returns a change of friends, as a body.
fn change(change: &str, users: &[impl AsRef<str>]) -> Value {
    json!({"change": change, "user_ids": users.iter().map(AsRef::as_ref).collect::<Vec<_>>()})
}

fn ids(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| format!("f{n}")).collect()
}

/// Counts all edges in the database.
async fn edges(db: &TestDb) -> i64 {
    query_scalar("SELECT count(*) FROM centile_store.friends").fetch_one(&db.pool().await).await.unwrap()
}

#[tokio::test]
async fn a_player_has_at_most_5000_friends() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let full = site.post(ANN, change("add", &ids(0..5_000))).await.is(200);
    assert_eq!(full, json!({"added": 5_000, "removed": 0, "friends": 5_000}));
    // The same friends again, and others in their place.
    assert_eq!(site.post(ANN, change("add", &ids(4_000..5_000))).await.is(200)["added"], 0);
    let replaced = site.post(ANN, change("replace", &ids(10..5_010))).await.is(200);
    assert_eq!(replaced, json!({"added": 10, "removed": 10, "friends": 5_000}));

    let refuse = async |answer: super::site::Answer, friends: &str| {
        let problem = answer.is(409);
        assert_eq!(problem["code"], "too_many_friends");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("5000") && detail.contains(friends) && detail.contains("'ann'"), "{detail}");
    };
    let put = site.json(Method::PUT, &format!("{ANN}/zoe"), &site.server_key, String::new()).await;
    refuse(put, "5001").await;
    refuse(site.post(ANN, change("add", &["zoe", "f10", "yan"])).await, "5002").await;
    // A refused change writes nothing, and creates nobody.
    site.get("/v1/users/zoe").await.is(404);
    assert_eq!(edges(&db).await, 5_000);
    refused(&site.post(ANN, change("replace", &ids(0..5_001))).await, 422, "user_ids", "a list of 5,001");
    assert_eq!(site.post(ANN, change("remove", &ids(0..5_000))).await.is(200)["friends"], 10);
    assert_eq!(site.post(ANN, change("replace", &[""; 0])).await.is(200)["friends"], 0);
}

#[tokio::test]
async fn concurrent_changes_keep_the_limit() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.post(ANN, change("add", &["zoe"])).await.is(200);
    let answers = join_all((0..4).map(|n| site.post(ANN, change("add", &ids(2_000 * n..2_000 * (n + 1)))))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 409, 409], "{answers:?}");
    assert_eq!(edges(&db).await, 4_001);
}

#[tokio::test]
async fn bad_changes_name_the_field() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 1)]).await;
    for (body, field) in [
        (json!({"change": "add", "user_ids": ["bob", "ann"]}), "user_ids[1]"),
        (json!({"change": "replace", "user_ids": ["ann"]}), "user_ids[0]"),
        (json!({"change": "add", "user_ids": ["bob", ""]}), "user_ids[1]"),
        (json!({"change": "add", "user_ids": [".."]}), "user_ids[0]"),
        (json!({"change": "swap", "user_ids": []}), "change"),
        (json!({"user_ids": []}), "change"),
        (json!({"change": "add"}), "user_ids"),
        (json!({"change": "add", "user_ids": [], "mutual": true}), "mutual"),
    ] {
        refused(&site.post(ANN, &body).await, 422, field, &body.to_string());
    }
    let put = async |path: &str, body: &str| site.json(Method::PUT, path, &site.server_key, body.to_owned()).await;
    refused(&put(&format!("{ANN}/ann"), "").await, 422, "friend_id", "their own friend");
    refused(&put(&format!("{ANN}/%00"), "").await, 422, "friend_id", "a control character");
    refused(&put(&format!("{ANN}/bob"), r#"{"name": "Bob"}"#).await, 422, "name", "a body");
    for (query, field) in [
        ("friends_of=%00", "friends_of"),
        ("mutual=true", "mutual"),
        ("around=1", "around"),
        ("friends_of=ann&around=101", "around"),
        ("friends_of=ann&around=1&limit=5", "limit"),
        ("friends_of=ann&around=1&from=2", "from"),
        ("friends_of=ann&around=1&cursor=x", "cursor"),
        ("friends_of=ann&from=1&cursor=x", "from"),
        ("friends_of=ann&cursor=x", "cursor"),
        ("friends_of=ann&limit=0", "limit"),
    ] {
        refused(&site.get(&format!("/v1/boards/main/scores?{query}")).await, 422, field, query);
    }
    for query in ["limit=0", "cursor=x", "cursor=LTE"] {
        let field = query.split('=').next().unwrap();
        refused(&site.get(&format!("{ANN}?{query}")).await, 422, field, query);
    }
    // Removing creates nobody.
    assert_eq!(
        site.post("/v1/users/nobody/friends", change("remove", &["ann"])).await.is(404)["code"],
        "user_not_found"
    );
    site.get("/v1/users/nobody").await.is(404);
    site.get("/v1/boards/main/scores?friends_of=nobody").await.is(404);
    // A period without scores is not an exception.
    site.get("/v1/boards/main/scores?friends_of=nobody&period=day:2001-01-01").await.is(404);
    let empty = site.get("/v1/boards/main/scores?friends_of=ann&period=day:2001-01-01").await.is(200);
    assert_eq!((&empty["data"], &empty["local_players"]), (&json!([]), &json!(0)));
    assert_eq!(edges(&db).await, 0);
}

#[tokio::test]
async fn a_limited_key_changes_friends_of_its_players_only() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 1)]).await;
    site.board(json!({"slug": "laps"}), &[("bob", 1)]).await;
    let key = make_key(db.url(), "server", &["main"]);
    let post = async |user: &str, list: &[&str], status: u16| {
        let path = format!("/v1/users/{user}/friends");
        site.json(Method::POST, &path, &key, change("add", list).to_string()).await.is(status)
    };
    // A friend may play anywhere.
    post("ann", &["bob", "cyd"], 200).await;
    post("ann", &["bob"], 200).await;
    post("bob", &["ann"], 403).await;
    post("cyd", &["ann"], 200).await;
    post("new", &["ann"], 200).await;
    site.json(Method::DELETE, "/v1/users/bob/friends/ann", &key, String::new()).await.is(403);
    let audited: Vec<(String, Value)> = query_as(
        "SELECT subject, after FROM centile.audit_log WHERE action = 'change_user' AND actor LIKE 'key %' ORDER BY audit_id",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    let fields = json!({"fields": ["friends"]});
    assert_eq!(audited, [("ann".to_owned(), fields.clone()), ("cyd".to_owned(), fields)]);
}

#[tokio::test]
async fn friends_are_as_private_as_the_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 3), ("bob", 5)]).await;
    site.board(json!({"slug": "club"}), &[("ann", 1), ("cyd", 2)]).await;
    site.post(ANN, change("add", &["bob", "cyd", "dan"])).await.is(200);
    let list = site.get(ANN).await.is(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 3);

    site.admin(Method::PATCH, "/v1/boards/club", json!({"reading": "key"})).await.is(200);
    let reader = |board: &str| make_key(db.url(), "reader", &[board]);
    let (main, club) = (reader("main"), reader("club"));
    let all = make_key(db.url(), "reader", &[]);
    let limited = make_key(db.url(), "server", &["main"]);
    let get = async |path: &str, key: &str| site.json(Method::GET, path, key, String::new()).await.status;
    let (friends, private) = ("/v1/boards/main/scores?friends_of=ann", "/v1/boards/club/scores?friends_of=ann");
    crate::support::wait::until("the board is private", async || site.get(private).await.status == 401).await;
    for (path, wanted) in [(ANN, [401, 403, 200, 200, 200]), (private, [401, 403, 200, 200, 403])] {
        let statuses = [
            site.get(path).await.status,
            get(path, &main).await,
            get(path, &club).await,
            get(path, &all).await,
            get(path, &limited).await,
        ];
        assert_eq!(statuses, wanted, "{path}");
    }
    // Everyone may read the public board. The answer does not name friends who play elsewhere.
    let answer = site.get(friends).await;
    assert!(!answer.text.contains("cyd") && !answer.text.contains("dan"), "{answer:?}");
    let answer = answer.is(200);
    assert_eq!(column(&answer["data"], "local_rank"), pairs([("bob", 1), ("ann", 2)]));
    assert_eq!(answer["local_players"], 2);
}

#[tokio::test]
async fn friends_work_on_closed_periods_and_snapshots() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &["--no-maintenance"]).await;
    run(&db, &["board", "create", "main", "--periods", "all_time,week"]).well();
    let lines = [("ann", 20), ("bob", 30), ("cyd", 20), ("dan", 10), ("eve", 40), ("fay", 5)]
        .map(|(user, points)| format!("{user},{points},2024-01-16T12:00:00Z"));
    let file = files.write("week.csv", format!("user_id,points,occurred_at\n{}\n", lines.join("\n")));
    import(&db, &file, "main", &[]).well(6, 0);
    site.post(ANN, change("add", &["bob", "cyd", "dan", "fay", "nobody"])).await.is(200);
    site.post("/v1/users/dan/friends", change("add", &["ann"])).await.is(200);
    site.admin(Method::PATCH, "/v1/boards/main", json!({"snapshots": "week"})).await.is(200);
    db.execute(
        "INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
         SELECT id, 'snapshot', 'week-2024-01-15', '-infinity', '2024-01-22 00:00Z' FROM centile_store.boards",
    )
    .await;
    let list = "/v1/boards/main/scores?friends_of=ann";
    // The second page begins on the archive where the first one ended on the live ranking.
    let week = "period=week:2024-01-15";
    let first = site.get(&format!("{list}&{week}&limit=2")).await.is(200);
    run(&db, &["close", "--due"]).well();
    let second =
        site.get(&format!("{list}&{week}&limit=2&cursor={}", first["next_cursor"].as_str().unwrap())).await.is(200);
    let third =
        site.get(&format!("{list}&{week}&limit=2&cursor={}", second["next_cursor"].as_str().unwrap())).await.is(200);
    let walked: Vec<Value> =
        [&first, &second, &third].iter().flat_map(|page| page["data"].as_array().unwrap().clone()).collect();
    let ranks = pairs([("bob", 1), ("ann", 2), ("cyd", 2), ("dan", 4), ("fay", 5)]);
    assert_eq!(column(&json!(walked), "local_rank"), ranks);
    assert_eq!((&second["period"]["state"], &third["next_cursor"]), (&json!("closed"), &Value::Null));

    // A ban after the closing changes the open ranking only.
    site.admin(Method::POST, "/v1/users/bob/ban", Value::Null).await.is(200);
    site.post("/v1/boards/main/scores", json!({"user_id": "fay", "points": 100})).await.is(200);
    for (period, wanted) in [
        ("week:2024-01-15", ranks.clone()),
        ("snapshot:week-2024-01-15", ranks),
        ("all_time", pairs([("fay", 1), ("ann", 2), ("cyd", 2), ("dan", 4)])),
    ] {
        let answer = site.get(&format!("{list}&period={period}")).await;
        assert!(!answer.headers.contains_key("etag"), "{answer:?}");
        assert_eq!(answer.headers["cache-control"], "no-cache");
        let page = answer.is(200);
        assert_eq!(column(&page["data"], "local_rank"), wanted, "{period}");
        let around = site.get(&format!("{list}&period={period}&around=1")).await.is(200);
        assert_eq!(around["data"], json!(page["data"].as_array().unwrap()[..3]), "{period}");
        let mutual = site.get(&format!("{list}&period={period}&mutual=true")).await.is(200);
        assert_eq!(column(&mutual["data"], "local_rank"), pairs([("ann", 1), ("dan", 2)]), "{period}");
        let whole = site.get(&format!("/v1/boards/main/scores/ann?period={period}")).await.is(200);
        let own = page["data"].as_array().unwrap().iter().find(|row| row["user_id"] == "ann").unwrap();
        assert_eq!((&own["rank"], &own["position"]), (&whole["rank"], &whole["position"]), "{period}");
        assert_eq!((&page["version"], &page["players"]), (&whole["version"], &whole["players"]), "{period}");
    }
    let moved = site.get(&format!("{list}&moved=true")).await.is(200);
    assert_eq!(column(&moved["data"], "moved")[0], ("fay".to_owned(), 5));
    let stranger = site.get("/v1/boards/main/scores?friends_of=nobody&around=2").await.is(404);
    assert_eq!(stranger["code"], "score_not_found");
}

#[tokio::test]
async fn erasing_a_player_removes_the_friends() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 1), ("bob", 2)]).await;
    site.post(ANN, change("add", &["bob", "cyd"])).await.is(200);
    site.post("/v1/users/cyd/friends", change("add", &["ann", "bob"])).await.is(200);
    // More than one step.
    db.execute(
        "SELECT centile.ensure_users(array_agg('fan' || n)) FROM generate_series(1, 25000) n;
         INSERT INTO centile_store.friends
         SELECT f.id, a.id FROM centile_store.users f, centile_store.users a WHERE f.external_id LIKE 'fan%' AND a.external_id = 'ann'",
    )
    .await;
    let erased = site.admin(Method::DELETE, "/v1/users/ann", Value::Null).await.is(200);
    assert_eq!(edges(&db).await, 1);
    assert_eq!(site.get("/v1/users/cyd/friends").await.is(200)["data"][0]["user_id"], "bob");
    site.get(ANN).await.is(404);
    // The erased player can be nobody's friend, nor have friends.
    let new_id = erased["new_user_id"].as_str().unwrap();
    for (user, friend) in [("bob", new_id), (new_id, "bob")] {
        let path = format!("/v1/users/{user}/friends/{friend}");
        let refusal = site.json(Method::PUT, &path, &site.server_key, String::new()).await.is(409);
        assert_eq!(refusal["code"], "user_erased");
    }
    // A new player with the old id has none.
    site.post("/v1/boards/main/scores", json!({"user_id": "ann", "points": 1})).await.is(200);
    assert_eq!(site.get(ANN).await.is(200)["data"], json!([]));
    // In psql, one call is enough.
    db.execute("SELECT centile.erase_user('bob')").await;
    assert_eq!(edges(&db).await, 0);
}

#[tokio::test]
async fn a_change_during_an_erasure_leaves_no_edge() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    db.execute("SELECT centile.ensure_users('{ann,bob,cyd}')").await;
    for (change, status) in [
        ("SELECT centile.change_friends('bob', 'add', '{cyd,ann}')", false),
        ("SELECT centile.change_friends('ann', 'add', '{bob}')", false),
    ] {
        db.execute("SELECT centile.ensure_users('{ann}')").await;
        let mut erasure = db.hold("SELECT centile.erase_user('ann')").await;
        let changing = db.spawn(change);
        db.until_waiting(1, || changing.is_finished()).await;
        raw_sql("COMMIT").execute(&mut erasure).await.unwrap();
        assert_eq!(changing.await.unwrap().is_ok(), status, "{change}");
        assert_eq!(edges(&db).await, 0);
    }
    // And an erasure waits for a change.
    db.execute("SELECT centile.ensure_users('{ann}')").await;
    let mut change = db.hold("SELECT centile.change_friends('bob', 'add', '{ann}')").await;
    let erasing = db.spawn("SELECT centile.erase_user('ann')");
    db.until_waiting(1, || erasing.is_finished()).await;
    raw_sql("COMMIT").execute(&mut change).await.unwrap();
    erasing.await.unwrap().unwrap();
    assert_eq!(edges(&db).await, 0);
    site.get("/v1/users/bob/friends").await.is(200);
}
