//! What the screens of common leaderboards need: a default period, the classic calls, the top with the
//! caller's own standing, profiles in rows, and numbers as ids.

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::{
    Method,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};
use sqlx::query_scalar;

use super::site::Site;
use crate::{
    http::errors::refused,
    support::{TestDb, amount, ranking_reads, run},
};

#[tokio::test]
async fn a_request_without_a_period_reads_the_default_period() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--default-board", "main"]).await;
    let board = json!({"periods": ["month", "all_time"], "tiers": ["gold: top 10 %"], "segments": ["country"]});
    site.board(board, &[("ann", 7), ("bob", 5)]).await;
    assert_eq!(site.get("/v1/boards/main").await.is(200)["default_period"], "all_time");
    // A score of another month, which only all_time contains.
    db.execute("SELECT centile.correct_score('main', 'ann', 100, now() - interval '40 days', 'test', 'test')").await;
    let month = site.admin(Method::PATCH, "/v1/boards/main", json!({"default_period": "month"})).await.is(200);
    assert_eq!(month["default_period"], "month");
    let without_version = |mut answer: Value| {
        answer["version"] = Value::Null;
        answer
    };
    for read in ranking_reads("ann") {
        let answer =
            async |period: &str| without_version(site.get(&format!("/v1/boards/main/{read}{period}")).await.is(200));
        assert_eq!(answer("").await, answer("period=month").await, "{read}");
        assert_ne!(answer("").await, answer("period=all_time").await, "{read}");
    }
    let standings = async |query: &str| site.get(&format!("/v1/users/ann/standings{query}")).await.is(200);
    assert_eq!(standings("").await["data"][0]["score"], 7);
    assert_eq!(standings("?period=all_time").await["data"][0]["score"], 107);
    let file = async |query: &str| site.get(&format!("/v1/boards/main/scores.csv{query}")).await.text;
    assert_eq!(file("").await, file("?period=month").await);

    // The classic calls.
    let ann = |score: i64| json!({"user_info": {"user_id": "ann", "score": score, "rank": 1}});
    assert_eq!(site.get("/v1/scores/ann").await.is(200), ann(7));
    assert_eq!(site.get("/v1/scores/ann?period=all_time").await.is(200), ann(107));
    assert_eq!(site.get("/v1/scores").await.is(200)["data"][0]["score"], 7);
    assert_eq!(site.get("/v1/scores?period=all_time&limit=1").await.is(200)["data"][0]["score"], 107);
    assert_eq!(site.post("/v1/scores", json!({"user_id": "ann", "points": 1})).await.is(200), ann(8));

    // psql and the command line.
    let pool = db.pool().await;
    for call in [
        "SELECT score FROM centile.page('main') LIMIT 1",
        "SELECT score FROM centile.ranking('main') LIMIT 1",
        "SELECT score FROM centile.player_rank('main', 'ann')",
    ] {
        sqlx::raw_sql("CALL centile.apply('main')").execute(&pool).await.unwrap();
        assert_eq!(query_scalar::<_, i64>(call).fetch_one(&pool).await.ok(), Some(8), "{call}");
    }
    assert!(run(&db, &["export", "--board", "main"]).well().contains("ann,ann,8,"));
    assert!(run(&db, &["explain", "ann", "--board", "main"]).well().contains('8'));

    // A kind that the board does not keep.
    for (rules, reason) in
        [(json!({"default_period": "week"}), "keeps"), (json!({"default_period": "season"}), "keeps")]
    {
        refused(&site.admin(Method::PATCH, "/v1/boards/main", rules).await, 422, "default_period", reason);
    }
    site.board(json!({"slug": "weeks", "periods": ["week", "day"]}), &[("ann", 3)]).await;
    assert_eq!(site.get("/v1/boards/weeks").await.is(200)["default_period"], "day");
    assert_eq!(site.get("/v1/boards/weeks/scores").await.is(200)["period"]["kind"], "day");
    let flags = ["board", "create", "cups", "--default-period", "week", "--json"];
    assert_eq!(run(&db, &flags).json()["default_period"], "week");
}

