//! Accessibility: without a mouse, on a narrow screen, in the dark, and with a screen reader.

use serde_json::{Value, json};

use super::{
    SCORES, assert_player,
    driver::{Browser, ENTER, TAB},
};
use crate::{
    http::api::site::Site,
    http::pages::{board, markup, players, snapshots},
    http::segments::set,
    periods::closed::period::Past,
    support::{TestDb, amount},
};

/// Deque's axe-core, which checks accessibility (WCAG 2 A and AA, and good practice).
const AXE: &str = include_str!("axe/axe.min.js");
/// Width of the narrowest phones.
const PHONE: u32 = 360;
/// Width of a window on a desktop.
const DESKTOP: u32 = 1_280;

/// Violations that axe finds on the current page.
async fn violations(browser: &Browser) -> Value {
    browser.run(AXE).await;
    browser
        .run_until_called(
            "const done = arguments[0]; axe.run({ resultTypes: ['violations'] }).then(({ violations }) => done(violations.map(
                ({ id, help, nodes }) => [id, help, ...nodes.map(({ html, failureSummary }) => [html, failureSummary])])))",
        )
        .await
}

/// A site whose pages have all their parts.
async fn everything(db: &TestDb) -> Site {
    let site = Site::start(db, &[]).await;
    let rules = json!({"title": "The main board of a rather long name", "snapshots": "day"});
    let past = Past::new(db, "main", rules, &site).await;
    past.play(1, 40, 100, "2024-01-17");
    past.close("week:2024-01-15").await;
    for ((id, name), points) in markup::hostile().iter().zip(9_007_199_254_740_i64..) {
        markup::call(&site, id, name).await;
        let twice = json!([{"user_id": id, "points": points}, {"user_id": id, "points": 5}]);
        site.post(SCORES, twice).await.is(200);
    }
    let events: Vec<Value> =
        players(60).iter().map(|(user, points)| json!({"user_id": user, "points": points})).collect();
    site.post(SCORES, Value::from(events)).await.is(200);
    site.post(SCORES, json!({"user_id": "p030", "points": 1})).await.is(200);
    for days_ago in [2, 1] {
        snapshots::take(db, days_ago).await;
    }
    site.admin(reqwest::Method::POST, "/v1/boards", json!({"slug": "empty", "mode": "best"})).await.is(201);
    site.board(json!({"slug": "teams", "segments": ["country", "class"]}), &[]).await;
    set(&site, "p001", json!({"country": "DE", "class": "a mage with \"a long name\" <b>"})).await.is(200);
    site.post("/v1/boards/teams/scores", json!({"user_id": "p001", "points": 7})).await.is(200);
    site
}

/// Pages of each kind.
const PAGES: [&str; 15] = [
    "/",
    "/boards/main",
    "/boards/main?player=p030&friends=p001&friends=nobody",
    "/boards/main?player=%3Cscript%3Ealert%281%29%3C%2Fscript%3E",
    "/boards/main?player=nobody&from=1000",
    "/boards/main?player=p7",
    "/boards/main?search=p0",
    "/boards/main?search=zzz&period=week",
    "/boards/main?player=p030&among=friends",
    "/boards/main?period=week:2024-01-15&player=p7&from=26",
    "/boards/empty",
    "/boards/teams?segment=country:DE&player=p001",
    "/boards/teams?segment=class:a%20mage%20with%20%22a%20long%20name%22%20%3Cb%3E",
    "/boards/nowhere",
    "/boards/main?limit=0",
];

/// The page with all parts of a board.
const FULLEST: &str = PAGES[2];

/// Boards in frames.
const FRAMES: [&str; 6] = [
    "/embed/main",
    "/embed/main?theme=dark&size=small",
    "/embed/empty?theme=light&size=large",
    "/embed/main?limit=0",
    "/embed/none",
    "/embed/teams?segment=country:DE",
];

/// The operator's page.
const OPERATORS: [&str; 3] = ["/ops/", "/ops/?board=empty", "/ops/?board=none"];

/// Widths of a window in pixels, with colour schemes.
const LOOKS: [(u32, &str); 4] = [(DESKTOP, "light"), (PHONE, "dark"), (DESKTOP, "dark"), (PHONE, "light")];

#[tokio::test]
async fn pages_have_no_accessibility_violations() {
    let db = TestDb::new().await;
    let site = everything(&db).await;
    let operators = site.serve.url.replace("http://", &format!("http://anybody:{}@", site.admin_key));
    let browser = Browser::start().await;
    let pages = PAGES.into_iter().chain(FRAMES).map(|path| (path, site.serve.at(path)));
    let pages = pages.chain(OPERATORS.map(|path| (path, format!("{operators}{path}"))));
    for (number, (path, url)) in pages.enumerate() {
        // Each page has one combination of width and scheme, so that each combination covers
        // several pages of each kind. The page with most parts has two: wide and dark, narrow and
        // light.
        let looks = amount(if path == FULLEST { 2 } else { 1 }, LOOKS.len());
        for (width, scheme) in LOOKS.iter().cycle().skip(number).take(looks) {
            browser.resize(*width, 740, *width == PHONE).await;
            browser.prefer(scheme).await;
            browser.open(&url).await;
            if browser.run("return document.querySelector('.periods details') !== null").await == true {
                browser.click(".periods summary").await;
            }
            assert_eq!(violations(&browser).await, json!([]), "{path}, {scheme}, {width}");
            // A browser reports the status of a missing page.
            let complaints = browser.complaints().await;
            let others = complaints.iter().filter(|line| !line.contains("the server responded with a status of 4"));
            assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new(), "{path}, {scheme}");
        }
    }
}

