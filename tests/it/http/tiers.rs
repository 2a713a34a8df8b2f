//! Tiers: their rules, cached tops, files, pages, and boards without any.

use reqwest::{
    Method,
    header::{ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar};

use crate::{
    access::rights::erase,
    http::api::site::{Answer, Site},
    http::pages::snapshots::{board as board_with_snapshots, take},
    support::{TestDb, run},
};

#[track_caller]
fn refused(answer: &Answer, field: &str) {
    let given = (answer.status, &answer.body["code"], &answer.body["field"]);
    assert_eq!(given, (422, &json!("invalid_value"), &json!(field)), "{answer:?}");
}

#[tokio::test]
async fn boards_have_up_to_20_tiers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let path = "/v1/boards/main";
    site.board(json!({"slug": "plain"}), &[]).await;
    assert_eq!(site.get("/v1/boards/plain").await.is(200)["tiers"], json!([]));
    let rules = json!({"tiers": [" Gold medal:top 10.50%", "silver : score  -5", "b: rank 10"], "tags": ["a"]});
    site.board(rules, &[("ada", 1)]).await;
    let wanted = json!(["Gold medal: top 10.5 %", "silver: score -5", "b: rank 10"]);
    let tiers = async |path: &str| site.get(path).await.is(200)["tiers"].clone();
    assert_eq!(tiers(path).await, wanted);
    let change = async |change: Value| site.admin(Method::PATCH, path, change).await.is(200)["tiers"].clone();
    assert_eq!(change(json!({"title": "Main"})).await, wanted);
    assert_eq!(change(json!({"tiers": ["é: rank 1"]})).await, json!(["é: rank 1"]));
    assert_eq!(change(json!({"tiers": []})).await, json!([]));
    let many: Vec<String> = (1..=20).map(|n| format!("{}{n}: top {n}.25 %", "x".repeat(38))).collect();
    assert_eq!(change(json!({"tiers": many})).await, json!(many));
    assert_eq!(site.get(path).await.is(200)["tags"], json!(["a"]));
    let acts = "SELECT count(*) FROM centile.audit_log
                WHERE action = 'change_board' AND board = 'main' AND after ->> 'tiers' LIKE '%é: rank 1%'";
    assert_eq!(query_scalar(acts).fetch_one(&db.pool().await).await.ok(), Some(1_i64));

    // On the command line.
    run(&db, &["board", "create", "laps", "--tier", "gold:top 10%", "--tier", "silver: score 5000"]).well();
    let shown = run(&db, &["board", "show", "laps", "--json"]).json();
    assert_eq!(shown["tiers"], json!(["gold: top 10 %", "silver: score 5000"]));
    let table = run(&db, &["board", "show", "laps"]).well();
    assert!(table.contains("gold: top 10 %") && table.contains("silver: score 5000"), "{table}");
    let shown = || run(&db, &["board", "show", "laps", "--json"]).json()["tiers"].clone();
    run(&db, &["board", "change", "laps", "--tier", "crown: rank 1"]).well();
    assert_eq!(shown(), json!(["crown: rank 1"]));
    run(&db, &["board", "change", "laps", "--no-tiers"]).well();
    assert_eq!(shown(), json!([]));
    run(&db, &["board", "change", "laps", "--no-tiers", "--tier", "a: rank 1"]).refused(2, &["--no-tiers"]);
    run(&db, &["board", "create", "x", "--tier", "a: rank 1", "--tier", "a: rank 2"]).refused(1, &["repeats the name"]);
    run(&db, &["board", "combine", "sum", "--source", "main@all_time", "--tier", "a: rank 1"]).well();
    assert_eq!(tiers("/v1/boards/sum").await, json!(["a: rank 1"]));

    // The database refuses the same values as the API.
    let pool = db.pool().await;
    let stored = async |tiers: &[&str]| {
        let statement = "SELECT centile.update_board('main', jsonb_build_object('tiers', $1))";
        query_scalar::<_, i32>(statement).bind(tiers).fetch_one(&pool).await
    };
    let long = format!("{}: rank 1", "x".repeat(41));
    for bad in [
        "",
        "gold",
        "gold: top 0 %",
        "gold: top 101 %",
        "gold: top 10",
        "gold: rank 0",
        "gold: rank 1.5",
        ": rank 1",
        "a\nb: rank 1",
        "a\u{85}: rank 1",
        "gold: score 1e3",
        "gold: score 1000000000000000000",
        "a: b: rank 1",
        &long,
    ] {
        refused(&site.admin(Method::PATCH, path, json!({"tiers": ["a: rank 1", bad]})).await, "tiers[1]");
        run(&db, &["board", "change", "main", "--tier", bad]).refused(2, &["--tier"]);
        for tiers in [&["a: rank 1", bad][..], &[bad, "a: rank 1"], &[bad]] {
            assert!(stored(tiers).await.is_err(), "{bad:?}");
        }
    }
    let repeated = ["a: rank 1", "b: rank 2", "ab: rank 2", "a: top 3 %"];
    refused(&site.admin(Method::PATCH, path, json!({"tiers": repeated})).await, "tiers[3]");
    assert!(stored(&repeated).await.is_err() && stored(&repeated[..3]).await.is_ok());
    let many: Vec<String> = (1..=21).map(|n| format!("t{n}: rank {n}")).collect();
    refused(&site.admin(Method::PATCH, path, json!({"tiers": many})).await, "tiers");
    assert!(stored(&many.iter().map(String::as_str).collect::<Vec<_>>()).await.is_err());
    // The database stores only the form that the API writes, of which it stores all.
    for odd in
        ["gold:rank 1", "gold: top 10.0 %", "gold: top 010 %", "gold: rank 01", "gold: score -0", " gold: rank 1"]
    {
        assert!(stored(&[odd]).await.is_err(), "{odd}");
    }
    for hundredths in (1..=10_000).step_by(37).chain([10_000]) {
        let tier = format!("a: top {}.{:02}%", hundredths / 100, hundredths % 100);
        let printed = change(json!({"tiers": [tier]})).await;
        assert!(printed[0].as_str().is_some_and(|printed| printed.ends_with(" %")), "{tier}: {printed}");
    }
    assert!(stored(&["~: score -999999999999999999", "x: rank 999999999999999999", "й ц: top 0.01 %"]).await.is_ok());
    db.execute("UPDATE centile_store.boards SET tiers = '{}' WHERE slug = 'main'").await;
    let null = sqlx::query("UPDATE centile_store.boards SET tiers = ARRAY[NULL]").execute(&pool).await;
    let square = sqlx::query("UPDATE centile_store.boards SET tiers = ARRAY[ARRAY['a: rank 1'], ARRAY['b: rank 2']]");
    assert!(null.is_err() && square.execute(&pool).await.is_err());
}

