//! The page of a board in a real browser. Tests compare its contents with the API, never with the
//! code that rendered it.

mod access;
mod driver;
mod frame;
mod live;
mod picture;
mod plain;
mod presentation;
mod snapshots;

use serde_json::{Value, json};

use self::driver::{Browser, ENTER};
use crate::{
    http::api::site::Site,
    http::pages::{board, markup, players},
    periods::closed::period::Past,
    support::TestDb,
};

const SCORES: &str = "/v1/boards/main/scores";

/// Id, rank, score and displayed name of each row of a table of the page, as text.
async fn rows(browser: &Browser, table: &str) -> Value {
    let script = "return [...document.querySelectorAll(`table[data-live=${arguments[0]}] tbody tr`)].map((row) => [row.dataset.user,
        row.querySelector('bdi').textContent, row.querySelector('.rank data').value, row.querySelector('.score data').value])";
    browser.run_with(script, json!([table])).await
}

/// The same values from a list of the API.
fn of_list(list: &Value) -> Value {
    let rows = list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter();
    rows.map(|row| json!([row["user_id"], row["name"], row["rank"].to_string(), row["score"].to_string()])).collect()
}

/// Fails unless the rows of the page equal those of the API at `path`.
async fn assert_same(browser: &Browser, site: &Site, path: &str) {
    let list = site.get(path).await.is(200);
    assert_eq!(rows(browser, "top").await, of_list(&list["data"]), "{path}");
}

/// Fails unless the page shows the same data of this player as the API.
async fn assert_player(browser: &Browser, site: &Site, path: &str) {
    let standing = site.get(path).await.is(200);
    let mut around = standing["above"].as_array().unwrap().clone();
    around.push(standing.clone());
    around.extend(standing["below"].as_array().unwrap().clone());
    assert_eq!(rows(browser, "around").await, of_list(&Value::from(around)), "{path}");
    let number = "return document.querySelector(`[data-live=${arguments[0]}] data`).value";
    for member in ["rank", "score"] {
        assert_eq!(browser.run_with(number, json!([member])).await, standing[member].to_string(), "{path}");
    }
    let shown: f64 = browser.text("[data-live=percentile]").await.parse().unwrap();
    let percentile = standing["percentile"].as_f64().unwrap();
    assert!(shown <= percentile && percentile - shown < 0.01, "{shown} is not {percentile} rounded down");
    assert_eq!(browser.text("#player-title").await, standing["name"]);
    assert_eq!(browser.run("return document.querySelectorAll('.histogram line.here').length").await, 1);
}

