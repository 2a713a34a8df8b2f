//! Templates: boards that their first score creates.

use std::borrow::Cow;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{error::DatabaseError, query_scalar};

use crate::{
    delivery::{live::stream::Stream, outbox::receiver::Receiver},
    http::api::site::Site,
    support::{Files, TestDb, import, make_key, run, wait::until},
};

/// Ranks by user id, as the answer to a page of a board shows them.
async fn ranks(site: &Site, path: &str) -> Vec<(String, i64)> {
    let page = site.get(path).await.is(200);
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["user_id"].as_str().unwrap().to_owned(), row["rank"].as_i64().unwrap()))
        .collect()
}

#[tokio::test]
async fn the_first_score_creates_a_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let rules = json!({"mode": "best", "periods": ["all_time", "week"], "lanes": 2});
    let template = json!({"pattern": "level-*", "max_boards": 2, "rules": rules});
    for _ in 0..2 {
        let set = site.admin(Method::PUT, "/v1/templates/level", template.clone()).await.is(200);
        assert_eq!((&set["boards"], &set["rules"]["mode"]), (&json!(0), &json!("best")), "{set}");
    }

    // Before, it is an empty ranking.
    assert_eq!(ranks(&site, "/v1/boards/level-1/scores").await, []);
    site.get("/v1/boards/level-1/scores/ann").await.is(404);
    site.get("/v1/boards/levels/scores").await.is(404);
    assert_eq!(site.get("/v1/boards/level-1").await.is(200)["template"], "level");

    // Subscribers of both see their board, from its first score.
    let mut live = Vec::new();
    for board in ["level-1", "level-2"] {
        live.push(Stream::open(&site.serve, &format!("/v1/boards/{board}/live?limit=5"), &[]).await);
    }

    // Equal users on two boards do not mix.
    for (board, user, points) in [
        ("level-1", "ann", 5),
        ("level-2", "ann", 70),
        ("level-1", "bob", 9),
        ("level-2", "cid", 80),
        ("level-1", "ann", 7),
    ] {
        let body = json!({"user_id": user, "points": points});
        site.admin(Method::POST, &format!("/v1/boards/{board}/scores"), body).await.is(200);
    }
    for (stream, best) in live.iter_mut().zip(["bob", "cid"]) {
        let shown =
            stream.until(|event| event.data["scores"].as_array().is_some_and(|rows| rows.len() == 2)).await.data;
        assert_eq!(shown["scores"][0]["user_id"], best, "{shown}");
    }
    for period in ["all_time", "week"] {
        let of = |user: &str, rank| (user.to_owned(), rank);
        let (first, second) = ("/v1/boards/level-1/scores?period=", "/v1/boards/level-2/scores?period=");
        assert_eq!(ranks(&site, &format!("{first}{period}")).await, [of("bob", 1), of("ann", 2)]);
        assert_eq!(ranks(&site, &format!("{second}{period}")).await, [of("cid", 1), of("ann", 2)]);
        let ann = site.get(&format!("/v1/boards/level-1/scores/ann?period={period}&around=1")).await.is(200);
        assert_eq!((&ann["score"], &ann["rank"]), (&json!(7), &json!(2)), "{ann}");
    }
    let boards: Value =
        query_scalar("SELECT jsonb_agg(slug ORDER BY slug) FROM centile.boards").fetch_one(&pool).await.unwrap();
    assert_eq!(boards, json!(["level-1", "level-2"]));
}

