//! Leagues over HTTP, on the command line and in SQL.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{
    http::api::site::Site,
    support::{
        TestDb,
        leagues::{cohorts_are_sound, end_periods},
        make_key, run,
        wait::{until, within},
    },
};

const LEAGUE: &str = "/v1/leagues/arena-league";

/// The rules of a league of cohorts of three players, with changes.
fn rules(changes: &Value) -> Value {
    let mut rules = json!({"board": "main", "period": "week", "size": 3, "divisions": ["bronze", "silver", "gold"], "promote": 1, "relegate": 1});
    rules.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    rules
}

/// Creates a board with weeks and a league.
async fn start(board: Value, league: Value) -> (TestDb, Site) {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let mut rules_of_board = json!({"periods": ["all_time", "week"], "lanes": 2});
    rules_of_board.as_object_mut().unwrap().extend(board.as_object().unwrap().clone());
    site.board(rules_of_board, &[]).await;
    site.admin(Method::PUT, LEAGUE, rules(&league)).await.is(200);
    (db, site)
}

async fn score(site: &Site, scores: &[(&str, i64)]) {
    for (user, points) in scores {
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await.is(200);
    }
}

/// Ends the week and closes it.
async fn close(db: &TestDb) {
    end_periods(db, "week").await;
    run(db, &["close", "--due"]).well();
}

/// Members of a player's cohort with their ranks, scores and moves.
async fn rows(site: &Site, user: &str) -> Value {
    let state = site.get(&format!("/v1/boards/main/league?user_id={user}")).await.is(200);
    shown(&state)
}

fn shown(state: &Value) -> Value {
    state["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["rank"], row["user_id"], row["score"], row["move"]]))
        .collect()
}

/// Results of a player: division, rank, score and next division, newest first.
async fn results(site: &Site, user: &str) -> Value {
    let page = site.get(&format!("/v1/boards/main/league/history?user_id={user}")).await.is(200);
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["division"], row["rank"], row["score"], row["next_division"]]))
        .collect()
}

/// The instance keeps full cohorts. Two reads after each change: the first may read the cohort again, the
/// second finds it in memory.
#[tokio::test]
async fn a_full_cohort_shows_every_change() {
    let (db, site) = start(json!({}), json!({})).await;
    score(&site, &[("ann", 30), ("bob", 20), ("cid", 10)]).await;
    let shows = async |wanted: Value| {
        for user in ["ann", "bob", "ann"] {
            assert_eq!(rows(&site, user).await, wanted, "{user}");
        }
    };
    // The first read loads the rank index, without which nothing is kept.
    site.get("/v1/boards/main/scores?period=week").await.is(200);
    until("the rank index is loaded", async || {
        site.get("/metrics").await.text.contains("centile_index_players{index=\"main/week")
    })
    .await;
    shows(json!([[1, "ann", 30, 1], [2, "bob", 20, 0], [3, "cid", 10, 0]])).await;
    score(&site, &[("cid", 50)]).await;
    shows(json!([[1, "cid", 60, 1], [2, "ann", 30, 0], [3, "bob", 20, 0]])).await;
    site.admin(Method::PUT, LEAGUE, rules(&json!({"promote": 2}))).await.is(200);
    shows(json!([[1, "cid", 60, 1], [2, "ann", 30, 1], [3, "bob", 20, 0]])).await;
    site.admin(Method::PUT, "/v1/users/bob", json!({"name": "Bo"})).await.is(200);
    let names = site.get("/v1/boards/main/league?user_id=ann").await.is(200);
    assert_eq!((&names["rows"][2]["name"], &names["rows"][1]["name"]), (&json!("Bo"), &json!("ann")));
    site.admin(Method::POST, "/v1/users/cid/ban", json!({})).await.is(200);
    shows(json!([[1, "ann", 30, 1], [2, "bob", 20, 1], [null, "cid", null, 0]])).await;
    site.admin(Method::POST, "/v1/users/cid/unban", json!({})).await.is(200);
    shows(json!([[1, "cid", 60, 1], [2, "ann", 30, 1], [3, "bob", 20, 0]])).await;
    // Nothing of an erased player answers for the id, also if somebody else gets it.
    db.execute("SELECT centile.erase_user('bob')").await;
    site.get("/v1/boards/main/league?user_id=bob").await.is(404);
    site.admin(Method::PUT, "/v1/users/bob", json!({})).await.is(201);
    assert_eq!(site.get("/v1/boards/main/league?user_id=bob").await.is(200)["state"], "none");
    site.admin(Method::DELETE, LEAGUE, Value::Null).await.is(204);
    site.get("/v1/boards/main/league?user_id=ann").await.is(404);
}

