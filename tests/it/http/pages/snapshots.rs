//! Pages show a board's snapshots as the API does.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sqlx::query_scalar;

use super::{page, read};
use crate::{
    http::api::site::Site,
    support::{
        Files, TestDb,
        boundary::until_no_hour_ends,
        import, run,
        wait::{until, until_some},
    },
};

const SCORES: &str = "/v1/boards/main/scores";

/// Players of [`board`] who have scores on every day.
const PLAYERS: i64 = 30;

/// Creates board `main`, whose players have changing ranks at the end of each of the last `days`. In
/// the last two days, `late` joins.
pub async fn board(db: &TestDb, site: &Site, days: i64) {
    until_no_hour_ends(&db.pool().await).await;
    site.board(json!({"snapshots": "day", "periods": ["all_time", "day"]}), &[]).await;
    let at = |days_ago: i64| (Utc::now() - TimeDelta::days(days_ago)).format("%Y-%m-%dT00:00:00Z");
    let mut lines = vec!["user_id,points,occurred_at".to_owned()];
    for day in 0..days {
        // Several players have equal scores.
        let points = |player: i64| (player * 7 + day * day * 11) % 13 + if day == 0 { player * 5 } else { player % 3 };
        lines.extend((1..=PLAYERS).map(|player| format!("p{player:03},{},{}", points(player), at(days - day))));
    }
    lines.extend([2, 1].map(|days_ago| format!("late,40,{}", at(days_ago))));
    let text = lines.join("\n");
    let files = Files::new();
    import(db, &files.write("past.csv", text), "main", &[]).well(lines.len() as u64 - 1, 0);
}

/// Takes a snapshot of board `main` as of the end of the day that was so many days ago, and none of
/// the days since then.
pub async fn take(db: &TestDb, days_ago: i64) {
    let label = (Utc::now() - TimeDelta::days(days_ago)).format("day-%Y-%m-%d");
    db.execute(&format!(
        "UPDATE centile_store.boards SET snapshots = NULL;
         INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at)
         SELECT id, 'snapshot', '{label}', '-infinity', (date_trunc('day', now() AT TIME ZONE 'UTC') - interval '{} days') AT TIME ZONE 'UTC'
         FROM centile_store.boards WHERE slug = 'main'",
        days_ago - 1
    ))
    .await;
    // An instance may be closing it already.
    run(db, &["close", "--due"]).well();
    let pool = db.pool().await;
    let state = "SELECT state FROM centile_store.periods WHERE kind = 'snapshot' AND label = $1";
    let is_closed = async || {
        query_scalar::<_, String>(state)
            .bind(label.to_string())
            .fetch_one(&pool)
            .await
            .is_ok_and(|state| state == "closed")
    };
    until("the snapshot", is_closed).await;
    db.execute("UPDATE centile_store.boards SET snapshots = 'day' WHERE slug = 'main'").await;
}

/// Text of the change that a page should show for this row of the API.
pub fn shown(row: &Value) -> String {
    match row["moved"].as_i64() {
        None => "new".to_owned(),
        Some(0) => "=unchanged".to_owned(),
        Some(gained) if gained > 0 => format!("▲up {gained}"),
        Some(lost) => format!("▼down {}", -lost),
    }
}

/// Id and change of each row of a list of the API.
pub fn changes(list: &Value) -> Vec<[String; 2]> {
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| [row["user_id"].as_str().unwrap().to_owned(), shown(row)]).collect()
}

