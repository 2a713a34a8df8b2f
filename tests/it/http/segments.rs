//! Segments: rankings of the players with the same value of an attribute.

mod load;
mod moves;
mod property;

use reqwest::{
    Method,
    header::{CONTENT_DISPOSITION, ETAG},
};
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{
    http::api::site::{Answer, Site},
    support::{
        TestDb, audit, make_key, ranking_reads, run,
        wait::{until, within},
    },
};

const SCORES: &str = "/v1/boards/main/scores";

#[track_caller]
fn refused(answer: &Answer, field: &str, detail: &str) {
    let given = (answer.status, &answer.body["code"], &answer.body["field"]);
    assert_eq!(given, (422, &json!("invalid_value"), &json!(field)), "{answer:?}");
    assert!(answer.text.contains(detail), "{answer:?}");
}

/// Sets attributes of a player.
pub async fn set(site: &Site, user: &str, attributes: Value) -> Answer {
    let body = json!({"attributes": attributes}).to_string();
    site.json(Method::PUT, &format!("/v1/users/{user}"), &site.server_key, body).await
}

/// Returns position, rank, player and score of the rows of a page.
pub async fn page(site: &Site, board: &str, query: &str) -> Vec<(u64, u64, String, i64)> {
    let page = site.get(&format!("/v1/boards/{board}/scores?limit=1000&{query}")).await.is(200);
    rows(&page)
}

/// Returns the same for chosen players, never from a cached top.
pub async fn chosen(
    site: &Site,
    board: &str,
    period: &str,
    segment: Option<&str>,
    users: &[String],
) -> Vec<(u64, u64, String, i64)> {
    let mut body = json!({"user_ids": users, "period": period});
    if let Some(segment) = segment {
        body["segment"] = json!(segment);
    }
    let path = format!("/v1/boards/{board}/scores/query");
    rows(&site.json(Method::POST, &path, &site.server_key, body.to_string()).await.is(200))
}

/// Waits until a top, which may lag, has these rows.
async fn shows(site: &Site, segment: &str, wanted: &[(u64, u64, String, i64)]) {
    shows_on(site, "main", segment, wanted).await;
}

async fn shows_on(site: &Site, board: &str, segment: &str, wanted: &[(u64, u64, String, i64)]) {
    until(segment, async || page(site, board, &format!("segment={segment}")).await == wanted).await;
}

pub fn rows(page: &Value) -> Vec<(u64, u64, String, i64)> {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let row = |row: &Value| {
        let user = row["user_id"].as_str().unwrap().to_owned();
        (number(row, "position"), number(row, "rank"), user, row["score"].as_i64().unwrap())
    };
    page["data"].as_array().unwrap().iter().map(row).collect()
}

fn row(position: u64, rank: u64, user: &str, score: i64) -> (u64, u64, String, i64) {
    (position, rank, user.to_owned(), score)
}

/// A board with segments by country and class, and five players.
async fn board(db: &TestDb, flags: &[&str]) -> Site {
    let site = Site::start(db, flags).await;
    let rules = json!({"segments": ["country", "class"], "periods": ["all_time", "week"], "tiers": ["gold: rank 1"]});
    site.board(rules, &[]).await;
    for (user, attributes) in [
        ("ada", json!({"country": "DE", "class": "mage"})),
        ("bob", json!({"country": "DE"})),
        ("cyd", json!({"country": "FR", "class": "mage"})),
        ("dan", json!({"class": "a b:c|d@\"é"})),
    ] {
        set(&site, user, attributes).await.is(201);
    }
    let scores = [("ada", 5), ("bob", 7), ("cyd", 6), ("dan", 4), ("eve", 9), ("bob", -2)];
    for (user, points) in scores {
        site.post(SCORES, json!({"user_id": user, "points": points})).await.is(200);
    }
    site
}

