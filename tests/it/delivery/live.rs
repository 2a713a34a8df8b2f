//! Live rankings: events are correct, timely, at most four a second, and cost the same for any
//! number of subscribers.

mod end;
mod limits;
mod outage;
pub mod stream;
mod tiers;

use std::{cell::Cell, collections::BTreeMap, time::Instant};

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use self::stream::{Event, Stream, ask};
use crate::{
    http::api::site::Site,
    support::{
        Serve, TestDb, amount, boundary, run, spawn_serve,
        wait::{DEADLINE, until, within},
    },
};

const EVENTS: &str = "/v1/boards/main/live";
const SCORES: &str = "/v1/boards/main/scores";

/// Ids and scores of a `sum` board without ties; the highest score is first.
#[derive(Debug, Clone, Default, PartialEq)]
struct Standings(BTreeMap<String, i64>);

impl Standings {
    fn add(&mut self, user: &str, points: i64) {
        *self.0.entry(user.to_owned()).or_default() += points;
    }

    fn sorted(&self) -> Vec<(String, i64)> {
        let mut sorted: Vec<_> = self.0.iter().map(|(user, score)| (user.clone(), *score)).collect();
        sorted.sort_by_key(|(_, score)| -score);
        sorted
    }

    /// Returns the best `limit` rows as events show them.
    fn top(&self, limit: usize) -> Vec<(String, i64, u64)> {
        let sorted = self.sorted().into_iter().zip(1..);
        sorted.take(limit).map(|((user, score), rank)| (user, score, rank)).collect()
    }

    /// Returns a player with four others on each side as events show them.
    fn around(&self, user: &str) -> Vec<(String, i64, u64)> {
        let all = self.top(usize::MAX);
        let at = all.iter().position(|(id, ..)| id == user).expect("a player with a score");
        all[at.saturating_sub(4)..(at + 5).min(all.len())].to_vec()
    }
}

/// Returns id, score and rank of rows, which must be without ties.
fn rows(rows: &Value) -> Vec<(String, i64, u64)> {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| {
        assert_eq!(row["rank"], row["position"], "{row}");
        let (id, score, rank) = (row["user_id"].as_str(), row["score"].as_i64(), row["rank"].as_u64());
        (id.expect("an id").to_owned(), score.expect("a score"), rank.expect("a rank"))
    })
    .collect()
}

/// Returns an event's chosen players with their neighbours, by id.
fn standings(event: &Value) -> BTreeMap<String, Vec<(String, i64, u64)>> {
    let all = event["standings"].as_array().expect("standings").iter();
    all.map(|standing| {
        let own = rows(&json!([standing]));
        (own[0].0.clone(), [rows(&standing["above"]), own, rows(&standing["below"])].concat())
    })
    .collect()
}

async fn post(site: &Site, user: &str, points: i64) {
    site.post(SCORES, json!({"user_id": user, "points": points})).await.is(200);
}

/// Waits until the value of a metric matches.
async fn until_number(serve: &Serve, name: &str, is_right: impl Fn(f64) -> bool) {
    until(name, async || is_right(serve.metric(name).await)).await;
}

/// Opens a stream for each path, all at once, and waits until each has started.
async fn open_all(serve: &Serve, paths: impl IntoIterator<Item = String>) -> Vec<Stream> {
    let open = async |path: String| {
        let mut stream = Stream::open(serve, &path, &[]).await;
        stream.one("started").await;
        stream
    };
    join_all(paths.into_iter().map(open)).await
}

