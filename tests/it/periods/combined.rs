//! Combined boards, compared with what a plain fold over the ledgers of their sources gives.

mod due;
mod failure;
mod killed;
mod oracle;
mod refused;
mod restored;
mod writes;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, run, wait::until},
};
use oracle::{Rules, Source, list, wanted};

/// Two past weeks with ties and losses, in which not every player has a score on both boards.
pub fn events(from: i64) -> String {
    let line = |n: i64| {
        let n = n + from;
        format!("p{},{},2024-01-{:02}T{:02}:00:00Z", n * n % 17, n * 7 % 12 - 3, 1 + n % 14, n % 24)
    };
    format!("user_id,points,occurred_at\n{}\n", (0..70).map(line).collect::<Vec<_>>().join("\n"))
}

/// Creates the boards `arena` (`sum`) and `duels` (`best`) with past weeks, of which those of `arena`
/// are closed, and some present scores.
async fn sources(site: &Site, db: &TestDb) {
    let files = Files::new();
    for (slug, mode, from) in [("arena", "sum", 0), ("duels", "best", 3)] {
        run(db, &["board", "create", slug, "--mode", mode, "--periods", "all_time,day,week"]).well();
        import(db, &files.write(&format!("{slug}.csv"), events(from)), slug, &[]).well(70, 0);
        for (user, points) in [("p1", 4), ("p3", -2), ("new", 4), ("p5", 1)] {
            site.post(&format!("/v1/boards/{slug}/scores"), json!({"user_id": user, "points": points})).await.is(200);
        }
    }
    for week in ["week:2024-01-01", "week:2024-01-08"] {
        run(db, &["close", "--board", "arena", "--period", week]).well();
    }
}

fn definition(slug: &str, rules: &Rules) -> Value {
    json!({
        "slug": slug, "mode": "combined", "order": rules.order, "ties": rules.ties,
        "combination": {
            "join": rules.join, "aggregate": rules.aggregate,
            "sources": rules.sources.iter().map(|source| {
                json!({"board": source.board, "period": source.period, "weight": source.weight})
            }).collect::<Vec<_>>(),
        },
    })
}

fn source(board: &'static str, period: &'static str, weight: i64) -> Source {
    Source { board, period, weight }
}

#[tokio::test]
async fn a_combination_is_the_fold_of_its_sources() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    sources(&site, &db).await;
    let weeks = |one, two, three| {
        vec![
            source("arena", "week:2024-01-01", one),
            source("arena", "week:2024-01-08", two),
            source("duels", "week:2024-01-08", three),
        ]
    };
    let now = vec![source("duels", "day", 3), source("arena", "all_time", 1)];
    let mut boards = Vec::new();
    for sources in [weeks(1, 1, 1), weeks(2, -3, 1), weeks(-1, -1, -1_000_000), now] {
        for (join, aggregate) in
            ["union", "intersection"].iter().flat_map(|join| ["sum", "min", "max"].map(|aggregate| (*join, aggregate)))
        {
            let place = boards.len();
            let rules = Rules {
                sources: sources.clone(),
                join,
                aggregate,
                ties: ["shared", "first"][place % 2],
                order: ["desc", "desc", "asc"][place % 3],
            };
            let slug = format!("c{place}");
            site.admin(Method::POST, "/v1/boards", definition(&slug, &rules)).await.is(201);
            assert_eq!(list(&site, &slug).await, [], "not computed yet");
            boards.push((slug, rules));
        }
    }
    let printed = run(&db, &["refresh", "--due"]).well();
    assert!(printed.ends_with("24 refreshed\n"), "{printed}");
    let mut players = 0;
    for (slug, rules) in &boards {
        let wanted = wanted(&db, rules, |_| i64::MAX).await;
        players += wanted.len();
        assert_eq!(list(&site, slug).await, wanted, "{slug} {rules:?}");
    }
    assert!(players > 200, "{players}");
    assert_eq!(run(&db, &["refresh", "--due"]).well(), "nothing is due\n");
    run(&db, &["verify"]).well();
    run(&db, &["verify", "--board", "c0"]).well();
}