#[tokio::test]
async fn lists_and_limits_of_a_template() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let set = async |name: &str, body: Value| site.admin(Method::PUT, &format!("/v1/templates/{name}"), body).await;
    set("level", json!({"pattern": "level-*", "max_boards": 3, "rules": {"tags": ["levels"]}})).await.is(200);
    for (name, body, status, field) in [
        ("level", json!({"pattern": "levels-*"}), 422, json!("pattern")),
        ("other", json!({"pattern": "level-*"}), 409, Value::Null),
        ("other", json!({"pattern": "le*"}), 409, Value::Null),
        ("other", json!({"pattern": "level-1*"}), 409, Value::Null),
        ("other", json!({"pattern": "song"}), 422, json!("pattern")),
        ("Other", json!({"pattern": "song-*"}), 422, json!("name")),
        ("other", json!({"pattern": "song-*", "max_boards": 0}), 422, json!("max_boards")),
        ("other", json!({"pattern": "song-*", "rules": {"segments": ["country"]}}), 422, json!("template")),
        ("other", json!({"pattern": "song-*", "rules": {"slug": "song"}}), 422, json!("slug")),
        ("level", json!({"pattern": "level-*", "rules": {"periods": ["week"]}}), 422, json!("periods")),
    ] {
        let answer = set(name, body.clone()).await;
        assert_eq!((answer.status, &answer.body["field"]), (status, &field), "{body}: {answer:?}");
    }
    // Neither an administrator nor a score can take a name twice.
    let own = site.admin(Method::POST, "/v1/boards", json!({"slug": "level-9", "mode": "sum"})).await;
    assert_eq!(own.status, 409, "{own:?}");
    for (board, status) in [("level-a", 200), ("level-b", 200), ("level-b", 200), ("level-c1", 200), ("level-d", 409)] {
        let body = json!({"user_id": "ann", "points": 1});
        let answer = site.admin(Method::POST, &format!("/v1/boards/{board}/scores"), body).await;
        assert_eq!(answer.status, status, "{board}: {answer:?}");
        assert_eq!(answer.body.get("code"), (status == 409).then_some(&json!("too_many_boards")), "{answer:?}");
    }
    let shown = site.admin(Method::GET, "/v1/templates", Value::Null).await.is(200);
    assert_eq!((&shown["data"][0]["boards"], &shown["data"][0]["rules"]["tags"]), (&json!(3), &json!(["levels"])));

    // Lists.
    site.board(json!({"slug": "main"}), &[]).await;
    for (query, boards, next) in [
        ("", json!(["main"]), Value::Null),
        ("?template=level", json!(["level-a", "level-b", "level-c1"]), Value::Null),
        ("?template=level&tag=levels&limit=1&cursor=level-a", json!(["level-b"]), json!("level-b")),
        ("?template=level&tag=none", json!([]), Value::Null),
        ("?template=level&prefix=level-c", json!(["level-c1"]), Value::Null),
        ("?template=level&prefix=m", json!([]), Value::Null),
        ("?prefix=m", json!(["main"]), Value::Null),
        ("?prefix=l", json!([]), Value::Null),
    ] {
        let page = site.get(&format!("/v1/boards{query}")).await.is(200);
        let slugs: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|board| &board["slug"]).collect();
        assert_eq!((json!(slugs), &page["next_cursor"]), (boards, &next), "{query}");
    }
    site.get("/v1/boards?template=none").await.is(404);
    let listed = run(&db, &["board", "list", "--template", "level", "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
    assert!(run(&db, &["template", "list"]).well().contains("level-*"));
    run(&db, &["template", "set", "song", "--pattern", "song-*", "--mode", "best", "--periods", "week"]).well();
    assert_eq!(run(&db, &["template", "show", "song"]).json()["rules"]["mode"], "best");
}

#[tokio::test]
async fn a_key_for_a_template_is_for_its_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let template = json!({"pattern": "level-*", "rules": {"reading": "key"}});
    site.admin(Method::PUT, "/v1/templates/level", template).await.is(200);
    site.board(json!({"slug": "main"}), &[]).await;
    let key = make_key(db.url(), "server", &["level-*"]);
    let other = make_key(db.url(), "server", &["main"]);
    for (key, board, status) in
        [(&key, "level-1", 200), (&key, "main", 403), (&other, "level-1", 403), (&other, "main", 200)]
    {
        let body = json!({"user_id": "ann", "points": 5}).to_string();
        let answer = site.json(Method::POST, &format!("/v1/boards/{board}/scores"), key, body).await;
        assert_eq!(answer.status, status, "{board}: {answer:?}");
    }
    // Even before its first score, only these keys may read a board.
    for board in ["level-1", "level-2"] {
        let path = format!("/v1/boards/{board}/scores");
        for (key, status) in [(&key, 200), (&other, 403)] {
            assert_eq!(site.json(Method::GET, &path, key, String::new()).await.status, status, "{board}");
        }
        assert_eq!(site.get(&path).await.status, 401, "{board}");
    }
    let list = "/v1/boards?template=level";
    let listed = async |key: &str| {
        site.json(Method::GET, list, key, String::new()).await.is(200)["data"].as_array().map(Vec::len)
    };
    assert_eq!((listed(&key).await, listed(&other).await), (Some(1), Some(0)));
    let unknown = run(&db, &["key", "create", "--name", "x", "--role", "server", "--board", "song-*"]);
    unknown.refused(1, &["song-*"]);
}