#[tokio::test]
async fn boards_have_up_to_four_segments() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let path = "/v1/boards/main";
    site.board(json!({"slug": "plain"}), &[]).await;
    assert_eq!(site.get("/v1/boards/plain").await.is(200)["segments"], json!([]));
    site.board(json!({"segments": ["country", "class"]}), &[]).await;
    assert_eq!(site.get(path).await.is(200)["segments"], json!(["country", "class"]));
    let change = async |change: Value| site.admin(Method::PATCH, path, change).await;
    assert_eq!(
        change(json!({"segments": ["a", "b_1", "3", "x"]})).await.is(200)["segments"],
        json!(["a", "b_1", "3", "x"])
    );
    refused(&change(json!({"segments": ["a", "b", "c", "d", "e"]})).await, "segments", "up to 4");
    refused(&change(json!({"segments": ["a", "b", "a"]})).await, "segments", "different names");
    let long = "a".repeat(33);
    for bad in ["", "Country", "a-b", "a:b", "é", &long] {
        refused(&change(json!({"segments": ["a", bad]})).await, "segments[1]", "not the name of an attribute");
        let stored = query_scalar::<_, i32>(
            "SELECT centile.update_board('main', jsonb_build_object('segments', ARRAY[$1, 'z']))",
        );
        assert!(stored.bind(bad).fetch_one(&db.pool().await).await.is_err(), "{bad}");
    }
    for bad in [json!(["a", "b", "a"]), json!(["a", "b", "c", "d", "e"]), json!(["a", null]), json!(["a,b"])] {
        let stored = query_scalar::<_, i32>("SELECT centile.update_board('main', $1)").bind(json!({"segments": bad}));
        assert!(stored.fetch_one(&db.pool().await).await.is_err(), "{bad}");
    }
    // Snapshots and rolling windows have no segments.
    for other in [json!({"snapshots": "week"}), json!({"rolling": ["7d"]})] {
        refused(&change(other.clone()).await, "segments", "neither snapshots nor rolling windows");
        let mut new = json!({"slug": "both", "mode": "sum", "segments": ["country"]});
        new.as_object_mut().unwrap().extend(other.as_object().cloned().unwrap());
        refused(&site.admin(Method::POST, "/v1/boards", new).await, "segments", "neither snapshots");
    }
    let sources = json!({"sources": [{"board": "main", "period": "week"}]});
    let combined = json!({"slug": "c", "mode": "combined", "segments": ["a"], "combination": sources});
    refused(&site.admin(Method::POST, "/v1/boards", combined).await, "segments", "combined board");
    let sources = json!({"sources": [{"board": "main", "period": "week@a:b"}]});
    let combined = json!({"slug": "c", "mode": "combined", "combination": sources});
    assert_eq!(site.admin(Method::POST, "/v1/boards", combined).await.status, 422);
    run(&db, &["board", "combine", "c", "--source", "main@week"]).well();
    let source =
        "SELECT centile_store.set_sources(board_id, '[{\"board\": \"main\", \"period\": \"week:2024-01-15@a:b\"}]')
                  FROM centile.boards WHERE slug = 'c'";
    let stored = sqlx::query(source).execute(&db.pool().await).await;
    assert!(stored.is_err_and(|error| error.to_string().contains("must not be a segment")));
    // Segments cannot change once events exist.
    site.post(SCORES, json!({"user_id": "ada", "points": 1})).await.is(200);
    let late = change(json!({"segments": []})).await;
    assert_eq!((late.status, &late.body["code"]), (409, &json!("board_has_events")), "{late:?}");

    // On the command line.
    run(&db, &["board", "create", "laps", "--segment", "country", "--segment", "class"]).well();
    assert_eq!(run(&db, &["board", "show", "laps", "--json"]).json()["segments"], json!(["country", "class"]));
    let shown = run(&db, &["board", "show", "laps"]).well();
    assert!(shown.contains("country") && shown.contains("class"), "{shown}");
    run(&db, &["board", "create", "bad", "--segment", "Country"]).refused(2, &["--segment"]);
    run(&db, &["board", "create", "bad", "--segment", "a", "--rolling", "7d"]).refused(1, &["rolling windows"]);
}

