//! HTML pages: their headers, content and errors.
//!
//! Their content is compared with the API, through an HTML parser that is independent of how they
//! are made.

mod file;
pub mod markup;
mod read;
mod search;
mod segments;
pub mod snapshots;
mod wrong;

use std::time::Instant;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use self::read::{rows, texts};
use crate::{
    http::api::site::{Answer, Site},
    periods::closed::period::Past,
    support::{
        TestDb, amount, boundary,
        wait::{DEADLINE, until, until_some},
    },
};

/// Returns this many players in descending order of points.
pub fn players(count: i64) -> Vec<(String, i64)> {
    (1..=count).map(|n| (format!("p{n:03}"), (count - n + 1) * 1_000 + n)).collect()
}

/// Creates a board with these players.
pub async fn board(site: &Site, players: &[(String, i64)]) {
    site.board(json!({}), &[]).await;
    let events: Vec<Value> = players.iter().map(|(user, points)| json!({"user_id": user, "points": points})).collect();
    site.post("/v1/boards/main/scores", Value::from(events)).await.is(200);
}

/// Returns the page at `path`, which must exist.
async fn page(site: &Site, path: &str) -> String {
    let answer = site.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.text
}

/// Returns id, name, rank and score of each row of an API list, in the columns of a page's table.
fn of_list(list: &Value) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let rows = list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter();
    rows.map(|row| ["user_id", "name", "rank", "score"].map(|name| text(&row[name]))).collect()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).unwrap_or_else(|| panic!("no {name} in {headers:?}")).to_str().unwrap()
}

/// Fails unless the policy allows only the service's own scripts and forbids frames.
fn assert_strict(answer: &Answer) {
    let policy = header(&answer.headers, "content-security-policy");
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for wanted in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(directives.contains(&wanted), "{wanted} is not in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
    assert_eq!(header(&answer.headers, "x-content-type-options"), "nosniff");
    assert_eq!(header(&answer.headers, "content-type"), "text/html; charset=utf-8");
}

#[tokio::test]
async fn pages_have_a_strict_policy_and_must_be_revalidated() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(3)).await;
    for path in ["/", "/boards/main", "/boards/main?player=p002&friends=p001&friends=nobody", "/boards/main?period=day"]
    {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_strict(&answer);
        assert_eq!(header(&answer.headers, "cache-control"), "no-cache", "{path}");
        assert_eq!(header(&answer.headers, "vary"), "accept-encoding", "{path}");
        // The page loads nothing from elsewhere, and contains nothing that the policy forbids.
        for (_, attributes) in read::elements(&answer.text) {
            for (name, value) in attributes {
                assert!(name != "style" && !name.starts_with("on"), "{path}: {name}={value:?}");
                assert!(
                    !["href", "src", "action"].contains(&&*name) || value.starts_with(['/', '#']),
                    "{path}: {value}"
                );
            }
        }
        let scripts = read::elements(&answer.text).into_iter().filter(|(element, _)| element == "script");
        assert_eq!(scripts.count(), 1, "{path}");
        assert!(answer.text.contains(r#"<!DOCTYPE html><html lang="en">"#), "{path}");

        let tag = header(&answer.headers, "etag").to_owned();
        let same = site.send(Method::GET, path, &[("if-none-match", &tag)], String::new()).await;
        assert_eq!((same.status, &*same.text, header(&same.headers, "etag")), (304, "", &*tag), "{path}");
        assert_eq!(header(&same.headers, "cache-control"), "no-cache", "{path}");
        let head = site.send(Method::HEAD, path, &[], String::new()).await;
        assert_eq!((head.status, &*head.text), (200, ""), "{path}");
        assert_eq!(header(&head.headers, "content-length"), answer.text.len().to_string(), "{path}");
        assert_strict(&head);
    }
    // The tag changes with the next score.
    let before = site.get("/boards/main").await;
    site.post("/v1/boards/main/scores", json!({"user_id": "p003", "points": 1})).await.is(200);
    let known = [("if-none-match", header(&before.headers, "etag"))];
    assert_eq!(site.send(Method::GET, "/boards/main", &known, String::new()).await.status, 200);
}

#[tokio::test]
async fn each_part_of_a_page_matches_the_api() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(60)).await;
    site.admin(Method::POST, "/v1/boards", json!({"slug": "other", "mode": "best", "title": "Other <one>"}))
        .await
        .is(201);
    let api = "/v1/boards/main/scores";

    // The top list, and a page from any position.
    for (query, wanted) in [
        ("", "?limit=25"),
        ("?limit=7", "?limit=7"),
        ("?from=26", "?from=26&limit=25"),
        ("?from=58&limit=10", "?from=58&limit=10"),
        ("?from=1000", "?from=1000&limit=25"),
        ("?period=week&from=5&limit=3", "?period=week&from=5&limit=3"),
        ("?period=month:previous", "?period=month:previous&limit=25"),
    ] {
        let text = page(&site, &format!("/boards/main{query}")).await;
        let list = site.get(&format!("{api}{wanted}")).await.is(200);
        assert_eq!(rows(&text, "top"), of_list(&list["data"]), "{query}");
        assert_eq!(read::data(&text, "players"), list["players"].to_string(), "{query}");
    }
    // A player with neighbours, and the targets of the pager and the names.
    let text = page(&site, "/boards/main?player=p030&friends=p001&friends=p055&friends=nobody").await;
    let standing = site.get(&format!("{api}/p030?around=4")).await.is(200);
    for member in ["rank", "score"] {
        assert_eq!(read::data(&text, member), standing[member].to_string());
    }
    // 30 of the 59 others rank below: 50.847…, rounded down.
    assert_eq!(texts(&text, "percentile"), ["50.84"]);
    assert!((standing["percentile"].as_f64().unwrap() - 50.84).abs() < 0.01, "{standing}");
    let mut around = standing["above"].as_array().unwrap().clone();
    around.push(standing.clone());
    around.extend(standing["below"].as_array().unwrap().clone());
    assert_eq!(rows(&text, "around"), of_list(&Value::from(around)));
    let friends = site.get(&format!("{api}/query?user_id=p001&user_id=p055&user_id=nobody")).await.is(200);
    assert_eq!(rows(&text, "friends"), of_list(&friends["data"]));
    assert!(text.contains("Without a score: <bdi>nobody</bdi>"), "{text}");
    // Links keep what is shown.
    for link in read::links(&text).iter().filter(|link| link.starts_with("/boards/main?")) {
        assert!(link.contains("friends="), "{link}");
        let there = page(&site, link).await;
        let list = if link.contains("among=friends") { "local" } else { "top" };
        assert!(!rows(&there, list).is_empty() || link.contains("period="), "{link}");
    }
    // The home page links to each board, and shows its leader.
    let home = page(&site, "/").await;
    assert!(home.contains("<a href=\"/boards/main\">main</a>"), "{home}");
    assert!(home.contains("<a href=\"/boards/other\">Other &lt;one&gt;</a>"), "{home}");
    for leader in ["p001", "p002", "p003"] {
        assert!(home.contains(&format!("<bdi>{leader}</bdi>")), "{leader}");
    }
    assert!(!home.contains("p004") && home.contains("No scores yet."), "{home}");
}

