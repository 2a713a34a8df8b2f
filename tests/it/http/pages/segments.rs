//! The page of a segment, and the form that leads to it.

use serde_json::json;

use super::{
    of_list, page,
    read::{data, elements, links, rows, texts},
};
use crate::{
    http::{
        api::site::{Answer, Site},
        segments::set,
    },
    support::{TestDb, wait::until},
};

/// Values of an attribute of elements with this name, in order.
fn values(page: &str, element: &str, attribute: &str) -> Vec<String> {
    let all = elements(page).into_iter().filter(|(name, _)| name == element).flat_map(|(_, attributes)| attributes);
    all.filter(|(name, _)| name == attribute).map(|(_, value)| value).collect()
}

async fn site(db: &TestDb) -> Site {
    let site = Site::start(db, &[]).await;
    site.board(json!({"segments": ["country", "class"], "periods": ["all_time", "week"]}), &[]).await;
    for (user, attributes) in [
        ("ada", json!({"country": "DE", "class": "a b:c|d@\"é<b>"})),
        ("bob", json!({"country": "DE"})),
        ("cyd", json!({"country": "FR"})),
    ] {
        set(&site, user, attributes).await.is(201);
    }
    for (user, points) in [("ada", 5), ("bob", 7), ("cyd", 6)] {
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": points})).await.is(200);
    }
    site
}

/// The page shows what the API returns, and its script follows the same ranking.
#[tokio::test]
async fn a_page_shows_a_segment() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    let odd = "class:a b:c|d@\"é<b>";
    for (segment, written) in
        [("country:DE", "country:DE"), ("country:US", "country:US"), (odd, "class:a%20b:c%7Cd%40%22%C3%A9%3Cb%3E")]
    {
        for period in ["all_time", "week"] {
            let query = format!("period={period}&segment={written}");
            let list = site.get(&format!("/v1/boards/main/scores?{query}")).await.is(200);
            for path in ["boards", "embed"] {
                let shown = page(&site, &format!("/{path}/main?{query}")).await;
                assert_eq!(rows(&shown, "top"), of_list(&list["data"]), "{query}");
                assert_eq!(data(&shown, "players"), list["players"].to_string(), "{query}");
                assert_eq!(values(&shown, "section", "data-segment"), [segment]);
                assert_eq!(values(&shown, "section", "data-period"), [period]);
                let title = &texts(&shown, "period")[0];
                assert!(title.ends_with(&format!(" · {segment}")), "{title}");
                // All links of a frame, and those to other periods and players, stay in the segment. The form has no link.
                let same = links(&shown).into_iter().filter(|link| link.starts_with("/boards/main"));
                let (within, without): (Vec<_>, Vec<_>) =
                    same.partition(|link| link.contains(&format!("segment={written}")));
                assert!(!within.is_empty(), "{shown}");
                assert_eq!(without, Vec::<String>::new(), "{path}");
            }
        }
    }
    // A player of another segment has no standing here.
    let shown = page(&site, "/boards/main?segment=country:DE&player=cyd").await;
    assert!(shown.contains("No score in this segment"), "{shown}");
    let shown = page(&site, "/boards/main?segment=country:DE&player=ada").await;
    assert_eq!(data(&shown, "rank"), "2");
}

#[tokio::test]
async fn a_form_offers_the_segments_of_the_period() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    let all = ["", "class:a b:c|d@\"é<b>", "country:DE", "country:FR"];
    for query in ["", "?period=week", "?segment=country:DE&player=bob&limit=2"] {
        let shown = page(&site, &format!("/boards/main{query}")).await;
        assert_eq!(values(&shown, "option", "value"), all, "{query}");
        assert_eq!(values(&shown, "optgroup", "label"), ["class", "country"], "{query}");
    }
    // A segment without players in the period is offered while it is shown.
    let shown = page(&site, "/boards/main?period=week:previous&segment=country:FR").await;
    assert_eq!(values(&shown, "option", "value"), ["", "country:FR"]);
    assert_eq!(values(&page(&site, "/boards/main?segment=").await, "section", "data-segment"), [""; 0]);
    // At most 1,000.
    db.execute(
        "SELECT centile_store.open_segments(p.board_id, array_agg(p.id), array_agg('class:b' || n))
         FROM centile_store.periods p, generate_series(1, 1100) AS n WHERE p.kind = 'week' AND p.segment = '' GROUP BY p.board_id",
    )
    .await;
    until("1,000 segments", async || {
        let shown = page(&site, "/boards/main?period=week").await;
        values(&shown, "option", "value").len() == 1_001
    })
    .await;
    // Boards without segments have no form.
    site.board(json!({"slug": "plain"}), &[("ada", 1)]).await;
    assert!(!page(&site, "/boards/plain").await.contains("optgroup"));
    let refused =
        |answer: Answer, words: &str| assert!(answer.status == 422 && answer.text.contains(words), "{answer:?}");
    for path in ["boards", "embed"] {
        refused(site.get(&format!("/{path}/plain?segment=country:DE")).await, "has no segments by country");
        refused(site.get(&format!("/{path}/main?segment=DE")).await, "is not a segment");
        refused(site.get(&format!("/{path}/main?period=week@country:DE")).await, "parameter segment");
    }
}
