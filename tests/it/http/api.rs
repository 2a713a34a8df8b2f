//! The answer of each call in the normal case, over real HTTP.

mod act;
mod caller;
mod friends;
mod lists;
mod screen;
pub mod site;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    Method,
    header::{ETAG, IF_NONE_MATCH, LOCATION},
};
use serde_json::{Value, json};

use self::site::Site;
use crate::support::{TestDb, wait::until};

/// Returns the players of a list with one of their fields: `[("ada", 1), …]`.
pub fn column(list: &Value, name: &str) -> Vec<(String, i64)> {
    let rows = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    rows.iter().map(|row| (row["user_id"].as_str().unwrap().to_owned(), row[name].as_i64().unwrap())).collect()
}

pub fn pairs<const N: usize>(pairs: [(&str, i64); N]) -> Vec<(String, i64)> {
    pairs.map(|(user, number)| (user.to_owned(), number)).to_vec()
}

#[tokio::test]
async fn whole_numbers_may_have_a_fraction_and_an_exponent() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let board = r#"{"slug": "main", "mode": "sum", "lanes": 2.0, "points_min": -1e1, "points_max": 9007199254740991.0,
        "first_layout": {"bounds": [-5.0, 1e2]}, "frozen_top_size": 1.0e1, "kept_archives": {"day": 30.0},
        "events_per_minute": 6e1, "gain_max": {"week": 5000.0}}"#;
    let board = site.json(Method::POST, "/v1/boards", &site.admin_key, board.to_owned()).await.is(201);
    let wanted = json!({
        "lanes": 2, "points_min": -10, "points_max": 9_007_199_254_740_991_i64, "frozen_top_size": 10, "kept_archives": {"day": 30},
        "events_per_minute": 60, "gain_max": {"week": 5000},
    });
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(&board[name], value, "{name}");
    }
    let change = r#"{"lanes": 3.0, "events_per_minute": 61.0, "frozen_top_size": 2e1}"#;
    let board = site.json(Method::PATCH, "/v1/boards/main", &site.admin_key, change.to_owned()).await.is(200);
    assert_eq!(
        (&board["lanes"], &board["events_per_minute"], &board["frozen_top_size"]),
        (&json!(3), &json!(61), &json!(20))
    );

    site.post("/v1/boards/main/scores", r#"{"user_id": "ada", "points": 5.0}"#).await.is(200);
    site.post("/v1/boards/main/scores", r#"[{"user_id": "ada", "points": 1e3}, {"user_id": "bob", "points": -0.0}]"#)
        .await
        .is(200);
    let list = site.get("/v1/boards/main/scores").await.is(200);
    assert_eq!(column(&list["data"], "score"), pairs([("ada", 1005), ("bob", 0)]));
}

#[tokio::test]
async fn boards_are_created_listed_shown_and_changed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let rules = json!({
        "slug": "laps", "title": "Laps", "mode": "best", "order": "asc", "ties": "tiebreak", "periods": ["all_time", "week"],
        "lanes": 2, "time_zone": "Asia/Kolkata", "points_min": 1, "points_max": 1000,
    });
    let made = site.admin(Method::POST, "/v1/boards", rules.clone()).await;
    assert_eq!(made.headers[LOCATION], "/v1/boards/laps");
    let made = made.is(201);
    for (name, value) in rules.as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    let show = async || site.admin(Method::GET, "/v1/boards/laps", Value::Null).await.is(200);
    assert_eq!(show().await, made);
    // Only server and admin keys see the limits.
    let limits = ["lanes", "points_min", "points_max", "events_per_minute", "gain_max", "on_violation"];
    let public = site.get("/v1/boards/laps").await.is(200);
    for (name, value) in made.as_object().unwrap() {
        assert_eq!(public.get(name), (!limits.contains(&&**name)).then_some(value), "{name}");
    }
    site.board(json!({"first_layout": {"expected_points": 1000}}), &[]).await;
    let boards = site.get("/v1/boards").await.is(200);
    assert_eq!((&boards["data"][0], &boards["data"][1]["slug"]), (&public, &json!("main")));
    let boards = site.admin(Method::GET, "/v1/boards", Value::Null).await.is(200);
    assert_eq!(boards["data"][0], made);

    let change = json!({"title": "Fast laps", "points_max": 2000, "order": "desc"});
    let changed = site.admin(Method::PATCH, "/v1/boards/laps", change.clone()).await.is(200);
    for (name, value) in change.as_object().unwrap() {
        assert_eq!(&changed[name], value, "{name}");
    }
    assert_eq!((&changed["points_min"], &changed["mode"]), (&json!(1), &json!("best")));
    assert_eq!(show().await, changed);

    // The rules that give events their meaning cannot change once there are events.
    site.post("/v1/boards/laps/scores", json!({"user_id": "ada", "points": 1500, "tiebreak": -3})).await.is(200);
    site.admin(Method::PATCH, "/v1/boards/laps", json!({"order": "asc"})).await.is(409);
    site.admin(Method::PATCH, "/v1/boards/laps", json!({"title": "Laps"})).await.is(200);
    site.admin(Method::PATCH, "/v1/boards/none", json!({"title": "Laps"})).await.is(404);
}