#[tokio::test]
async fn players_move_between_divisions() {
    let (db, site) = start(json!({}), json!({})).await;
    let pool = db.pool().await;
    score(&site, &[("ann", 30), ("bob", 20), ("cid", 10), ("dan", 5)]).await;
    assert_eq!(rows(&site, "bob").await, json!([[1, "ann", 30, 1], [2, "bob", 20, 0], [3, "cid", 10, 0]]));
    assert_eq!(rows(&site, "dan").await, json!([[1, "dan", 5, 1]]));
    score(&site, &[("cid", 50)]).await;
    let cid = site.get("/v1/boards/main/league?user_id=cid").await.is(200);
    assert_eq!(shown(&cid), json!([[1, "cid", 60, 1], [2, "ann", 30, 0], [3, "bob", 20, 0]]));
    assert_eq!(
        (&cid["state"], &cid["division"], &cid["promotion_rank"], &cid["relegation_rank"]),
        (&json!("placed"), &json!("bronze"), &json!(1), &Value::Null)
    );
    assert!(cid["period"]["seconds_left"].as_i64().unwrap() > 0 && cid["period"]["state"] == "open", "{cid}");
    let page = site.get(&format!("/v1/boards/main/league/cohorts/{}", cid["cohort_id"])).await.is(200);
    assert_eq!(page["rows"], cid["rows"]);
    let overview = site.get("/v1/boards/main/league").await.is(200);
    assert_eq!(overview["cohorts"][0], json!({"division": "bronze", "cohorts": 2, "players": 4}), "{overview}");

    // A player who scores before the week is closed waits for it.
    end_periods(&db, "week").await;
    // The instance reads the board again: in production, a period does not end before its time.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"title": "Main"})).await.is(200);
    score(&site, &[("cid", 7), ("eve", 9)]).await;
    let waiting = site.get("/v1/boards/main/league?user_id=cid").await.is(200);
    assert_eq!(
        (&waiting["state"], &waiting["division"], &waiting["rows"]),
        (&json!("waiting"), &Value::Null, &json!([]))
    );
    assert_eq!(site.get("/v1/boards/main/league").await.is(200)["waiting"], 2);
    assert_eq!(results(&site, "cid").await, json!([]));
    run(&db, &["close", "--due"]).well();
    score(&site, &[("dan", 8), ("ann", 4)]).await;
    assert_eq!(rows(&site, "cid").await, json!([[1, "dan", 8, 1], [2, "cid", 7, -1]]));
    assert_eq!(rows(&site, "eve").await, json!([[1, "eve", 9, 1], [2, "ann", 4, 0]]));
    assert_eq!(results(&site, "cid").await, json!([["bronze", 1, 60, "silver"]]));
    let closed = site.get(&format!("/v1/boards/main/league/cohorts/{}", cid["cohort_id"])).await.is(200);
    assert_eq!((&closed["rows"], &closed["period"]["state"]), (&cid["rows"], &json!("closed")));
    let frank = site.admin(Method::PUT, "/v1/users/frank", json!({})).await;
    assert_eq!(frank.status, 201);
    let none = site.get("/v1/boards/main/league?user_id=frank").await.is(200);
    assert_eq!((&none["state"], &none["division"]), (&json!("none"), &json!("bronze")));

    // The message and the views.
    let message: Value =
        query_scalar("SELECT payload -> 'league' FROM centile_store.outbox").fetch_one(&pool).await.unwrap();
    assert_eq!(
        message,
        json!({
            "name": "arena-league",
            "divisions": [{"division": "bronze", "cohorts": 2, "players": 4, "promoted": 2, "relegated": 0}],
            "moves": [{"user_id": "cid", "rank": 1, "from": "bronze", "to": "silver"}, {"user_id": "dan", "rank": 1, "from": "bronze", "to": "silver"}],
        })
    );
    let standings: Value = query_scalar("SELECT jsonb_agg(jsonb_build_array(rank, user_id, score) ORDER BY rank) FROM centile.league_standings WHERE division = 'silver'")
        .fetch_one(&pool).await.unwrap();
    assert_eq!(standings, json!([[1, "dan", 8], [2, "cid", 7]]));

    // An erased player keeps the results under another id.
    let erased: String = query_scalar("SELECT user_id FROM centile.erase_user('cid')").fetch_one(&pool).await.unwrap();
    site.get("/v1/boards/main/league?user_id=cid").await.is(404);
    assert_eq!(rows(&site, &erased).await[1][1], erased.as_str());
    let moves: Value = query_scalar("SELECT payload #> '{league,moves,0,user_id}' FROM centile_store.outbox")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(moves, erased.as_str());
    assert_eq!(
        site.get("/v1/boards/main/league/history?user_id=dan&limit=1").await.is(200)["next_cursor"],
        Value::Null
    );
}

