//! Boards with tags: lists of them, scores on several boards in one request, and a player's standings
//! on all of them.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, query_scalar, raw_sql};

use crate::{
    http::api::site::{Answer, Site},
    maintenance::layout::rows_read_of,
    support::{TestDb, make_key, run, wait::until},
};

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, field: Option<&str>) {
    let (given, field) = ((&answer.body["code"], &answer.body["field"]), field.map_or(Value::Null, Value::from));
    assert_eq!((answer.status, given), (status, (&json!(code), &field)), "{answer:?}");
}

/// Returns this member of each row.
fn column(rows: &Value, name: &str) -> Vec<Value> {
    rows.as_array().unwrap().iter().map(|row| row[name].clone()).collect()
}

/// Returns the boards that a caller sees in the list `query`.
async fn listed(site: &Site, key: Option<&str>, query: &str) -> Vec<Value> {
    let path = format!("/v1/boards?{query}");
    let answer = match key {
        Some(key) => site.json(Method::GET, &path, key, String::new()).await,
        None => site.get(&path).await,
    };
    column(&answer.is(200)["data"], "slug")
}

#[tokio::test]
async fn tags_group_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "arena", "tags": ["operability", "moba", "5v5", "moba"]}), &[("ada", 5)]).await;
    site.board(json!({"slug": "quiet"}), &[]).await;
    let source = json!({"join": "union", "aggregate": "sum", "sources": [{"board": "arena", "period": "all_time"}]});
    let rules = json!({"slug": "hero", "mode": "combined", "tags": ["moba"], "combination": source});
    site.admin(Method::POST, "/v1/boards", rules).await.is(201);
    run(&db, &["board", "create", "laps", "--tag", "racing", "--tag", "5v5"]).well();
    run(&db, &["board", "combine", "both", "--source", "arena@all_time", "--tag", "racing"]).well();

    // Everyone sees them, in alphabetical order.
    assert_eq!(site.get("/v1/boards/arena").await.is(200)["tags"], json!(["5v5", "moba", "operability"]));
    assert_eq!(site.get("/v1/boards/quiet").await.is(200)["tags"], json!([]));
    for (tag, boards) in [
        ("moba", json!(["arena", "hero"])),
        ("5v5", json!(["arena", "laps"])),
        ("racing", json!(["both", "laps"])),
        ("none", json!([])),
    ] {
        assert_eq!(listed(&site, None, &format!("tag={tag}")).await, *boards.as_array().unwrap(), "{tag}");
        let lines = run(&db, &["board", "list", "--tag", tag, "--json"]).json();
        assert_eq!(column(&lines, "slug"), *boards.as_array().unwrap(), "{tag}");
        let view = "SELECT coalesce(jsonb_agg(slug ORDER BY slug), '[]') FROM centile.boards WHERE tags @> ARRAY[$1]";
        let rows: Value = query_scalar(view).bind(tag).fetch_one(&db.pool().await).await.unwrap();
        assert_eq!(rows, boards, "{tag}");
    }
    assert_eq!(listed(&site, None, "tag=moba&limit=1&cursor=arena").await, [json!("hero")]);
    let table = run(&db, &["board", "list", "--tag", "racing"]).well();
    assert!(table.lines().next().unwrap().ends_with("TAGS") && table.contains("5v5, racing"), "{table}");
    assert!(run(&db, &["board", "show", "laps"]).well().contains("5v5, racing"));

    // A change replaces all tags, and leaves scores alone.
    let change = json!({"tags": ["ranked"]});
    let changed = site.admin(Method::PATCH, "/v1/boards/arena", change).await.is(200);
    assert_eq!(changed["tags"], json!(["ranked"]));
    assert_eq!(
        site.admin(Method::PATCH, "/v1/boards/arena", json!({"title": "A"})).await.is(200)["tags"],
        changed["tags"]
    );
    run(&db, &["board", "change", "laps", "--tag", "moba"]).well();
    assert_eq!(listed(&site, None, "tag=moba").await, [json!("hero"), json!("laps")]);
    // `arena` was the last board of a page, and has left the list since.
    assert_eq!(listed(&site, None, "tag=moba&cursor=arena").await, [json!("hero"), json!("laps")]);
    let rest = site.get("/v1/users/ada/standings?tag=moba&cursor=arena").await.is(200);
    assert_eq!(column(&rest["missing"], "board"), ["hero", "laps"], "{rest}");
    run(&db, &["board", "change", "laps", "--no-tags"]).well();
    assert_eq!(listed(&site, None, "tag=moba").await, [json!("hero")]);
    run(&db, &["board", "change", "laps", "--no-tags", "--tag", "moba"]).refused(2, &["--no-tags"]);
    assert_eq!(site.get("/v1/boards/arena/scores/ada").await.is(200)["score"], 5);
    let act = "SELECT before -> 'tags', after -> 'tags' FROM centile.audit_log
               WHERE action = 'change_board' AND board = 'arena' ORDER BY audit_id LIMIT 1";
    let (before, after): (Value, Value) = sqlx::query_as(act).fetch_one(&db.pool().await).await.unwrap();
    assert_eq!((before, after), (json!(["5v5", "moba", "operability"]), json!(["ranked"])));

    // Tags have a form and a maximum number, over HTTP, on the command line and in SQL.
    let many: Vec<String> = (0..21).map(|n| format!("t{n}")).collect();
    let too_many = site.admin(Method::PATCH, "/v1/boards/arena", json!({"tags": many})).await;
    refused(&too_many, 422, "invalid_value", Some("tags"));
    site.admin(Method::PATCH, "/v1/boards/arena", json!({"tags": many[..20]})).await.is(200);
    for bad in ["", "MOBA", "a b", "a,b", "-a"] {
        let answer = site.admin(Method::PATCH, "/v1/boards/arena", json!({"tags": ["ok", bad]})).await;
        refused(&answer, 422, "invalid_value", Some("tags[1]"));
        run(&db, &["board", "change", "arena", &format!("--tag={bad}")]).refused(2, &["--tag"]);
        let sql = "SELECT centile.update_board('arena', jsonb_build_object('tags', ARRAY['ok', $1]))";
        assert!(query_scalar::<_, i32>(sql).bind(bad).fetch_one(&db.pool().await).await.is_err(), "{bad:?}");
    }
    refused(&site.get("/v1/boards?tag=MOBA").await, 422, "invalid_value", Some("tag"));
    let null = "SELECT centile.update_board('arena', '{\"tags\": [\"a\", null]}')";
    assert!(query_scalar::<_, i32>(null).fetch_one(&db.pool().await).await.is_err());
    assert_eq!(site.get("/v1/boards/arena").await.is(200)["tags"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn private_boards_do_not_appear_by_their_tags() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"slug": "open", "tags": ["moba"]}), &[("ada", 5)]).await;
    site.board(json!({"slug": "secret", "tags": ["moba", "hidden"], "reading": "key"}), &[("ada", 7), ("spy", 9)])
        .await;
    let key = |role, board| make_key(db.url(), role, &[board]);
    let (inside, outside, server) = (key("reader", "secret"), key("reader", "open"), key("server", "secret"));
    let standings = async |key: Option<&str>, user: &str, query: &str| {
        let path = format!("/v1/users/{user}/standings?{query}");
        match key {
            Some(key) => site.json(Method::GET, &path, key, String::new()).await,
            None => site.get(&path).await,
        }
    };
    for (key, boards) in [
        (None, vec!["open"]),
        (Some(&*outside), vec!["open"]),
        (Some(&*inside), vec!["open", "secret"]),
        (Some(&*server), vec!["open", "secret"]),
        (Some(&*site.admin_key), vec!["open", "secret"]),
    ] {
        let boards: Vec<Value> = boards.into_iter().map(Value::from).collect();
        assert_eq!(listed(&site, key, "tag=moba").await, boards, "{key:?}");
        let output = standings(key, "ada", "tag=moba").await.is(200);
        assert_eq!((column(&output["data"], "board"), &output["missing"]), (boards.clone(), &json!([])), "{key:?}");
        assert_eq!(column(&standings(key, "ada", "").await.is(200)["data"], "board"), boards, "{key:?}");
        let hidden = standings(key, "ada", "tag=hidden").await.is(200);
        let is_inside = boards.len() == 2;
        assert_eq!(hidden["data"].as_array().unwrap().len(), usize::from(is_inside), "{key:?}: {hidden}");
        // Nor does anything say that a player of private boards has no score on the public ones.
        let output = standings(key, "spy", "tag=hidden").await.is(200);
        assert_eq!(output["data"].as_array().unwrap().len(), usize::from(is_inside), "{key:?}: {output}");
        assert_eq!(output["missing"], json!([]), "{key:?}");
    }
    // A cursor does not say whether its board exists.
    for cursor in ["secret", "secrets"] {
        assert!(listed(&site, None, &format!("cursor={cursor}")).await.is_empty());
        let output = standings(None, "ada", &format!("cursor={cursor}")).await.is(200);
        assert_eq!((&output["data"], &output["missing"]), (&json!([]), &json!([])));
    }
    for cursor in ["no", "none"] {
        assert_eq!(listed(&site, None, &format!("cursor={cursor}")).await, [json!("open")]);
    }
    refused(&site.get("/v1/boards?cursor=Secret").await, 422, "invalid_value", Some("cursor"));
    refused(&standings(None, "ada", "cursor=Secret").await, 422, "invalid_value", Some("cursor"));
    refused(&standings(Some("nonsense"), "ada", "").await, 401, "key_invalid", None);
    // A caller who may read no board does not learn who exists.
    site.admin(Method::PATCH, "/v1/boards/open", json!({"reading": "key"})).await.is(200);
    let [known, unknown] = ["spy", "nobody"].map(|user| standings(None, user, ""));
    assert_eq!(
        (known.await.is(200), unknown.await.status),
        (json!({"data": [], "next_cursor": null, "missing": []}), 200)
    );
    refused(&standings(Some(&inside), "nobody", "").await, 404, "user_not_found", None);
}