#[tokio::test]
async fn every_event_shows_one_state_and_there_are_at_most_four_a_second() {
    const PLAYERS: i64 = 12;
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"lanes": 1}), &[]).await;
    let mut now = Standings::default();
    for player in 0..PLAYERS {
        now.add(&format!("p{player}"), 1_000 * player + player);
        post(&site, &format!("p{player}"), 1_000 * player + player).await;
    }
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?limit=5&user_id=p3&user_id=nobody"), &[]).await;
    let first = stream.one("started").await;
    assert_eq!(rows(&first["scores"]), now.top(5));
    assert_eq!(standings(&first), BTreeMap::from([("p3".to_owned(), now.around("p3"))]));
    assert_eq!((&first["missing"], &first["restarted"]), (&json!(["nobody"]), &json!(false)));

    // One writer commits its scores one after the other, so these are all states.
    let mut states = vec![now.clone()];
    let seen = Cell::new(0);
    let begun = Instant::now();
    let writing = async {
        let mut points = 0;
        // Faster than events may be sent, until there are several events.
        while states.len() <= 100 || seen.get() < 12 {
            points += 1;
            // Ranks change all the time, and no two players have equal scores: each step has a new
            // residue.
            let user = format!("p{}", points % PLAYERS);
            let gain = (points % 7) * 700 * PLAYERS;
            now.add(&user, gain);
            post(&site, &user, gain).await;
            states.push(now.clone());
        }
    };
    let mut events: Vec<Event> = Vec::new();
    tokio::select! {
        () = within("scores and events", writing) => {}
        () = async {
            loop {
                events.push(stream.next().await.expect("an event"));
                seen.set(events.len());
            }
        } => {}
    }
    // The last state arrives, even if states before it are skipped.
    let last = states.last().expect("states").clone();
    let is_last = |event: &Event| {
        event.kind == "changed" && event.data.get("scores").is_some_and(|scores| rows(scores) == last.top(5))
    };
    if !events.iter().any(is_last) {
        events.push(stream.until(is_last).await);
    }

    let (mut top, mut around, mut at) = (states[0].top(5), states[0].around("p3"), 0);
    for event in events.iter().filter(|event| event.kind == "changed") {
        if let Some(scores) = event.data.get("scores") {
            top = rows(scores);
        }
        if let Some(shown) = standings(&event.data).remove("p3") {
            around = shown;
        }
        // Top list and player are of the same state, and no event shows a state before the previous
        // event's.
        let of = states[at..].iter().position(|state| state.top(5) == top && state.around("p3") == around);
        at += of.unwrap_or_else(|| panic!("no state from {at} on matches {event:?}"));
    }
    // All of them were sent after the first of these scores and before now.
    let (count, seconds) = (events.len(), begun.elapsed().as_secs_f64());
    eprintln!("{count} events in {seconds:.1} s");
    assert!(count as f64 <= 4.0 * seconds + 2.0, "{count} events in {seconds} s");
}

#[tokio::test]
async fn every_subscriber_gets_changes_and_only_changes() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30), ("cyd", 20), ("dan", 10)]).await;
    let mut top = Stream::open(&site.serve, &format!("{EVENTS}?limit=2"), &[]).await;
    let mut of_dan = Stream::open(&site.serve, &format!("{EVENTS}?limit=1&user_id=dan"), &[]).await;
    let begun = (top.one("started").await, of_dan.one("started").await);
    assert_eq!(begun.0["version"], begun.1["version"]);
    // A change of the third place: no event for the subscriber of two places, but one for dan,
    // whose neighbour changed.
    post(&site, "cyd", 5).await;
    let changed = of_dan.one("changed").await;
    assert_eq!(changed.get("scores"), None, "{changed}");
    let wanted = [("ada", 40, 1), ("bob", 30, 2), ("cyd", 25, 3), ("dan", 10, 4)];
    assert_eq!(standings(&changed)["dan"], wanted.map(|(id, score, rank)| (id.to_owned(), score, rank)));
    post(&site, "bob", 15).await;
    let changed = top.one("changed").await;
    assert_eq!(rows(&changed["scores"]), [("bob".to_owned(), 45, 1), ("ada".to_owned(), 40, 2)]);
    assert_eq!(changed["standings"], json!([]));
    // The same version gives the same answer elsewhere.
    let read = site.get(&format!("{SCORES}/dan?around=4")).await.is(200);
    let shown = of_dan.until(|event| event.data["version"] == read["version"]).await.data;
    for member in ["rank", "position", "score", "reached_at", "user_name", "above", "below"] {
        assert_eq!(shown["standings"][0][member], read[member], "{member}");
    }
    // A changed name is shown as well.
    site.admin(Method::PUT, "/v1/users/ada", json!({"name": "Ada Lovelace"})).await.is(200);
    let changed = top.one("changed").await;
    assert_eq!(changed["scores"][1]["name"], "Ada Lovelace");
    // A player without a score is missing.
    site.admin(Method::POST, &format!("{SCORES}/dan/reset"), Value::Null).await.is(204);
    let changed = of_dan.until(|event| event.data["missing"] == json!(["dan"])).await.data;
    assert_eq!(changed["standings"], json!([]));
}

