//! Boards embedded in other sites: the origins that may frame them, their options, and the escaping
//! of their content.

use std::collections::BTreeMap;

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use crate::{
    http::api::site::{Answer, Site},
    support::{
        Ran, TestDb, centile,
        markup::{attribute, elements, rows},
    },
};

/// A name that would break the markup if it were not escaped.
const MARKUP: &str = "</bdi><script src=//evil.example></script><a href='x'>&amp;\"";

/// Returns the policy's rule for framing, and the value of X-Frame-Options.
fn framers(headers: &HeaderMap) -> (String, Option<&str>) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    let rules: Vec<&str> =
        policy.split(';').map(str::trim).filter(|rule| rule.starts_with("frame-ancestors")).collect();
    assert_eq!(rules.len(), 1, "{policy}");
    (rules[0].to_owned(), headers.get("x-frame-options").map(|value| value.to_str().unwrap()))
}

#[tokio::test]
async fn only_named_origins_may_frame_a_board() {
    let db = TestDb::new().await;
    let paths = ["/embed/main", "/embed/none", "/embed/main?limit=0"];
    let others = ["/", "/boards/main", "/docs/", "/v1/boards", "/nowhere", "/openapi.json", "/assets/centile-board.js"];
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    for path in paths.into_iter().chain(others) {
        assert_eq!(framers(&site.get(path).await.headers), ("frame-ancestors 'none'".into(), Some("DENY")), "{path}");
    }
    drop(site);
    for (named, wanted) in [
        ("https://game.example,http://localhost:3000", "frame-ancestors https://game.example http://localhost:3000"),
        ("*", "frame-ancestors *"),
    ] {
        let site = Site::start(&db, &["--frame-origins", named]).await;
        for path in paths {
            assert_eq!(framers(&site.get(path).await.headers), (wanted.into(), None), "{path}");
        }
        for path in others {
            assert_eq!(
                framers(&site.get(path).await.headers),
                ("frame-ancestors 'none'".into(), Some("DENY")),
                "{path}"
            );
        }
    }
}

#[test]
fn an_invalid_origin_is_refused_at_the_start() {
    for bad in ["game.example", "https://game.example/", "https://*.example", "https://a.example;script-src", "'self'"]
    {
        let mut command = centile();
        command.args(["serve", "--listen", "127.0.0.1:0", "--frame-origins", bad]);
        command.env("DATABASE_URL", "postgres://centile@127.0.0.1:1/none");
        Ran::of(&mut command).refused(2, &["--frame-origins", "is not an origin"]);
    }
}

#[tokio::test]
async fn period_rows_theme_and_size_can_be_chosen() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let players: Vec<(String, i64)> = (1..=12).map(|n| (format!("p{n}"), n * 1_000)).collect();
    let scores: Vec<(&str, i64)> = players.iter().map(|(name, points)| (name.as_str(), *points)).collect();
    site.board(json!({"title": "Main", "periods": ["all_time", "week"]}), &scores).await;
    let chosen = async |query: &str| {
        let answer = site.get(&format!("/embed/main{query}")).await;
        assert_eq!(
            (answer.status, &answer.headers["content-type"]),
            (200, &"text/html; charset=utf-8".parse().unwrap())
        );
        let page = answer.text;
        let [root] = elements(&page, "html")[..] else { panic!("{page}") };
        let [section] = elements(&page, "section")[..] else { panic!("{page}") };
        let all = |element: &str, names: &[&str]| -> Vec<String> {
            names.iter().map(|name| attribute(element, name).unwrap_or_default().to_owned()).collect()
        };
        let looks = all(root, &["data-theme", "data-size"]).join(" ");
        let what = all(section, &["data-board", "data-period", "data-limit", "data-from"]).join(" ");
        (looks, what, rows(&page))
    };
    let (looks, what, default) = chosen("").await;
    assert_eq!((&*looks, &*what), ("auto normal", "main all_time 10 1"));
    assert_eq!(default.len(), 10);
    let (looks, what, week) = chosen("?period=week&limit=3&theme=dark&size=large").await;
    assert_eq!((&*looks, &*what), ("dark large", "main week 3 1"));
    assert_eq!(
        week,
        [["1", "", "p12", "12,000"], ["2", "", "p11", "11,000"], ["3", "", "p10", "10,000"]]
            .map(|row| row.map(str::to_owned))
    );
    assert_eq!(chosen("?limit=100&theme=light&size=small").await.0, "light small");
    // The same rows as in the API.
    let output = site.get("/v1/boards/main/scores?limit=10").await.is(200);
    let output: Vec<String> = output["data"].as_array().unwrap().iter().map(|row| row["name"].to_string()).collect();
    assert_eq!(default.iter().map(|row| format!("{:?}", row[2])).collect::<Vec<_>>(), output);

    let long = "week:".to_owned() + &"x".repeat(50);
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=ten", "limit"),
        ("theme=", "theme"),
        ("theme=Dark", "theme"),
        ("size=huge", "size"),
        ("period=decade", "period"),
        (&format!("period={long}"), "period"),
        ("player=ada", "player"),
        ("size=small&size=large", "size"),
        ("theme=%22%3E%3Cscript%3E", "theme"),
    ] {
        let answer = site.get(&format!("/embed/main?{query}")).await;
        assert_eq!(
            (answer.status, &answer.headers["content-type"]),
            (422, &"text/html; charset=utf-8".parse().unwrap())
        );
        assert!(answer.text.contains(&format!("<p>{field}: ")), "{query}: {}", answer.text);
        assert!(
            elements(&answer.text, "script").iter().all(|script| script.contains("src=\"/assets/")),
            "{}",
            answer.text
        );
    }
    let answer = site.get("/embed/main?theme=dark&limit=0").await;
    assert_eq!(
        attribute(elements(&answer.text, "html")[0], "data-theme"),
        Some("dark"),
        "an error page must keep the chosen look"
    );
    for (path, words) in [("/embed/none", "none"), ("/embed/main?period=day", "board main keeps")] {
        let answer = site.get(path).await;
        assert!(
            answer.status == 404 && answer.text.contains(words) && answer.text.starts_with("<!DOCTYPE html>"),
            "{answer:?}"
        );
    }
    assert_eq!(site.admin(Method::POST, "/embed/main", Value::Null).await.status, 405);
}