#[tokio::test]
async fn a_closed_week_is_found_by_name_and_matches_the_archive() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({"time_zone": "America/New_York"}), &site).await;
    past.play(1, 40, 120, "2024-01-17");
    past.close("week:2024-01-15").await;
    site.post("/v1/boards/main/scores", json!({"user_id": "p1", "points": 3})).await.is(200);
    let text = page(&site, "/boards/main?period=week:2024-01-15&player=p7").await;
    let list = site.get("/v1/boards/main/scores?period=week:2024-01-15&limit=25").await.is(200);
    assert_eq!(list["period"]["state"], "closed");
    assert_eq!(rows(&text, "top"), of_list(&list["data"]));
    assert_eq!(texts(&text, "period"), ["Week of 15 Jan 2024"]);
    assert_eq!(texts(&text, "state"), ["closed"]);
    // In the board's time zone, which is named.
    assert!(text.contains(">15 Jan 2024, 00:00</time> – "), "{text}");
    assert!(text.contains(">22 Jan 2024, 00:00</time> (America/New_York)"), "{text}");
    assert_eq!(read::data(&text, "rank"), {
        let standing = site.get("/v1/boards/main/scores/p7?period=week:2024-01-15").await.is(200);
        standing["rank"].to_string()
    });
    // The current page links to it.
    let now = page(&site, "/boards/main?period=week&player=p7").await;
    let link = "/boards/main?period=week:2024-01-15&player=p7";
    assert!(read::links(&now).iter().any(|other| other == link), "{:?}", read::links(&now));
}

/// Returns the address of board `main`'s page with these parameters.
fn address(parameters: &[(&str, &str)]) -> String {
    let written: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
        .collect();
    format!("/boards/main?{}", written.join("&"))
}

#[tokio::test]
async fn a_new_period_draws_no_scores_of_the_last_one() {
    let db = TestDb::new().await;
    db.execute(boundary::SHORT_DAYS).await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let week = async || site.get("/v1/boards/main/scores?period=week").await.is(200);
    let (mut drawn, mut empty, least) = (0, 0, amount(1, 2));
    let begun = Instant::now();
    while drawn < least || empty < least {
        assert!(begun.elapsed() < DEADLINE, "{drawn} weeks were drawn, {empty} were empty");
        site.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": 5})).await.is(200);
        let before = week().await;
        let label = before["period"]["name"].as_str().unwrap().trim_start_matches("week:");
        let shown = page(&site, "/boards/main?period=week").await;
        // Otherwise the week ended while the page was made, or before the score was written.
        if texts(&shown, "period") == [label] && before["players"] == 1 {
            assert!(shown.contains("class=\"histogram\""), "{shown}");
            drawn += 1;
        }
        until("the week ends", async || week().await["period"] != before["period"]).await;
        // A top list may lag.
        let shown = until_some("the page of the next week", async || {
            Some(page(&site, "/boards/main?period=week").await).filter(|shown| texts(shown, "period") != [label])
        })
        .await;
        assert!(!shown.contains("class=\"histogram\""), "{shown}");
        empty += 1;
    }
}