#[tokio::test]
async fn players_are_created_and_changed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let put = async |body: Value, status| {
        let user = site.json(Method::PUT, "/v1/users/ada", &site.server_key, body.to_string()).await.is(status);
        assert_eq!(site.admin(Method::GET, "/v1/users/ada", Value::Null).await.is(200), user);
        // Everyone may read the name and the avatar only.
        let public = json!({"user_id": "ada", "name": user["name"], "avatar_url": user["avatar_url"]});
        assert_eq!(site.get("/v1/users/ada").await.is(200), public);
        user
    };
    let picture = "https://example.com/ada.png";
    let wanted = json!({"user_id": "ada", "name": "Ada", "avatar_url": picture, "metadata": {"clan": [1, null]}, "attributes": {}, "banned": false, "reading": null});
    assert_eq!(put(json!({"name": "Ada", "avatar_url": picture, "metadata": {"clan": [1, null]}}), 201).await, wanted);
    assert_eq!(put(json!({}), 200).await, wanted);
    let user = put(json!({"avatar_url": null, "metadata": {"a": "\\u0000"}}), 200).await;
    assert_eq!(
        (&user["name"], &user["avatar_url"], &user["metadata"]),
        (&json!("Ada"), &Value::Null, &json!({"a": "\\u0000"}))
    );
    assert_eq!(put(json!({"name": "👑 אדה"}), 200).await["name"], "👑 אדה");
    // The name of a player without a name is the id.
    site.board(json!({}), &[("bob", 1)]).await;
    assert_eq!(site.get("/v1/users/bob").await.is(200)["name"], "bob");
}

#[tokio::test]
async fn scores_return_ranks_and_count_once_per_id() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"points_max": 1000}), &[("ada", 100), ("bob", 50), ("cyd", 50)]).await;
    let (plain, ranked) = ("/v1/boards/main/scores", "/v1/boards/main/scores?ranks=true");

    let event = json!({"user_id": "bob", "points": 60, "reason": "won", "id": "game-1"});
    let first = site.post(ranked, &event).await.is(200);
    assert_eq!((&first["state"], &first["repeated"]), (&json!("accepted"), &json!(false)), "{first}");
    let periods = first["periods"].as_object().unwrap();
    assert_eq!(periods.len(), 4, "{first}");
    assert_eq!(periods["all_time"], json!({"score": 110, "rank": 1, "previous_rank": 2}));
    let newcomer = site.post(ranked, json!({"user_id": "dan", "points": 50})).await.is(200);
    assert_eq!(newcomer["periods"]["all_time"], json!({"score": 50, "rank": 3}), "a newcomer had no rank");
    let without = site.post(plain, json!({"user_id": "dan", "points": 0})).await.is(200);
    assert_eq!(without["periods"]["all_time"], json!({"score": 50}));

    let again = site.post(plain, &event).await.is(200);
    assert_eq!((&again["repeated"], &again["transaction_id"]), (&json!(true), &first["transaction_id"]));
    assert_eq!((&again["occurred_at"], &again["periods"]["all_time"]), (&first["occurred_at"], &json!({"score": 110})));
    for other in [json!({"points": 61}), json!({"reason": "lost"})] {
        let mut event = event.clone();
        event.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert_eq!(site.post(plain, event).await.is(409)["code"], "id_conflict");
    }

    let events = json!([
        {"user_id": "ada", "points": 15, "id": "game-2"},
        {"user_id": "ada", "points": 1001},
        {"user_id": "ada", "points": 15, "id": "game-2"},
        {"user_id": "ada", "points": 16, "id": "game-2"},
        event,
        {"user_id": "eve", "points": 1, "pints": 2},
        {"user_id": "eve", "points": 115},
    ]);
    let answer = site.post(ranked, events).await.is(200);
    // Ranks are read after the commit. By then eve is ahead of ada's previous score of 100 as well.
    let result = |at: usize| &answer["results"][at];
    assert_eq!(result(0)["periods"]["all_time"], json!({"score": 115, "rank": 1, "previous_rank": 3}), "{answer}");
    assert_eq!(
        (&result(1)["error"]["status"], &result(1)["error"]["field"]),
        (&json!(422), &json!("events[1].points"))
    );
    assert_eq!(result(2)["repeated"], true, "{answer}");
    assert_eq!(result(2)["transaction_id"], result(0)["transaction_id"]);
    assert_eq!((&result(3)["state"], &result(3)["error"]["status"]), (&json!("refused"), &json!(409)));
    assert_eq!((&result(4)["repeated"], &result(4)["transaction_id"]), (&json!(true), &first["transaction_id"]));
    assert_eq!(result(5)["error"]["field"], "events[5].pints", "{answer}");
    assert_eq!(result(6)["periods"]["all_time"], json!({"score": 115, "rank": 1}), "{answer}");
    let top = site.get(plain).await.is(200);
    let wanted = pairs([("ada", 115), ("eve", 115), ("bob", 110), ("cyd", 50), ("dan", 50)]);
    assert_eq!(column(&top["data"], "score"), wanted, "nothing is applied twice");
    assert_eq!(top["players"], 5);
}