#[tokio::test]
async fn one_request_writes_several_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({}), &[]).await;
    site.board(json!({"slug": "kills", "points_max": 100}), &[]).await;
    site.board(json!({"slug": "laps", "mode": "best", "order": "asc", "ties": "tiebreak"}), &[("bob", 70)]).await;
    run(&db, &["board", "combine", "hero", "--source", "kills@all_time"]).well();
    // The same id on each board, two events of one player on one board, and one event of each kind of
    // error.
    let events = json!({"events": [
        {"board": "kills", "user_id": "ada", "points": 12, "id": "m1"},
        {"board": "laps", "user_id": "ada", "points": 65, "id": "m1", "tiebreak": 3},
        {"user_id": "ada", "points": 3, "id": "m1"},
        {"board": "kills", "user_id": "ada", "points": 8, "id": "m2", "reason": "late"},
        {"board": "kills", "user_id": "ada", "points": 101},
        {"board": "nowhere", "user_id": "ada", "points": 1},
        {"board": "No board", "user_id": "ada", "points": 1},
        {"board": "hero", "user_id": "ada", "points": 1},
        {"board": "kills", "user_id": "ada", "points": 1, "tiebreak": 9999},
        {"board": 7, "user_id": "ada", "points": 1},
        {"board": "kills", "user_id": "bob", "points": 15},
    ]});
    let output = site.post("/v1/scores/batch?ranks=true", &events).await.is(200);
    let results = output["results"].as_array().unwrap();
    let scores = |result: &Value| (result["periods"]["all_time"]["score"].clone(), result["repeated"].clone());
    for (index, score) in [(0, 12), (1, 65), (2, 3), (3, 20), (10, 15)] {
        assert_eq!(scores(&results[index]), (json!(score), json!(false)), "{index}: {output}");
    }
    // Ranks are those after the commit.
    let rank = |index: usize| &results[index]["periods"]["all_time"]["rank"];
    assert_eq!((rank(1), rank(3), rank(10)), (&json!(1), &json!(1), &json!(2)), "{output}");
    for (index, code, field) in [
        (4, "points_out_of_bounds", json!("events[4].points")),
        (5, "board_not_found", Value::Null),
        (6, "board_not_found", Value::Null),
        (7, "board_combined", Value::Null),
        (8, "invalid_value", json!("events[8].tiebreak")),
        (9, "invalid_value", json!("events[9].board")),
    ] {
        let result = &results[index];
        assert_eq!(
            (&result["state"], &result["error"]["code"]),
            (&json!("refused"), &json!(code)),
            "{index}: {result}"
        );
        assert_eq!(result["error"]["field"], field, "{index}: {result}");
    }
    assert_eq!(results.len(), 11);
    let transactions = column(&output["results"], "transaction_id");

    // Each event has its own id: a repetition changes nothing, and another content is refused alone.
    let mut again = events.clone();
    again["events"][1]["points"] = json!(64);
    let repeated = site.post("/v1/scores/batch", again).await.is(200);
    for index in [0, 2, 3] {
        assert_eq!(repeated["results"][index]["transaction_id"], transactions[index], "{index}: {repeated}");
        assert_eq!(repeated["results"][index]["repeated"], true, "{index}: {repeated}");
    }
    assert_eq!(repeated["results"][1]["error"]["code"], "id_conflict", "{repeated}");
    for (board, score) in [("main", 3), ("kills", 20), ("laps", 65)] {
        assert_eq!(site.get(&format!("/v1/boards/{board}/scores/ada")).await.is(200)["score"], score, "{board}");
    }

    // A key for some boards writes to these; each event for another board is refused alone, whether
    // that board exists or not.
    let key = make_key(db.url(), "server", &["laps"]);
    let send = async |key: &str, events: Value| {
        site.json(Method::POST, "/v1/scores/batch", key, json!({"events": events}).to_string()).await
    };
    let event = |board: &str| json!({"board": board, "user_id": "cyd", "points": 90});
    let output =
        send(&key, json!([event("laps"), event("kills"), event("nowhere"), {"user_id": "cyd", "points": 1}])).await;
    let output = output.is(200);
    assert_eq!(output["results"][0]["state"], "accepted", "{output}");
    for index in 1..4 {
        assert_eq!(output["results"][index]["error"]["code"], "forbidden", "{output}");
    }
    refused(&site.get("/v1/boards/kills/scores/cyd").await, 404, "score_not_found", None);
    let reader = make_key(db.url(), "reader", &["laps"]);
    refused(&send(&reader, json!([event("laps")])).await, 403, "forbidden", None);

    // Refused as a whole.
    refused(&send(&site.server_key, json!([])).await, 422, "invalid_value", Some("events"));
    let most = Value::Array(vec![event("laps"); 1_001]);
    refused(&send(&site.server_key, most).await, 422, "invalid_value", Some("events"));
    refused(&site.post("/v1/scores/batch", "[").await, 400, "malformed_body", None);
    // Other calls name the board in their path. A player may be called `batch`.
    let other = site.post("/v1/boards/laps/scores/batch", json!({"events": [event("laps")]})).await.is(200);
    assert_eq!(other["results"][0]["error"]["field"], "events[0].board", "{other}");
    site.post("/v1/boards/main/scores", json!({"user_id": "batch", "points": 4})).await.is(200);
    assert_eq!(site.get("/v1/scores/batch").await.is(200)["user_info"]["score"], 4);
}

