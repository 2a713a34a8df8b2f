//! Promotions and demotions in the messages of closed periods.

use std::collections::BTreeMap;

use reqwest::Method;

use super::*;
use crate::{
    http::api::site::Site,
    support::{Files, import},
};

/// Scores of the players of each day of January 2024, from the 15th on.
type Days = Vec<BTreeMap<String, i64>>;

/// A tier: its name, and the last rank or the least score that it takes.
type Ladder = [(&'static str, Rule)];

#[derive(Clone, Copy)]
enum Rule {
    Rank(usize),
    Score(i64),
    /// The best players of this many.
    OneIn(usize),
}

fn texts(ladder: &Ladder) -> Vec<String> {
    let text = |(name, rule): &(&str, Rule)| match rule {
        Rule::Rank(rank) => format!("{name}: rank {rank}"),
        Rule::Score(score) => format!("{name}: score {score}"),
        Rule::OneIn(count) => format!("{name}: top {} %", 100 / count),
    };
    ladder.iter().map(text).collect()
}

/// Returns each player's position and place on the ladder. Equal scores share a rank.
fn places(day: &BTreeMap<String, i64>, ladder: &Ladder) -> BTreeMap<String, (usize, Option<usize>)> {
    let mut order: Vec<&String> = day.keys().collect();
    // The players of a day score in the order of their ids.
    order.sort_by_key(|user| (-day[*user], (*user).clone()));
    let place = |(position, user): (usize, &&String)| {
        let (score, rank) = (day[*user], 1 + day.values().filter(|score| **score > day[*user]).count());
        let holds = |(_, rule): &(&str, Rule)| match rule {
            Rule::Rank(last) => rank <= *last,
            Rule::Score(least) => score >= *least,
            Rule::OneIn(count) => rank * count <= day.len(),
        };
        ((*user).clone(), (position + 1, ladder.iter().position(holds)))
    };
    order.iter().enumerate().map(place).collect()
}

/// Returns the lists of a message: of each player from, to.
fn wanted(before: (&BTreeMap<String, i64>, &Ladder), now: (&BTreeMap<String, i64>, &Ladder)) -> [Vec<Value>; 2] {
    let (old, new) = (places(before.0, before.1), places(now.0, now.1));
    let mut users: Vec<&String> = old.keys().chain(new.keys()).collect();
    users.sort_by_key(|user| {
        let at = |places: &BTreeMap<String, (usize, _)>| places.get(*user).map_or(usize::MAX, |(at, _)| *at);
        (at(&new), at(&old))
    });
    users.dedup();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for user in users {
        let from = old.get(user).and_then(|(_, place)| *place).map(|place| before.1[place].0);
        let to = new.get(user).and_then(|(_, place)| *place);
        let none = now.1.len();
        // A former tier that the new ladder lacks is none.
        let was = from.and_then(|name| now.1.iter().position(|(other, _)| *other == name)).unwrap_or(none);
        let row = json!({"user_id": user, "from": from, "to": to.map(|place| now.1[place].0)});
        match to.unwrap_or(none).cmp(&was) {
            std::cmp::Ordering::Less => up.push(row),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => down.push(row),
        }
    }
    [up, down]
}

/// Imports the days into the board `main`.
fn write(db: &TestDb, days: &Days) {
    let mut lines = vec!["user_id,points,occurred_at".to_owned()];
    for (day, scores) in days.iter().enumerate() {
        let line = |(n, (user, score)): (usize, (&String, &i64))| {
            format!("{user},{score},2024-01-{}T12:{:02}:{:02}Z", day + 15, n / 60, n % 60)
        };
        lines.extend(scores.iter().enumerate().map(line));
    }
    let files = Files::new();
    import(db, &files.write("days.csv", lines.join("\n")), "main", &[]).well(lines.len() as u64 - 1, 0);
}

fn close(db: &TestDb, day: usize) {
    run(db, &["close", "--board", "main", "--period", &format!("day:2024-01-{}", day + 15)]).well();
}

#[tokio::test]
async fn a_message_lists_promotions_and_demotions() {
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[]));
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["day"], "frozen_top_size": 4}), &[]).await;
    // Some players are missing on each day.
    let players = |day: i64| {
        (0..40).filter(move |n| n % 7 != day).map(move |n| (format!("p{n:02}"), 1 + (n * 17 + day * day * 5 * n) % 23))
    };
    let days: Days = (0..6).map(|day| players(day).collect()).collect();
    write(&db, &days);
    set_webhook(&db, "main", &receiver.url);

    let first: &Ladder = &[("crown", Rule::Rank(1)), ("gold", Rule::OneIn(10)), ("bronze", Rule::OneIn(2))];
    let second: &Ladder =
        &[("gold", Rule::Score(20)), ("silver", Rule::Rank(12)), ("bronze", Rule::Rank(20)), ("rest", Rule::Score(3))];
    let none: &Ladder = &[];
    let day = |n: usize| format!("day:2024-01-{}", n + 15);
    // Each closing: the day, its ladder, and the day to compare with.
    for (now, ladder, before) in [
        (0, first, None),
        (1, first, Some((0, first))),
        (2, second, Some((1, first))),
        (3, none, None),
        // Day 3 had no tiers.
        (4, first, Some((2, second))),
        (5, first, Some((2, second))),
    ] {
        site.admin(Method::PATCH, "/v1/boards/main", json!({"tiers": texts(ladder)})).await.is(200);
        if now == 5 {
            // The archives of the last two days are gone.
            db.execute(
                "SELECT centile_store.drop_archive(p.id, false) FROM centile_store.periods p WHERE p.label IN ('2024-01-18', '2024-01-19')",
            )
            .await;
        }
        close(&db, now);
        delivers(&db, 1);
        let message: Value = serde_json::from_slice(&receiver.next().body).unwrap();
        assert_eq!(message["period"]["name"], json!(day(now)));
        let top = message["top"].as_array().unwrap();
        assert_eq!(top.len(), 4);
        if ladder.is_empty() {
            assert!(!message.to_string().contains("tier"), "{message}");
            continue;
        }
        let places = places(&days[now], ladder);
        for row in top {
            let (position, place) = places[row["user_id"].as_str().unwrap()];
            assert_eq!(
                (&row["position"], &row["tier"]),
                (&json!(position), &json!(place.map(|place| ladder[place].0))),
                "{row}"
            );
        }
        let [up, down] =
            before.map_or([vec![], vec![]], |(before, old)| wanted((&days[before], old), (&days[now], ladder)));
        assert!(before.is_none() || (!up.is_empty() && !down.is_empty()));
        let wanted = json!({
            "since": before.map(|(before, _)| day(before)), "promoted": up.len(), "demoted": down.len(),
            "promotions": up, "demotions": down,
        });
        assert_eq!(message["tiers"], wanted, "{}", day(now));
    }
}