#[tokio::test]
async fn the_classic_calls_take_forms_and_show_neighbours() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 7), ("bob", 5), ("cyd", 3)]).await;
    let form = "application/x-www-form-urlencoded";
    let post = async |kind: &str, body: &str| {
        let headers = [("content-type", kind), ("authorization", &format!("Bearer {}", site.server_key))];
        site.send(Method::POST, "/v1/scores", &headers, body.to_owned()).await
    };
    let dan = json!({"user_info": {"user_id": "d n", "score": 4, "rank": 3}});
    assert_eq!(post(form, "user_id=d+n&points=4&reason=won%21").await.is(200), dan);
    for (kind, body, field) in [
        (form, "user_id=dan", "points"),
        (form, "user_id=dan&points=many", "points"),
        (form, "user_id=dan&points=1&colour=red", "colour"),
        (form, "user_id=&points=1", "user_id"),
        (form, "points=1&user_id=a&user_id=b", "user_id"),
        ("application/json", "{\"user_id\": \"dan\"}", "points"),
        ("application/json", "{\"user_id\": \"dan\", \"points\": 1e30}", "points"),
        ("application/json", "[]", "body"),
    ] {
        refused(&post(kind, body).await, 400, field, body);
    }
    assert_eq!(post("text/plain", "user_id=dan&points=1").await.status, 400);
    assert_eq!(post("application/json", "{").await.status, 400);
    // Other calls keep their codes, and take no form.
    let headers = [("content-type", form), ("authorization", &*format!("Bearer {}", site.server_key))];
    let other = site.send(Method::POST, "/v1/boards/main/scores", &headers, "user_id=a&points=1".to_owned()).await;
    assert_eq!(other.status, 415, "{other:?}");

    let row = |user, rank, score| json!({"user_id": user, "user_name": user, "rank": rank, "score": score});
    let around = json!({
        "user_info": {"user_id": "d n", "score": 4, "rank": 3},
        "above": [row("bob", 2, 5)], "below": [row("cyd", 4, 3)],
    });
    assert_eq!(site.get("/v1/scores/d%20n?around=1").await.is(200), around);
    refused(&site.get("/v1/scores/ann?around=101").await, 422, "around", "around");
    // The cached top, with its tag.
    let top = site.get("/v1/scores").await;
    assert_eq!(top.headers[CACHE_CONTROL], "no-cache");
    let tag = top.headers[ETAG].to_str().unwrap().to_owned();
    assert_eq!(
        site.send(Method::GET, "/v1/scores", &[(IF_NONE_MATCH.as_str(), &tag)], String::new()).await.status,
        304
    );
    assert_eq!(top.headers[CONTENT_TYPE], "application/json");
}

/// Checks that all parts of an answer about a whole ranking are of one state.
fn is_one_state(answer: &Value) {
    let (data, me) = (answer["data"].as_array().unwrap(), &answer["me"]);
    let place = data.iter().position(|row| row["user_id"] == me["user_id"]).expect("me in the list");
    let beside = |rows: &Value, wanted: &[Value]| assert_eq!(rows.as_array().unwrap(), wanted, "{answer}");
    beside(&me["above"], &data[place.saturating_sub(3)..place]);
    beside(&me["below"], &data[place + 1..(place + 4).min(data.len())]);
    for member in ["position", "rank", "score", "name", "reached_at"] {
        assert_eq!(me[member], data[place][member], "{answer}");
    }
    let (players, worse) = (data.len(), data.iter().filter(|row| row["score"].as_i64() < me["score"].as_i64()).count());
    let percentile = 100.0 * worse as f64 / (players - 1) as f64;
    assert!((me["percentile"].as_f64().unwrap() - percentile).abs() < 1e-9, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_top_and_my_standing_are_of_one_version() {
    let db = TestDb::new().await;
    for flags in [&[][..], &["--index-memory", "0"]] {
        let site = Site::start(&db, flags).await;
        let slug = if flags.is_empty() { "index" } else { "sql" };
        let names: Vec<String> = (0..30).map(|n| format!("p{n}")).collect();
        let scores: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 5)).collect();
        site.board(json!({"slug": slug}), &scores).await;
        let stop = AtomicBool::new(false);
        let writes = async {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let events: Vec<Value> =
                    (0..10).map(|m| json!({"user_id": names[(n * 7 + m * 3) % 30], "points": m})).collect();
                site.post(&format!("/v1/boards/{slug}/scores/batch"), json!({"events": events})).await.is(200);
            }
        };
        let reads = async {
            let mut versions = std::collections::HashSet::new();
            for n in 0..amount(60, 2_000) {
                let path = format!("/v1/boards/{slug}/scores?limit=1000&me=p{}&around=3", n % 30);
                let answer = site.get(&path).await.is(200);
                assert_eq!(answer["players"], 30);
                is_one_state(&answer);
                versions.insert(answer["version"].to_string());
            }
            stop.store(true, Ordering::Relaxed);
            assert!(versions.len() > 5, "{} versions", versions.len());
        };
        futures::join!(writes, reads);
    }
}

