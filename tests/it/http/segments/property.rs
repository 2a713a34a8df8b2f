//! Sends random scores, changes of attributes, bans, voids and resets over HTTP, and compares every
//! ranking with one computed from a list of the scores.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use chrono::{DateTime, Utc};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::{Value, json};

use super::{chosen, set};
use crate::{
    http::api::site::Site,
    store::property::{Reproducible, seeds},
    support::{TestDb, amount, audit, run},
};

const USERS: usize = 24;

const VALUES: [(&str, &[&str]); 2] = [("country", &["DE", "FR", "US"]), ("class", &["mage", "a:b 'c\" é"])];

/// A score that counts.
#[derive(Debug)]
struct Scored {
    user: usize,
    points: i64,
    at: DateTime<Utc>,
    id: i64,
}

/// Everything that determines the rankings. Users are in the order of their creation.
#[derive(Debug, Default)]
struct Oracle {
    scores: Vec<Scored>,
    banned: BTreeSet<usize>,
    attributes: HashMap<usize, BTreeMap<&'static str, &'static str>>,
    is_best: bool,
}

impl Oracle {
    fn ranking(&self, segment: Option<(&str, &str)>) -> Vec<(u64, u64, String, i64)> {
        let mut entries: BTreeMap<usize, (i64, DateTime<Utc>)> = BTreeMap::new();
        for Scored { user, points, at, .. } in &self.scores {
            let stands = segment.is_none_or(|(attribute, value)| {
                self.attributes.get(user).and_then(|values| values.get(attribute)) == Some(&value)
            });
            if !stands || self.banned.contains(user) {
                continue;
            }
            let entry = entries.entry(*user).or_insert((if self.is_best { i64::MIN } else { 0 }, *at));
            if !self.is_best {
                *entry = (entry.0 + points, *at);
            } else if *points > entry.0 {
                *entry = (*points, *at);
            }
        }
        let mut rows: Vec<_> = entries.into_iter().collect();
        rows.sort_by_key(|(user, (score, at))| (Reverse(*score), *at, *user));
        let ranked = rows.iter().enumerate().map(|(n, (user, (score, _)))| {
            let better = rows.iter().filter(|(_, (other, _))| other > score).count();
            (n as u64 + 1, better as u64 + 1, format!("p{user}"), *score)
        });
        ranked.collect()
    }
}

#[tokio::test]
async fn every_ranking_equals_the_oracle() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--no-maintenance"]).await;
    let by_sql = Site::start(&db, &["--no-maintenance", "--index-memory", "0"]).await;
    for seed in seeds(2) {
        let _named = Reproducible(seed);
        run_case(&site, &by_sql, seed).await;
        run(&db, &["verify"]).well();
        audit::rankings_are_sound(&db.pool().await).await;
    }
}

async fn compare(site: &Site, board: &str, oracle: &Oracle) {
    let users: Vec<String> = (0..USERS).map(|user| format!("p{user}")).collect();
    for period in ["all_time", "year"] {
        assert_eq!(chosen(site, board, period, None, &users).await, oracle.ranking(None), "{period}");
        for (attribute, values) in VALUES {
            for value in values {
                let segment = format!("{attribute}:{value}");
                let found = chosen(site, board, period, Some(&segment), &users).await;
                assert_eq!(found, oracle.ranking(Some((attribute, value))), "{period} {segment}");
            }
        }
    }
}

async fn run_case(site: &Site, by_sql: &Site, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut oracle = Oracle { is_best: rng.random(), ..Oracle::default() };
    let board = format!("b{seed}");
    let rules = json!({
        "slug": board, "mode": if oracle.is_best { "best" } else { "sum" }, "lanes": 2, "ties": "shared",
        "periods": ["all_time", "year"], "segments": ["country", "class"],
    });
    site.admin(Method::POST, "/v1/boards", rules).await.is(201);
    let name = |user: usize| format!("p{user}");
    for user in 0..USERS {
        site.json(Method::PUT, &format!("/v1/users/p{user}"), &site.server_key, "{}".to_owned()).await;
        // Users are shared by the cases.
        set(site, &name(user), json!({"country": null, "class": null})).await.is(200);
    }
    let scores = format!("/v1/boards/{board}/scores");
    let mut until_compared = 30;
    // The test runs two cases of this length.
    for _ in 0..amount(250, 5_000) {
        let user = rng.random_range(0..USERS);
        match rng.random_range(0..100) {
            0..55 => {
                let events: Vec<(usize, i64)> = (0..rng.random_range(1..=4))
                    .map(|_| (rng.random_range(0..USERS), rng.random_range(1..20)))
                    .filter(|(user, _)| !oracle.banned.contains(user))
                    .collect();
                if events.is_empty() {
                    continue;
                }
                let body = json!(
                    events
                        .iter()
                        .map(|(user, points)| json!({"user_id": name(*user), "points": points}))
                        .collect::<Vec<_>>()
                );
                let answer = site.post(&scores, body).await.is(200);
                let mut accepted = Vec::new();
                for ((user, points), result) in events.into_iter().zip(answer["results"].as_array().unwrap()) {
                    let at = result["occurred_at"].as_str().unwrap().parse().unwrap();
                    let id = result["transaction_id"].as_i64().unwrap();
                    accepted.push(Scored { user, points, at, id });
                }
                oracle.scores.append(&mut accepted);
            }
            55..80 => {
                let (attribute, values) = VALUES.choose(&mut rng).unwrap();
                let value = values.choose(&mut rng).filter(|_| rng.random_range(0..5) > 0);
                set(site, &name(user), json!({*attribute: value})).await.is(200);
                let known = oracle.attributes.entry(user).or_default();
                match value {
                    Some(value) => known.insert(attribute, value),
                    None => known.remove(attribute),
                };
            }
            80..88 => {
                let bans = !oracle.banned.contains(&user);
                let path = format!("/v1/users/p{user}/{}", if bans { "ban" } else { "unban" });
                site.admin(Method::POST, &path, Value::Null).await.is(200);
                if bans {
                    oracle.banned.insert(user)
                } else {
                    oracle.banned.remove(&user)
                };
            }
            88..94 if !oracle.scores.is_empty() => {
                let voided = oracle.scores.remove(rng.random_range(0..oracle.scores.len()));
                let path = format!("/v1/boards/{board}/transactions/{}/void", voided.id);
                let answer = site.admin(Method::POST, &path, json!({})).await;
                assert!(answer.status < 300, "{answer:?}");
            }
            94..96 if oracle.scores.iter().any(|scored| scored.user == user) => {
                let answer = site.admin(Method::POST, &format!("{scores}/p{user}/reset"), Value::Null).await;
                assert!(answer.status < 300, "{answer:?}");
                oracle.scores.retain(|scored| scored.user != user);
            }
            _ => {}
        }
        until_compared -= 1;
        if until_compared == 0 {
            until_compared = rng.random_range(20..60);
            compare(if rng.random() { site } else { by_sql }, &board, &oracle).await;
        }
    }
    compare(site, &board, &oracle).await;
    compare(by_sql, &board, &oracle).await;
    for user in oracle.banned {
        site.admin(Method::POST, &format!("/v1/users/p{user}/unban"), Value::Null).await.is(200);
    }
}