#[tokio::test]
async fn a_loading_page_does_not_shift_and_fits_a_phone() {
    let db = TestDb::new().await;
    let site = everything(&db).await;
    let browser = Browser::start().await;
    // The browser formats times differently than the server.
    assert_eq!(browser.run("return navigator.language").await, "en-US");
    for width in [DESKTOP, PHONE] {
        browser.resize(width, 740, width == PHONE).await;
        for path in PAGES.into_iter().chain(["/boards/main?period=week&player=p030"]) {
            browser.open(&site.serve.at(path)).await;
            browser.until("!document.querySelector('[data-state=open]') || document.querySelector('.state').textContent.trim() !== ''").await;
            let jumps = browser
                .run_until_called(
                    "const done = arguments[0]; let jumps = 0;
                    new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (jumps += value)))
                        .observe({ type: 'layout-shift', buffered: true });
                    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(jumps))))",
                )
                .await;
            assert!(jumps.as_f64().unwrap() < 0.01, "{path}, {width}: {jumps}");
            if width == PHONE {
                let width = browser.run("return document.scrollingElement.scrollWidth").await;
                assert_eq!(width, PHONE, "{path}");
                // A control is large enough for a finger.
                let small = "return [...document.querySelectorAll('button, input:not([type=hidden]), summary')]
                    .filter((element) => element.getBoundingClientRect().height < 24).map((element) => element.outerHTML)";
                assert_eq!(browser.run(small).await, json!([]), "{path}");
            }
        }
    }
}

/// The page of a ranking of a million players, without the players.
#[tokio::test]
async fn ranks_of_seven_digits_are_not_cut() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(30)).await;
    let browser = Browser::start().await;
    for width in [DESKTOP, 768, PHONE] {
        browser.resize(width, 740, width == PHONE).await;
        browser.open(&site.serve.at("/boards/main?player=p020&friends=p001")).await;
        let cut = browser
            .run(
                "document.querySelector('.columns').classList.add('wide');
                const cells = [...document.querySelectorAll('td.rank')];
                for (const cell of cells) cell.textContent = '1,000,000';
                return [cells.length, cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.closest('table').dataset.live)]",
            )
            .await;
        assert!(cut[0].as_u64().unwrap() > 30, "{cut}");
        assert_eq!(cut[1], json!([]), "{width}");
        assert_eq!(browser.run("return document.scrollingElement.scrollWidth").await, width);
    }
}

#[tokio::test]
async fn a_page_follows_the_preferred_color_scheme() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(30)).await;
    let browser = Browser::start().await;
    // Brightness of the background and of letters, from 0 to 255.
    let bright = async |scheme: &str| {
        browser.prefer(scheme).await;
        browser.open(&site.serve.at("/boards/main")).await;
        let script = "const style = getComputedStyle(document.body);
            return [style.backgroundColor, style.color].map((color) => Math.max(...color.match(/[0-9.]+/g).slice(0, 3).map(Number)))";
        let found = browser.run(script).await;
        (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
    };
    let (ground, letters) = bright("light").await;
    assert!(ground > 200.0 && letters < 80.0, "{ground} {letters}");
    let (ground, letters) = bright("dark").await;
    assert!(ground < 60.0 && letters > 180.0, "{ground} {letters}");
}

#[tokio::test]
async fn every_control_works_by_keyboard() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(60)).await;
    let browser = Browser::start().await;
    browser.open(&site.serve.at("/boards/main")).await;
    let focused = "const { activeElement } = document, box = activeElement.getBoundingClientRect(), style = getComputedStyle(activeElement);
        return { name: activeElement.id || activeElement.textContent, left: box.left, top: box.top,
            seen: activeElement.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 }";
    // The first link skips the parts that every page has.
    browser.press(TAB).await;
    let first = browser.run(focused).await;
    assert_eq!((&first["name"], &first["seen"]), (&json!("Skip to content"), &json!(true)), "{first}");
    assert!(first["left"].as_f64().unwrap() >= 0.0 && first["top"].as_f64().unwrap() >= 0.0, "{first}");
    browser.press(ENTER).await;
    browser.until("location.hash === '#main'").await;
    let mut steps = Vec::new();
    loop {
        browser.press(TAB).await;
        let step = browser.run(focused).await;
        assert_eq!(step["seen"], true, "{step}");
        if step["name"] == "search" {
            break;
        }
        steps.push(step["name"].clone());
        assert!(steps.len() < 12, "{steps:?}");
    }
    // It skipped the brand and the API.
    assert!(!steps.contains(&json!("Centile")), "{steps:?}");
    browser.press("p030").await;
    browser.press(ENTER).await;
    browser.until("document.querySelector('#player-title[data-player]')").await;
    assert_player(&browser, &site, &format!("{SCORES}/p030?around=4")).await;
    // A row that moves while it has the focus keeps it.
    browser.run("document.querySelector('tr[data-user=p020] a').focus()").await;
    browser.until("document.querySelector('.state.live')").await;
    site.post(SCORES, json!({"user_id": "p020", "points": 1_000_000})).await.is(200);
    browser.until("document.querySelector('table[data-live=top] tbody tr').dataset.user === 'p020'").await;
    assert_eq!(browser.run("return document.activeElement.closest('tr')?.dataset.user").await, "p020");
}