#[tokio::test]
async fn acts_on_a_template_s_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let template = json!({"pattern": "level-*", "rules": {"periods": ["all_time", "week"], "on_violation": "quarantine", "points_max": 100}});
    site.admin(Method::PUT, "/v1/templates/level", template).await.is(200);
    let post = async |board: &str, user: &str, points: i64| {
        let body = json!({"user_id": user, "points": points});
        site.admin(Method::POST, &format!("/v1/boards/{board}/scores"), body).await
    };
    let scores = async |board: &str| {
        let page = site.get(&format!("/v1/boards/{board}/scores?period=week")).await.is(200);
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| (row["user_id"].as_str().unwrap().to_owned(), row["score"].as_i64().unwrap()))
            .collect::<Vec<_>>()
    };
    let of = |user: &str, score| (user.to_owned(), score);
    let first = post("level-1", "ann", 5).await.is(200);
    post("level-1", "ann", 7).await.is(200);
    post("level-1", "bob", 3).await.is(200);
    post("level-2", "ann", 50).await.is(200);

    let id = &first["transaction_id"];
    site.admin(Method::POST, &format!("/v1/boards/level-2/transactions/{id}/void"), json!({})).await.is(404);
    site.admin(Method::POST, &format!("/v1/boards/level-1/transactions/{id}/void"), json!({})).await.is(204);
    assert_eq!(scores("level-1").await, [of("ann", 7), of("bob", 3)]);
    site.admin(Method::POST, "/v1/boards/level-1/scores/ann/reset", json!({})).await.is(204);
    assert_eq!(scores("level-1").await, [of("bob", 3)]);
    assert_eq!(scores("level-2").await, [of("ann", 50)]);
    let late =
        ["correct", "bob", "9", "--board", "level-1", "--at", "2001-02-03T04:05:06Z", "--reason", "r", "--by", "dora"];
    run(&db, &late).well();
    let bob = site.get("/v1/boards/level-1/scores/bob").await.is(200);
    assert_eq!(bob["score"], 12, "{bob}");
    post("level-3", "dan", 1_000).await.is(202);
    let waiting = site.admin(Method::GET, "/v1/boards/level-3/quarantine", Value::Null).await.is(200);
    let event = &waiting["data"][0]["quarantine_id"];
    site.admin(Method::POST, &format!("/v1/boards/level-3/quarantine/{event}/accept"), json!({})).await.is(200);
    assert_eq!(scores("level-3").await, [of("dan", 1_000)]);

    // A ban on one board, then everywhere.
    let pool = db.pool().await;
    query_scalar::<_, bool>("SELECT centile.ban_user('level-1', 'bob', true, 'cheat')").fetch_one(&pool).await.unwrap();
    until("the ban on a board", async || scores("level-1").await.is_empty()).await;
    // Another instance's changes may reach a top list 250 ms late.
    run(&db, &["user", "ban", "ann", "--reason", "cheat"]).well();
    until("the ban", async || scores("level-2").await.is_empty()).await;
    assert_eq!(post("level-9", "ann", 1).await.status, 409);
    run(&db, &["user", "unban", "ann"]).well();
    until("the end of the ban", async || scores("level-2").await == [of("ann", 50)]).await;
    let history = site.get("/v1/boards/level-2/scores/ann/history").await.is(200);
    assert_eq!(history["data"].as_array().map(Vec::len), Some(1), "{history}");
}

