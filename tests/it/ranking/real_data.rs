//! Two seasons of real scores, read over HTTP before and after the periods close. Every score and
//! rank is compared with the game's published totals and with ranks computed from the file alone.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Datelike as _, Days, NaiveTime, TimeDelta, TimeZone as _, Timelike as _, Utc, Weekday};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::support::{Files, Serve, TestDb, amount, boundary::until_no_hour_ends, import, run, spawn_serve};

/// Players of a page.
const PAGE: usize = 500;
/// Lanes and time zones of the boards. Distant zones move matches into other weeks and months.
const BOARDS: [(&str, Tz); 3] = [("4", Tz::Pacific__Auckland), ("2", Tz::America__Los_Angeles), ("1", Tz::UTC)];

/// Kinds of period of the boards. Hours and days are many, and closing them takes long.
const KINDS: &str = "all_time,week,month,quarter,year";
const ALL_KINDS: &str = "all_time,hour,day,week,month,quarter,year";

/// An event of the file.
#[derive(Debug, Deserialize, Serialize)]
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

// An import of a season and its comparison take many seconds. In the quick run, each season has one of
// the boards.
#[tokio::test]
#[ignore = "the other season takes the same paths: make torture"]
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

/// Returns the file of a season, if it is here.
fn file_of(name: &str) -> Option<PathBuf> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "shared", "data"].iter().collect();
    let file = folder.join(format!("{name}.csv"));
    if !file.exists() {
        eprintln!("skipped: {name}.csv is not in ../shared/data");
    }
    Some(file).filter(|file| file.exists())
}

/// Returns each player's first name in the file, which a new player gets. A few players change their
/// names during the season.
fn names_of(events: &[Event]) -> HashMap<&str, &str> {
    let mut names = HashMap::new();
    for event in events {
        names.entry(event.user_id.as_str()).or_insert(event.name.as_str());
    }
    names
}