#[tokio::test]
async fn rules_of_a_league() {
    let (db, site) = start(json!({}), json!({})).await;
    let pool = db.pool().await;
    let set = async |name: &str, changes: Value| {
        site.admin(Method::PUT, &format!("/v1/leagues/{name}"), rules(&changes)).await
    };
    // A repeated call changes nothing.
    let first = site.admin(Method::GET, LEAGUE, Value::Null).await.is(200);
    assert_eq!(set("arena-league", json!({})).await.is(200), first);
    let changed =
        set("arena-league", json!({"promote": 2, "ties": "down", "idle": "relegate", "fill": "form"})).await.is(200);
    assert_eq!(
        (&changed["promote"], &changed["ties"], &changed["idle"], &changed["fill"]),
        (&json!(2), &json!("down"), &json!("relegate"), &json!("form"))
    );
    let acts: Vec<String> =
        query_scalar("SELECT action FROM centile.audit_log WHERE subject = 'arena-league' ORDER BY audit_id")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(acts, ["create_league", "change_league"]);

    site.board(json!({"slug": "other", "periods": ["week"]}), &[("ann", 5)]).await;
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*"})).await.is(200);
    let sources = json!([{"board": "other", "period": "week"}]);
    site.admin(
        Method::POST,
        "/v1/boards",
        json!({"slug": "hero", "mode": "combined", "combination": {"sources": sources}}),
    )
    .await
    .is(201);
    for (name, changes, status, field) in [
        ("arena-league", json!({"size": 4}), 409, Value::Null),
        ("arena-league", json!({"divisions": ["bronze"]}), 409, Value::Null),
        ("arena-league", json!({"board": "other"}), 409, Value::Null),
        ("second", json!({}), 409, Value::Null),
        ("second", json!({"board": "level-1"}), 404, Value::Null),
        ("second", json!({"board": "level-*"}), 409, Value::Null),
        ("second", json!({"board": "hero"}), 409, Value::Null),
        ("second", json!({"board": "none"}), 404, Value::Null),
        ("Second", json!({"board": "other"}), 422, json!("name")),
        ("second", json!({"board": "other", "period": "day"}), 422, json!("period")),
        ("second", json!({"board": "other", "period": "all_time"}), 422, json!("period")),
        ("second", json!({"board": "other", "size": 1, "promote": 0, "relegate": 0}), 422, json!("size")),
        ("second", json!({"board": "other", "size": 1_001}), 422, json!("size")),
        ("second", json!({"board": "other", "divisions": []}), 422, json!("divisions")),
        ("second", json!({"board": "other", "divisions": ["Gold"]}), 422, json!("divisions")),
        ("second", json!({"board": "other", "divisions": ["one"]}), 422, json!("promote")),
        ("second", json!({"board": "other", "promote": 3}), 422, json!("promote")),
        ("second", json!({"board": "other", "promote": -1}), 422, json!("promote")),
        ("second", json!({"board": "other", "fill": "luck"}), 422, json!("fill")),
        ("second", json!({"board": "other", "idle": "luck"}), 422, json!("idle")),
        ("second", json!({"board": "other", "ties": "luck"}), 422, json!("ties")),
    ] {
        let answer = set(name, changes.clone()).await;
        assert_eq!((answer.status, &answer.body["field"]), (status, &field), "{name} {changes}: {answer:?}");
    }
    // The board has scores of this week, so the league starts in the next one.
    let second =
        set("second", json!({"board": "other", "divisions": ["one"], "promote": 0, "relegate": 0})).await.is(200);
    assert!(second["starts_at"].as_str().unwrap() > second["created_at"].as_str().unwrap(), "{second}");
    site.post("/v1/boards/other/scores", json!({"user_id": "bob", "points": 1})).await.is(200);
    assert_eq!(site.get("/v1/boards/other/league?user_id=bob").await.is(200)["state"], "none");

    let listed = site.admin(Method::GET, "/v1/leagues", Value::Null).await.is(200);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2));
    assert!(run(&db, &["league", "list"]).well().contains("bronze,silver,gold"));
    assert_eq!(run(&db, &["league", "show", "second"]).json()["size"], 3);
    run(&db, &["league", "delete", "second", "--confirm", "first", "--by", "dora"]).refused(1, &["second"]);
    run(&db, &["league", "delete", "second", "--confirm", "second", "--by", "dora"]).well();
    site.get("/v1/boards/other/league").await.is(404);
    site.admin(Method::GET, "/v1/leagues/second", Value::Null).await.is(404);
    site.get("/v1/boards/main/league/cohorts/1").await.is(404);
    site.get("/v1/boards/main/league?user_id=ann&period=all_time").await.is(422);
    site.get("/v1/boards/main/league?user_id=nobody").await.is(404);

    // A deleted board takes its league with it, and the name may be used again.
    score(&site, &[("ann", 5)]).await;
    run(&db, &["board", "delete", "main", "--confirm", "main", "--by", "dora"]).well();
    site.admin(Method::GET, LEAGUE, Value::Null).await.is(404);
    run(&db, &["maintain"]).well();
    let left: i64 = query_scalar("SELECT (SELECT count(*) FROM centile_store.leagues) + (SELECT count(*) FROM centile_store.league_members) + (SELECT count(*) FROM centile_store.league_cohorts)")
        .fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0);
    set("arena-league", json!({"board": "other"})).await.is(200);
}