#[tokio::test]
async fn standings_name_each_board_of_the_tag() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let rules = |slug: &str| json!({"slug": slug, "tags": ["moba"], "periods": ["all_time", "week"]});
    site.board(rules("kills"), &[("ada", 5), ("bob", 9), ("cyd", 5)]).await;
    site.board(rules("aims"), &[("ada", 3)]).await;
    site.board(rules("empty"), &[]).await;
    site.board(rules("others"), &[("bob", 3)]).await;
    site.board(json!({"slug": "days", "tags": ["moba"], "periods": ["day"]}), &[("ada", 4)]).await;
    site.board(json!({"slug": "untagged"}), &[("ada", 4)]).await;
    run(&db, &["board", "combine", "hero", "--source", "kills@all_time", "--source", "aims@all_time", "--tag", "moba"])
        .well();
    site.admin(Method::PUT, "/v1/users/new", json!({"name": "New"})).await.is(201);

    let output = site.get("/v1/users/ada/standings?tag=moba&period=week").await.is(200);
    assert_eq!(column(&output["data"], "board"), ["aims", "kills"], "{output}");
    assert_eq!(column(&output["data"], "rank"), [1, 2], "{output}");
    assert_eq!(column(&output["data"], "players"), [1, 3], "{output}");
    let missing = |output: &Value| -> Vec<(String, String)> {
        let pair = |row: &Value| (row["board"].as_str().unwrap().into(), row["error"]["code"].as_str().unwrap().into());
        output["missing"].as_array().unwrap().iter().map(pair).collect()
    };
    let wanted = [
        ("days", "period_not_found"),
        ("empty", "score_not_found"),
        ("hero", "period_not_found"),
        ("others", "score_not_found"),
    ]
    .map(|(board, code)| (board.to_owned(), code.to_owned()));
    assert_eq!(missing(&output), wanted);
    assert_eq!(output["next_cursor"], Value::Null);

    // Each row equals the board's own answer, also on a combined board, and in its default period.
    let output = site.get("/v1/users/ada/standings?tag=moba").await.is(200);
    assert_eq!(column(&output["data"], "board"), ["aims", "days", "hero", "kills"], "{output}");
    for row in output["data"].as_array().unwrap() {
        let path = format!("/v1/boards/{}/scores/ada?around=0", row["board"].as_str().unwrap());
        let mut alone = site.get(&path).await.is(200);
        for neighbours in ["above", "below"] {
            alone.as_object_mut().unwrap().remove(neighbours);
        }
        assert_eq!(*row, alone);
    }

    // Pages go by board, with or without a standing.
    let (mut path, mut boards) = ("/v1/users/ada/standings?tag=moba&limit=2".to_owned(), Vec::new());
    loop {
        let page = site.get(&path).await.is(200);
        let of_page = [column(&page["data"], "board"), column(&page["missing"], "board")].concat();
        assert!(of_page.len() <= 2, "{page}");
        boards.extend(of_page);
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/users/ada/standings?tag=moba&limit=2&cursor={cursor}");
    }
    boards.sort_by_key(ToString::to_string);
    assert_eq!(boards, ["aims", "days", "empty", "hero", "kills", "others"]);

    let output = site.get("/v1/users/new/standings?tag=moba").await.is(200);
    assert_eq!((&output["data"], missing(&output).len()), (&json!([]), 6), "{output}");
    refused(&site.get("/v1/users/nobody/standings?tag=moba").await, 404, "user_not_found", None);
    assert_eq!(site.get("/v1/users/nobody/standings?tag=none").await.is(200)["data"], json!([]));
    assert_eq!(site.get("/v1/users/ada/standings?tag=none").await.is(200)["data"], json!([]));
    for (query, field) in [("period=fortnight", "period"), ("limit=101", "limit"), ("tag=A", "tag"), ("tags=a", "tags")]
    {
        refused(&site.get(&format!("/v1/users/ada/standings?{query}")).await, 422, "invalid_value", Some(field));
    }
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    let output = site.get("/v1/users/ada/standings?tag=moba&period=week").await.is(200);
    assert_eq!(output["data"], json!([]), "{output}");
}