#[tokio::test]
async fn a_deleted_board_leaves_nothing() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*"})).await.is(200);
    for board in ["main", "other", "closed"] {
        site.board(json!({"slug": board}), &[("ann", 5), ("bob", 7)]).await;
    }
    let source = json!({"join": "union", "aggregate": "sum", "sources": [{"board": "other", "period": "all_time"}]});
    let rules = json!({"slug": "hero", "mode": "combined", "combination": source});
    site.admin(Method::POST, "/v1/boards", rules).await.is(201);
    run(
        &db,
        &["correct", "ann", "5", "--board", "closed", "--at", "2024-01-09T12:00:00Z", "--reason", "x", "--by", "dora"],
    )
    .well();
    run(&db, &["close", "--due"]).well();
    let post = async |board: &str, user: &str| {
        let body = json!({"user_id": user, "points": 5, "id": format!("{board}-{user}")});
        site.admin(Method::POST, &format!("/v1/boards/{board}/scores"), body).await
    };
    for board in ["level-1", "level-2"] {
        post(board, "ann").await.is(200);
    }
    let key = make_key(db.url(), "server", &["main"]);
    let both = make_key(db.url(), "server", &["main", "level-1"]);
    let rows = async || -> Value {
        let tables = "SELECT jsonb_object_agg(x.name, x.rows) FROM (
            SELECT c.relname AS name, (xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM centile_store.%I', c.relname), false, true, '')))[1]::text::bigint AS rows
            FROM pg_class c WHERE c.relnamespace = 'centile_store'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND c.relname NOT IN ('audit_log', 'api_keys', 'applied_objects', 'applied_sql', 'schema_history', 'profile_revision', 'users')) x";
        query_scalar(tables).fetch_one(&pool).await.unwrap()
    };

    let delete = async |path: &str| site.admin(Method::DELETE, path, Value::Null).await.status;
    assert_eq!(delete("/v1/boards/other").await, 409, "hero needs it");
    assert_eq!(delete("/v1/templates/level").await, 409, "it has boards");
    assert_eq!(delete("/v1/boards/none").await, 404);
    run(&db, &["board", "delete", "main", "--confirm", "mine"]).refused(1, &["confirm"]);
    for board in ["hero", "other", "closed", "level-1", "level-2"] {
        assert_eq!(delete(&format!("/v1/boards/{board}")).await, 204, "{board}");
        if !board.starts_with("level") {
            assert_eq!(site.get(&format!("/v1/boards/{board}/scores")).await.status, 404, "{board}");
        }
    }
    assert_eq!(delete("/v1/templates/level").await, 204);
    run(&db, &["board", "delete", "main", "--confirm", "main"]).well();
    for key in [&key, &both] {
        let answer = site
            .json(Method::POST, "/v1/boards/main/scores", key, json!({"user_id": "ann", "points": 1}).to_string())
            .await;
        assert!([401, 403, 404].contains(&answer.status), "{answer:?}");
    }
    site.board(json!({"slug": "main"}), &[("ann", 3)]).await;
    assert_eq!(ranks(&site, "/v1/boards/main/scores").await, [("ann".to_owned(), 1)]);
    assert_eq!(delete("/v1/boards/main").await, 204);

    run(&db, &["maintain"]).well();
    let left: serde_json::Map<String, Value> = serde_json::from_value(rows().await).unwrap();
    let left: Vec<_> = left.into_iter().filter(|(_, rows)| *rows != json!(0)).collect();
    assert_eq!(left, [], "rows of deleted boards");
    let archives: i64 = query_scalar("SELECT count(*) FROM pg_matviews WHERE schemaname = 'centile_archive'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(archives, 0);
    run(&db, &["verify"]).well();
}

