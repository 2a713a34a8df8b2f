//! Live pages: rows move, the rest of the page does not, and interrupted streams reconnect.

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use super::{SCORES, assert_player, assert_same, driver::Browser};
use crate::{
    http::api::site::Site,
    http::pages::{board, players},
    support::{Files, Serve, TestDb, centile, import, run, spawn_serve, wait::until},
};

/// Returns when the page reports that it is live.
pub async fn until_live(browser: &Browser) {
    browser.until("document.querySelector('.state.live')?.textContent === 'live'").await;
}

/// Waits until the service has one subscriber.
async fn until_one_subscriber(serve: &Serve) {
    until("one subscriber", async || {
        let numbers = serve.client.get(serve.at("/metrics")).send().await.unwrap().text().await.unwrap();
        numbers.lines().any(|line| line == "centile_live_subscribers 1")
    })
    .await;
}

/// Condition: this player is in the first row.
fn is_first(player: &str) -> String {
    format!("document.querySelector('table[data-live=top] tbody tr').dataset.user === '{player}'")
}

/// Sums up all layout shifts from now on (Layout Instability, 4).
pub const WATCH_JUMPS: &str = "window.jumps = 0; window.jumped = []; new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
        window.jumps += value;
        window.jumped.push([value, ...sources.map(({ node, previousRect, currentRect }) => [node?.outerHTML, previousRect.y, currentRect.y])]);
    }
}).observe({ type: 'layout-shift' })";

