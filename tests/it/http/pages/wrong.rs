//! Errors are shown on an HTML page.

use reqwest::Method;
use serde_json::json;

use super::{address, assert_strict, board, header, page, players, read, rows, texts};
use crate::{
    http::api::site::{Answer, Site},
    support::{
        Serve, TestDb, make_key,
        proxy::{Proxy, Way},
        wait::{until, until_some},
    },
};

/// Fails unless the answer is an error page with this status, all of `words`, and a link to the
/// home page.
fn assert_page(answer: &Answer, status: u16, words: &[&str]) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_strict(answer);
    assert_eq!(header(&answer.headers, "cache-control"), "no-store");
    assert!(!answer.headers.contains_key("etag"), "{:?}", answer.headers);
    for word in words {
        assert!(answer.text.contains(word), "{word:?} is not in {}", answer.text);
    }
    assert!(answer.text.contains(&format!("<p class=\"status\">{status}</p>")), "{}", answer.text);
    assert!(read::links(&answer.text).iter().any(|link| link == "/"), "{}", answer.text);
}

#[tokio::test]
async fn unknown_items_and_invalid_values_get_an_error_page() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(3)).await;
    let get = async |path: &str| site.get(path).await;
    assert_page(&get("/boards/nowhere").await, 404, &["nowhere", "Not found"]);
    assert_page(&get("/boards/main?period=season:spring").await, 404, &["spring"]);
    assert_page(&get("/boards/main?period=week:2999-01-07").await, 404, &["2999-01-07"]);
    for (query, field) in [
        ("period=fortnight", "period"),
        ("period=day&period=week", "period"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=many", "limit"),
        ("from=0", "from"),
        ("from=-1", "from"),
        ("from=9223372036854775808", "from"),
        ("friend=ada", "friend"),
        ("friends=%FF", "friends"),
        ("friends=", "friends"),
        ("player=%00", "player"),
    ] {
        assert_page(&get(&format!("/boards/main?{query}")).await, 422, &[field]);
    }
    let twenty: Vec<(&str, &str)> = (0..20).map(|_| ("friends", "ada")).collect();
    assert_page(&get(&address(&twenty)).await, 422, &["friends"]);
    assert_page(&get(&address(&[("player", &"x".repeat(129))])).await, 422, &["player", "128"]);
    assert_page(&get("/?a=b").await, 422, &["a"]);
    assert_page(&get("/boards/A%3Cb%3E").await, 404, &["A&lt;b&gt;"]);
    // A form with an empty field sends an empty parameter.
    assert_eq!(get("/boards/main?player=").await.status, 200);
    // An unknown player does not make the board's page a 404.
    for (query, words) in [
        ("player=nobody", "Unknown player."),
        ("period=day:previous&player=p001", "No score in this period."),
        ("period=day:previous&player=nobody", "Unknown player."),
    ] {
        let text = page(&site, &format!("/boards/main?{query}")).await;
        assert!(text.contains(words), "{query}: {text}");
    }
    for path in ["/boards", "/boards/", "/boards/main/player", "/boards/main/"] {
        assert_page(&get(path).await, 404, &[path]);
    }
    let answer = site.send(Method::POST, "/boards/main", &[], String::new()).await;
    assert_page(&answer, 405, &["not POST"]);
    assert_eq!(header(&answer.headers, "allow"), "GET, HEAD");
    // Paths for programs still answer with JSON or plain text.
    for path in ["/assets/none.css", "/v1/boards/nowhere", "/nowhere"] {
        let answer = get(path).await;
        assert_eq!(
            (answer.status, header(&answer.headers, "content-type")),
            (404, "application/problem+json"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_rate_limited_client_gets_an_error_page() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--address-rate", "1", "--address-burst", "3"]).await;
    site.board(json!({}), &[]).await;
    for _ in 0..20 {
        let answer = site.get("/boards/main").await;
        if answer.status == 429 {
            assert_page(&answer, 429, &["Too many requests"]);
            assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
            return;
        }
    }
    panic!("no request was refused");
}

#[tokio::test]
async fn a_board_that_needs_a_key_has_no_page_without_one() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"reading": "key", "title": "Hidden"}), &[("player-ada", 5)]).await;
    let answer = site.get("/boards/main?player=player-ada").await;
    assert_page(&answer, 401, &["read with a key"]);
    assert!(!answer.text.contains("player-ada") && !answer.text.contains("Hidden"), "{}", answer.text);
    let home = page(&site, "/").await;
    assert!(!home.contains("Hidden") && home.contains("There are no public boards yet"), "{home}");
    let reader = format!("Bearer {}", make_key(db.url(), "reader", &["main"]));
    let answer = site.send(Method::GET, "/boards/main", &[("authorization", &reader)], String::new()).await;
    assert_eq!(rows(&answer.text, "top").len(), 1, "{}", answer.text);
}

#[tokio::test]
async fn a_page_shows_an_outage_and_its_age() {
    let db = TestDb::new().await;
    let way = Proxy::to(db.port()).await;
    let (url, prefix) = (way.instead(db.url()), db.redis_prefix());
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &[])).await.unwrap();
    let site = Site::of(serve, db.url());
    board(&site, &players(30)).await;
    let path = "/boards/main?player=p003&friends=p004";
    let before = page(&site, path).await;
    assert_eq!(
        (rows(&before, "top").len(), rows(&before, "around").len(), rows(&before, "friends").len()),
        (25, 6 + 1, 1)
    );
    assert_eq!(texts(&before, "state"), [""]);
    assert!(before.contains("data-state=\"open\""), "{before}");

    way.set(Way::Reset);
    // A top list may lag.
    let away = until_some("the page shows the outage", async || {
        let away = site.get(path).await;
        assert_eq!(away.status, 200, "{}", away.text);
        (texts(&away.text, "state") != [""]).then_some(away)
    })
    .await;
    assert_strict(&away);
    assert_eq!(rows(&away.text, "top"), rows(&before, "top"));
    assert!(texts(&away.text, "state")[0].contains("cannot be reached"), "{}", away.text);
    // The state is missing too: otherwise the script would reload the page again and again.
    assert!(!away.text.contains("data-state"), "{}", away.text);
    // Ranks that cannot be verified are not shown.
    assert!(rows(&away.text, "around").is_empty() && rows(&away.text, "friends").is_empty(), "{}", away.text);
    assert!(away.text.contains("cannot be looked up now"), "{}", away.text);
    // Lists further down and boards that were not read before are not cached.
    for path in ["/boards/main?from=26", "/boards/other"] {
        let answer = site.get(path).await;
        assert_page(&answer, 503, &["Service unavailable"]);
        assert!(answer.headers.contains_key("retry-after"), "{path}");
    }

    way.set(Way::Open);
    // Broken connections are found one by one.
    until("the page recovers", async || {
        let after = page(&site, path).await;
        texts(&after, "state") == [""] && rows(&after, "around") == rows(&before, "around")
    })
    .await;
}
