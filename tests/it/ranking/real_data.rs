//! Two seasons of real scores, read over HTTP before and after the periods close. Every score and
//! rank is compared with the game's published totals and with ranks computed from the file alone.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Datelike as _, Utc, Weekday};
use chrono_tz::Tz;
use serde::Deserialize;
use serde_json::Value;

use crate::support::{Serve, TestDb, amount, import, run, spawn_serve};

/// Players of a page.
const PAGE: usize = 500;
/// Lanes and time zones of the boards. Distant zones move matches into other weeks and months.
const BOARDS: [(&str, Tz); 3] = [("4", Tz::Pacific__Auckland), ("2", Tz::America__Los_Angeles), ("1", Tz::UTC)];

/// An event of the file.
#[derive(Debug, Deserialize)]
struct Event {
    user_id: String,
    #[serde(alias = "user_name")]
    name: String,
    points: i64,
    occurred_at: DateTime<Utc>,
}

/// A row of the published totals.
#[derive(Debug, Deserialize)]
struct Total {
    user_id: String,
    total_points: i64,
}

/// A player's expected row.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    position: u64,
    rank: u64,
    user_id: String,
    name: String,
    score: i64,
}

#[tokio::test]
async fn season_2022_23_is_ranked_as_it_was_played() {
    season("fpl_2022_23", amount(&BOARDS[..1], &BOARDS)).await;
}

#[tokio::test]
async fn season_2023_24_is_ranked_as_it_was_played() {
    season("fpl_2023_24", amount(&BOARDS[1..2], &BOARDS)).await;
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

async fn season(name: &str, boards: &[(&str, Tz)]) {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "shared", "data"].iter().collect();
    let (file, totals) = (folder.join(format!("{name}.csv")), folder.join(format!("{name}_totals.csv")));
    if !file.exists() {
        eprintln!("skipped: {name}.csv is not in ../shared/data");
        return;
    }
    let events: Vec<Event> = read(&file);
    // A new player gets the first name in the file. A few players change their names during the
    // season.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for event in &events {
        names.entry(&event.user_id).or_insert(&event.name);
    }
    let totals: BTreeMap<String, i64> =
        read::<Total>(&totals).into_iter().map(|total| (total.user_id, total.total_points)).collect();
    for &(lanes, zone) in boards {
        let db = TestDb::new().await;
        let rules = ["board", "create", "fpl", "--periods", "all_time,week,month"];
        run(&db, &[&rules[..], &["--lanes", lanes, "--time-zone", zone.name()]].concat()).well();
        let rejects = std::env::temp_dir().join(format!("{name}-{}-{lanes}.rejects.csv", std::process::id()));
        let imported = import(&db, &file, "fpl", &["--rejects", rejects.to_str().unwrap()]);
        imported.well(events.len() as u64, 0);

        let serve = spawn_serve(&db, None, &[]).await;
        let scores: BTreeMap<String, i64> =
            page(&serve, "all_time").await.into_iter().map(|line| (line.user_id, line.score)).collect();
        assert_eq!(scores, totals, "{name}, {lanes} lanes: the published totals");

        let internal_ids = internal_ids(&db).await;
        let mut periods: BTreeMap<String, Vec<&Event>> = BTreeMap::new();
        for event in &events {
            let date = event.occurred_at.with_timezone(&zone).date_naive();
            let week = date.week(Weekday::Mon).first_day();
            let month = format!("month:{}-{:02}", date.year(), date.month());
            for period in ["all_time".to_owned(), format!("week:{week}"), month] {
                periods.entry(period).or_default().push(event);
            }
        }
        let rankings: BTreeMap<&str, Vec<Line>> =
            periods.iter().map(|(period, events)| (period.as_str(), ranked(events, &names, &internal_ids))).collect();
        for (state, some) in [("due", amount(3, 1)), ("closed", 1)] {
            let mut compared = 0;
            for (period, wanted) in rankings.iter().step_by(some) {
                let found = page(&serve, period).await;
                assert_eq!(found.len(), wanted.len(), "{name}, {zone}, {state}: {period}");
                for (found, wanted) in found.iter().zip(wanted) {
                    assert_eq!(found, wanted, "{name}, {zone}, {state}: {period}");
                }
                compared += found.len();
            }
            eprintln!(
                "{name}, {lanes} lanes, {zone}, {state}: {compared} ranks of {} periods are right",
                periods.len()
            );
            let output = run(&db, &["close", "--due"]).well();
            let closed = output.matches("closed   fpl ").count();
            // The first run closes all periods but `all_time`; the second closes none.
            assert_eq!(closed, if state == "due" { periods.len() - 1 } else { 0 }, "{output}");
        }
    }
}

/// Reads all players of a period in order over HTTP, page by page.
async fn page(serve: &Serve, period: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    loop {
        let query = format!("period={period}&limit={PAGE}&from={}", lines.len() + 1);
        let response = serve.client.get(serve.at(&format!("/v1/boards/fpl/scores?{query}"))).send().await.unwrap();
        assert!(response.status().is_success(), "{period}: {response:?}");
        let body: Value = response.json().await.unwrap();
        let rows = body["data"].as_array().unwrap();
        lines.extend(rows.iter().map(|row| Line {
            position: row["position"].as_u64().unwrap(),
            rank: row["rank"].as_u64().unwrap(),
            user_id: row["user_id"].as_str().unwrap().to_owned(),
            name: row["name"].as_str().unwrap().to_owned(),
            score: row["score"].as_i64().unwrap(),
        }));
        if rows.len() < PAGE {
            return lines;
        }
    }
}

/// Reads the internal ids: the smaller id comes first among complete ties, which the file cannot
/// tell.
async fn internal_ids(db: &TestDb) -> HashMap<String, i64> {
    let ids = "SELECT external_id, id FROM centile_store.users";
    let ids: Vec<(String, i64)> = sqlx::query_as(ids).fetch_all(&db.pool().await).await.unwrap();
    ids.into_iter().collect()
}

/// Ranks these events by the rules: the larger sum first, shared ranks for equal sums. Positions
/// follow the time when the sum was reached: the last event with points, or the first event if none
/// had any.
fn ranked(events: &[&Event], names: &HashMap<&str, &str>, internal_ids: &HashMap<String, i64>) -> Vec<Line> {
    struct Player {
        score: i64,
        last_scored: Option<DateTime<Utc>>,
        first: DateTime<Utc>,
    }
    let mut players: BTreeMap<&str, Player> = BTreeMap::new();
    for event in events {
        let at = event.occurred_at;
        let new = Player { score: 0, last_scored: None, first: at };
        let player = players.entry(&event.user_id).or_insert(new);
        player.score += event.points;
        player.first = player.first.min(at);
        if event.points != 0 {
            player.last_scored = player.last_scored.max(Some(at));
        }
    }
    let mut order: Vec<(&str, Player)> = players.into_iter().collect();
    order.sort_by_key(|(id, player)| (-player.score, player.last_scored.unwrap_or(player.first), internal_ids[*id]));
    let mut lines: Vec<Line> = Vec::with_capacity(order.len());
    for (place, (user_id, player)) in order.into_iter().enumerate() {
        let position = place as u64 + 1;
        let rank = lines.last().filter(|above| above.score == player.score).map_or(position, |above| above.rank);
        let (user_id, name) = (user_id.to_owned(), names[user_id].to_owned());
        lines.push(Line { position, rank, user_id, name, score: player.score });
    }
    lines
}