#[tokio::test]
async fn requests_read_only_the_boards_that_they_show() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "b00"}), &[("ada", 5)]).await;
    db.execute("SELECT centile.create_board(format('b%s', lpad(n::text, 2, '0'))) FROM generate_series(1, 40) n").await;
    // A statement that reads the last board fails: its computation divides by zero.
    db.execute(
        "INSERT INTO centile_store.combinations (board_id, join_rule, aggregate)
         SELECT id, 'union', 'sum' FROM centile_store.boards WHERE slug = 'b40';
         DO $$ BEGIN
             EXECUTE format('CREATE OR REPLACE VIEW centile.combinations AS SELECT * FROM (%s) x
                             WHERE 1 / (CASE x.board WHEN ''b40'' THEN 0 ELSE 1 END) = 1',
                            rtrim(pg_get_viewdef('centile.combinations'::regclass), ';'));
         END $$",
    )
    .await;
    site.get("/v1/boards").await.is(500);
    for path in [
        "/v1/boards?limit=39",
        "/v1/boards?limit=1&cursor=b01",
        "/v1/users/ada",
        "/v1/users/ada/friends",
        "/v1/users/ada/standings?limit=39",
        "/v1/boards/b01",
        "/",
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    // The home page goes on with further boards.
    db.execute("DELETE FROM centile_store.combinations").await;
    let (mut path, mut shown) = ("/".to_owned(), Vec::new());
    loop {
        let page = site.get(&path).await;
        let links = page.text.split("href=\"/boards/").skip(1);
        shown.extend(links.map(|link| link[..3].to_owned()));
        let Some((_, next)) = page.text.split_once("href=\"/?after=") else { break };
        path = format!("/?after={}", &next[..3]);
    }
    let wanted: Vec<String> = (0..=40).map(|n| format!("b{n:02}")).collect();
    assert_eq!(shown, wanted);
    assert_eq!(site.get("/?after=B").await.status, 422);
}

