//! Seasons and the retention of closed periods: over HTTP, on the command line and in SQL.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query, query_scalar};

use crate::{
    http::api::site::Site,
    http::errors::refused,
    support::{TestDb, run, spawn_serve},
};

const SEASONS: &str = "/v1/boards/main/seasons";

async fn site(db: &TestDb) -> Site {
    Site::of(spawn_serve(db, None, &[]).await, db.url())
}

#[tokio::test]
async fn seasons_begin_and_end_at_instants_or_with_local_days() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({"time_zone": "America/Havana"}), &[]).await;
    // In Havana, midnight occurs twice on that day, at 04:00Z and 05:00Z. The day begins at the
    // first.
    let spring = json!({"name": "spring", "starts_at": "2030-11-03", "ends_at": "2030-12-01T12:30:00+01:00"});
    let answer = site.admin(Method::POST, SEASONS, spring).await;
    assert_eq!(answer.headers["location"], "/v1/boards/main/scores?period=season:spring");
    let made = json!({
        "board": "main",
        "period": {
            "name": "season:spring", "kind": "season", "label": "spring", "state": "upcoming",
            "starts_at": "2030-11-03T04:00:00Z", "ends_at": "2030-12-01T11:30:00Z",
        },
    });
    assert_eq!(answer.is(201), made);

    let past = ["season", "create", "2020", "--board", "main", "--starts", "2020-01-01", "--ends", "2020-07-01"];
    let said = "season 2020 of board main created: 2020-01-01 05:00Z to 2020-07-01 04:00Z\n";
    assert_eq!(run(&db, &past).well(), said);
    let listed = run(&db, &["season", "list", "--board", "main"]).well();
    let wanted = "NAME    STARTS             ENDS               STATE\n\
                  2020    2020-01-01 05:00Z  2020-07-01 04:00Z  due\n\
                  spring  2030-11-03 04:00Z  2030-12-01 11:30Z  upcoming\n";
    assert_eq!(listed, wanted);
    let listed = run(&db, &["season", "list", "--board", "main", "--json"]).json();
    assert_eq!((&listed[1]["name"], &listed[1]["ends_at"]), (&made["period"]["label"], &made["period"]["ends_at"]));
    let rankings = "SELECT count(*) FROM centile.periods WHERE kind = 'season' AND ranking_id IS NOT NULL";
    assert_eq!(query_scalar(rankings).fetch_one(&db.pool().await).await.ok(), Some(2_i64));

    run(&db, &["board", "create", "empty"]).well();
    assert!(run(&db, &["season", "list", "--board", "empty"]).err.contains("no seasons yet"));
    run(&db, &["season", "list", "--board", "none"]).refused(1, &["no board", "none"]);
}