#[tokio::test]
async fn a_top_has_an_etag_and_includes_own_writes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 100), ("bob", 50)]).await;
    let path = "/v1/boards/main/scores?period=month&limit=3";
    let top = site.get(path).await;
    let tag = top.headers[ETAG].to_str().unwrap().to_owned();
    let same = site.send(Method::GET, path, &[(IF_NONE_MATCH.as_str(), &tag)], String::new()).await;
    assert_eq!((same.status, same.text.as_str(), same.headers[ETAG].to_str().unwrap()), (304, "", tag.as_str()));
    for score in 51..90 {
        site.post("/v1/boards/main/scores", json!({"user_id": "bob", "points": 1})).await.is(200);
        let top = site.send(Method::GET, path, &[(IF_NONE_MATCH.as_str(), &tag)], String::new()).await.is(200);
        assert_eq!(column(&top["data"], "score"), pairs([("ada", 100), ("bob", score)]));
    }
    site.json(Method::PUT, "/v1/users/bob", &site.server_key, json!({"name": "Robert"}).to_string()).await.is(200);
    until("the top shows the new name", async || site.get(path).await.is(200)["data"][1]["name"] == "Robert").await;
}

#[tokio::test]
async fn pages_and_neighbours_are_right_at_every_edge() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let names: Vec<String> = (1..=12).map(|place| format!("p{place:02}")).collect();
    // p03 and p04 share a rank; the earlier one comes first.
    let score = |place: i64| if place == 4 { 970 } else { 1000 - 10 * place };
    let scores: Vec<(&str, i64)> = (1..).zip(&names).map(|(place, name)| (name.as_str(), score(place))).collect();
    site.board(json!({}), &scores).await;
    let path = "/v1/boards/main/scores";
    let page = site.get(&format!("{path}?from=3&limit=3")).await.is(200);
    assert_eq!(column(&page["data"], "position"), pairs([("p03", 3), ("p04", 4), ("p05", 5)]));
    assert_eq!(column(&page["data"], "rank"), pairs([("p03", 3), ("p04", 3), ("p05", 5)]));
    assert_eq!((&page["players"], &page["period"]["name"]), (&json!(12), &json!("all_time")));
    let beyond = site.get(&format!("{path}?from=13")).await.is(200);
    assert_eq!((&beyond["data"], &beyond["next_cursor"]), (&json!([]), &Value::Null));

    let (mut seen, mut next) = (Vec::new(), format!("{path}?limit=5"));
    loop {
        let page = site.get(&next).await.is(200);
        seen.extend(column(&page["data"], "position").into_iter().map(|(user, _)| user));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("{path}?limit=5&cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC));
    }
    assert_eq!(seen, names);

    for (place, around, above, below) in [
        (1, "0", 0, 0),
        (1, "4", 0, 4),
        (1, "100", 0, 11),
        (2, "4", 1, 4),
        (7, "4", 4, 4),
        (7, "100", 6, 5),
        (11, "4", 4, 1),
        (12, "0", 0, 0),
        (12, "4", 4, 0),
        (12, "100", 11, 0),
    ] {
        let standing = site.get(&format!("{path}/{}?around={around}", names[place - 1])).await.is(200);
        let users = |side: &str| column(&standing[side], "score").into_iter().map(|(user, _)| user).collect::<Vec<_>>();
        assert_eq!(users("above"), names[place - 1 - above..place - 1], "{place} {around}");
        assert_eq!(users("below"), names[place..place + below], "{place} {around}");
        assert_eq!(standing["position"], json!(place));
        let worse = 12 - place - usize::from(place == 3);
        let percentile = 100.0 * worse as f64 / 11.0;
        assert!((standing["percentile"].as_f64().unwrap() - percentile).abs() < 1e-9, "{standing}");
    }
    let standing = site.get(&format!("{path}/p07?period=week")).await.is(200);
    assert_eq!(
        (standing["above"].as_array().unwrap().len(), &standing["rank"]),
        (4, &json!(7)),
        "the default of `around` is 4"
    );
}