#[tokio::test]
async fn a_page_shows_moves_since_the_last_snapshot() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&db, &site, 4).await;
    // Not before there is a snapshot.
    assert!(read::changes(&page(&site, "/boards/main").await).iter().all(|[_, change]| change.is_empty()));
    for days_ago in [3, 2] {
        take(&db, days_ago).await;
    }
    site.post(SCORES, json!({"user_id": "p002", "points": 1_000})).await.is(200);
    site.post(SCORES, json!({"user_id": "today", "points": 500})).await.is(200);
    for query in ["limit=25", "limit=100", "from=11&limit=7"] {
        let list = site.get(&format!("{SCORES}?moved=true&{query}")).await.is(200);
        let wanted = changes(&list);
        // A list of periods may be some seconds old.
        let text = until_some("the page compares with the second snapshot", async || {
            let text = page(&site, &format!("/boards/main?{query}")).await;
            (read::changes(&text) == wanted).then_some(text)
        })
        .await;
        let day = (Utc::now() - TimeDelta::days(1)).format("%-d %b %Y, 00:00");
        assert!(
            text.contains("Change: positions gained or lost since") && text.contains(&format!(">{day}<")),
            "{text}"
        );
    }
    let all = changes(&site.get(&format!("{SCORES}?moved=true&limit=100")).await.is(200));
    assert_eq!(all[1], ["today", "new"]);
    for kind in ["▲", "=", "▼"] {
        assert!(all.iter().any(|[_, change]| change.starts_with(kind)), "{all:?}");
    }
    // Other rankings are not compared.
    let newest = (Utc::now() - TimeDelta::days(2)).format("snapshot:day-%Y-%m-%d");
    for path in ["/boards/main?period=day", &format!("/boards/main?period={newest}"), "/embed/main"] {
        let text = page(&site, path).await;
        assert!(read::changes(&text).iter().all(|[_, change]| change.is_empty()), "{path}");
        assert!(!text.contains("data-before"), "{path}");
    }
}

#[tokio::test]
async fn a_board_without_snapshots_shows_and_reads_none() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&db, &site, 3).await;
    take(&db, 2).await;
    let path = "/boards/main?player=p007";
    assert!(page(&site, path).await.contains("data-before"));
    // Whatever reads snapshots fails from now on.
    db.execute(
        "UPDATE pg_proc SET prosrc = 'BEGIN PERFORM 1 / 0; END'
         WHERE oid IN ('centile_store.archive_players'::regproc, 'centile.progress'::regproc)",
    )
    .await;
    assert_eq!(site.get("/boards/main").await.status, 500);
    assert_eq!(site.get("/boards/main?period=day&player=p007").await.status, 500);
    site.admin(reqwest::Method::PATCH, "/v1/boards/main", json!({"snapshots": null})).await.is(200);
    until("the board takes no snapshots", async || site.get(path).await.status == 200).await;
    let text = page(&site, path).await;
    assert!(["data-before", "data-since", "progress", "since "].iter().all(|part| !text.contains(part)), "{text}");
}

/// A panel of the chart as a reader sees it: the values of its dots, read off its labels.
struct Panel {
    labels: Vec<f64>,
    /// Distance of each dot from the left, and its value.
    dots: Vec<(f64, f64)>,
    /// Connected parts of its line.
    lines: usize,
}

impl Panel {
    fn of(text: &str, name: &str) -> Self {
        let (_, panel) = text.split_once(&format!("<g data-panel=\"{name}\">")).expect("a panel");
        let elements = read::elements(panel.split_once("</g>").expect("its end").0);
        let all = |element: &str, attribute: &str| -> Vec<String> {
            let found = elements.iter().filter(|(name, _)| name == element);
            found
                .flat_map(|(_, all)| all.iter().filter(|(name, _)| name == attribute))
                .map(|(_, value)| value.clone())
                .collect()
        };
        let numbers = |element: &str, attribute: &str| -> Vec<f64> {
            all(element, attribute).iter().map(|value| value.parse().unwrap()).collect()
        };
        let (heights, labels) = (numbers("line", "y1"), numbers("text", "data-value"));
        assert_eq!(heights.len(), labels.len());
        assert!(heights.windows(2).all(|pair| pair[0] + 9.0 < pair[1]), "labels overlap: {heights:?}");
        let value = |y: f64| {
            let at = heights.windows(2).position(|pair| (pair[0]..=pair[1]).contains(&y)).expect("between two labels");
            let part = (y - heights[at]) / (heights[at + 1] - heights[at]);
            labels[at] + part * (labels[at + 1] - labels[at])
        };
        let dots = numbers("circle", "cx").into_iter().zip(numbers("circle", "cy").into_iter().map(value)).collect();
        let lines = all("path", "d").concat().matches('M').count();
        Self { labels, dots, lines }
    }
}