#[tokio::test]
async fn names_are_shown_as_text_and_the_only_link_leads_to_the_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"title": MARKUP, "periods": ["week"]}), &[("ada", 40), ("\"><img src=x>", 30)]).await;
    site.admin(Method::PUT, "/v1/users/ada", json!({"name": MARKUP})).await.is(200);
    let Answer { text: page, .. } = site.get("/embed/main?period=week").await;
    assert_eq!(rows(&page)[0][2], MARKUP);
    let counted: BTreeMap<&str, usize> = ["a", "script", "img", "form", "bdi", "tr", "iframe"]
        .into_iter()
        .map(|name| (name, elements(&page, name).len()))
        .collect();
    let wanted = [("a", 1), ("script", 2), ("img", 0), ("form", 0), ("bdi", 2), ("tr", 3), ("iframe", 0)];
    assert_eq!(counted, BTreeMap::from(wanted), "{page}");
    let link = elements(&page, "a")[0];
    let [href, target, rel] = ["href", "target", "rel"].map(|name| attribute(link, name));
    assert_eq!((href, target, rel), (Some("/boards/main?period=week"), Some("_blank"), Some("noopener")));
    // Every file that the page loads exists.
    let mut asked = 0;
    for (element, name) in [("link", "href"), ("script", "src")] {
        for found in elements(&page, element) {
            let answer = site.get(attribute(found, name).unwrap()).await;
            assert_eq!((answer.status, &answer.headers["x-content-type-options"]), (200, &"nosniff".parse().unwrap()));
            asked += 1;
        }
    }
    assert_eq!(asked, 5);
}

#[tokio::test]
async fn a_board_that_needs_a_key_cannot_be_framed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--frame-origins", "*"]).await;
    site.board(json!({"reading": "key", "title": "Hidden title"}), &[("ada-lovelace", 987_654_321)]).await;
    let answer = site.get("/embed/main").await;
    assert_eq!((answer.status, &answer.headers["www-authenticate"]), (401, &"Bearer".parse().unwrap()));
    assert!(answer.text.starts_with("<!DOCTYPE html>"), "{answer:?}");
    for word in ["ada-lovelace", "Hidden title", "987654321", "987,654,321"] {
        assert!(!answer.text.contains(word), "{answer:?}");
    }
}

#[tokio::test]
async fn a_frame_shows_every_kind_of_error() {
    let db = TestDb::new().await;
    let origin = "https://game.example";
    let slow = ["--frame-origins", origin, "--address-rate", "1", "--address-burst", "8"];
    let site = Site::start(&db, &slow).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let mut statuses = Vec::new();
    for path in ["/embed/main", "/embed/main/rows"].into_iter().cycle().take(30) {
        let answer = site.get(&format!("{path}?theme=dark")).await;
        assert_eq!(framers(&answer.headers), (format!("frame-ancestors {origin}"), None), "{answer:?}");
        assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
        assert!(answer.text.contains("data-theme=\"dark\""), "{answer:?}");
        statuses.push(answer.status);
    }
    assert_eq!(statuses[..2], [200, 404]);
    assert!(statuses[8..].contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn the_script_is_small_and_runs_on_any_page() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let script = site.get("/assets/centile-board.js").await;
    let header = |answer: &Answer, name: &str| answer.headers[name].to_str().unwrap().to_owned();
    assert_eq!((script.status, &*header(&script, "cache-control")), (200, "public, max-age=300"));
    assert!(
        script.text.len() <= 3_000 && script.text.contains("customElements.define(\"centile-board\""),
        "{script:?}"
    );
    let unchanging = site.get(&header(&script, "content-location")).await;
    assert_eq!((unchanging.status, &unchanging.text), (200, &script.text));
    assert_eq!(header(&unchanging, "cache-control"), "public, max-age=31536000, immutable");
    for answer in [&script, &unchanging] {
        assert_eq!(header(answer, "content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header(answer, "access-control-allow-origin"), "*");
    }
    // During an upgrade, a page may request a file of the other version from either instance.
    let other = site.get("/assets/centile-board.0123456789abcdef.js").await;
    assert_eq!((other.status, &other.text), (200, &script.text));
    assert_eq!(header(&other, "cache-control"), "no-cache");
    site.get("/assets/centile-board.js.0123456789abcdef").await.is(404);
}