/// Creates the board `hero` of two sources with scores and one without, which is not computed yet.
async fn hero(site: &Site, db: &TestDb) {
    sources(site, db).await;
    let rules = Rules {
        sources: vec![
            source("arena", "week:2024-01-01", 1),
            source("duels", "all_time", 2),
            source("arena", "day:2024-03-01", 1),
        ],
        join: "union",
        aggregate: "sum",
        ties: "shared",
        order: "desc",
    };
    site.admin(Method::POST, "/v1/boards", definition("hero", &rules)).await.is(201);
}

/// Reads the board by cursor, as a distribution, as a file and as pages.
async fn pages_and_files(site: &Site, rows: &[oracle::Row]) {
    let (mut paged, mut path) = (Vec::new(), "/v1/boards/hero/scores?limit=4".to_owned());
    loop {
        let page = site.get(&path).await.is(200);
        paged.extend(page["data"].as_array().unwrap().iter().map(|row| row["user_id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/boards/hero/scores?limit=4&cursor={cursor}");
    }
    assert_eq!(paged, rows.iter().map(|row| row.user.clone()).collect::<Vec<_>>());

    let distribution = site.get("/v1/boards/hero/distribution").await.is(200);
    let histogram = distribution["histogram"].as_array().unwrap();
    assert_eq!(histogram.iter().map(|bar| bar["players"].as_u64().unwrap()).sum::<u64>(), rows.len() as u64,);
    let exported = site.get("/v1/boards/hero/scores.csv").await;
    assert_eq!((exported.status, exported.text.lines().count()), (200, rows.len() + 1));
    for page in ["/boards/hero", "/embed/hero"] {
        let page = site.get(page).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains(&rows[0].user), "{}", page.text);
    }
}

#[tokio::test]
async fn every_read_answers_for_a_combined_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    hero(&site, &db).await;
    let empty = json!({"as_of": null, "sources": []});
    assert_eq!(site.get("/v1/boards/hero/scores").await.is(200)["combination"], empty);
    site.get("/v1/boards/hero/scores/p1").await.is(404);
    let printed = run(&db, &["refresh", "--board", "hero", "--by", "dora"]).well();
    assert!(printed.starts_with("refreshed hero: revision 1, "), "{printed}");
    let rows = list(&site, "hero").await;
    assert!(rows.len() > 10);

    // Every answer names the same snapshot.
    let top = site.get("/v1/boards/hero/scores?limit=3").await;
    let tag = top.headers["etag"].to_str().unwrap().to_owned();
    let top = top.is(200);
    let combination = top["combination"].clone();
    assert!(combination["as_of"].is_string());
    let names = |of: &Value| {
        let name = |source: &Value| {
            (
                source["board"].as_str().unwrap().to_owned(),
                source["period"].as_str().unwrap().to_owned(),
                source["version"].is_string(),
            )
        };
        of["sources"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let arena = |period: &str, has_scores| ("arena".to_owned(), period.to_owned(), has_scores);
    assert_eq!(
        names(&combination),
        [
            arena("week:2024-01-01", true),
            ("duels".to_owned(), "all_time".to_owned(), true),
            arena("day:2024-03-01", false)
        ]
    );
    let duels = site.get("/v1/boards/duels/scores").await.is(200);
    assert_eq!(combination["sources"][1]["version"], duels["version"]);
    let second = &rows[1].user;
    for path in
        ["?from=3&limit=2".to_owned(), format!("/{second}?around=1"), format!("/query?user_id={second}&user_id=nobody")]
    {
        let answer = site.get(&format!("/v1/boards/hero/scores{path}")).await.is(200);
        assert_eq!(answer["combination"], combination, "{path}");
        assert_eq!(answer["players"], rows.len(), "{path}");
        assert_eq!(answer["version"], top["version"], "{path}");
    }
    let friends = json!({"change": "add", "user_ids": [rows[0].user, rows[4].user, "nobody"]});
    site.post(&format!("/v1/users/{second}/friends"), friends).await.is(200);
    let answer = site.get(&format!("/v1/boards/hero/scores?friends_of={second}")).await.is(200);
    assert_eq!((&answer["combination"], &answer["version"]), (&combination, &top["version"]));
    let local = |row: &Value| (row["local_rank"].as_u64().unwrap(), row["user_id"].as_str().unwrap().to_owned());
    let locals: Vec<_> = answer["data"].as_array().unwrap().iter().map(local).collect();
    let mut wanted = Vec::new();
    for (place, row) in (1..).zip([&rows[0], &rows[1], &rows[4]]) {
        let shared = wanted.last().filter(|(_, score)| *score == row.score).map(|((rank, _), _): &((u64, _), _)| *rank);
        wanted.push(((shared.unwrap_or(place), row.user.clone()), row.score));
    }
    assert_eq!(locals, wanted.into_iter().map(|(local, _)| local).collect::<Vec<_>>());
    let standing = site.get(&format!("/v1/boards/hero/scores/{second}?around=1")).await.is(200);
    assert_eq!((&standing["position"], &standing["score"]), (&json!(2), &json!(rows[1].score)));
    assert_eq!(standing["above"][0]["user_id"], rows[0].user);
    let known = [("if-none-match", &*tag)];
    assert_eq!(site.send(Method::GET, "/v1/boards/hero/scores?limit=3", &known, String::new()).await.status, 304);
    pages_and_files(&site, &rows).await;
    assert_eq!(site.get("/v1/boards/hero/distribution").await.is(200)["combination"], combination);
    let as_of = combination["as_of"].as_str().unwrap();
    let page = site.get("/boards/hero").await.text;
    assert!(page.contains("computed from other boards") && page.contains(&as_of[..10]), "{page}");
    let sql: Vec<i64> = query_scalar("SELECT score FROM centile.page('hero', 'all_time', 1, 1000) ORDER BY position")
        .fetch_all(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(sql, rows.iter().map(|row| row.score).collect::<Vec<_>>());

    let explained = run(&db, &["explain", second, "--board", "hero"]).well();
    assert!(explained.contains(&rows[1].score.to_string()), "{explained}");
    assert_eq!(site.get(&format!("/v1/boards/hero/scores/{second}/history")).await.is(200)["data"], json!([]));
}

#[tokio::test]
async fn a_refresh_replaces_the_ranking_and_then_the_view() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    hero(&site, &db).await;
    run(&db, &["refresh", "--board", "hero", "--by", "dora"]).well();
    let rows = list(&site, "hero").await;
    site.post("/v1/boards/duels/scores", json!({"user_id": "p1", "points": 1_000})).await.is(200);
    assert_eq!(list(&site, "hero").await, rows);
    run(&db, &["refresh", "--board", "hero"]).well();
    until("the top is the new one", async || {
        site.get("/v1/boards/hero/scores?limit=1").await.is(200)["data"][0]["user_id"] == "p1"
    })
    .await;
    let views = async || -> i64 {
        let views = "SELECT count(*) FROM pg_matviews WHERE matviewname LIKE 'hero%'";
        query_scalar(views).fetch_one(&db.pool().await).await.unwrap()
    };
    assert_eq!(views().await, 2);
    db.execute(
        "UPDATE centile_store.periods SET closed_at = closed_at - interval '1 minute' WHERE archive_name LIKE 'hero%'",
    )
    .await;
    run(&db, &["refresh", "--due"]).well();
    assert_eq!(views().await, 1);

    // An erased player has another id in the frozen top.
    run(&db, &["user", "erase", "p1"]).well();
    until("the erased id is gone", async || {
        let top = site.get("/v1/boards/hero/scores?limit=5").await.is(200);
        top["data"].as_array().unwrap().iter().all(|row| row["user_id"] != "p1")
    })
    .await;

    // The audit log has the acts.
    let acts: Vec<String> = query_scalar(
        "SELECT a.action || ' ' || a.subject FROM centile.audit_log a WHERE a.board = 'hero' ORDER BY a.happened_at",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(acts, ["create_board hero", "refresh all_time", "refresh all_time"]);
}

#[tokio::test]
async fn a_definition_is_shown_changed_and_computed_by_the_service() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--maintenance-every", "1"]).await;
    sources(&site, &db).await;
    let created = [
        "board",
        "combine",
        "hero",
        "--source",
        "arena@week:2024-01-01*2",
        "--source",
        "duels@day:-3",
        "--join",
        "union",
        "--aggregate",
        "max",
        "--refresh",
        "0 3 * * mon",
        "--title",
        "Heroes",
        "--ties",
        "first",
        "--time-zone",
        "Europe/Berlin",
    ];
    let printed = run(&db, &created).well();
    assert!(printed.starts_with("board hero combined: "), "{printed}");
    run(&db, &created).refused(1, &["already exists"]);
    let shown = run(&db, &["board", "show", "hero"]).well();
    for words in ["arena@week:2024-01-01*2, duels@day:-3", "max of the union", "0 3 * * mon", "Heroes"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let combination = site.get("/v1/boards/hero").await.is(200)["combination"].clone();
    assert_eq!(combination["sources"][0], json!({"board": "arena", "period": "week:2024-01-01", "weight": 2}));
    assert_eq!((&combination["join"], &combination["aggregate"]), (&json!("union"), &json!("max")));
    assert!(combination["as_of"].is_string());

    // The service computes a changed definition at once, also one that is refreshed by hand.
    let rules = Rules {
        sources: vec![source("duels", "week:2024-01-08", 5)],
        join: "union",
        aggregate: "max",
        ties: "first",
        order: "desc",
    };
    assert_ne!(list(&site, "hero").await, wanted(&db, &rules, |_| i64::MAX).await);
    let change = json!({"combination": {"refresh": "manual", "sources": [{"board": "duels", "period": "week:2024-01-08", "weight": 5}]}, "title": "Best"});
    let changed = site.admin(Method::PATCH, "/v1/boards/hero", change).await.is(200);
    assert_eq!((&changed["title"], &changed["combination"]["refresh"]), (&json!("Best"), &json!("manual")));
    assert_eq!(changed["combination"]["aggregate"], "max");
    let wanted = wanted(&db, &rules, |_| i64::MAX).await;
    until("the service has computed the board", async || list(&site, "hero").await == wanted).await;
    run(&db, &["board", "combine", "hero", "--replace", "--source", "arena@week:2024-01-01"]).well();
    assert_eq!(
        run(&db, &["board", "show", "hero", "--json"]).json()["combination"]["sources"],
        json!([{"board": "arena", "period": "week:2024-01-01", "weight": 1}])
    );
}

#[tokio::test]
async fn a_combined_board_may_be_a_source() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    sources(&site, &db).await;
    let combine = |slug: &str, sources: &[&str]| {
        let sources: Vec<&str> = sources.iter().flat_map(|source| ["--source", source]).collect();
        run(&db, &[&["board", "combine", slug, "--refresh", "on-close"], &*sources].concat())
    };
    combine("inner", &["arena@week:2024-01-01", "arena@week:2024-01-08"]).well();
    combine("outer", &["inner@all_time*10", "duels@week:2024-01-01"]).well();
    // A weight of a combined source applies to its sum.
    let rules = Rules {
        sources: vec![
            source("arena", "week:2024-01-01", 10),
            source("arena", "week:2024-01-08", 10),
            source("duels", "week:2024-01-01", 1),
        ],
        join: "union",
        aggregate: "sum",
        ties: "shared",
        order: "desc",
    };
    assert_eq!(list(&site, "outer").await, wanted(&db, &rules, |_| i64::MAX).await);
    assert_eq!(run(&db, &["refresh", "--due"]).well(), "nothing is due\n");

    // A change reaches both in one run, the inner one first.
    run(
        &db,
        &[
            "correct",
            "p2",
            "77",
            "--board",
            "arena",
            "--at",
            "2024-01-02T12:00:00Z",
            "--reason",
            "late",
            "--by",
            "dora",
        ],
    )
    .well();
    run(&db, &["refresh", "--board", "arena", "--period", "week:2024-01-01"]).well();
    let printed = run(&db, &["refresh", "--due"]).well();
    let lines: Vec<&str> = printed.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["refreshed inner", "refreshed outer", "2 refreshed"]);
    assert_eq!(list(&site, "outer").await, wanted(&db, &rules, |_| i64::MAX).await);

    // A banned player is left out from the next refresh on, although the archives keep the player.
    let banned = site.admin(Method::POST, "/v1/users/p2/ban", json!({"reason": "cheat"})).await;
    assert!(banned.status < 300, "{banned:?}");
    run(&db, &["refresh", "--board", "outer"]).well();
    assert!(list(&site, "outer").await.iter().all(|row| row.user != "p2"));
}