/// Fails unless the chart and its table on the page of this player show the same as the API.
async fn assert_progress(site: &Site, user: &str) -> Vec<Value> {
    let text = page(site, &format!("/boards/main?player={user}")).await;
    let progress = site.get(&format!("{SCORES}/{user}/progress?snapshots=60")).await.is(200);
    let mut rows = progress["data"].as_array().unwrap().clone();
    let time = |row: &Value| row["period"]["ends_at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    // The table, newest first.
    let wanted: Vec<[String; 3]> = rows
        .iter()
        .map(|row| {
            let day = (time(row) - TimeDelta::hours(1)).format("%Y-%m-%d").to_string();
            let number = |name: &str| row[name].as_i64().map_or_else(|| "none".to_owned(), |value| value.to_string());
            [day, number("rank"), number("score")]
        })
        .collect();
    assert_eq!(read::progress(&text), wanted, "{user}");
    rows.reverse();
    let (ranks, scores) = (Panel::of(&text, "Rank"), Panel::of(&text, "Score"));
    assert!(ranks.labels.is_sorted() && ranks.labels[0] >= 1.0, "the best rank is at the top: {:?}", ranks.labels);
    assert!(scores.labels.iter().rev().is_sorted(), "{:?}", scores.labels);
    let present: Vec<&Value> = rows.iter().filter(|row| !row["rank"].is_null()).collect();
    let parts =
        rows.chunk_by(|a, b| a["rank"].is_null() == b["rank"].is_null()).filter(|part| !part[0]["rank"].is_null());
    let parts = parts.count();
    for (panel, member) in [(&ranks, "rank"), (&scores, "score")] {
        assert_eq!((panel.dots.len(), panel.lines), (present.len(), parts), "{user}, {member}");
        let span = panel.labels.iter().copied().fold(f64::MIN, f64::max)
            - panel.labels.iter().copied().fold(f64::MAX, f64::min);
        for (row, (_, value)) in present.iter().zip(&panel.dots) {
            assert!((value - row[member].as_f64().unwrap()).abs() <= span / 500.0, "{user}: {value} in {row}");
        }
        // Distances are in proportion to times.
        let seconds = |row: &Value| time(row).timestamp() as f64;
        for (three, dots) in present.windows(3).zip(panel.dots.windows(3)) {
            let part = (seconds(three[1]) - seconds(three[0])) / (seconds(three[2]) - seconds(three[0]));
            let drawn = (dots[1].0 - dots[0].0) / (dots[2].0 - dots[0].0);
            assert!((part - drawn).abs() < 0.01, "{user}: {part} {drawn}");
        }
    }
    rows
}

#[tokio::test]
async fn a_players_chart_shows_rank_and_score_in_the_snapshots() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&db, &site, 12).await;
    assert!(!page(&site, "/boards/main?player=p007").await.contains("class=\"chart progress\""));
    take(&db, 11).await;
    assert_eq!(assert_progress(&site, "p007").await.len(), 1);
    // No snapshot of the eighth day, and none of the sixth with this player.
    for days_ago in [10, 9, 7] {
        take(&db, days_ago).await;
    }
    db.execute("SELECT centile.ban_user('main', 'p007', true)").await;
    take(&db, 6).await;
    db.execute("SELECT centile.ban_user('main', 'p007', false)").await;
    for days_ago in (2..=5).rev() {
        take(&db, days_ago).await;
    }
    let rows = assert_progress(&site, "p007").await;
    let ranks: Vec<&Value> = rows.iter().map(|row| &row["rank"]).collect();
    assert!(ranks.len() == 9 && ranks[4].is_null() && ranks.iter().any(|rank| *rank != ranks[0]), "{ranks:?}");
    // Players who are first, last, in a tie, or new.
    for user in ["p030", "p001", "p015"] {
        assert_progress(&site, user).await;
    }
    assert_eq!(assert_progress(&site, "late").await.iter().filter(|row| !row["rank"].is_null()).count(), 1);
    // Also when another period is shown, and without a score in it; but not for a player in no snapshot.
    let chart = "class=\"chart progress\"";
    assert!(page(&site, "/boards/main?period=day&player=p007").await.contains(chart));
    site.post(SCORES, json!({"user_id": "today", "points": 5})).await.is(200);
    for path in ["/boards/main?player=today", "/boards/main?player=nobody", "/boards/main"] {
        assert!(!page(&site, path).await.contains(chart), "{path}");
    }
}
