//! Hours, quarters and years: written, closed and read like days, weeks and months.

use chrono::{DateTime, Datelike as _, Days, Months, TimeDelta, Timelike as _, Utc};
use chrono_tz::America::St_Johns;
use serde_json::{Value, json};

use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import, run},
};

const SCORES: &str = "/v1/boards/arena/scores";

/// Returns the players and scores of a period.
async fn scores(site: &Site, period: &str) -> Vec<(String, i64)> {
    let page = site.get(&format!("{SCORES}?period={period}")).await.is(200);
    let pair = |row: &Value| (row["user_id"].as_str().unwrap().to_owned(), row["score"].as_i64().unwrap());
    page["data"].as_array().unwrap().iter().map(pair).collect()
}

/// Returns the label of the period of a kind, so many periods before the one that holds `now`.
fn back(kind: &str, by: u32, now: DateTime<Utc>) -> String {
    let days = |at: DateTime<Utc>, days: u64| at.with_timezone(&St_Johns).date_naive() - Days::new(days);
    let date = days(now, 0);
    match kind {
        "hour" => {
            let at = (now - TimeDelta::hours(i64::from(by))).with_timezone(&St_Johns);
            format!("{}T{:02}", at.date_naive(), at.hour())
        }
        "day" => days(now, u64::from(by)).to_string(),
        "week" => days(now, u64::from(7 * by + date.weekday().num_days_from_monday())).to_string(),
        "month" => (date.with_day(1).unwrap() - Months::new(by)).format("%Y-%m").to_string(),
        "quarter" => {
            let first = date.with_day(1).unwrap() - Months::new(3 * by);
            format!("{}-Q{}", first.year(), first.quarter())
        }
        _ => format!("{:04}", date.year() - i32::try_from(by).unwrap()),
    }
}

#[tokio::test]
async fn a_period_is_named_by_its_distance_from_now() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let kinds = ["hour", "day", "week", "month", "quarter", "year"];
    let periods = format!("all_time,{}", kinds.join(","));
    run(&db, &["board", "create", "arena", "--periods", &periods, "--time-zone", "America/St_Johns"]).well();
    for kind in kinds {
        for by in [1, 2, 7, 31, 99, 366] {
            // The clock may pass the end of a period meanwhile, or may have repeated an hour.
            let before = Utc::now();
            let period = site.get(&format!("{SCORES}?period={kind}:-{by}")).await.is(200)["period"].clone();
            let label = period["label"].as_str().unwrap();
            let hours = |more: i64| back(kind, by, before + TimeDelta::hours(more));
            let near: Vec<String> = if kind == "hour" { (-1..=1).map(hours).collect() } else { vec![] };
            let wanted = [back(kind, by, before), back(kind, by, Utc::now())];
            assert!(
                wanted.iter().chain(&near).any(|wanted| wanted == label),
                "{kind}:-{by} is {label}, not {wanted:?}"
            );
        }
        let previous = site.get(&format!("{SCORES}?period={kind}:previous")).await.is(200)["period"].clone();
        let one = site.get(&format!("{SCORES}?period={kind}:-1")).await.is(200)["period"].clone();
        let again = site.get(&format!("{SCORES}?period={kind}:previous")).await.is(200)["period"].clone();
        assert!(one == previous || one == again, "{kind}: {one} {previous}");
    }
    for bad in
        ["day:-0", "day:-367", "day:-01", "day:--1", "day:-", "day:-+1", "all_time:-1", "season:-1", "snapshot:-1"]
    {
        site.get(&format!("{SCORES}?period={bad}")).await.is(422);
    }
}

#[tokio::test]
async fn hours_quarters_and_years_close_in_the_zone_of_the_board() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &[]).await;
    let zone = ["--time-zone", "Australia/Lord_Howe"];
    run(&db, &[["board", "create", "arena", "--periods", "hour,quarter,year"].as_slice(), &zone].concat()).well();
    // On 4 April 2021 at 02:00, the clock fell back by half an hour: the hour 01 took 90 minutes.
    let events = "user_id,points,occurred_at
        ann,1,2021-04-03T14:00:00Z
        bob,2,2021-04-03T15:29:59.999999Z
        cyd,4,2021-04-03T15:30:00Z
        dan,8,2020-12-31T13:00:00Z
        eve,16,2020-12-31T12:59:59.999999Z"
        .replace(' ', "");
    import(&db, &files.write("events.csv", &events), "arena", &[]).well(5, 0);
    let expected = [
        ("hour:2021-04-04T01", vec![("bob", 2), ("ann", 1)]),
        ("hour:2021-04-04T02", vec![("cyd", 4)]),
        ("hour:2021-01-01T00", vec![("dan", 8)]),
        ("hour:2020-12-31T23", vec![("eve", 16)]),
        ("hour:2021-04-04T03", vec![]),
        ("quarter:2021-Q2", vec![("cyd", 4), ("bob", 2), ("ann", 1)]),
        ("quarter:2021-Q1", vec![("dan", 8)]),
        ("quarter:2020-Q4", vec![("eve", 16)]),
        ("year:2021", vec![("dan", 8), ("cyd", 4), ("bob", 2), ("ann", 1)]),
        ("year:2020", vec![("eve", 16)]),
    ];
    let check = async || {
        for (period, wanted) in &expected {
            let wanted: Vec<(String, i64)> = wanted.iter().map(|&(user, score)| (user.to_owned(), score)).collect();
            assert_eq!(scores(&site, period).await, wanted, "{period}");
        }
    };
    check().await;
    assert_eq!(run(&db, &["close", "--due"]).well().matches("closed   ").count(), 9);
    check().await;
    let names: Vec<String> =
        sqlx::query_scalar("SELECT archive FROM centile.periods WHERE kind <> 'hour' ORDER BY archive")
            .fetch_all(&db.pool().await)
            .await
            .unwrap();
    let names_of = ["quarter_2020_q4", "quarter_2021_q1", "quarter_2021_q2", "year_2020", "year_2021"];
    assert_eq!(names, names_of.map(|name| format!("centile_archive.arena_{name}")));
    run(&db, &["verify"]).well();
}

#[tokio::test]
async fn current_hours_quarters_and_years_are_named_by_the_clock() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let rules = json!({"slug": "arena", "periods": ["year", "hour", "quarter"], "time_zone": "Asia/Kathmandu"});
    site.board(rules, &[("ada", 5)]).await;
    let board = site.get("/v1/boards/arena").await.is(200);
    // A week of hours, because each archive is a view in the catalog.
    assert_eq!(
        (&board["periods"], &board["kept_archives"]),
        (&json!(["hour", "quarter", "year"]), &json!({"hour": 168}))
    );
    let named: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT kind, kind || ':' || label, kind || ':' || to_char(starts_at AT TIME ZONE 'Asia/Kathmandu',
             CASE kind WHEN 'hour' THEN 'YYYY-MM-DD\"T\"HH24' WHEN 'quarter' THEN 'YYYY-\"Q\"Q' ELSE 'YYYY' END)
         FROM centile.periods WHERE board = 'arena'",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(named.len(), 3);
    for (kind, name, by_clock) in named {
        assert_eq!(name, by_clock);
        assert_eq!(scores(&site, &name).await, [("ada".to_owned(), 5)]);
        // The period may have ended meanwhile.
        let (now, before) = (scores(&site, &kind).await, scores(&site, &format!("{kind}:previous")).await);
        assert_eq!([now, before].concat(), [("ada".to_owned(), 5)], "{kind}");
    }
}