#[tokio::test]
async fn a_damaged_row_hides_no_other_row_of_a_list() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    for slug in ["a", "b", "c", "d"] {
        site.board(json!({"slug": slug, "on_violation": "quarantine", "points_max": 9}), &[("ada", 5)]).await;
    }
    db.execute(
        "ALTER TABLE centile_store.boards DROP CONSTRAINT boards_ties_known, DROP CONSTRAINT boards_lanes_range,
             DROP CONSTRAINT boards_gain_max_kinds;
         UPDATE centile_store.boards SET ties = 'none' WHERE slug = 'b';
         UPDATE centile_store.boards SET gain_max = '{\"fortnight\": 1}' WHERE slug = 'c'",
    )
    .await;
    assert_eq!(listed(&site, None, "").await, ["a", "d"]);
    // A page may end with a damaged board.
    let mut pages = Vec::new();
    let mut path = "/v1/boards?limit=1".to_owned();
    loop {
        let page = site.get(&path).await.is(200);
        pages.push(column(&page["data"], "slug"));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/boards?limit=1&cursor={cursor}");
    }
    assert_eq!(pages, [vec![json!("a")], vec![], vec![], vec![json!("d")]]);
    assert_eq!(column(&site.get("/v1/users/ada/standings").await.is(200)["data"], "board"), ["a", "d"]);
    let home = site.get("/").await;
    assert!(home.status == 200 && home.text.contains("/boards/d") && !home.text.contains("/boards/b"), "{home:?}");
    assert_eq!(column(&run(&db, &["board", "list", "--json"]).json(), "slug"), ["a", "d"]);
    site.admin(Method::GET, "/ops/", Value::Null).await;
    // However many lists leave it out.
    site.serve.logged("board b is damaged: unknown variant `none`", 1).await;
    site.serve.logged("board c is damaged: unknown variant `fortnight`", 1).await;
    for slug in ["b", "c"] {
        until("it is no longer cached", async || site.get(&format!("/v1/boards/{slug}")).await.status == 500).await;
    }
    // A ban reaches every board.
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    let banned = "SELECT count(*) FROM centile_store.leaderboard";
    assert_eq!(query_scalar::<_, i64>(banned).fetch_one(&db.pool().await).await.unwrap(), 0);

    // Keys, and events in quarantine.
    let key = make_key(db.url(), "reader", &["a"]);
    let id = key.split('_').nth(1).unwrap();
    db.execute(&format!(
        "ALTER TABLE centile_store.api_keys DROP CONSTRAINT api_keys_role_known;
         UPDATE centile_store.api_keys SET role = 'guest' WHERE id = '{id}'"
    ))
    .await;
    let keys = site.admin(Method::GET, "/v1/keys", Value::Null).await.is(200);
    assert_eq!(column(&keys["data"], "role"), ["admin", "server"]);
    let event = json!({"user_id": "bob", "points": 10, "id": "e"});
    site.post("/v1/boards/a/scores", &event).await.is(202);
    db.execute(
        "ALTER TABLE centile_store.quarantine ALTER detail DROP NOT NULL; UPDATE centile_store.quarantine SET detail = NULL",
    )
    .await;
    // The answer to a repetition is the stored one, or an error.
    site.post("/v1/boards/a/scores", &event).await.is(500);

    // Nor does a damaged row stop the process.
    db.execute("UPDATE centile_store.boards SET lanes = 0 WHERE slug = 'd'").await;
    let lanes = async || site.admin(Method::GET, "/v1/boards/d", Value::Null).await.body["lanes"].clone();
    until("the instance knows it", async || lanes().await == 0).await;
    site.post("/v1/boards/d/scores", json!({"user_id": "cyd", "points": 1})).await.is(500);
    db.execute("ALTER TABLE centile_store.users DROP CONSTRAINT users_reading_known; UPDATE centile_store.users SET reading = 'none' WHERE external_id = 'bob'")
        .await;
    site.get("/v1/users/bob").await.is(500);
    site.get("/v1/users/ada").await.is(200);
}