#[tokio::test]
async fn a_new_subscriber_gets_every_acknowledged_score() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    // A player whom another stream follows already.
    let mut first = Stream::open(&site.serve, EVENTS, &[]).await;
    first.one("started").await;
    for points in 1..=amount(6, 12) {
        post(&site, "bob", 1).await;
        let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?user_id=bob"), &[]).await;
        let started = stream.one("started").await;
        assert_eq!(started["standings"][0]["score"], points);
    }
}

#[tokio::test]
async fn an_erased_player_is_not_named_in_events() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    site.admin(Method::PUT, "/v1/users/bob", json!({"name": "Bob the Builder"})).await.is(200);
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?user_id=ada"), &[]).await;
    assert_eq!(stream.one("started").await["scores"][1]["name"], "Bob the Builder");
    // The event contains both names and is kept for reconnecting subscribers.
    post(&site, "bob", 20).await;
    let output = stream.one("overtaken").await;
    assert_eq!(output["overtaken"][0]["by"]["name"], "Bob the Builder");
    assert_eq!(output["overtaken"][0]["version"], output["version"]);
    stream.one("changed").await;
    site.admin(Method::DELETE, "/v1/users/bob", Value::Null).await.is(200);
    // The erasure is not an overtaking.
    assert_eq!(stream.one("changed").await["scores"][0]["name"], "(erased)");
    post(&site, "ada", 20).await;
    let is_last = |event: &Event| event.data["scores"][0]["user_id"] == "ada";
    loop {
        let event = stream.next().await.expect("an event");
        assert!(!event.data.to_string().contains("Builder"), "{event:?}");
        if event.kind == "changed" && is_last(&event) {
            break;
        }
    }
}

#[tokio::test]
async fn a_restore_reports_no_overtaking() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?user_id=ada"), &[]).await;
    stream.one("started").await;
    // The database changes to another epoch and another state, as if by one transaction.
    db.execute(
        "BEGIN;
         SELECT testing.submit_score('main', 'bob', 20);
         CREATE OR REPLACE FUNCTION centile.epoch() RETURNS text LANGUAGE sql STABLE AS $$SELECT text 'another0life'$$;
         COMMIT",
    )
    .await;
    assert_eq!(stream.one("changed").await["scores"][0]["user_id"], "bob");
    post(&site, "ada", 20).await;
    assert_eq!(stream.one("overtaken").await["overtaken"][0]["by"]["user_id"], "ada");
}