#[tokio::test]
async fn invalid_seasons_are_refused_with_their_field() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({}), &[("ada", 5)]).await;
    let season = |name: &str, starts_at: Value, ends_at: Value| json!({"name": name, "starts_at": starts_at, "ends_at": ends_at});
    let (start, end) = (json!("2030-01-01"), json!("2030-02-01"));
    site.admin(Method::POST, SEASONS, season("taken", start.clone(), end.clone())).await.is(201);
    let ok = || season("s", start.clone(), end.clone());
    for (body, status, field) in [
        (season("taken", start.clone(), end.clone()), 409, ""),
        (season("s", json!("2020-01-01"), json!("2040-01-01")), 409, ""),
        (season("Spring", start.clone(), end.clone()), 422, "name"),
        (season("previous", start.clone(), end.clone()), 422, "name"),
        (season("", start.clone(), end.clone()), 422, "name"),
        (season(&"x".repeat(41), start.clone(), end.clone()), 422, "name"),
        (season("a\0", start.clone(), end.clone()), 422, "name"),
        (season("s", end.clone(), start.clone()), 422, "ends_at"),
        (season("s", start.clone(), start.clone()), 422, "ends_at"),
        (season("s", json!("1999-12-31"), end.clone()), 422, "starts_at"),
        (season("s", start.clone(), json!("2072-01-01T00:00:00Z")), 422, "ends_at"),
        (season("s", json!("0000-01-01"), json!("9999-12-31")), 422, "starts_at"),
        (season("s", json!("2030-02-30"), end.clone()), 422, "starts_at"),
        (season("s", start.clone(), json!("soon")), 422, "ends_at"),
        (season("s", json!(2030), end.clone()), 422, "starts_at"),
        (json!({"name": "s", "starts_at": start}), 422, "ends_at"),
        (json!([]), 422, "body"),
    ] {
        let answer = site.admin(Method::POST, SEASONS, body.clone()).await;
        refused(&answer, status, field, &body.to_string());
    }
    let elsewhere = site.admin(Method::POST, "/v1/boards/none/seasons", ok()).await;
    refused(&elsewhere, 404, "", "no such board");
    let by_server = site.json(Method::POST, SEASONS, &site.server_key, ok().to_string()).await;
    refused(&by_server, 403, "", "a server key");

    let create = ["season", "create", "s", "--board", "main", "--starts"];
    for (edges, code, words) in [
        (["2030-01-01", "--ends", "2029-01-01"], 1, ["--ends: ", "must begin before"]),
        (["1999-01-01", "--ends", "2029-01-01"], 1, ["--starts: ", "2000"]),
        (["2030-1-1", "--ends", "2031-01-01"], 2, ["--starts", "2030-03-01"]),
        (["2030-01-01", "--ends", "2031-01-01T00:00"], 2, ["--ends", "2030-03-01"]),
    ] {
        run(&db, &[create.as_slice(), &edges].concat()).refused(code, &words);
    }
    let named = ["season", "create", "S", "--board", "main", "--starts", "2030-01-01", "--ends", "2031-01-01"];
    run(&db, &named).refused(1, &["NAME: ", "lower-case"]);
    let seasons = query_scalar("SELECT count(*) FROM centile.periods WHERE kind = 'season'");
    assert_eq!(seasons.fetch_one(&db.pool().await).await.ok(), Some(1_i64));
}

#[tokio::test]
async fn retention_is_set_shown_and_changed() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({"slug": "plain"}), &[]).await;
    let plain = site.get("/v1/boards/plain").await.is(200);
    assert_eq!((&plain["frozen_top_size"], &plain["kept_archives"]), (&json!(100), &json!({})));
    site.board(json!({"frozen_top_size": 1_000, "kept_archives": {"day": 30, "season": 1_000_000}}), &[]).await;
    let rules = async || {
        let board = site.get("/v1/boards/main").await.is(200);
        (board["frozen_top_size"].clone(), board["kept_archives"].clone())
    };
    assert_eq!(rules().await, (json!(1_000), json!({"day": 30, "season": 1_000_000})));
    // An absent field keeps its value; null removes a limit.
    let change = json!({"kept_archives": {"week": 52, "season": null}});
    let changed = site.admin(Method::PATCH, "/v1/boards/main", change).await.is(200);
    assert_eq!(changed["kept_archives"], json!({"day": 30, "week": 52}));
    site.admin(Method::PATCH, "/v1/boards/main", json!({"frozen_top_size": 1})).await.is(200);
    assert_eq!(rules().await, (json!(1), json!({"day": 30, "week": 52})));
    let stored = "SELECT jsonb_build_array(frozen_top_size, kept_archives) FROM centile.boards WHERE slug = 'main'";
    let stored: Value = query_scalar(stored).fetch_one(&db.pool().await).await.unwrap();
    assert_eq!(stored, json!([1, {"day": 30, "week": 52}]));

    let board = ["board", "create", "laps", "--frozen-top", "10", "--keep", "day=7", "--keep", "week=all", "--json"];
    let made = run(&db, &board).json();
    assert_eq!((&made["frozen_top_size"], &made["kept_archives"]), (&json!(10), &json!({"day": 7})));
    let shown = run(&db, &["board", "show", "plain"]).well();
    assert!(shown.contains("frozen_top_size    100\n"), "{shown}");
    let change = ["board", "change", "laps", "--title", "Laps", "--points-max", "9", "--points-min=-9"];
    let kept = ["--frozen-top", "20", "--keep", "day=all", "--keep", "month=1200"];
    assert_eq!(run(&db, &[change.as_slice(), &kept].concat()).well(), "board laps changed\n");
    let shown = run(&db, &["board", "show", "laps"]).well();
    for line in [
        "slug               laps",
        "title              Laps",
        "points_min         -9",
        "points_max         9",
        "frozen_top_size    20",
        "kept_archives      month: newest 1,200, others: all",
        "events_per_minute  no limit",
    ] {
        assert!(shown.contains(&format!("{line}\n")), "{line:?} is not in {shown}");
    }
    // New boards have defaults for hours and snapshots, and windows keep none.
    let kinds = ["--periods", "all_time,hour", "--snapshots", "day", "--rolling", "7d", "--json"];
    let defaults = run(&db, &[&["board", "create", "hours"], &kinds[..]].concat()).json();
    assert_eq!(defaults["kept_archives"], json!({"hour": 168, "snapshot": 60}));
    let kept = ["--keep", "hour=all", "--keep", "snapshot=all"];
    let all = run(&db, &[&["board", "create", "all-hours"], &kinds[..], &kept].concat()).json();
    assert_eq!(all["kept_archives"], json!({}));
    let null =
        json!({"slug": "null-hours", "mode": "sum", "periods": ["all_time", "hour"], "kept_archives": {"hour": null}});
    let null = site.admin(Method::POST, "/v1/boards", null).await.is(201);
    assert_eq!(null["kept_archives"], json!({}));
    let shown = run(&db, &["board", "show", "all-hours"]).well();
    assert!(shown.contains("kept_archives      rolling: none, others: all\n"), "{shown}");
    let same = run(&db, &["board", "change", "laps", "--points-max", "8", "--json"]).json();
    assert_eq!((&same["points_min"], &same["kept_archives"]), (&json!(-9), &json!({"month": 1_200})));
}

