//! How boards and scores are shown: format, description, icon and colour.

use reqwest::{
    Method,
    header::{CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH},
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

/// Returns the members that say how a board is shown.
fn shown(board: &Value) -> Value {
    json!([board["score_format"], board["description"], board["icon_url"], board["colour"]])
}

#[tokio::test]
async fn boards_say_how_they_are_shown() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let (path, icon) = ("/v1/boards/main", "https://example.com/a.png?size=2");
    site.board(json!({"slug": "plain"}), &[]).await;
    assert_eq!(shown(&site.get("/v1/boards/plain").await.is(200)), json!(["number", null, null, null]));
    let rules = json!({"score_format": "decimal:2 km", "description": "Line <b>", "icon_url": icon, "colour": "#1F6FEB", "tags": ["a"]});
    site.board(rules, &[("ada", 12_345)]).await;
    let wanted = json!(["decimal:2 km", "Line <b>", icon, "#1f6feb"]);
    assert_eq!(shown(&site.get(path).await.is(200)), wanted);
    let source = json!({"sources": [{"board": "main", "period": "all_time"}]});
    let rules = json!({"slug": "hero", "mode": "combined", "combination": source, "score_format": "duration:s", "colour": "#000000"});
    assert_eq!(
        shown(&site.admin(Method::POST, "/v1/boards", rules).await.is(201)),
        json!(["duration:s", null, null, "#000000"])
    );

    // A change leaves the others, the tags and the scores alone; null removes.
    let before = site.get("/v1/boards/main/scores/ada").await.is(200);
    let change = async |change: Value| shown(&site.admin(Method::PATCH, path, change).await.is(200));
    assert_eq!(change(json!({"title": "Main"})).await, wanted);
    assert_eq!(change(json!({"score_format": "number points"})).await[0], "number points");
    assert_eq!(change(json!({"description": null, "icon_url": "/icons/main.svg"})).await[1], Value::Null);
    assert_eq!(change(json!({})).await, json!(["number points", null, "/icons/main.svg", "#1f6feb"]));
    assert_eq!(change(json!({"icon_url": null, "colour": null})).await, json!(["number points", null, null, null]));
    assert_eq!(site.get("/v1/boards/main/scores/ada").await.is(200), before);
    assert_eq!(site.get(path).await.is(200)["tags"], json!(["a"]));
    // A change that changes nothing is no act.
    let acts = "SELECT count(*), count(*) FILTER (WHERE before ->> 'colour' = '#1f6feb' AND after ->> 'colour' IS NULL)
                FROM centile.audit_log WHERE action = 'change_board' AND board = 'main'";
    assert_eq!(query_as(acts).fetch_one(&db.pool().await).await.ok(), Some((4_i64, 1_i64)));

    // On the command line and in SQL.
    let flags = [
        "--score-format",
        "duration:ms",
        "--description",
        "Laps of a day",
        "--icon-url",
        "/laps.png",
        "--colour",
        "#AA0000",
    ];
    run(&db, &[&["board", "create", "laps"][..], &flags].concat()).well();
    let wanted = json!(["duration:ms", "Laps of a day", "/laps.png", "#aa0000"]);
    assert_eq!(shown(&run(&db, &["board", "show", "laps", "--json"]).json()), wanted);
    let table = run(&db, &["board", "show", "laps"]).well();
    for word in ["duration:ms", "Laps of a day", "/laps.png", "#aa0000"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let view =
        "SELECT jsonb_build_array(score_format, description, icon_url, colour) FROM centile.boards WHERE slug = 'laps'";
    assert_eq!(query_scalar::<_, Value>(view).fetch_one(&db.pool().await).await.ok(), Some(wanted));
    run(
        &db,
        &["board", "change", "laps", "--description", "", "--icon-url", "", "--colour", "", "--score-format", "number"],
    )
    .well();
    assert_eq!(shown(&site.get("/v1/boards/laps").await.is(200)), json!(["number", null, null, null]));
    run(&db, &["board", "combine", "sum", "--source", "main@all_time", "--score-format", "decimal:1"]).well();
    assert_eq!(site.get("/v1/boards/sum").await.is(200)["score_format"], "decimal:1");

    for (field, flag, bad) in [
        ("score_format", "--score-format", "decimal:0"),
        ("score_format", "--score-format", "duration:ms laps"),
        ("icon_url", "--icon-url", "http://example.com/a.png"),
        ("icon_url", "--icon-url", "//example.com/a.png"),
        ("icon_url", "--icon-url", "/\\example.com"),
        ("icon_url", "--icon-url", "javascript:alert(1)"),
        ("colour", "--colour", "red"),
        ("colour", "--colour", "#12345"),
        ("description", "--description", "a\tb"),
    ] {
        refused(&site.admin(Method::PATCH, path, json!({field: bad})).await, field);
        run(&db, &["board", "change", "main", flag, bad]).refused(2, &[flag]);
        // The database stores any text as a description.
        let stored = query_scalar::<_, i32>("SELECT centile.update_board('main', $1)").bind(json!({field: bad}));
        let stored = stored.fetch_one(&db.pool().await).await;
        assert_eq!(stored.is_err(), field != "description", "{bad:?}");
        db.execute("SELECT centile.update_board('main', '{\"description\": null}')").await;
    }
    refused(&site.admin(Method::PATCH, path, json!({"description": ""})).await, "description");
    refused(&site.admin(Method::PATCH, path, json!({"description": "x".repeat(1_001)})).await, "description");
    assert_eq!(shown(&site.get(path).await.is(200)), json!(["number points", null, null, null]));
}

/// Returns the texts of the scores in a list of rows.
fn texts(rows: &Value) -> Vec<Value> {
    rows.as_array().unwrap().iter().map(|row| row["score_text"].clone()).collect()
}

#[tokio::test]
async fn scores_have_texts_on_request() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let rules = json!({"mode": "best", "order": "asc", "score_format": "duration:ms", "tags": ["t"]});
    site.board(rules, &[("ada", 83_456), ("bob", 3_725_001), ("cyd", -7)]).await;
    site.board(json!({"slug": "kills", "score_format": "number kills", "tags": ["t"]}), &[("ada", 1_234)]).await;
    let all = [json!("-0:00.007"), json!("1:23.456"), json!("1:02:05.001")];

    let list = "/v1/boards/main/scores";
    let get = async |path: &str| site.get(&format!("{list}{path}")).await.is(200);
    assert_eq!(texts(&get("?score_text=true").await["data"]), all);
    assert_eq!(texts(&get("?score_text=true&limit=2").await["data"]), all[..2]);
    assert_eq!(texts(&get("?score_text=true&from=2").await["data"]), all[1..]);
    let cursor = get("?limit=1").await["next_cursor"].as_str().unwrap().to_owned();
    assert_eq!(texts(&get(&format!("?score_text=true&cursor={cursor}")).await["data"]), all[1..]);
    assert_eq!(texts(&get("/query?user_id=bob&user_id=ada&score_text=true").await["data"]), all[1..]);
    let chosen = site.post(&format!("{list}/query"), json!({"user_ids": ["cyd"], "score_text": true})).await.is(200);
    assert_eq!(texts(&chosen["data"]), all[..1]);
    let standing = get("/ada?score_text=true&around=1").await;
    let own = [texts(&standing["above"]), vec![standing["score_text"].clone()], texts(&standing["below"])].concat();
    assert_eq!(own, all);
    let standings = site.get("/v1/users/ada/standings?tag=t&score_text=true").await.is(200);
    assert_eq!(texts(&standings["data"]), [json!("1234 kills"), json!("1:23.456")]);
    // The number is always there, and the text only on request.
    assert_eq!(standings["data"][1]["score"], 83_456);
    for path in ["", "?from=2", "/ada", "/query?user_id=ada", "?score_text=false"] {
        assert!(!get(path).await.to_string().contains("score_text"), "{path}");
    }
    assert!(!site.get("/v1/users/ada/standings").await.text.contains("score_text"));
    refused(&site.get("/v1/boards/main/scores?score_text=yes").await, "score_text");

    // The rest of the response is the same.
    let (mut with, without) = (get("?score_text=true").await, get("").await);
    for row in with["data"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("score_text");
    }
    assert_eq!(with, without);
}