#[tokio::test]
async fn each_overtaking_is_reported_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let players: Vec<(String, i64)> = (1..=20).map(|n| (format!("p{n:02}"), 1_000 - 10 * n)).collect();
    let scores: Vec<(&str, i64)> = players.iter().map(|(id, score)| (&**id, *score)).collect();
    site.board(json!({}), &scores).await;
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?limit=3&user_id=p05&user_id=p12"), &[]).await;
    stream.one("started").await;
    let mut output = async |user: &str, points: i64| {
        post(&site, user, points).await;
        let event = stream.one("overtaken").await;
        stream.one("changed").await;
        let pairs = event["overtaken"].as_array().unwrap().iter().map(|one| {
            let id = |who: &str| one[who]["user_id"].as_str().unwrap().to_owned();
            (id("player"), id("by"), one["old_rank"].as_u64().unwrap(), one["new_rank"].as_u64().unwrap())
        });
        pairs.collect::<Vec<_>>()
    };
    let one = |player: &str, by: &str, old, new| (player.to_owned(), by.to_owned(), old, new);
    // From the last place to the fifth: everyone ahead of p05 was known. p12's event did not show
    // the seventh place above it, so whether p20 passed p12 is unknown and not reported.
    assert_eq!(output("p20", 155).await, [one("p05", "p20", 5, 6)]);
    // A chosen player passes two others.
    assert_eq!(output("p12", 25).await, [one("p10", "p12", 11, 12), one("p11", "p12", 12, 13)]);
    // To the top, past the other chosen player: reported once, although it concerns both.
    let passed = output("p12", 300).await;
    assert!(passed.contains(&one("p05", "p12", 6, 7)), "{passed:?}");
    assert_eq!(passed.iter().filter(|(player, ..)| player == "p05").count(), 1, "{passed:?}");
    assert!(passed.iter().all(|(_, by, ..)| by == "p12"), "{passed:?}");
}

#[tokio::test]
async fn a_reconnecting_subscriber_continues_or_restarts() {
    let db = TestDb::new().await;
    let mut site = Site::start(&db, &["--heartbeat", "1"]).await;
    let scores = [("ada", 40), ("bob", 30), ("cyd", 20), ("dan", 10), ("eve", 9), ("fay", 8), ("gus", 7)];
    site.board(json!({}), &scores).await;
    let path = format!("{EVENTS}?limit=1&user_id=ada");
    let mut stream = Stream::open(&site.serve, &path, &[]).await;
    stream.one("started").await;
    let id = stream.last_id.clone();
    // A new state with the same content: no event, but a keep-alive comment with a new id.
    post(&site, "gus", 1).await;
    while stream.last_id == id {
        let part = stream.part().await.expect("a keep-alive");
        assert!(part.kind.is_empty(), "{part:?}");
    }
    let quiet = stream.last_id.clone();
    assert!(site.serve.stop().await.success());
    site = Site { serve: spawn_serve(&db, None, &[]).await, ..site };
    let again = |id: String| {
        let (serve, path) = (&site.serve, &path);
        async move { Stream::open(serve, path, &[("last-event-id", &id)]).await }
    };
    let mut stream = again(quiet.clone()).await;
    stream.one("continued").await;
    assert_eq!(stream.last_id, quiet);
    // Every change from here on is shown.
    post(&site, "ada", 2).await;
    assert_eq!(rows(&stream.one("changed").await["scores"]), [("ada".to_owned(), 42, 1)]);
    for old in [id, quiet, "nonsense".to_owned()] {
        let started = again(old).await.one("started").await;
        assert_eq!(started["restarted"], true);
        assert_eq!(rows(&started["scores"]), [("ada".to_owned(), 42, 1)]);
    }
    let newest = stream.last_id.clone();
    again(newest.clone()).await.one("continued").await;
    // The id does not count for a subscription with other parameters.
    let mut other = Stream::open(&site.serve, &format!("{EVENTS}?limit=2"), &[("last-event-id", &newest)]).await;
    assert_eq!(other.one("started").await["restarted"], true);
}