#[tokio::test]
async fn chosen_players_ranks_of_scores_and_the_distribution_are_right() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30), ("cyd", 30), ("dan", 10)]).await;
    site.board(json!({"slug": "first", "ties": "first"}), &[("ada", 40), ("bob", 30)]).await;
    let friends = site
        .get("/v1/boards/main/scores/query?user_id=dan&user_id=nobody&user_id=cyd&user_id=bob&user_id=dan")
        .await
        .is(200);
    assert_eq!(column(&friends["data"], "local_rank"), pairs([("bob", 1), ("cyd", 1), ("dan", 3)]));
    assert_eq!(column(&friends["data"], "rank"), pairs([("bob", 2), ("cyd", 2), ("dan", 4)]));
    assert_eq!(friends["missing"], json!(["nobody"]));
    let body = json!({"user_ids": ["dan", "nobody", "cyd", "bob", "dan"], "period": "all_time"});
    let asked = site.send(
        Method::POST,
        "/v1/boards/main/scores/query",
        &[("content-type", "application/json")],
        body.to_string(),
    );
    assert_eq!(asked.await.is(200), friends, "needs no key");

    for (board, score, rank) in [
        ("main", 41, 1),
        ("main", 40, 1),
        ("main", 30, 2),
        ("main", 29, 4),
        ("main", -5, 5),
        ("first", 40, 2),
        ("first", 30, 3),
    ] {
        let answer = site.get(&format!("/v1/boards/{board}/rank?score={score}")).await.is(200);
        assert_eq!((&answer["rank"], &answer["score"]), (&json!(rank), &json!(score)), "{board}");
    }

    let spread = site.get("/v1/boards/main/distribution?period=day").await.is(200);
    let percentiles = spread["percentiles"].as_array().unwrap();
    let at = |index: usize| {
        (percentiles[index]["percentile"].as_i64().unwrap(), percentiles[index]["score"].as_i64().unwrap())
    };
    assert_eq!(
        (percentiles.len(), at(0), at(2), at(3), at(7), at(8), at(10)),
        (11, (0, 10), (20, 10), (30, 30), (70, 30), (80, 40), (100, 40))
    );
    let bars = spread["histogram"].as_array().unwrap();
    assert_eq!(bars.iter().map(|bar| bar["players"].as_i64().unwrap()).sum::<i64>(), 4);
    assert_eq!((&bars[0]["from_score"], &bars[bars.len() - 1]["to_score"]), (&json!(10), &json!(40)));
}

#[tokio::test]
async fn periods_are_named_and_may_be_empty() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"periods": ["all_time", "week"]}), &[("ada", 40)]).await;
    let periods = site.get("/v1/boards/main/periods").await.is(200);
    let kinds: Vec<&Value> = periods["data"].as_array().unwrap().iter().map(|period| &period["kind"]).collect();
    assert_eq!((kinds.len(), kinds.contains(&&json!("all_time")), kinds.contains(&&json!("week"))), (2, true, true));

    let this = site.get("/v1/boards/main/scores?period=week").await.is(200);
    assert_eq!((&this["players"], &this["period"]["state"]), (&json!(1), &json!("open")));
    let named = this["period"]["name"].as_str().unwrap();
    assert_eq!(site.get(&format!("/v1/boards/main/scores?period={named}")).await.is(200)["data"], this["data"]);
    let previous = site.get("/v1/boards/main/scores?period=week:previous").await.is(200);
    assert_eq!(
        (&previous["players"], &previous["data"], &previous["next_cursor"]),
        (&json!(0), &json!([]), &Value::Null)
    );
    assert_eq!(previous["period"]["ends_at"], this["period"]["starts_at"]);
    let name = previous["period"]["name"].as_str().unwrap();
    assert_eq!(site.get(&format!("/v1/boards/main/scores?period={name}")).await.is(200), previous);
    site.get("/v1/boards/main/scores?period=week:2999-01-07").await.is(404);
    for path in [
        "scores?period=week:previous&from=2",
        "distribution?period=week:previous",
        "scores/query?period=week:previous&user_id=ada",
    ] {
        assert_eq!(site.get(&format!("/v1/boards/main/{path}")).await.is(200)["players"], 0, "{path}");
    }
    assert_eq!(site.get("/v1/boards/main/rank?score=1&period=week:previous").await.is(200)["rank"], 1);
    site.get("/v1/boards/main/scores/ada?period=week:previous").await.is(404);
    site.get("/v1/boards/main/scores?period=month").await.is(404);
}