#[tokio::test]
async fn invalid_retention_is_refused_with_its_field() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({}), &[]).await;
    for (rules, field) in [
        (json!({"frozen_top_size": 0}), "frozen_top_size"),
        (json!({"frozen_top_size": 1_001}), "frozen_top_size"),
        (json!({"frozen_top_size": 1.5}), "frozen_top_size"),
        (json!({"kept_archives": {"day": 0}}), "kept_archives.day"),
        (json!({"kept_archives": {"week": 1_000_001}}), "kept_archives.week"),
        (json!({"kept_archives": {"month": "all"}}), "kept_archives.month"),
        (json!({"kept_archives": {"all_time": 1}}), "kept_archives.all_time"),
        (json!({"kept_archives": {"decade": 1}}), "kept_archives.decade"),
        (json!({"kept_archives": [1]}), "kept_archives"),
    ] {
        let answer = site.admin(Method::PATCH, "/v1/boards/main", rules.clone()).await;
        refused(&answer, 422, field, &rules.to_string());
        let mut new = json!({"slug": "new", "mode": "sum"});
        new.as_object_mut().unwrap().extend(rules.as_object().cloned().unwrap());
        refused(&site.admin(Method::POST, "/v1/boards", new).await, 422, field, &rules.to_string());
    }
    refused(&site.get("/v1/boards/new").await, 404, "", "a board that was refused");

    let change = ["board", "change", "main"];
    for (flags, code, words) in [
        (["--frozen-top", "0"].as_slice(), 2, ["--frozen-top", "1..=1000"]),
        (&["--keep", "week"], 2, ["--keep", "week=52"]),
        (&["--keep", "decade=1"], 2, ["--keep", "month, quarter, year, season"]),
        (&["--keep", "day=0"], 2, ["--keep", "1000000"]),
        (&["--keep", "day=1", "--keep", "day=2"], 1, ["--keep: ", "twice"]),
        (&["--title", ""], 1, ["--title: ", "empty"]),
        (&["--points-min", "2", "--points-max", "1"], 1, ["--points-min: ", "points_max"]),
        (&[], 2, ["--title", "--keep"]),
    ] {
        run(&db, &[change.as_slice(), flags].concat()).refused(code, &words);
    }
    run(&db, &["board", "change", "none", "--title", "x"]).refused(1, &["no board", "none"]);

    // From psql, without the checks of the service.
    for (call, words) in [
        ("centile.create_board('new', '{\"frozen_top_size\": 1001}')", "frozen_top_size: must be 1 to 1000"),
        (
            "centile.update_board('main', '{\"kept_archives\": {\"decade\": 1}}')",
            "kept_archives: must be a JSON object",
        ),
        ("centile.update_board('main', '{\"kept_archives\": [1]}')", "kept_archives: must be a JSON object"),
        ("centile.create_board('new', '{\"kept_archives\": 5}')", "kept_archives: must be a JSON object"),
        ("centile.update_board('main', '{\"kept_archives\": {\"day\": 1.5}}')", "kept_archives: must be whole numbers"),
        (
            "centile.update_board('main', '{\"kept_archives\": {\"day\": \"1\"}}')",
            "kept_archives: must be whole numbers",
        ),
    ] {
        let error = query(sqlx::AssertSqlSafe(format!("SELECT {call}"))).execute(&db.pool().await).await.unwrap_err();
        let error = centile::Error::from(error);
        assert_eq!(error.code().status(), 422, "{call}");
        assert!(error.to_string().starts_with(words), "{call}: {error}");
    }
}