#[tokio::test]
async fn the_end_of_a_period_is_reported_and_the_stream_follows_the_next() {
    let db = TestDb::new().await;
    db.execute(boundary::SHORT_DAYS).await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?period=week&user_id=ada"), &[]).await;
    let mut name = stream.one("started").await["period"]["name"].as_str().unwrap().to_owned();
    let (mut shown, mut followed) = (0, 0);
    let mut came = None;
    let begun = Instant::now();
    while shown == 0 || followed < 2 {
        assert!(
            begun.elapsed() < DEADLINE,
            "{shown} scores were shown in their weeks, {followed} weeks were consecutive"
        );
        let turn = match came.take() {
            Some(turn) => turn,
            None => stream.until(|event| event.kind == "period").await.data,
        };
        assert_eq!(turn["ended"], name.as_str());
        let started = stream.one("started").await;
        assert_eq!(started["period"]["name"], turn["next"]);
        assert_eq!((rows(&started["scores"]), &started["missing"]), (Vec::new(), &json!(["ada"])));
        turn["next"].as_str().unwrap().clone_into(&mut name);
        let week = |name: &Value| name.as_str().unwrap().strip_prefix("week:").unwrap().parse::<u64>().unwrap();
        let (ended, next) = (week(&turn["ended"]), week(&turn["next"]));
        // A machine that is suspended for a week skips one.
        assert!(ended < next, "{turn}");
        followed += u32::from(next == ended + 1);
        // A score of the new period appears there.
        post(&site, "ada", 5).await;
        let is_turn = |event: &Event| event.kind == "period";
        let changed = stream.until(|event| is_turn(event) || event.data["missing"] == json!([])).await;
        if is_turn(&changed) {
            came = Some(changed.data);
        } else {
            assert_eq!(changed.data["period"]["name"], name.as_str());
            assert_eq!(rows(&changed.data["scores"]), [("ada".to_owned(), 5, 1)]);
            shown += 1;
        }
    }
}

#[tokio::test]
async fn a_named_period_stays_shown_after_its_end() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    // The season must still be open when the stream starts: a busy machine needs a longer one.
    let mut seconds = 2;
    let (name, ends_at, mut stream) = loop {
        let name = format!("dash{seconds}");
        let (starts_at, ends_at) = (Utc::now(), Utc::now() + TimeDelta::seconds(seconds));
        let season = json!({"name": &name, "starts_at": starts_at, "ends_at": ends_at});
        site.admin(Method::POST, "/v1/boards/main/seasons", season).await.is(201);
        post(&site, "ada", 40).await;
        let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?period=season:{name}"), &[]).await;
        if stream.one("started").await["period"]["state"] == "open" {
            break (format!("season:{name}"), ends_at, stream);
        }
        assert!(seconds < 100, "no season is open");
        seconds *= 2;
    };
    let output = stream.until(|event| event.kind == "period").await.data;
    assert_eq!(output, json!({"type": "period", "ended": name, "next": null}));
    assert!(Utc::now() >= ends_at);
    // The close is reported, although no row changed.
    let states = async |stream: &mut Stream, state: &str| {
        stream.until(|event| event.data["period"]["state"] == state).await.data["version"].clone()
    };
    run(&db, &["close", "--board", "main", "--period", &name]).well();
    let closed = states(&mut stream, "closed").await;
    // A new subscriber gets the final state.
    let mut other = Stream::open(&site.serve, &format!("{EVENTS}?period={name}"), &[]).await;
    let started = other.one("started").await;
    assert_eq!((&started["period"]["state"], &started["version"]), (&json!("closed"), &closed));
}

#[tokio::test]
async fn a_closed_period_can_be_followed() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    crate::access::rights::erase::played(&db, &site).await;
    let week = crate::access::rights::erase::WEEK;
    let read = site.get(&format!("{SCORES}?period={week}&limit=2")).await.is(200);
    let mut stream = Stream::open(&site.serve, &format!("{EVENTS}?period={week}&limit=2&user_id=bob"), &[]).await;
    let started = stream.one("started").await;
    assert_eq!(started["scores"], read["data"]);
    assert_eq!((&started["version"], &started["period"]), (&read["version"], &read["period"]));
    let standing = site.get(&format!("{SCORES}/bob?around=4&period={week}")).await.is(200);
    assert_eq!(started["standings"][0]["rank"], standing["rank"]);
    assert_eq!(started["standings"][0]["above"], standing["above"]);
    let refused = ask(&site.serve, &format!("{EVENTS}?period=week:2999-01-07"), &[]).await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
}