#[tokio::test]
async fn a_score_moves_its_row_and_nothing_else_jumps() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(60)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?player=p030&friends=p031&friends=p032")).await;
    until_live(&browser).await;
    browser.run(WATCH_JUMPS).await;
    let here =
        async || browser.run("return Number(document.querySelector('.histogram .here').getAttribute('x1'))").await;
    let (place, total) = (here().await.as_f64().unwrap(), 400.0);
    assert!((place - total / 2.0).abs() < total / 20.0, "the middle player of evenly spread ones is at {place}");
    // Players from far below, from the top and from beside the player, and the player.
    let mut slowest = 0;
    for (turn, player) in ["p060", "p001", "p031", "p030", "p059"].into_iter().enumerate() {
        site.post(SCORES, json!({"user_id": player, "points": 100_000 * (turn + 1)})).await.is(200);
        let acknowledged = Instant::now();
        browser.until(&is_first(player)).await;
        slowest = slowest.max(acknowledged.elapsed().as_millis());
        assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
        assert_eq!(browser.run("return document.querySelector('tr .move:not(:empty)') !== null").await, true);
    }
    #[expect(clippy::print_stdout, reason = "the time is shown but not judged: the machine may be busy")]
    {
        println!("a row has moved {slowest} ms after the answer to its score, at most");
    }
    browser.until("document.querySelector('[data-live=rank] data').value === '2'").await;
    assert_player(&browser, &site, &format!("{SCORES}/p030?around=4")).await;
    assert_eq!(here().await, total, "and at the end among those as they came");
    let order =
        "[...document.querySelectorAll('table[data-live=friends] tbody tr')].map((row) => row.dataset.user).join()";
    assert_eq!(browser.run(&format!("return {order}")).await, "p031,p032");
    let log = browser.run("return document.querySelector('[data-live=log]').textContent").await;
    assert!(log.as_str().unwrap().contains("p059 passed p030"), "{log}");
    let jumps = browser.run("return window.jumps").await;
    assert!(jumps.as_f64().unwrap() < 0.01, "{jumps}");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_selected_players_time_and_metadata_follow_a_score() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"mode": "best"}), &[]).await;
    let score = async |points: i64, metadata: Value| {
        site.post(SCORES, json!({"user_id": "ann", "points": points, "metadata": metadata})).await.is(200);
    };
    score(5, json!({"level": "first"})).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?player=ann")).await;
    until_live(&browser).await;
    assert_eq!(browser.text("[data-live=decided] code").await, r#"{"level":"first"}"#);
    score(9, json!({"level": "<b>second"})).await;
    browser
        .until(r#"document.querySelector('[data-live=decided] code').textContent === '{"level":"<b>second"}'"#)
        .await;
    let at = site.get(&format!("{SCORES}/ann")).await.is(200)["reached_at"].clone();
    assert_eq!(browser.run("return document.querySelector('[data-live=decided]').dataset.by").await, at);
    score(10, Value::Null).await;
    browser.until("!document.querySelector('[data-live=decided] code')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_selected_players_row_stays_in_sight() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--avatar-origins", "https://cdn.example"]).await;
    board(&site, &players(60)).await;
    // No browser can load the last one. The service accepts it.
    for (user, avatar) in [("p001", "https://elsewhere.example/a.png"), ("p002", "https://host:99999/a.png")] {
        site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"avatar_url": avatar})).await.is(200);
    }
    let browser = Browser::start().await;
    browser.resize(1_280, 600, false).await;
    browser.open(&site.serve.at("/boards/main?period=week&player=p050&limit=40")).await;
    until_live(&browser).await;
    let row = "const row = document.querySelector('table[data-live=top] tfoot tr'), box = row.getBoundingClientRect();
        return [row.dataset.user, row.querySelector('.rank data').value, box.height > 0 && box.top >= 0 && box.bottom <= innerHeight + 1]";
    assert_eq!(browser.run(row).await, json!(["p050", "50", true]));
    assert!(browser.text("[data-ends]").await.starts_with("ends in "));
    // It follows the player, until the player is among the others.
    site.post(SCORES, json!({"user_id": "p050", "points": 3_000})).await.is(200);
    browser.until("document.querySelector('table[data-live=top] tfoot .rank data').value !== '50'").await;
    assert_eq!(browser.run(row).await[2], true);
    site.post(SCORES, json!({"user_id": "p050", "points": 1_000_000})).await.is(200);
    browser.until(&is_first("p050")).await;
    assert_eq!(browser.run("return document.querySelector('table[data-live=top] tfoot').hidden").await, true);
    // The row in the table stays, too.
    browser.run("scrollTo(0, document.body.scrollHeight)").await;
    let top = "return Math.round(document.querySelector('table[data-live=top] tbody tr').getBoundingClientRect().top)";
    assert_eq!(browser.run(top).await, 0);
    assert_eq!(browser.run("return document.querySelectorAll('.avatar img').length").await, 0);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_lower_score_moves_up_on_an_ascending_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let scores = [("ann", 900), ("bob", 800), ("cyd", 700), ("dan", 100)];
    site.board(json!({"mode": "best", "order": "asc"}), &scores).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?player=bob")).await;
    until_live(&browser).await;
    let here =
        async || browser.run("return Number(document.querySelector('.histogram .here').getAttribute('x1'))").await;
    let before = here().await.as_f64().unwrap();
    // Better than 800 and worse than 100: from the left half into the right one.
    site.post(SCORES, json!({"user_id": "bob", "points": 200})).await.is(200);
    browser.until("document.querySelector('[data-live=rank] data').value === '2'").await;
    let after = here().await.as_f64().unwrap();
    assert!((0.0..150.0).contains(&before) && (300.0..400.0).contains(&after), "{before} {after}");
    assert_same(&browser, &site, SCORES).await;
}

#[tokio::test]
async fn a_disconnected_page_reconnects() {
    let db = TestDb::new().await;
    let mut site = Site::start(&db, &[]).await;
    board(&site, &players(5)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    until_live(&browser).await;
    site.serve.stop().await;
    browser.until("document.querySelector('.state').textContent === 'reconnecting…'").await;
    assert_eq!(browser.run("return document.querySelectorAll('table[data-live=top] tbody tr').length").await, 5);
    // Restarts at the same address.
    let (address, url) = (site.serve.url.trim_start_matches("http://").to_owned(), db.url().to_owned());
    site.serve = tokio::task::spawn_blocking(move || {
        let mut command = centile();
        command.args(["serve", "--no-maintenance", "--address-rate", "0", "--key-rate", "0", "--listen", &address]);
        Serve::start(command.env("DATABASE_URL", url))
    })
    .await
    .unwrap();
    site.post(SCORES, json!({"user_id": "p005", "points": 1_000_000})).await.is(200);
    browser.until(&is_first("p005")).await;
    until_live(&browser).await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
}

#[tokio::test]
async fn an_interrupted_animation_continues_from_its_visible_position() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(20)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    until_live(&browser).await;
    // Slows animations down, so that a move takes twenty seconds.
    browser.chromium("Animation.enable", json!({})).await;
    browser.chromium("Animation.setPlaybackRate", json!({"playbackRate": 0.01})).await;
    let from_above = "const row = document.querySelector('table[data-live=top] [data-user=p020]'); \
                      return row.getBoundingClientRect().top - row.parentElement.getBoundingClientRect().top";
    let begins_at = browser.run(from_above).await.as_f64().unwrap();
    for (turn, player) in [(1, "p020"), (2, "p019"), (3, "p018")] {
        site.post(SCORES, json!({"user_id": player, "points": 100_000 * turn})).await.is(200);
        browser.until(&is_first(player)).await;
        let seen_at = browser.run(from_above).await.as_f64().unwrap();
        assert!(
            seen_at > begins_at / 2.0,
            "{player} has come, and a row that began at {begins_at} is seen at {seen_at}"
        );
    }
}