/// Returns the tiers in a list of rows.
fn tiers(list: &Value) -> Vec<Value> {
    list["data"].as_array().unwrap().iter().map(|row| row["tier"].clone()).collect()
}

#[tokio::test]
async fn a_cached_top_has_the_new_tiers_at_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"tiers": ["gold: rank 1"]}), &[("ada", 9), ("bob", 5)]).await;
    let (path, list) = ("/v1/boards/main", "/v1/boards/main/scores");
    let first = site.get(list).await;
    assert_eq!(tiers(&first.body), [json!("gold"), Value::Null]);
    let mut tags = vec![first.headers[ETAG].clone()];
    for (rules, wanted) in [
        (json!(["gold: rank 2"]), vec![json!("gold"), json!("gold")]),
        (json!(["au: rank 1", "ag: score 5"]), vec![json!("au"), json!("ag")]),
    ] {
        site.admin(Method::PATCH, path, json!({"tiers": rules})).await.is(200);
        let now = site.get(list).await;
        assert_eq!(tiers(&now.body), wanted);
        assert_eq!(tiers(&site.get(&format!("{list}?score_text=true")).await.body), wanted);
        assert_eq!(tiers(&site.get(&format!("{list}?moved=true")).await.body), wanted);
        let known = async |tag: &str| {
            site.send(Method::GET, list, &[(IF_NONE_MATCH.as_str(), tag)], String::new()).await.status
        };
        for tag in &tags {
            assert_eq!(known(tag.to_str().unwrap()).await, 200);
        }
        assert_eq!(known(now.headers[ETAG].to_str().unwrap()).await, 304);
        tags.push(now.headers[ETAG].clone());
    }
    // Without tiers, nothing mentions them.
    site.admin(Method::PATCH, path, json!({"tiers": []})).await.is(200);
    for read in ["scores", "scores?from=2", "scores/ada", "scores/query?user_id=ada", "scores.csv", "scores.ndjson"] {
        let text = site.get(&format!("{path}/{read}")).await.text;
        assert!(text.contains("ada") || text.contains("bob"), "{text}");
        assert!(!text.contains("tier"), "{read}: {text}");
    }
    assert!(!site.get("/v1/users/ada/standings").await.text.contains("tier"));
    let result = site.post(&format!("{list}?ranks=true"), json!({"user_id": "ada", "points": 1})).await;
    assert!(result.status == 200 && !result.text.contains("tier"), "{result:?}");
    let counted = site.get(&format!("{path}/tiers")).await.is(200);
    assert_eq!((&counted["data"], &counted["players"]), (&json!([]), &json!(2)));
    assert!(!site.get("/boards/main?player=ada").await.text.contains(r#"class="tier""#));
}

#[tokio::test]
async fn files_and_pages_have_tiers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let rules = json!({"tiers": ["<1st>, \"lead\": rank 1", "gold: score 5"]});
    site.board(rules, &[("ada", 9), ("bob", 5), ("cyd", 1)]).await;
    let csv = site.get("/v1/boards/main/scores.csv").await.text;
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines[0], "position,rank,user_id,name,score,reached_at,tier");
    for (line, tier) in lines[1..].iter().zip([r#","<1st>, ""lead""""#, ",gold", ","]) {
        assert!(line.ends_with(tier), "{csv}");
    }
    let ndjson = site.get("/v1/boards/main/scores.ndjson").await.text;
    let found: Vec<Value> =
        ndjson.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["tier"].clone()).collect();
    assert_eq!(found, [json!("<1st>, \"lead\""), json!("gold"), Value::Null]);

    for path in ["/boards/main", "/embed/main"] {
        let page = site.get(path).await.text;
        assert!(
            page.contains(r#"<bdi>bob</bdi></a><span class="tier"> gold</span>"#)
                || page.contains(r#"<bdi>bob</bdi><span class="tier"> gold</span>"#),
            "{path}: {page}"
        );
        assert!(page.contains(r#"<span class="tier"> &lt;1st&gt;, &quot;lead&quot;</span>"#), "{path}: {page}");
        assert_eq!(page.matches(r#"class="tier""#).count(), 2, "{path}: {page}");
    }
    // The ranking, the player below it, the card, the players around and the friends.
    let page = site.get("/boards/main?player=bob&friends=cyd&friends=ada").await.text;
    assert!(page.contains(r#"<span data-live="tier"><span class="tier"> gold</span></span>"#), "{page}");
    assert_eq!(page.matches(r#"class="tier""#).count(), 2 + 1 + 2 + 1 + 1, "{page}");
}

#[tokio::test]
async fn a_closed_period_keeps_tags_and_tiers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.admin(Method::POST, "/v1/boards", json!({"slug": "other", "mode": "sum"})).await.is(201);
    erase::played(&db, &site).await;
    // Closed without tiers.
    let read = async |path: &str| site.get(&format!("/v1/boards/main/{path}period={}", erase::WEEK)).await;
    let paths = ["scores?", "scores?from=2&", "scores/bob?", "scores/query?user_id=bob&", "tiers?", "scores.csv?"];
    let mut before = Vec::new();
    for path in paths {
        before.push(read(path).await);
    }
    site.admin(Method::PATCH, "/v1/boards/main", json!({"tiers": ["gold: rank 1"]})).await.is(200);
    for (path, before) in paths.iter().zip(&before) {
        let now = read(path).await;
        assert_eq!((now.headers.get(ETAG), &now.text), (before.headers.get(ETAG), &before.text), "{path}");
    }
    assert_eq!(tiers(&site.get("/v1/boards/main/scores").await.body)[0], "gold");
    // A refresh keeps them.
    run(&db, &["refresh", "--board", "main", "--period", erase::WEEK, "--reason", "test", "--by", "dora"]).well();
    assert!(!read("scores?").await.text.contains("tier"));
    assert_eq!(read("tiers?").await.body["data"], json!([]));
    let kept: (i64, i64) = query_as(
        "SELECT count(*) FILTER (WHERE tiers = '{}'), count(*) FILTER (WHERE tiers <> '{}') FROM centile.periods WHERE board = 'main'",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    assert!(kept.0 == 1 && kept.1 > 0, "{kept:?}");
}

#[tokio::test]
async fn progress_has_the_tiers_of_each_snapshot() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board_with_snapshots(&db, &site, 4).await;
    let path = "/v1/boards/main/scores/late/progress";
    take(&db, 3).await;
    run(&db, &["board", "change", "main", "--tier", "all: rank 1000"]).well();
    take(&db, 2).await;
    run(&db, &["board", "change", "main", "--tier", "rich: score 80"]).well();
    take(&db, 1).await;
    site.admin(Method::PATCH, "/v1/boards/main", json!({"tiers": ["new: rank 1"]})).await.is(200);
    let rows = site.get(path).await.is(200);
    assert_eq!(tiers(&rows), [json!("rich"), json!("all"), Value::Null], "{rows}");
    let sql: Vec<(Option<String>,)> =
        query_as("SELECT tier FROM centile.progress('main', 'late')").fetch_all(&db.pool().await).await.unwrap();
    assert_eq!(json!(sql), json!([["rich"], ["all"], [null]]));
    let one = "SELECT tier FROM centile.player_rank('main', $1, $2)";
    let first = site.get("/v1/boards/main/scores?limit=1").await.is(200)["data"][0]["user_id"].clone();
    for (user, period, wanted) in [
        (first.as_str().unwrap(), "all_time", Some("new")),
        ("late", "all_time", None),
        ("late", &*format!("snapshot:{}", rows["data"][0]["period"]["label"].as_str().unwrap()), Some("rich")),
    ] {
        let tier: Option<String> = query_scalar(one).bind(user).bind(period).fetch_one(&db.pool().await).await.unwrap();
        assert_eq!(tier.as_deref(), wanted, "{user} {period}");
    }
    // Without tiers now, those of then remain.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"tiers": []})).await.is(200);
    let rows = site.get(path).await.is(200);
    assert_eq!(rows["data"][0]["tier"], "rich");
    assert!(!rows["data"][2].as_object().unwrap().contains_key("tier"), "{rows}");
}
