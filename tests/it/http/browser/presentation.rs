//! Scores in the format of their board, as the script writes them.

use serde_json::{Value, json};

use super::{SCORES, driver::Browser, live::until_live};
use crate::{http::api::site::Site, support::TestDb};

/// Texts of the scores in the table of the ranking, and of the card of the selected player.
const TEXTS: &str = "return [...document.querySelectorAll('table[data-live=top] .score data, [data-live=score] data')]
    .map((data) => data.textContent)";

#[tokio::test]
async fn the_script_writes_scores_in_the_format_of_the_board() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    // A double cannot represent the first sum.
    site.board(json!({}), &[("ada", 9_007_199_254_740_990), ("ada", 3), ("bob", -83_456), ("cyd", 5)]).await;
    let browser = Browser::start().await;
    for (language, format, wanted) in [
        ("en-US", "number points", ["9,007,199,254,740,993 points", "5 points", "-83,456 points"]),
        ("en-US", "decimal:2", ["90,071,992,547,409.93", "0.05", "-834.56"]),
        ("de-DE", "decimal:3 km", ["9.007.199.254.740,993 km", "0,005 km", "-83,456 km"]),
        ("de-DE", "duration:ms", ["2.501.999.792:59:00.993", "0:00.005", "\u{2212}1:23.456"]),
        ("en-US", "duration:s", ["2,501,999,792,983:36:33", "0:05", "\u{2212}23:10:56"]),
    ] {
        run_with(&browser, language).await;
        site.admin(reqwest::Method::PATCH, "/v1/boards/main", json!({"score_format": format})).await.is(200);
        // The player's row below the others is hidden.
        let wanted: Vec<Value> = wanted.iter().chain([&wanted[2]; 2]).map(|text| json!(text)).collect();
        browser.open(&site.serve.at("/boards/main?player=bob")).await;
        assert_eq!(browser.run(TEXTS).await, json!(wanted), "{format}");
    }
    // The same after a live update, also for a row that the script adds.
    until_live(&browser).await;
    site.post(SCORES, json!([{"user_id": "new", "points": 3_725}, {"user_id": "bob", "points": 83_456}])).await.is(200);
    browser.until("document.querySelectorAll('table[data-live=top] tbody tr').length === 4").await;
    browser.until("document.querySelector('[data-live=score] data').value === '0'").await;
    let wanted = json!(["2,501,999,792,983:36:33", "1:02:05", "0:05", "0:00", "0:00", "0:00"]);
    browser.until(&format!("JSON.stringify((() => {{ {TEXTS} }})()) === JSON.stringify({wanted})")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

/// Sets the language of the reader.
async fn run_with(browser: &Browser, language: &str) {
    let spoken = json!({"userAgent": "a browser", "acceptLanguage": language});
    browser.chromium("Emulation.setUserAgentOverride", spoken).await;
}