#[tokio::test]
async fn ties_orders_and_modes() {
    // Equal ranks count as the best or the worst of them; the board's own rule for ties may leave none.
    for (board, ties, scores, wanted) in [
        (json!({}), "up", [9, 9, 4], json!([[1, "ann", 9, 1], [1, "bob", 9, 1], [3, "cid", 4, 0]])),
        (json!({}), "down", [9, 9, 4], json!([[1, "ann", 9, 0], [1, "bob", 9, 0], [3, "cid", 4, 0]])),
        (json!({"ties": "first"}), "down", [9, 9, 4], json!([[1, "ann", 9, 1], [2, "bob", 9, 0], [3, "cid", 4, 0]])),
        (
            json!({"mode": "best", "order": "asc"}),
            "up",
            [9, 7, 8],
            json!([[1, "bob", 7, 1], [2, "cid", 8, 0], [3, "ann", 9, 0]]),
        ),
        (json!({"mode": "latest"}), "up", [9, 7, 8], json!([[1, "ann", 9, 1], [2, "cid", 8, 0], [3, "bob", 7, 0]])),
    ] {
        let (db, site) = start(board.clone(), json!({"ties": ties})).await;
        score(&site, &[("ann", scores[0]), ("bob", scores[1]), ("cid", scores[2])]).await;
        assert_eq!(rows(&site, "ann").await, wanted, "{board} {ties}");
        let cohort = site.get("/v1/boards/main/league?user_id=ann").await.is(200)["cohort_id"].to_string();
        close(&db).await;
        let closed = site.get(&format!("/v1/boards/main/league/cohorts/{cohort}")).await.is(200);
        assert_eq!(shown(&closed), wanted, "{board} {ties}: closed");
    }
}