#[tokio::test]
async fn attributes_belong_to_the_profile() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    let shown = async |key: &str| site.json(Method::GET, "/v1/users/ada", key, String::new()).await.is(200);
    assert_eq!(shown(&site.server_key).await["attributes"], json!({"country": "DE", "class": "mage"}));
    assert_eq!(site.get("/v1/users/ada").await.is(200).get("attributes"), None);
    // Attributes that are absent stay; null removes one.
    let changed = set(&site, "ada", json!({"country": null})).await.is(200);
    assert_eq!(changed["attributes"], json!({"class": "mage"}));
    let name = json!({"name": "Ada"}).to_string();
    let renamed = site.json(Method::PUT, "/v1/users/ada", &site.server_key, name).await.is(200);
    assert_eq!(renamed["attributes"], json!({"class": "mage"}));

    refused(&set(&site, "ada", json!({"planet": "Mars"})).await, "attributes", "no board has segments by 'planet'");
    let long = "é".repeat(65);
    for bad in ["", "a\nb", "a\u{85}", &long] {
        refused(&set(&site, "ada", json!({"country": bad})).await, "attributes.country", "1 to 64 characters");
        let stored = sqlx::query("SELECT centile.put_user('ada', p_attributes => jsonb_build_object('country', $1))");
        assert!(stored.bind(bad).execute(&db.pool().await).await.is_err(), "{bad:?}");
    }
    refused(&set(&site, "ada", json!({"Country": "DE"})).await, "attributes.Country", "not the name of an attribute");
    for bad in ["{\"country\": 1}", "[]", "{\"country\": {}}"] {
        let statement = format!("SELECT centile.put_user('ada', p_attributes => '{bad}')");
        assert!(sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&db.pool().await).await.is_err(), "{bad}");
    }
    assert_eq!(set(&site, "ada", json!({"country": "é".repeat(64)})).await.status, 200);

    // At most 1,000 values of an attribute, of which three exist.
    db.execute("INSERT INTO centile_store.attribute_values (attribute, value) SELECT 'country', 'c' || n FROM generate_series(1, 996) AS n").await;
    assert_eq!(set(&site, "bob", json!({"country": "the last"})).await.status, 200);
    refused(
        &set(&site, "bob", json!({"country": "one more"})).await,
        "attributes",
        "already has 1,000 values, and 'one more' is another",
    );
    assert_eq!(set(&site, "bob", json!({"country": "FR", "class": "new"})).await.status, 200);

    // On the command line.
    run(&db, &["user", "set", "zoe", "--attribute", "country=FR", "--attribute", "class=x=y"]).well();
    assert_eq!(
        run(&db, &["user", "show", "zoe", "--json"]).json()["attributes"],
        json!({"country": "FR", "class": "x=y"})
    );
    run(&db, &["user", "set", "zoe", "--attribute", "country="]).well();
    assert!(
        run(&db, &["user", "show", "zoe"]).well().contains(r#"{"class": "x=y"}"#)
            || run(&db, &["user", "show", "zoe"]).well().contains(r#"{"class":"x=y"}"#)
    );
    run(&db, &["user", "set", "zoe", "--attribute", "country"]).refused(2, &["--attribute"]);
}

/// A key that is limited to boards changes the attributes of these boards only.
#[tokio::test]
async fn a_limited_key_changes_attributes_of_its_boards() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "laps", "segments": ["car"]}), &[]).await;
    let key = make_key(db.url(), "server", &["laps"]);
    let put = async |attributes: Value| {
        let body = json!({"attributes": attributes}).to_string();
        site.json(Method::PUT, "/v1/users/ada", &key, body).await
    };
    // Ada has scores on both boards, so the key may change the profile.
    site.post("/v1/boards/laps/scores", json!({"user_id": "ada", "points": 1})).await.is(200);
    assert_eq!(put(json!({"car": "kart"})).await.is(200)["attributes"]["car"], json!("kart"));
    for change in [json!({"country": "FR"}), json!({"country": null}), json!({"planet": "Mars"})] {
        refused(&put(change).await, "attributes", "no board of this key has segments by");
    }
    shows(&site, "country:DE", &[row(1, 1, "ada", 5), row(2, 1, "bob", 5)]).await;
    // An attribute that no board declares any more can be removed.
    site.board(json!({"slug": "new", "segments": ["planet"]}), &[]).await;
    set(&site, "ada", json!({"planet": "Mars"})).await.is(200);
    site.admin(Method::PATCH, "/v1/boards/new", json!({"segments": []})).await.is(200);
    refused(&set(&site, "ada", json!({"planet": "Venus"})).await, "attributes", "no board has segments by 'planet'");
    for _ in 1..=2 {
        assert_eq!(put(json!({"planet": null})).await.is(200)["attributes"].get("planet"), None);
    }
}