#[tokio::test]
async fn my_standing_is_beside_any_top() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ann", 7), ("bob", 5), ("cyd", 3), ("dan", 1)]).await;
    let get = async |query: &str| site.get(&format!("/v1/boards/main/scores?{query}")).await;
    let answer = get("limit=1&me=cyd&around=1").await.is(200);
    let users = |rows: &Value| rows.as_array().unwrap().iter().map(|row| row["user_id"].clone()).collect::<Vec<_>>();
    assert_eq!(users(&answer["data"]), ["ann"]);
    assert_eq!((&answer["me"]["user_id"], &answer["me"]["rank"]), (&json!("cyd"), &json!(3)));
    assert_eq!(
        (users(&answer["me"]["above"]), users(&answer["me"]["below"])),
        (vec![json!("bob")], vec![json!("dan")])
    );
    // The cursor continues after the top.
    let next = answer["next_cursor"].as_str().unwrap();
    assert_eq!(users(&get(&format!("limit=2&cursor={next}")).await.is(200)["data"]), ["bob", "cyd"]);
    assert_eq!(get("me=nobody").await.is(200)["me"], Value::Null);
    assert_eq!(get("me=ann&period=year:2001").await.status, 404);
    assert_eq!(users(&get("me=ann&score_text=true").await.is(200)["me"]["below"]), ["bob", "cyd", "dan"]);
    assert_eq!(get("me=ann&score_text=true").await.is(200)["me"]["score_text"], "7");
    assert_eq!(get("").await.is(200).get("me"), None);
    for (query, field) in [
        ("me=ann&from=2", "from"),
        ("me=ann&friends_of=bob", "friends_of"),
        ("me=", "me"),
        ("me=ann&around=101", "around"),
    ] {
        refused(&get(query).await, 422, field, query);
    }
}

#[tokio::test]
async fn rows_have_the_public_members_of_profiles() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--public-profile", "clan,level,story"]).await;
    site.board(json!({}), &[("ann", 7), ("bob", 5), ("cyd", 3), ("dan", 1)]).await;
    let put = async |user: &str, profile: Value| {
        site.admin(Method::PUT, &format!("/v1/users/{user}"), profile).await.is(200);
    };
    put("ann", json!({"metadata": {"level": 7, "clan": "Lovelace", "email": "ann@example.com"}})).await;
    put("bob", json!({"metadata": {"clan": "x".repeat(600), "story": "y".repeat(600), "level": [1, {"a": null}]}}))
        .await;
    put("cyd", json!({"metadata": {"clan": "secret"}, "reading": "key"})).await;
    let profiles = |rows: &Value| rows.as_array().unwrap().iter().map(|row| row["profile"].clone()).collect::<Vec<_>>();
    let ann = json!({"clan": "Lovelace", "level": 7});
    // A member that would exceed 1,024 bytes is left out.
    let bob = json!({"clan": "x".repeat(600), "level": [1, {"a": null}]});
    let wanted = vec![ann.clone(), bob, Value::Null, Value::Null];
    for query in
        ["scores?", "scores?from=1&", "scores/query?user_id=ann&user_id=bob&user_id=cyd&user_id=dan&", "scores?me=ann&"]
    {
        let answer = site.get(&format!("/v1/boards/main/{query}profile=true")).await;
        assert!(!answer.headers.contains_key(ETAG), "{query}");
        assert_eq!(profiles(&answer.is(200)["data"]), wanted, "{query}");
        let plain = site.get(&format!("/v1/boards/main/{query}")).await.is(200);
        assert_eq!(plain["data"][0].get("profile"), None, "{query}");
    }
    let standing = site.get("/v1/boards/main/scores/ann?profile=true").await.is(200);
    assert_eq!((&standing["profile"], profiles(&standing["below"])), (&ann, wanted[1..].to_vec()));
    let query = json!({"user_ids": ["cyd"], "profile": true}).to_string();
    let with_key = site.json(Method::POST, "/v1/boards/main/scores/query", &site.server_key, query).await.is(200);
    assert_eq!(profiles(&with_key["data"]), [json!({"clan": "secret"})]);
    // Without the setting, nothing is public.
    let other = Site::start(&db, &[]).await;
    let answer = other.get("/v1/boards/main/scores?profile=true").await.is(200);
    assert_eq!(profiles(&answer["data"]), [Value::Null, Value::Null, Value::Null, Value::Null]);
}

#[tokio::test]
async fn numbers_are_ids() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let event = |points: i64| json!({"user_id": 7, "points": points, "id": 12});
    let scores = "/v1/boards/main/scores";
    let first = site.post(scores, event(5)).await.is(200);
    assert_eq!(first["repeated"], false);
    let text = json!({"user_id": "7", "points": 5, "id": "12"});
    assert_eq!(site.post(scores, text).await.is(200)["repeated"], true);
    site.post("/v1/scores/batch", json!({"events": [{"user_id": 8, "points": 1}]})).await.is(200);
    site.post("/v1/scores", json!({"user_id": 9, "points": 1})).await.is(200);
    let friends = json!({"change": "add", "user_ids": [8, "9"]}).to_string();
    site.json(Method::POST, "/v1/users/7/friends", &site.server_key, friends).await.is(200);
    let chosen = json!({"user_ids": [7, 8]}).to_string();
    let chosen = site.json(Method::POST, "/v1/boards/main/scores/query", &site.server_key, chosen).await.is(200);
    assert_eq!((&chosen["data"][0]["user_id"], &chosen["data"][1]["user_id"]), (&json!("7"), &json!("8")));
    for id in [json!(7.5), json!(true), json!(null), json!([7])] {
        refused(&site.post(scores, json!({"user_id": id, "points": 1})).await, 422, "user_id", &id.to_string());
    }
}