#[tokio::test]
async fn periods_of_a_template_are_closed_for_all_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let template = json!({"pattern": "level-*", "rules": {"periods": ["all_time", "week"], "lanes": 2}});
    site.admin(Method::PUT, "/v1/templates/level", template).await.is(200);
    for n in 0..60 {
        let body = json!({"user_id": format!("p{}", n * 7 % 11), "points": n * 13 % 17});
        site.admin(Method::POST, &format!("/v1/boards/level-{}/scores", n % 5), body).await.is(200);
    }
    // The week ends now, perhaps in another month than before.
    db.execute("UPDATE centile_store.periods SET ends_at = now() WHERE kind = 'week'").await;
    let week: String = query_scalar("SELECT 'week:' || label FROM centile_store.periods WHERE kind = 'week'")
        .fetch_one(&pool)
        .await
        .unwrap();
    let relations = "SELECT count(*) FROM pg_class";
    let before: i64 = query_scalar(relations).fetch_one(&pool).await.unwrap();
    let page = async |n: usize| ranks(&site, &format!("/v1/boards/level-{n}/scores?period={week}&limit=100")).await;
    let mut open = Vec::new();
    for n in 0..5 {
        open.push(page(n).await);
    }
    let closed = run(&db, &["close", "--due"]).well();
    assert!(closed.contains("level-*") && closed.contains("55 players"), "{closed}");
    for (n, open) in open.iter().enumerate() {
        assert_eq!(page(n).await, *open, "board {n}");
        let first = &open[0].0;
        let standing = site.get(&format!("/v1/boards/level-{n}/scores/{first}?period={week}&around=2")).await.is(200);
        assert_eq!((&standing["rank"], &standing["players"]), (&json!(1), &json!(open.len())), "{standing}");
    }
    assert_eq!(page(9).await, [], "a board without scores");
    assert_eq!(query_scalar::<_, i64>(relations).fetch_one(&pool).await.ok(), Some(before), "relations");
    let sql: Vec<String> = query_scalar("SELECT user_id FROM centile.page('level-3', $1, 1, 100)")
        .bind(&week)
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(sql, open[3].iter().map(|(user, _)| user.clone()).collect::<Vec<_>>());
    // A correction reaches the results of its board, and of no other, with a refresh.
    let at: String = query_scalar("SELECT to_char(starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM centile.periods WHERE kind = 'week'")
        .fetch_one(&pool)
        .await
        .unwrap();
    site.admin(Method::PUT, "/v1/users/new", json!({"name": "New"})).await.is(201);
    for (board, user) in [("level-3", "p1"), ("level-4", "new")] {
        run(&db, &["correct", user, "1000", "--board", board, "--at", &at, "--reason", "r", "--by", "dora"]).well();
    }
    assert_eq!(page(3).await, open[3], "before the refresh");
    run(&db, &["refresh", "--board", "level-3", "--period", &week]).well();
    until("the refresh", async || page(3).await[0].0 == "p1").await;
    assert_eq!(page(3).await.len(), open[3].len());
    assert_eq!(page(4).await[0], ("new".to_owned(), 1));
    assert_eq!(page(2).await, open[2]);
    run(&db, &["verify"]).well();
    let due: i64 =
        query_scalar("SELECT count(*) FROM centile.periods WHERE needs_refresh").fetch_one(&pool).await.unwrap();
    assert_eq!(due, 0);

    // Scores go on in another week, and the rankings of the closed one are removed.
    let body = json!({"user_id": "late", "points": 1});
    site.admin(Method::POST, "/v1/boards/level-3/scores", body).await.is(200);
    assert!(!page(3).await.iter().any(|(user, _)| user == "late"));
    run(&db, &["maintain"]).well();
    let left: i64 = query_scalar(
        "SELECT count(*) FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id WHERE p.state = 'closed'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_large_ranking_of_a_template_gets_bucket_rows() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let template = json!({"pattern": "level-*", "rules": {"periods": ["all_time", "week"], "lanes": 2}});
    site.admin(Method::PUT, "/v1/templates/level", template).await.is(200);
    let post = async |board: &str, from: i64, to: i64| {
        let events: Vec<Value> =
            (from..to).map(|n| json!({"user_id": format!("p{n}"), "points": n * 7 % 1_009})).collect();
        let body = json!({"events": events});
        site.admin(Method::POST, &format!("/v1/boards/{board}/scores/batch"), body).await.is(200);
    };
    post("level-1", 0, 900).await;
    post("level-2", 0, 20).await;
    let with_rows = "SELECT count(*) FROM centile_store.rankings g JOIN centile.bucket_occupancy o ON o.ranking_id = g.id WHERE o.board = $1 AND o.players > 0";
    let count = async |board: &str| query_scalar::<_, i64>(with_rows).bind(board).fetch_one(&pool).await.unwrap();
    let page = async |board: &str| ranks(&site, &format!("/v1/boards/{board}/scores?limit=1000&period=week")).await;
    page("level-1").await;
    assert_eq!(count("level-1").await, 0, "900 players are read at once");
    post("level-1", 900, 1_700).await;
    // The read that finds many players starts it.
    page("level-1").await;
    until("two rankings have bucket rows", async || count("level-1").await == 2).await;
    let checked = async || {
        let by_sql: Vec<(String, i64)> = sqlx::query_as(
            "SELECT user_id, rank FROM centile.standings WHERE board = 'level-1' AND kind = 'week' ORDER BY position LIMIT 1000",
        )
        .fetch_all(&pool)
        .await
        .unwrap();
        assert_eq!(page("level-1").await, by_sql);
        let agree: bool =
            query_scalar("SELECT bool_and(agree) FROM centile.ranking_counts").fetch_one(&pool).await.unwrap();
        assert!(agree);
    };
    checked().await;
    // Later scores reach bucket rows and index.
    post("level-1", 1_690, 1_750).await;
    site.admin(Method::POST, "/v1/boards/level-1/scores/p1740/reset", json!({})).await.is(204);
    checked().await;
    for user in ["p3", "p1749"] {
        let shown = site.get(&format!("/v1/boards/level-1/scores/{user}")).await.is(200);
        let rank: i64 = query_scalar("SELECT rank FROM centile.player_rank('level-1', $1, 'all_time')")
            .bind(user)
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(shown["rank"], rank, "{user}");
    }
    assert_eq!((count("level-2").await, page("level-2").await.len()), (0, 20));
    // It is removed with its board.
    assert_eq!(site.admin(Method::DELETE, "/v1/boards/level-1", Value::Null).await.status, 204);
    run(&db, &["maintain"]).well();
    for table in ["leaderboard_bucket", "bucket_counts", "rankings"] {
        let rows = format!("SELECT count(*) FROM centile_store.{table}");
        let left: i64 = query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&pool).await.unwrap();
        assert_eq!(left, if table == "rankings" { 4 } else { 0 }, "{table}");
    }
}