/// Pages continue in their segment only, and entity tags differ by segment.
async fn pages_and_tags(site: &Site) {
    let get = async |path: &str| site.get(&format!("/v1/boards/main/{path}")).await.is(200);
    let first = get("scores?segment=class:mage&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = get(&format!("scores?segment=class:mage&limit=1&cursor={cursor}")).await;
    assert_eq!(rows(&next), [row(2, 2, "ada", 5)]);
    for other in ["", "&segment=country:DE"] {
        let answer = site.get(&format!("{SCORES}?limit=1&cursor={cursor}{other}")).await;
        refused(&answer, "cursor", "next_cursor");
    }
    // The entity tags of empty rankings differ, too.
    let tag = async |segment: &str| site.get(&format!("{SCORES}?limit=3{segment}")).await.headers.get(ETAG).cloned();
    let segments = ["", "&segment=country:DE", "&segment=country:FR", "&segment=country:US", "&segment=country:%C3%A9"];
    let mut tags = Vec::new();
    for segment in segments {
        let tag = tag(segment).await.unwrap();
        assert!(!tags.contains(&tag), "{segment}: {tag:?}");
        tags.push(tag);
    }
}

#[tokio::test]
async fn every_read_takes_a_segment() {
    let db = TestDb::new().await;
    for flags in [&["--no-maintenance"][..], &["--no-maintenance", "--index-memory", "0"]] {
        let db = if flags.len() == 1 { &db } else { &TestDb::new().await };
        let site = board(db, flags).await;
        for period in ["all_time", "week"] {
            let of = async |segment: &str| page(&site, "main", &format!("period={period}{segment}")).await;
            let all = [
                row(1, 1, "eve", 9),
                row(2, 2, "cyd", 6),
                row(3, 3, "ada", 5),
                row(4, 3, "bob", 5),
                row(5, 5, "dan", 4),
            ];
            assert_eq!(of("").await, all);
            assert_eq!(of("&segment=country:DE").await, [row(1, 1, "ada", 5), row(2, 1, "bob", 5)]);
            assert_eq!(of("&segment=country:FR").await, [row(1, 1, "cyd", 6)]);
            assert_eq!(of("&segment=class:mage").await, [row(1, 1, "cyd", 6), row(2, 2, "ada", 5)]);
            assert_eq!(of("&segment=class:a%20b:c|d@%22%C3%A9").await, [row(1, 1, "dan", 4)]);
            assert_eq!(of("&segment=country:US").await, []);
        }
        let get = async |path: &str| site.get(&format!("/v1/boards/main/{path}")).await.is(200);
        let top = get("scores?segment=country:DE").await;
        assert_eq!((&top["players"], &top["period"]["segment"]), (&json!(2), &json!("country:DE")));
        assert_eq!(top["period"]["name"], json!("all_time"));
        assert_eq!(top["data"][0]["tier"], json!("gold"));
        assert_eq!(get("scores").await["period"].get("segment"), None);
        let empty = get("scores?segment=country:US").await;
        assert_eq!((&empty["players"], &empty["period"]["segment"]), (&json!(0), &json!("country:US")));
        // Standings, with neighbours of the segment only.
        let ada = get("scores/ada?segment=class:mage&around=3").await;
        assert_eq!(
            (&ada["rank"], &ada["players"], ada["above"][0]["user_id"].as_str()),
            (&json!(2), &json!(2), Some("cyd"))
        );
        assert_eq!(ada["below"], json!([]));
        let bob = site.get(&format!("{SCORES}/bob?segment=class:mage")).await;
        assert_eq!((bob.status, &bob.body["code"]), (404, &json!("score_not_found")));
        assert!(bob.text.contains("all_time@class:mage"), "{bob:?}");
        // Chosen players and friends.
        let chosen = get("scores/query?user_id=ada&user_id=cyd&segment=country:DE").await;
        assert_eq!((rows(&chosen).len(), &chosen["missing"]), (1, &json!(["cyd"])));
        let body = json!({"user_ids": ["ada", "cyd"], "segment": "country:FR"});
        let chosen = site.json(Method::POST, &format!("{SCORES}/query"), &site.server_key, body.to_string()).await;
        assert_eq!(rows(&chosen.is(200)), [row(1, 1, "cyd", 6)]);
        let friends = json!({"change": "add", "user_ids": ["bob", "cyd"]}).to_string();
        site.json(Method::POST, "/v1/users/ada/friends", &site.server_key, friends).await.is(200);
        let path = format!("{SCORES}?friends_of=ada&segment=country:DE");
        let friends = site.json(Method::GET, &path, &site.server_key, String::new()).await.is(200);
        assert_eq!(rows(&friends).len(), 2, "{friends}");
        // Distribution, tiers, the rank of a score, standings on boards, files.
        assert_eq!(get("distribution?segment=country:DE").await["players"], json!(2));
        let tiers = get("tiers?segment=country:DE").await;
        assert_eq!((&tiers["players"], &tiers["data"][0]["players"]), (&json!(2), &json!(2)));
        assert_eq!(get("rank?score=5&segment=country:FR").await["rank"], json!(2));
        let standings = site.get("/v1/users/ada/standings?segment=class:mage").await.is(200);
        assert_eq!((&standings["data"][0]["rank"], standings["data"].as_array().map(Vec::len)), (&json!(2), Some(1)));
        let file = site.get("/v1/boards/main/scores.csv?segment=country:DE").await;
        assert_eq!((file.text.lines().count(), file.status), (3, 200));
        assert!(
            file.headers[CONTENT_DISPOSITION].to_str().is_ok_and(|name| name.contains("main-all_time-country-DE.csv"))
        );
        pages_and_tags(&site).await;
        // A live stream.
        let path = site.serve.at("/v1/boards/main/live?segment=country:DE");
        let mut stream = site.serve.client.get(path).send().await.unwrap();
        let mut told = String::new();
        while !told.contains("\n\n") || !told.contains("ada") {
            told += &String::from_utf8_lossy(&within("a message", stream.chunk()).await.unwrap().unwrap());
        }
        assert!(told.contains(r#""segment":"country:DE""#) && !told.contains("cyd"), "{told}");
        // The error names an attribute that the board does not have.
        let unknown = site.get(&format!("{SCORES}?segment=planet:Mars")).await;
        refused(&unknown, "segment", "board main has no segments by planet; it has segments by country, class");
        site.board(json!({"slug": "plain"}), &[]).await;
        let plain = site.get("/v1/boards/plain/scores?segment=country:DE").await;
        refused(&plain, "segment", "board plain has no segments by country; it has no segments");
        for bad in ["country", "country:", ":DE", "COUNTRY:DE", "country:a%0Ab"] {
            assert_eq!(site.get(&format!("{SCORES}?segment={bad}")).await.status, 422, "{bad}");
        }
        refused(&site.get(&format!("{SCORES}?period=week@country:DE")).await, "period", "parameter segment");
        // Lists of periods have whole periods only.
        let periods = get("periods").await;
        assert_eq!(periods["data"].as_array().map(Vec::len), Some(2), "{periods}");

        // In psql and on the command line.
        let pool = db.pool().await;
        let users = "SELECT array_agg(user_id ORDER BY position) FROM centile.page('main', 'week@class:mage')";
        assert_eq!(
            query_scalar::<_, Vec<String>>(users).fetch_one(&pool).await.ok(),
            Some(vec!["cyd".into(), "ada".into()])
        );
        let unknown = sqlx::query("SELECT * FROM centile.page('main', 'week@planet:Mars')").execute(&pool).await;
        assert!(unknown.is_err_and(|error| error.to_string().contains("has no period 'week@planet:Mars'")));
        let file = run(db, &["export", "--board", "main", "--period", "all_time@class:mage"]);
        assert_eq!(file.well().lines().count(), 3);
        run(db, &["verify"]).well();
        audit::rankings_are_sound(&pool).await;
    }
}

/// Values are those of players, and may be those of a private board.
#[tokio::test]
async fn metrics_name_the_attribute_of_a_segment_only() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    for segment in ["class:mage", "class:a%20b:c%7Cd%40%22%C3%A9", "country:DE"] {
        assert!(!page(&site, "main", &format!("segment={segment}")).await.is_empty());
    }
    let all = ["main/all_time@class\"} 3", "main/all_time@country\"} 2"];
    let players = all.map(|index| format!("centile_index_players{{index=\"{index}"));
    until("three indexes", async || {
        let metrics = site.get("/metrics").await.text;
        assert!(!metrics.contains(":mage") && !metrics.contains('é'), "{metrics}");
        players.iter().all(|line| metrics.lines().any(|found| found == line))
    })
    .await;
}

/// The first score of a player may also be a correction, or an event accepted from the quarantine.
#[tokio::test]
async fn corrections_and_accepted_events_count_in_segments() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    let strict = json!({"points_max": 10, "on_violation": "quarantine"});
    site.admin(Method::PATCH, "/v1/boards/main", strict).await.is(200);
    for user in ["fay", "gus"] {
        set(&site, user, json!({"country": "IT"})).await.is(201);
    }
    site.post(SCORES, json!({"user_id": "fay", "points": 50})).await;
    shows(&site, "country:IT", &[]).await;
    let waiting = site.json(Method::GET, "/v1/boards/main/quarantine", &site.admin_key, String::new()).await.is(200);
    let path = format!("/v1/boards/main/quarantine/{}/accept", waiting["data"][0]["quarantine_id"]);
    site.admin(Method::POST, &path, json!({})).await.is(200);
    shows(&site, "country:IT", &[row(1, 1, "fay", 50)]).await;
    let now: String = query_scalar("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    run(&db, &["correct", "gus", "60", "--board", "main", "--at", &now, "--reason", "late", "--by", "dora"]).well();
    shows(&site, "country:IT", &[row(1, 1, "gus", 60), row(2, 2, "fay", 50)]).await;
    set(&site, "gus", json!({"country": "FR"})).await.is(200);
    shows(&site, "country:IT", &[row(1, 1, "fay", 50)]).await;
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&db.pool().await).await;
}

#[tokio::test]
async fn segments_are_as_private_as_their_board() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    site.admin(Method::PATCH, "/v1/boards/main", json!({"reading": "key"})).await.is(200);
    for read in ranking_reads("ada").iter().map(String::as_str).chain(["live?", "scores.csv?"]) {
        let path = format!("/v1/boards/main/{read}segment=country:DE");
        let answer = site.get(&path).await;
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert!(!answer.text.contains("country"), "{answer:?}");
    }
    let standings = site.get("/v1/users/ada/standings?segment=country:DE").await;
    assert!(!standings.text.contains("main"), "{standings:?}");
    let reader = format!("{SCORES}?segment=country:DE");
    assert_eq!(rows(&site.json(Method::GET, &reader, &site.server_key, String::new()).await.is(200)).len(), 2);
}