/// PostgreSQL alone checks what psql sends.
#[tokio::test]
async fn a_document_that_is_not_rules_is_refused_in_psql_and_stores_nothing() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let pool = db.pool().await;
    let boards = async || query_scalar::<_, i64>("SELECT count(*) FROM centile.boards").fetch_one(&pool).await.unwrap();
    let before = boards().await;
    let sources = json!([{"board": "main", "period": "day"}]);
    for (rules, words) in [
        (json!(5), "the rules must be a JSON object"),
        (json!({"colours": "#1f6feb"}), "'colours' is not a rule of a board"),
        (json!({"slug": "other"}), "'slug' is not a rule of a board"),
        (json!({"title": {"en": "New"}}), "must be a text"),
        (json!({"lanes": "two"}), "smallint"),
        (json!({"periods": ["day", "day"]}), "each kind at most once"),
        (json!({"periods": ["decade"]}), "must be one or more of all_time"),
        (json!({"rolling": ["7d", "7d"]}), "each length at most once"),
        (json!({"first_layout": {}}), "either bounds or expected_points"),
        (json!({"first_layout": {"bounds": [1], "expected_points": 500}}), "either bounds or expected_points"),
        (json!({"first_layout": {"bounds": [1, null]}}), "1 to 99 scores"),
        (json!({"mode": "combined"}), "is required for mode combined"),
        (json!({"combination": {"sources": sources}}), "only for this mode"),
        (json!({"mode": "combined", "combination": 5}), "must be a JSON object"),
        (json!({"mode": "combined", "combination": {"sources": null}}), "1 to 366 sources"),
        (json!({"mode": "combined", "combination": {"sources": sources, "sort": 1}}), "is not part of a combination"),
        (json!({"mode": "combined", "lanes": 2, "combination": {"sources": sources}}), "a combined board"),
    ] {
        let refused = query("SELECT centile.create_board('new', $1)").bind(&rules).execute(&pool).await;
        let error = refused.expect_err(&rules.to_string()).to_string();
        assert!(error.contains(words), "{rules}: {error}");
    }
    assert_eq!(boards().await, before);
    for rules in [json!({"periods": ["day"]}), json!({"first_layout": {"expected_points": 500}})] {
        let refused = query("SELECT centile.update_board('main', $1)").bind(&rules).execute(&pool).await;
        assert!(refused.unwrap_err().to_string().contains("cannot change"), "{rules}");
    }
    // null is like absence.
    let nulls = json!({"mode": "combined", "lanes": null, "snapshots": null, "combination": {"sources": sources, "join": null}});
    query("SELECT centile.create_board('new', $1)").bind(&nulls).execute(&pool).await.unwrap();
}