async fn season(name: &str, boards: &[(&str, Tz)]) {
    let Some(file) = file_of(name) else { return };
    let totals = file.with_file_name(format!("{name}_totals.csv"));
    let events: Vec<Event> = read(&file);
    let names = names_of(&events);
    let totals: BTreeMap<String, i64> =
        read::<Total>(&totals).into_iter().map(|total| (total.user_id, total.total_points)).collect();
    for &(lanes, zone) in boards {
        let db = TestDb::new().await;
        // A season has thousands of hours and days.
        let kinds = amount(KINDS, ALL_KINDS);
        let rules = ["board", "create", "fpl", "--periods", kinds, "--keep", "hour=10000"];
        run(&db, &[&rules[..], &["--lanes", lanes, "--time-zone", zone.name()]].concat()).well();
        let rejects = std::env::temp_dir().join(format!("{name}-{}-{lanes}.rejects.csv", std::process::id()));
        let imported = import(&db, &file, "fpl", &["--rejects", rejects.to_str().unwrap()]);
        imported.well(events.len() as u64, 0);

        let serve = spawn_serve(&db, None, &[]).await;
        let scores: BTreeMap<String, i64> =
            page(&serve, "fpl", "all_time").await.into_iter().map(|line| (line.user_id, line.score)).collect();
        assert_eq!(scores, totals, "{name}, {lanes} lanes: the published totals");

        let internal_ids = internal_ids(&db).await;
        let mut periods: BTreeMap<String, Vec<&Event>> = BTreeMap::new();
        for event in &events {
            let local = event.occurred_at.with_timezone(&zone);
            let date = local.date_naive();
            let of_each_kind = [
                "all_time".to_owned(),
                format!("hour:{date}T{:02}", local.hour()),
                format!("day:{date}"),
                format!("week:{}", date.week(Weekday::Mon).first_day()),
                format!("month:{}-{:02}", date.year(), date.month()),
                format!("quarter:{}-Q{}", date.year(), date.month0() / 3 + 1),
                format!("year:{}", date.year()),
            ];
            let is_kept = |period: &String| kinds.split(',').any(|kind| Some(kind) == period.split(':').next());
            for period in of_each_kind.into_iter().filter(is_kept) {
                periods.entry(period).or_default().push(event);
            }
        }
        let rankings: BTreeMap<&str, Vec<Line>> =
            periods.iter().map(|(period, events)| (period.as_str(), ranked(events, &names, &internal_ids))).collect();
        for (state, some) in [("due", amount(3, 1)), ("closed", 1)] {
            let mut compared = 0;
            for (period, wanted) in rankings.iter().step_by(some) {
                let found = page(&serve, "fpl", period).await;
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
        combinations(&db, &serve, &periods, &names, &internal_ids).await;
    }
}

/// Compares combined boards of all months with the file.
async fn combinations(
    db: &TestDb,
    serve: &Serve,
    periods: &BTreeMap<String, Vec<&Event>>,
    names: &HashMap<&str, &str>,
    internal_ids: &HashMap<String, i64>,
) {
    let months: Vec<(&String, BTreeMap<&str, Player>)> = periods
        .iter()
        .filter(|(period, _)| period.starts_with("month:"))
        .map(|(period, events)| (period, players(events)))
        .collect();
    for (n, (join, aggregate)) in
        [("union", "sum"), ("union", "max"), ("intersection", "min"), ("intersection", "sum")].into_iter().enumerate()
    {
        // Every month has another weight, and the last one counts against its players.
        let weight = |month: usize| if month + 1 == months.len() { -1 } else { i64::try_from(month).unwrap() + 1 };
        let board = format!("combined-{n}");
        let sources: Vec<String> =
            months.iter().enumerate().map(|(month, (period, _))| format!("fpl@{period}*{}", weight(month))).collect();
        let mut words = vec!["board", "combine", &board, "--join", join, "--aggregate", aggregate];
        words.extend(sources.iter().flat_map(|source| ["--source", source]));
        run(db, &words).well();

        let mut scores: BTreeMap<&str, (Vec<i64>, DateTime<Utc>)> = BTreeMap::new();
        for (month, (_, players)) in months.iter().enumerate() {
            for (user_id, player) in players {
                let (scores, at) = scores.entry(user_id).or_insert((Vec::new(), player.reached_at()));
                scores.push(weight(month) * player.score);
                *at = player.reached_at().max(*at);
            }
        }
        let score = |scores: &[i64]| match aggregate {
            "sum" => scores.iter().sum(),
            "min" => *scores.iter().min().unwrap(),
            _ => *scores.iter().max().unwrap(),
        };
        let wanted = scores
            .iter()
            .filter(|(_, (scores, _))| join == "union" || scores.len() == months.len())
            .map(|(user_id, (scores, at))| (*user_id, score(scores), *at))
            .collect();
        let found = page(serve, &board, "all_time").await;
        assert_eq!(found, in_order(wanted, names, internal_ids), "{join} {aggregate}");
        eprintln!("{} ranks of the {join} of {} months by {aggregate} are right", found.len(), months.len());
    }
}

/// Lengths of rolling windows: eight of a board at a time.
const WINDOWS: [&str; 3] =
    ["24h,2d,3d,5d,7d,8d,12d,14d", "15d,21d,28d,30d,31d,45d,60d,90d", "91d,120d,150d,180d,200d,250d,300d,366d"];

#[tokio::test]
async fn seasons_that_end_today_fill_their_windows() {
    windows("fpl_2022_23", Tz::UTC).await;
    windows("fpl_2023_24", Tz::Pacific__Auckland).await;
}

async fn windows(name: &str, zone: Tz) {
    let Some(file) = file_of(name) else { return };
    let mut events: Vec<Event> = read(&file);
    // The season ended ten minutes ago.
    let last = events.iter().map(|event| event.occurred_at).max().unwrap();
    let shift = TimeDelta::seconds((Utc::now() - last).num_seconds() - 600);
    for event in &mut events {
        event.occurred_at += shift;
    }
    let names = names_of(&events);
    let (db, files) = (TestDb::new().await, Files::new());
    let mut shifted = csv::Writer::from_writer(Vec::new());
    for event in &events {
        shifted.serialize(event).unwrap();
    }
    let file = files.write("shifted.csv", String::from_utf8(shifted.into_inner().unwrap()).unwrap());
    run(&db, &["board", "create", "fpl", "--periods", "all_time", "--time-zone", zone.name()]).well();
    import(&db, &file, "fpl", &[]).well(events.len() as u64, 0);
    let internal_ids = internal_ids(&db).await;
    until_no_hour_ends(&db.pool().await).await;
    let serve = spawn_serve(&db, None, &["--no-maintenance"]).await;
    for lengths in WINDOWS {
        run(&db, &["board", "change", "fpl", "--rolling", lengths]).well();
        run(&db, &["close", "--due"]).well();
        for length in lengths.split(',') {
            let window = format!("rolling:{length}");
            let found = page(&serve, "fpl", &window).await;
            let now = Utc::now();
            let first = match length.strip_suffix('d') {
                Some(days) => {
                    let today = now.with_timezone(&zone).date_naive();
                    let first = today - Days::new(days.parse::<u64>().unwrap() - 1);
                    zone.from_local_datetime(&first.and_time(NaiveTime::MIN)).earliest().unwrap().to_utc()
                }
                // Of whole hours up to the end of the current one.
                None => DateTime::from_timestamp_secs((now.timestamp() / 3_600 - 23) * 3_600).unwrap(),
            };
            let within: Vec<&Event> = events.iter().filter(|event| event.occurred_at >= first).collect();
            assert_eq!(found, ranked(&within, &names, &internal_ids), "{name}, {zone}: {window}");
            eprintln!("{name}, {zone}: {} ranks of {window} are right", found.len());
        }
    }
}

/// Reads all players of a period in order over HTTP, page by page.
async fn page(serve: &Serve, board: &str, period: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    loop {
        let query = format!("period={period}&limit={PAGE}&from={}", lines.len() + 1);
        let response = serve.client.get(serve.at(&format!("/v1/boards/{board}/scores?{query}"))).send().await.unwrap();
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

/// A player's points in a period.
struct Player {
    score: i64,
    last_scored: Option<DateTime<Utc>>,
    first: DateTime<Utc>,
}

impl Player {
    /// Returns the time when the sum was reached: the last event with points, or the first event if
    /// none had any.
    fn reached_at(&self) -> DateTime<Utc> {
        self.last_scored.unwrap_or(self.first)
    }
}

fn players<'a>(events: &[&'a Event]) -> BTreeMap<&'a str, Player> {
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
    players
}

/// Ranks these events by the rules.
fn ranked(events: &[&Event], names: &HashMap<&str, &str>, internal_ids: &HashMap<String, i64>) -> Vec<Line> {
    let players = players(events).into_iter().map(|(id, player)| (id, player.score, player.reached_at()));
    in_order(players.collect(), names, internal_ids)
}

/// Ranks players with these scores and times: the larger score first, shared ranks for equal scores,
/// positions by time.
fn in_order(
    mut players: Vec<(&str, i64, DateTime<Utc>)>,
    names: &HashMap<&str, &str>,
    internal_ids: &HashMap<String, i64>,
) -> Vec<Line> {
    players.sort_by_key(|(id, score, at)| (-score, *at, internal_ids[*id]));
    let mut lines: Vec<Line> = Vec::with_capacity(players.len());
    for (place, (user_id, score, _)) in players.into_iter().enumerate() {
        let position = place as u64 + 1;
        let rank = lines.last().filter(|above| above.score == score).map_or(position, |above| above.rank);
        let (user_id, name) = (user_id.to_owned(), names[user_id].to_owned());
        lines.push(Line { position, rank, user_id, name, score });
    }
    lines
}