#[tokio::test]
async fn a_player_can_be_found_and_the_back_button_works() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(60)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/")).await;
    browser.click("main a").await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
    browser.write("#search", "p030").await;
    browser.press(ENTER).await;
    browser.until("document.querySelector('#player-title[data-player]')").await;
    assert_player(&browser, &site, &format!("{SCORES}/p030?around=4")).await;
    // Follows links by name, then to the player's place in the ranking, and all the way back.
    browser.click("table[data-live=around] tbody tr:last-child a").await;
    assert_player(&browser, &site, &format!("{SCORES}/p034?around=4")).await;
    browser.click(".actions a").await;
    assert_same(&browser, &site, &format!("{SCORES}?from=22&limit=25")).await;
    assert_eq!(browser.text("table[data-live=top] tr[aria-current] bdi").await, "p034");
    for player in ["p034", "p030"] {
        browser.back().await;
        browser.until(&format!("document.querySelector('#player-title').textContent === '{player}'")).await;
        assert_player(&browser, &site, &format!("{SCORES}/{player}?around=4")).await;
    }
    browser.back().await;
    assert_eq!(browser.address().await, site.serve.at("/boards/main"));
    assert_eq!(browser.text("#player-title").await, "All scores");
    browser.write("#search", "somebody").await;
    browser.press(ENTER).await;
    browser.until("document.querySelector('.found')").await;
    assert_eq!(browser.text("#found-title").await, "No player found for “somebody”");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn any_period_and_any_position_are_a_click_away() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 80, 200, "2024-01-17");
    past.close("week:2024-01-15").await;
    let events: Vec<Value> =
        players(40).iter().map(|(user, points)| json!({"user_id": user, "points": points})).collect();
    site.post(SCORES, Value::from(events)).await.is(200);
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
    browser.click(".periods a[href*='period=week']").await;
    assert_same(&browser, &site, &format!("{SCORES}?period=week&limit=25")).await;
    assert_eq!(browser.text(".periods a[aria-current]").await, "This week");
    browser.click(".periods summary").await;
    browser.click(".periods details a[href*='week:2024-01-15']").await;
    let week = format!("{SCORES}?period=week:2024-01-15");
    assert_same(&browser, &site, &format!("{week}&limit=25")).await;
    assert_eq!(browser.text("[data-live=period]").await, "Week of 15 Jan 2024");
    browser.until("document.querySelector('[data-live=state]').textContent === 'closed'").await;
    // To a position, and to the next page.
    browser.write("#from", "52").await;
    browser.press(ENTER).await;
    browser.until("new URL(location).searchParams.get('from') === '52'").await;
    assert_same(&browser, &site, &format!("{week}&from=52&limit=25")).await;
    browser.click(".pager a:nth-child(3)").await;
    assert_same(&browser, &site, &format!("{week}&from=77&limit=25")).await;
    browser.click(".pager a:nth-child(1)").await;
    assert_same(&browser, &site, &format!("{week}&limit=25")).await;
    for _ in 0..4 {
        browser.back().await;
    }
    assert_same(&browser, &site, &format!("{SCORES}?period=week&limit=25")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn numbers_are_written_as_the_reader_writes_them_and_keep_all_their_digits() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    // A double cannot represent this number.
    let scores = [("ada", 9_007_199_254_740_990), ("ada", 3), ("bob", -1_234)];
    site.board(json!({"points_min": -2_000}), &scores).await;
    let browser = Browser::start().await;
    let german = json!({"userAgent": "a browser", "acceptLanguage": "de-DE"});
    browser.chromium("Emulation.setUserAgentOverride", german).await;
    browser.open(&site.serve.at("/boards/main")).await;
    let score = "return [...document.querySelectorAll('table[data-live=top] .score data')].map((data) => [data.value, data.textContent])";
    let wanted = |first: &str, shown: &str| json!([[first, shown], ["-1234", "-1.234"]]);
    assert_eq!(browser.run(score).await, wanted("9007199254740993", "9.007.199.254.740.993"));
    // The same after a change.
    browser.until("document.querySelector('.state.live')").await;
    site.post(SCORES, json!({"user_id": "ada", "points": 2})).await.is(200);
    browser.until("document.querySelector('tr[data-user=ada] .score data').value !== '9007199254740993'").await;
    assert_eq!(browser.run(score).await, wanted("9007199254740995", "9.007.199.254.740.995"));
}

#[tokio::test]
async fn markup_in_a_name_is_shown_as_text() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let (first, later) = {
        let mut players = markup::hostile();
        let later = players.split_off(3);
        (players, later)
    };
    let score = async |n: usize, (id, name): &(String, String)| {
        markup::call(&site, id, name).await;
        site.post(SCORES, json!({"user_id": id, "points": n + 1})).await.is(200);
    };
    for (n, player) in first.iter().enumerate() {
        score(n, player).await;
    }
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    browser.run("window.alert = () => { document.title = 'fallen'; }").await;
    assert_same(&browser, &site, SCORES).await;
    // The same for players that the script adds.
    browser.until("document.querySelector('.state.live')").await;
    for (n, player) in later.iter().enumerate() {
        score(n + first.len(), player).await;
    }
    let all = first.len() + later.len();
    browser.until(&format!("document.querySelectorAll('table[data-live=top] tbody tr').length === {all}")).await;
    assert_same(&browser, &site, SCORES).await;
    // Their links open their pages.
    for row in 1..=all {
        browser.open(&site.serve.at("/boards/main")).await;
        let link = format!("table[data-live=top] tbody tr:nth-child({row}) a");
        let id = browser.run_with("return document.querySelector(arguments[0]).title", json!([link])).await;
        browser.click(&link).await;
        browser.until("document.querySelector('#player-title[data-player]')").await;
        assert_eq!(browser.run("return document.querySelector('#player-title').dataset.player").await, id);
    }
    assert_eq!(browser.run("return [document.title, document.scripts.length, document.images.length]").await[1], 1);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