#[tokio::test]
async fn rules_and_names_of_a_template_s_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let rules = json!({"mode": "best", "periods": ["all_time", "week"], "gain_max": {"week": 10}});
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*", "rules": rules})).await.is(200);
    let post = async |points: i64| {
        let body = json!({"user_id": "ann", "points": points, "metadata": {"points": points}});
        site.admin(Method::POST, "/v1/boards/level-1/scores", body).await.status
    };
    // A gain counts from the player's first score on this board.
    assert_eq!([post(50).await, post(60).await, post(61).await], [200, 200, 422]);
    let shown = site.get("/v1/boards/level-1/scores/ann?metadata=true").await.is(200);
    assert_eq!((&shown["score"], &shown["metadata"]), (&json!(60), &json!({"points": 60})), "{shown}");

    // Neither a pattern nor a board of a template is an ordinary board.
    for (sql, code) in [
        ("SELECT centile.correct_score('level-*', 'ann', 5, now(), 'r', 'dora')", "CB404"),
        ("SELECT centile.submit('level-*', 'ann', 5)", "CB404"),
        ("SELECT centile.submit('level-1', 'ann', NULL)", "CB422"),
        ("SELECT centile.create_season('level-*', 's', now(), now() + interval '1 day')", "CB404"),
        ("SELECT centile.create_season('level-1', 's', now(), now() + interval '1 day')", "CB409"),
        ("SELECT centile.update_board('level-1', '{\"title\": \"x\"}')", "CB409"),
        ("SELECT centile.set_webhook('level-1', 'https://example.com', decode(repeat('00', 16), 'hex'))", "CB409"),
    ] {
        let error = sqlx::query(sql).execute(&pool).await.expect_err(sql);
        let found = error.as_database_error().and_then(DatabaseError::code).map(Cow::into_owned);
        assert_eq!(found.as_deref(), Some(code), "{sql}: {error}");
    }
    run(&db, &["rebuild", "--board", "level-nobody", "--all"]);
    assert_eq!(ranks(&site, "/v1/boards/level-1/scores").await, [("ann".to_owned(), 1)]);
}