#[tokio::test]
async fn a_new_format_changes_the_entity_tags_of_texts() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    erase::played(&db, &site).await;
    let week = format!("period={}", erase::WEEK);
    let paths = ["scores?", "scores?from=2&", "scores/bob?", "scores/query?user_id=bob&"]
        .map(|path| format!("/v1/boards/main/{path}{week}&score_text=true"));
    let tag = |answer: &Answer| answer.headers[ETAG].to_str().unwrap().to_owned();
    let mut tags = Vec::new();
    for path in &paths {
        let plain = site.get(&path.replace("&score_text=true", "")).await;
        let with_text = site.get(path).await;
        assert_ne!(tag(&plain), tag(&with_text), "{path}");
        tags.push(tag(&with_text));
    }
    let status = async |path: &str, tag: &str| {
        site.send(Method::GET, path, &[(IF_NONE_MATCH.as_str(), tag)], String::new()).await.status
    };
    for (path, tag) in paths.iter().zip(&tags) {
        assert_eq!(status(path, tag).await, 304, "{path}");
    }
    site.admin(Method::PATCH, "/v1/boards/main", json!({"score_format": "decimal:1"})).await.is(200);
    for (path, tag) in paths.iter().zip(&tags) {
        assert_eq!(status(path, tag).await, 200, "{path}");
        let (text, wanted) = (site.get(path).await.text, if path.contains("from") { "1.0" } else { "3.0" });
        assert!(text.contains(&format!(r#""score_text":"{wanted}""#)), "{path}: {text}");
    }
}

#[tokio::test]
async fn progress_has_texts_on_request() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board_with_snapshots(&db, &site, 4).await;
    take(&db, 3).await;
    take(&db, 1).await;
    site.admin(Method::PATCH, "/v1/boards/main", json!({"score_format": "decimal:1 m"})).await.is(200);
    let path = "/v1/boards/main/scores/late/progress";
    let rows = site.get(&format!("{path}?score_text=true")).await.is(200);
    assert_eq!((&rows["data"][0]["score"], &rows["data"][1]["score"]), (&json!(80), &Value::Null), "{rows}");
    assert_eq!(texts(&rows["data"]), [json!("8.0 m"), Value::Null]);
    assert!(!site.get(path).await.text.contains("score_text"));
    // The chart and its table show the same.
    let page = site.get("/boards/main?period=all_time&player=late").await.text;
    assert!(page.contains(", score 8.0 m</title>"), "{page}");
    assert!(
        page.contains(r#"<td class="score"><data value="80" data-format="decimal:1 m">8.0 m</data></td>"#),
        "{page}"
    );
    assert!(page.contains(r#"data-format="decimal:1 m">10.0 m</text>"#) || page.contains(" m</text>"), "{page}");
}

#[tokio::test]
async fn pages_show_boards_in_their_format() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--frame-origins", "https://example.com"]).await;
    let description = "The <i>longest</i> & best";
    let rules = json!({
        "score_format": "decimal:2 km", "description": description, "icon_url": "/icons/main.svg", "colour": "#AA00bb",
    });
    site.board(rules, &[("ada", 1_234_567), ("bob", -5), ("cyd", 100)]).await;
    let cell = r#"<td class="score"><data value="1234567" data-format="decimal:2 km">12,345.67 km</data></td>"#;
    let icon = r#"<img class="icon" src="/icons/main.svg" alt="">"#;
    let colour = r##"fill="#aa00bb""##;
    for path in ["/boards/main", "/boards/main?player=bob", "/embed/main"] {
        let page = site.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for part in [cell, icon, colour, "\u{2212}0.05 km", "1.00 km", r#"data-format="decimal:2 km""#] {
            assert!(page.text.contains(part), "{path}: no {part} in {}", page.text);
        }
        assert!(page.headers[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("img-src 'self'"), "{path}");
        assert!(!page.text.contains("1,234,567"), "{path}: {}", page.text);
    }
    let page = site.get("/boards/main?player=bob").await.text;
    assert!(page.contains("The &lt;i&gt;longest&lt;/i&gt; &amp; best"), "{page}");
    // Charts.
    for part in ["from \u{2212}0.05 km to 12,345.67 km. This player has \u{2212}0.05 km.", "<title>\u{2212}0.05 km to "]
    {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let home = site.get("/").await.text;
    for part in [
        icon,
        colour,
        r#"<span class="score"><data value="1234567" data-format="decimal:2 km">12,345.67 km</data></span>"#,
    ] {
        assert!(home.contains(part), "no {part} in {home}");
    }
    // A picture on another host is for game clients: pages load nothing from there.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"icon_url": "https://example.org/a.png", "colour": null}))
        .await
        .is(200);
    for path in ["/boards/main", "/embed/main", "/"] {
        let page = site.get(path).await.text;
        assert!(!page.contains("example.org") && !page.contains("<img") && !page.contains("<circle"), "{path}: {page}");
    }
    // Nothing changes on a board that says nothing.
    site.admin(
        Method::PATCH,
        "/v1/boards/main",
        json!({"score_format": "number", "description": null, "icon_url": null}),
    )
    .await
    .is(200);
    let page = site.get("/boards/main").await.text;
    assert!(page.contains(r#"<td class="score"><data value="1234567">1,234,567</data></td>"#), "{page}");
    assert!(!page.contains("data-format") && !page.contains("about"), "{page}");
}