#[tokio::test]
async fn a_banned_player_disappears_from_an_open_page() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(9)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?player=p005&friends=p003&friends=p007")).await;
    until_live(&browser).await;
    site.admin(Method::POST, "/v1/users/p003/ban", json!({"reason": "cheated"})).await.is(200);
    browser.until("!document.querySelector('table [data-user=p003]')").await;
    assert_eq!(
        browser.run("return document.querySelector('table[data-live=friends] [data-user=p007]') !== null").await,
        true
    );
    site.admin(Method::POST, "/v1/users/p005/ban", json!({"reason": "cheated"})).await.is(200);
    browser.until("!document.querySelector('[data-player], [data-user=p005]')").await;
    until_live(&browser).await;
    assert!(browser.text("section.player").await.contains("No score in this period."));
}

#[tokio::test]
async fn a_week_that_is_closed_while_its_page_is_open_says_so() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let files = Files::new();
    let file = files.write("week.csv", "user_id,points,occurred_at\nada,20,2024-01-16T12:00:00Z\n");
    import(&db, &file, "main", &[]).well(1, 0);
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?period=week:2024-01-15")).await;
    browser.until("document.querySelector('.state').textContent === 'ended'").await;
    run(&db, &["close", "--board", "main", "--period", "week:2024-01-15"]).well();
    browser.until("document.querySelector('.state').textContent === 'closed'").await;
}

#[tokio::test]
async fn rows_from_further_down_do_not_say_that_they_are_live() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(9)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main?from=4")).await;
    // On this page only the number of players is live.
    site.post(SCORES, json!({"user_id": "one more", "points": 1_000_000})).await.is(200);
    browser.until("document.querySelector('[data-live=players] data').value === '10'").await;
    assert_eq!(browser.text(".state").await, "as of page load");
    assert_eq!(browser.run("return document.querySelector('.state.live') === null").await, true);
}

#[tokio::test]
async fn a_hidden_page_has_no_subscription() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(5)).await;
    let browser = Browser::start().await;
    // Browsers keep previous pages for the back button, and at most six connections.
    for player in ["p001", "p002", "p003", "p004"] {
        browser.open(&site.serve.at(&format!("/boards/main?player={player}"))).await;
        until_live(&browser).await;
        until_one_subscriber(&site.serve).await;
    }
    browser.back().await;
    until_live(&browser).await;
    site.post(SCORES, json!({"user_id": "p005", "points": 1_000_000})).await.is(200);
    browser.until(&is_first("p005")).await;
    until_one_subscriber(&site.serve).await;
}

#[tokio::test]
async fn a_page_retries_a_refused_subscription() {
    let db = TestDb::new().await;
    let site = Site::of(spawn_serve(&db, None, &["--address-subscribers", "1"]).await, db.url());
    board(&site, &players(5)).await;
    let other = site.serve.client.get(site.serve.at("/v1/boards/main/live")).send().await.unwrap();
    assert_eq!(other.status(), 200);
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    browser.until("document.querySelector('.state').textContent === 'reconnecting…'").await;
    drop(other);
    until_live(&browser).await;
    site.post(SCORES, json!({"user_id": "p005", "points": 1_000_000})).await.is(200);
    browser.until(&is_first("p005")).await;
}