#[tokio::test]
async fn bans_resets_and_idle_players() {
    let (db, site) = start(json!({}), json!({"idle": "relegate"})).await;
    score(&site, &[("ann", 30), ("bob", 20), ("cid", 10)]).await;
    close(&db).await;
    // In silver, Ann scores and is banned: she has no rank, and counts as idle.
    score(&site, &[("ann", 5), ("bob", 6)]).await;
    site.admin(Method::POST, "/v1/users/ann/ban", json!({})).await;
    assert_eq!(rows(&site, "ann").await, json!([[null, "ann", null, -1]]));
    // A reset player who scores again stays in the cohort.
    site.admin(Method::POST, "/v1/boards/main/scores/bob/reset", json!({})).await.is(204);
    assert_eq!(rows(&site, "bob").await, json!([[null, "bob", null, 0]]));
    score(&site, &[("bob", 2)]).await;
    assert_eq!(rows(&site, "bob").await, json!([[1, "bob", 2, 1]]));
    close(&db).await;
    assert_eq!(results(&site, "ann").await, json!([["silver", null, null, "bronze"], ["bronze", 1, 30, "silver"]]));
    // Without a score, Bob moves down; in the lowest division nobody does.
    score(&site, &[("cid", 1)]).await;
    close(&db).await;
    assert_eq!(
        results(&site, "bob").await,
        json!([["silver", null, null, "bronze"], ["bronze", 1, 2, "silver"], ["bronze", 2, 20, "bronze"]])
    );
    assert_eq!(results(&site, "ann").await.as_array().map(Vec::len), Some(2));
    let first = site.get("/v1/boards/main/league/history?user_id=bob&limit=2").await.is(200);
    let cursor = first["next_cursor"].as_str().unwrap().replace('+', "%2B");
    let second = site.get(&format!("/v1/boards/main/league/history?user_id=bob&limit=2&cursor={cursor}")).await.is(200);
    assert_eq!((second["data"].as_array().map(Vec::len), &second["next_cursor"]), (Some(1), &Value::Null));
}

#[tokio::test]
async fn a_correction_changes_history_and_no_later_division() {
    let (db, site) = start(json!({}), json!({})).await;
    let pool = db.pool().await;
    score(&site, &[("ann", 30), ("bob", 20), ("cid", 10)]).await;
    close(&db).await;
    score(&site, &[("ann", 1)]).await;
    let (label, at): (String, String) = sqlx::query_as(
        "SELECT kind || ':' || label, to_char(ends_at - interval '1 millisecond', 'YYYY-MM-DD\"T\"HH24:MI:SS.USOF:\"00\"') FROM centile_store.periods WHERE kind = 'week' AND state = 'closed'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    run(
        &db,
        &[
            "correct",
            "bob",
            "100",
            "--board",
            "main",
            "--at",
            &at.replace("+00:00", "Z"),
            "--reason",
            "lost",
            "--by",
            "dora",
        ],
    )
    .well();
    // Dan had no cohort in this week, and gets none.
    site.admin(Method::PUT, "/v1/users/dan", json!({})).await.is(201);
    run(
        &db,
        &[
            "correct",
            "dan",
            "500",
            "--board",
            "main",
            "--at",
            &at.replace("+00:00", "Z"),
            "--reason",
            "lost",
            "--by",
            "dora",
        ],
    )
    .well();
    assert_eq!(results(&site, "ann").await, json!([["bronze", 1, 30, "silver"]]));
    run(&db, &["refresh", "--board", "main", "--period", &label, "--by", "dora"]).well();
    assert_eq!(results(&site, "ann").await, json!([["bronze", 2, 30, "bronze"]]));
    assert_eq!(results(&site, "bob").await, json!([["bronze", 1, 120, "silver"]]));
    assert_eq!(results(&site, "dan").await, json!([]));
    // Ann plays in silver already; Bob stays in bronze.
    score(&site, &[("bob", 2)]).await;
    for (user, division) in [("ann", "silver"), ("bob", "bronze")] {
        assert_eq!(site.get(&format!("/v1/boards/main/league?user_id={user}")).await.is(200)["division"], division);
    }
}

#[tokio::test]
async fn segments_have_no_cohorts_of_their_own() {
    let (_db, site) = start(json!({"segments": ["country"]}), json!({})).await;
    site.admin(Method::PUT, "/v1/users/ann", json!({"attributes": {"country": "DE"}})).await.is(201);
    score(&site, &[("ann", 5), ("bob", 6)]).await;
    assert_eq!(rows(&site, "ann").await, json!([[1, "bob", 6, 1], [2, "ann", 5, 0]]));
    site.get("/v1/boards/main/league?user_id=ann&period=week@country:DE").await.is(422);
}