#[tokio::test]
async fn messages_and_retention_of_a_template() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    let template =
        json!({"pattern": "level-*", "rules": {"periods": ["day"], "lanes": 2, "kept_archives": {"day": 1}}});
    site.admin(Method::PUT, "/v1/templates/level", template).await.is(200);
    let receiver = Receiver::start(&[]);
    run(&db, &["webhook", "set", &receiver.url, "--board", "level-*"]).well();
    for n in 0..130 {
        let body = json!({"user_id": format!("p{}", n % 7), "points": n});
        site.admin(Method::POST, &format!("/v1/boards/level-{}/scores", n % 110), body).await.is(200);
    }
    db.execute("UPDATE centile_store.periods SET ends_at = now() WHERE state <> 'closed'").await;
    run(&db, &["close", "--due"]).well();
    run(&db, &["outbox", "deliver"]).well();
    let messages: Vec<Value> =
        receiver.all().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let boards = |message: &Value| message["boards"].as_array().map_or(0, Vec::len);
    assert_eq!(messages.iter().map(boards).collect::<Vec<_>>(), [100, 10]);
    let first = &messages[0];
    assert_eq!((&first["type"], &first["template"]), (&json!("periods_closed"), &json!("level")), "{first}");
    let level = messages[0]["boards"].as_array().unwrap().iter().find(|board| board["board"] == "level-3").unwrap();
    assert_eq!(
        (&level["players"], &level["top"][0]["user_id"], &level["top"][0]["score"]),
        (&json!(2), &json!("p1"), &json!(113)),
        "{level}"
    );

    // The template keeps one day, and the results of the others are dropped with the tables of their months.
    let files = Files::new();
    let past = "user_id,points,occurred_at\nann,5,2025-01-03T12:00:00Z\nann,6,2025-02-03T12:00:00Z\n";
    import(&db, &files.write("past.csv", past), "level-3", &[]).well(2, 0);
    run(&db, &["close", "--due"]).well();
    run(&db, &["verify", "--whole"]).well();
    let months = "SELECT count(*) FROM pg_class c WHERE c.relname ~ '^closed_(boards|results)_2025_0[12]$'";
    assert_eq!(query_scalar::<_, i64>(months).fetch_one(&pool).await.unwrap(), 4);
    site.get("/v1/boards/level-3/scores?period=day:2025-01-03").await.is(200);
    run(&db, &["maintain"]).well();
    assert_eq!(query_scalar::<_, i64>(months).fetch_one(&pool).await.unwrap(), 0);
    let dropped = "/v1/boards/level-3/scores?period=day:2025-01-03";
    until("the instance notices", async || site.get(dropped).await.status == 404).await;

    // Verification names a board whose results or standings differ from the ledger.
    db.execute("UPDATE centile_store.closed_results SET score = score + 1 WHERE \"position\" = 1 AND closed_id = (SELECT min(id) FROM centile_store.closed_boards)").await;
    site.admin(Method::POST, "/v1/boards/level-3/scores", json!({"user_id": "p1", "points": 1})).await.is(200);
    db.execute("UPDATE centile_store.players SET rank_keys[array_length(rank_keys, 1)] = 77 WHERE board_id = (SELECT id FROM centile_store.template_boards WHERE slug = 'level-3')").await;
    let found = run(&db, &["verify", "--whole"]);
    assert_eq!((found.code, found.out.matches("board level-").count()), (Some(1), 2), "{found:?}");
    assert!(found.out.contains("board level-3, "), "{found:?}");
}

#[tokio::test]
async fn submitted_scores_create_boards() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance", "--key-boards", "3"]).await;
    let pool = db.pool().await;
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*", "max_boards": 2})).await.is(200);
    for (board, user) in [("level-a", "ann"), ("level-a", "bob"), ("level-b", "ann"), ("level-c", "ann")] {
        query_scalar::<_, String>("SELECT centile.submit($1, $2, 5)")
            .bind(board)
            .bind(user)
            .fetch_one(&pool)
            .await
            .unwrap();
    }
    query_scalar::<_, String>("SELECT centile.submit('song-1', 'ann', 5)").fetch_one(&pool).await.unwrap_err();
    until("two boards have the scores", async || {
        ranks(&site, "/v1/boards/level-a/scores").await.len() == 2
            && ranks(&site, "/v1/boards/level-b/scores").await.len() == 1
    })
    .await;
    until("the third is refused", async || {
        let refused = "SELECT array_agg(code || ' ' || user_id) FROM centile.submissions";
        query_scalar::<_, Option<Vec<String>>>(refused).fetch_one(&pool).await.unwrap()
            == Some(vec!["too_many_boards ann".to_owned()])
    })
    .await;

    // A key may create three boards a minute.
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*", "max_boards": 100})).await.is(200);
    let key = make_key(db.url(), "server", &["level-*"]);
    for (board, status) in [("d", 200), ("e", 200), ("f", 200), ("g", 429), ("d", 200)] {
        let body = json!({"user_id": "ann", "points": 5}).to_string();
        let answer = site.json(Method::POST, &format!("/v1/boards/level-{board}/scores"), &key, body).await;
        assert_eq!(answer.status, status, "{board}: {answer:?}");
    }
}
