//! The page without a script is complete.

use serde_json::{Value, json};

use super::{
    SCORES, assert_player, assert_same,
    driver::{Browser, ENTER},
};
use crate::{
    http::{api::site::Site, pages::players, segments::set},
    periods::closed::period::Past,
    support::TestDb,
};

#[tokio::test]
async fn without_a_script_everything_can_be_read() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 40, 100, "2024-01-17");
    past.close("week:2024-01-15").await;
    // Two scores each, at two times, give a curve.
    for factor in [1, 0] {
        let event = |(user, points)| json!({"user_id": user, "points": factor * points + 1});
        site.post(SCORES, players(40).into_iter().map(event).collect::<Value>()).await.is(200);
    }
    let browser = Browser::start().await;
    browser.chromium("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.open(&site.serve.at("/")).await;
    browser.click("main a").await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=25")).await;
    // The server's text, which does not mention live updates.
    assert_eq!(browser.text(".state").await, "");
    browser.write("#search", "p020").await;
    browser.press(ENTER).await;
    browser.until("document.querySelector('#player-title[data-player]')").await;
    assert_player(&browser, &site, &format!("{SCORES}/p020?around=4")).await;
    assert_eq!(browser.run("return document.querySelectorAll('.curve path').length").await, 1);
    browser.write("#friend", "p021").await;
    browser.press(ENTER).await;
    browser.until("document.querySelector('table[data-live=friends]')").await;
    assert_eq!(super::rows(&browser, "friends").await.as_array().map(Vec::len), Some(1));
    browser.write("#from", "30").await;
    browser.press(ENTER).await;
    browser.until("new URL(document.URL).searchParams.get('from') === '30'").await;
    assert_same(&browser, &site, &format!("{SCORES}?from=30&limit=25")).await;
    // The whole selection is kept.
    assert_player(&browser, &site, &format!("{SCORES}/p020?around=4")).await;
    browser.click(".periods summary").await;
    browser.click(".periods details a[href*='week:2024-01-15']").await;
    assert_same(&browser, &site, &format!("{SCORES}?period=week:2024-01-15&limit=25")).await;
    assert_eq!(browser.text(".state").await, "closed");
    // A segment, and all players again.
    site.board(json!({"slug": "teams", "segments": ["country"]}), &[("p001", 7), ("p002", 5)]).await;
    set(&site, "p002", json!({"country": "DE"})).await.is(200);
    browser.open(&site.serve.at("/boards/teams")).await;
    browser.click("#segment option[value='country:DE']").await;
    browser.click(".segments button").await;
    browser.until("document.querySelector('section.ranking').dataset.segment === 'country:DE'").await;
    assert_same(&browser, &site, "/v1/boards/teams/scores?segment=country:DE&limit=25").await;
    browser.click("#segment option[value='']").await;
    browser.click(".segments button").await;
    browser.until("document.querySelector('section.ranking').dataset.segment === undefined").await;
    assert_same(&browser, &site, "/v1/boards/teams/scores?limit=25").await;
}