#[tokio::test]
async fn concurrent_lanes_fill_cohorts() {
    let (db, site) = start(json!({"lanes": 4}), json!({"size": 7})).await;
    let pool = db.pool().await;
    for round in 0..10 {
        let scores = (0..40).map(|player| {
            let body = json!({"user_id": format!("p{round}-{player}"), "points": player});
            site.post("/v1/boards/main/scores", body)
        });
        for answer in join_all(scores).await {
            answer.is(200);
        }
        let open: i64 = query_scalar("SELECT count(*) FROM centile_store.league_cohorts WHERE members < 7")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert!(open <= 4, "{open} cohorts are not full");
    }
    cohorts_are_sound(&pool).await;
    let members: i64 = query_scalar("SELECT count(*) FROM centile_store.league_members WHERE cohort_id IS NOT NULL")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(members, 400);
}

#[tokio::test]
async fn a_private_board_has_a_private_league() {
    let (db, site) = start(json!({"reading": "key"}), json!({})).await;
    score(&site, &[("ann", 5)]).await;
    let key = make_key(db.url(), "reader", &["main"]);
    let cohort =
        site.json(Method::GET, "/v1/boards/main/league?user_id=ann", &key, String::new()).await.is(200)["cohort_id"]
            .to_string();
    for path in
        [String::new(), "?user_id=ann".to_owned(), format!("/cohorts/{cohort}"), "/history?user_id=ann".to_owned()]
    {
        let path = format!("/v1/boards/main/league{path}");
        site.get(&path).await.is(401);
        site.json(Method::GET, &path, &key, String::new()).await.is(200);
    }
}

#[tokio::test]
async fn pages_show_a_league() {
    let (_db, site) = start(json!({}), json!({})).await;
    score(&site, &[("ann", 5), ("bob", 6)]).await;
    let cohort = site.get("/v1/boards/main/league?user_id=ann").await.is(200)["cohort_id"].to_string();
    for (path, words) in [
        ("/boards/main".to_owned(), ["/boards/main/league\"", "League"]),
        ("/boards/main?player=ann".to_owned(), [&*format!("/boards/main/league/{cohort}"), "of 2"]),
        ("/boards/main/league".to_owned(), ["bronze", "silver"]),
        (format!("/boards/main/league/{cohort}?player=ann"), ["moves up", "aria-current=\"true\""]),
    ] {
        let page = site.get(&path).await;
        assert_eq!(page.status, 200, "{page:?}");
        assert!(words.iter().all(|word| page.text.contains(word)), "{path}: {}", page.text);
    }
    site.board(json!({"slug": "other"}), &[]).await;
    assert!(!site.get("/boards/other").await.text.contains("/league"));
    assert_eq!(site.get("/boards/other/league").await.status, 404);
    assert_eq!(site.get("/boards/main/league/999").await.status, 404);
}

#[tokio::test]
async fn a_stream_follows_a_cohort() {
    let (db, site) = start(json!({}), json!({})).await;
    score(&site, &[("ann", 5)]).await;
    let mut events =
        site.serve.client.get(site.serve.at("/v1/boards/main/league/live?user_id=ann")).send().await.unwrap();
    let mut text = String::new();
    let mut next = async |events: &mut reqwest::Response| loop {
        if let Some((event, rest)) = text.clone().split_once("\n\n") {
            text = rest.to_owned();
            if let Some(data) = event.strip_prefix("event: league\ndata: ") {
                return serde_json::from_str::<Value>(data).unwrap();
            }
        } else {
            text.push_str(str::from_utf8(&within("an event", events.chunk()).await.unwrap().unwrap()).unwrap());
        }
    };
    assert_eq!(shown(&next(&mut events).await), json!([[1, "ann", 5, 1]]));
    // A newcomer, a new week in which Ann waits, and her place in it.
    score(&site, &[("bob", 6)]).await;
    assert_eq!(shown(&next(&mut events).await), json!([[1, "bob", 6, 1], [2, "ann", 5, 0]]));
    end_periods(&db, "week").await;
    assert_eq!(next(&mut events).await["state"], "none");
    score(&site, &[("ann", 3)]).await;
    assert_eq!(next(&mut events).await["state"], "waiting");
    run(&db, &["close", "--due"]).well();
    assert_eq!(next(&mut events).await["state"], "placed");
    for (path, status) in
        [("main/league/live?user_id=nobody", 404), ("main/league/live", 422), ("none/league/live?user_id=ann", 404)]
    {
        assert_eq!(site.get(&format!("/v1/boards/{path}")).await.status, status, "{path}");
    }
}