/// Counted in rows: the time of a small table says nothing.
#[tokio::test]
async fn lists_read_no_other_boards() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('b0000');
         INSERT INTO centile_store.boards OVERRIDING SYSTEM VALUE
         SELECT (jsonb_populate_record(b, jsonb_build_object('id', n, 'slug', format('b%s', lpad(n::text, 4, '0')),
                    'reading', CASE WHEN n % 200 = 0 THEN 'public' ELSE 'key' END,
                    'tags', CASE WHEN n % 400 = 0 THEN '{all,rare}' ELSE '{all}' END::text[]))).*
         FROM centile_store.boards b, generate_series(2, 4000) AS n;
         ANALYZE centile_store.boards",
    )
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // As the sessions of readers.
    raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off").execute(&mut connection).await.unwrap();
    let mut read = async |arguments: &str| -> (i64, i64) {
        let before = rows_read_of(&mut connection, "^boards").await;
        let list = format!("SELECT count(*) FROM centile_store.listed_boards({arguments})");
        let shown = query_scalar(AssertSqlSafe(list)).fetch_one(&mut connection).await.unwrap();
        (shown, rows_read_of(&mut connection, "^boards").await - before)
    };
    for (arguments, wanted) in [
        ("NULL, NULL, '', '', '{}', 101", 21),
        ("NULL, NULL, '', 'b1000', '{}', 6", 6),
        ("NULL, NULL, '', 'b1000', '{b1001,b1002,b0007}', 6", 6),
        ("NULL, NULL, '', 'b1000', NULL, 101", 101),
        ("'rare', NULL, '', '', '{}', 101", 10),
        ("'rare', NULL, '', '', NULL, 101", 10),
        ("'all', NULL, '', '', '{}', 6", 6),
        ("'all', NULL, '', '', NULL, 101", 101),
        ("'none', NULL, '', '', '{}', 101", 0),
        ("'none', NULL, '', '', NULL, 101", 0),
    ] {
        let (shown, read) = read(arguments).await;
        assert_eq!(shown, wanted, "{arguments}");
        assert!(read <= 2 * shown + 25, "{read} rows read for {shown} boards: {arguments}");
    }
}