#[tokio::test]
async fn a_message_lists_the_first_thousand() {
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[]));
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["day"], "tiers": ["half: top 50 %"]}), &[]).await;
    let days: Days = [1, -1].map(|sign| (0..2_400).map(|n| (format!("p{n:04}"), sign * (n + 1))).collect()).into();
    write(&db, &days);
    set_webhook(&db, "main", &receiver.url);
    close(&db, 0);
    close(&db, 1);
    delivers(&db, 2);
    receiver.next();
    let message: Value = serde_json::from_slice(&receiver.next().body).unwrap();
    let ladder: &Ladder = &[("half", Rule::OneIn(2))];
    let [up, down] = wanted((&days[0], ladder), (&days[1], ladder));
    assert_eq!((&message["tiers"]["promoted"], &message["tiers"]["demoted"]), (&json!(1_200), &json!(1_200)));
    assert_eq!(message["tiers"]["promotions"], json!(up[..1_000]));
    assert_eq!(message["tiers"]["demotions"], json!(down[..1_000]));
}

#[tokio::test]
async fn an_erased_player_disappears_from_the_lists() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    site.board(json!({"periods": ["day"], "frozen_top_size": 1, "tiers": ["gold: rank 2"]}), &[]).await;
    let day = |scores: [i64; 4]| {
        ["ann", "bob", "old-countess", "old-duke"].map(str::to_owned).into_iter().zip(scores).collect()
    };
    write(&db, &vec![day([4, 1, 2, 3]), day([4, 1, 3, 2])]);
    close(&db, 0);
    close(&db, 1);
    let payload = async || {
        let payload = "SELECT payload FROM centile_store.outbox ORDER BY id DESC LIMIT 1";
        query_scalar::<_, Value>(payload).fetch_one(&db.pool().await).await.unwrap()
    };
    let before = payload().await;
    assert_eq!(before["tiers"]["promotions"], json!([{"user_id": "old-countess", "from": null, "to": "gold"}]));
    assert_eq!(before["tiers"]["demotions"], json!([{"user_id": "old-duke", "from": "gold", "to": null}]));
    for (list, user) in [("promotions", "old-countess"), ("demotions", "old-duke")] {
        let erased = site.admin(Method::DELETE, &format!("/v1/users/{user}"), Value::Null).await.is(200);
        let now = payload().await;
        assert!(!now.to_string().contains(user), "{now}");
        assert_eq!(now["tiers"][list][0]["user_id"], erased["new_user_id"]);
        assert_eq!(now["top"], before["top"]);
    }
    assert_eq!(payload().await["tiers"]["promoted"], 1);
}
