//! Moves since a snapshot, and the chart of a player's progress, in a browser.

use serde_json::{Value, json};

use super::{SCORES, assert_same, driver::Browser, live::WATCH_JUMPS, live::until_live};
use crate::{
    http::api::site::Site,
    http::pages::snapshots::{board, changes, take},
    support::TestDb,
};

/// Id and text of the change of each row, as a screen reader reads it.
const CHANGES: &str = "[...document.querySelectorAll('table[data-live=top] tbody tr')]
    .map((row) => [row.dataset.user, row.querySelector('.move').textContent])";

/// Waits until the page shows the same moves as the API.
async fn until_same(browser: &Browser, site: &Site) {
    let list = site.get(&format!("{SCORES}?moved=true&limit=25")).await.is(200);
    let wanted = Value::from(changes(&list).into_iter().map(|row| json!(row)).collect::<Vec<_>>());
    browser.until(&format!("JSON.stringify({CHANGES}) === JSON.stringify({wanted})")).await;
}

#[tokio::test]
async fn moves_since_a_snapshot_follow_live_updates() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&db, &site, 4).await;
    take(&db, 2).await;
    let browser = Browser::start().await;
    // All rows are visible. A moving row that comes into sight in a slow frame counts as a jump.
    browser.resize(1_280, 1_600, false).await;
    browser.open(&site.serve.at("/boards/main")).await;
    until_live(&browser).await;
    until_same(&browser, &site).await;
    browser.run(WATCH_JUMPS).await;
    // A player from below the page, two who are new, and one of the page, up and down.
    let last = site.get(&format!("{SCORES}?from=31&limit=1")).await.is(200)["data"][0]["user_id"].clone();
    for (user, points) in
        [(last, 10_000), (json!("new"), 20_000), (json!("p020"), 30_000), (json!("other"), 5), (json!("p020"), -30_000)]
    {
        site.post(SCORES, json!({"user_id": user, "points": points})).await.is(200);
        until_same(&browser, &site).await;
        assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
    }
    let jumps = browser.run("return window.jumps").await;
    let jumped = browser.run("return window.jumped").await;
    assert!(jumps.as_f64().unwrap() < 0.01, "{jumps}: {jumped}");
    // All of it can be read, also in a narrow window.
    for width in [1_280, 360] {
        browser.resize(width, 740, width == 360).await;
        let cut = "return [...document.querySelectorAll('table[data-live=top] .move')]
            .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)";
        assert_eq!(browser.run(cut).await, json!([]), "{width}");
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_chart_has_labels_that_can_be_read() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&db, &site, 9).await;
    site.post(SCORES, json!({"user_id": "p007", "points": 5})).await.is(200);
    for days_ago in (1..=8).rev() {
        take(&db, days_ago).await;
    }
    let browser = Browser::start().await;
    for width in [1_280, 700, 360] {
        browser.resize(width, 900, width == 360).await;
        browser.open(&site.serve.at("/boards/main?player=p007")).await;
        let texts = "const chart = document.querySelector('.progress svg'), frame = chart.getBoundingClientRect();
            return [...chart.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()])
                .map(([text, { left, right, top, bottom }]) => ({ text, left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top,
                    width: frame.width, height: frame.height }))";
        let texts = browser.run(texts).await;
        let texts = texts.as_array().unwrap();
        let number = |text: &Value, name: &str| text[name].as_f64().unwrap();
        for (n, one) in texts.iter().enumerate() {
            assert!(number(one, "bottom") - number(one, "top") > 9.0, "{width}: too small: {one}");
            assert!(
                number(one, "left") >= -1.0 && number(one, "right") <= number(one, "width") + 1.0,
                "{width}: cut: {one}"
            );
            assert!(
                number(one, "top") >= -1.0 && number(one, "bottom") <= number(one, "height") + 1.0,
                "{width}: cut: {one}"
            );
            for other in &texts[n + 1..] {
                let is_apart = |low: &str, high: &str| {
                    number(one, high) <= number(other, low) || number(other, high) <= number(one, low)
                };
                // Line boxes are higher than digits.
                let near = (number(one, "top") - number(other, "top")).abs() < 8.0;
                assert!(
                    is_apart("left", "right") || is_apart("top", "bottom") || !near,
                    "{width}: {one} covers {other}"
                );
            }
        }
        let written: Vec<&str> = texts.iter().map(|text| text["text"].as_str().unwrap()).collect();
        let day = (chrono::Utc::now() - chrono::TimeDelta::days(1)).format("%-d %b %Y").to_string();
        assert!(written.contains(&&*day), "{written:?}");
        // The table opens, and has the same dates.
        browser.click(".progress summary").await;
        assert!(browser.text(".progress tbody tr:first-child th").await == day);
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
