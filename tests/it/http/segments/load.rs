//! Scores and changes of attributes by many callers at once, on two instances. Each caller knows its
//! players' scores and segments, and reads them after each change.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::json;

use super::{chosen, page, set};
use crate::{
    http::api::site::Site,
    support::{TestDb, amount, audit, random::seed, run},
};

const COUNTRIES: [&str; 4] = ["DE", "FR", "US", "IT"];

/// A player of one caller.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    score: i64,
    country: Option<&'static str>,
}

/// Plays with a caller's players, and checks each answer. Returns what the caller knows.
async fn play(
    sites: Arc<[Site; 2]>,
    seed: u64,
    caller: usize,
    rounds: u64,
    answers: Arc<AtomicU64>,
) -> Vec<(String, Known)> {
    let mut rng = StdRng::seed_from_u64(seed.wrapping_add(caller as u64));
    let mut players = [Known::default(); 6];
    let name = |player: usize| format!("c{caller}-{player}");
    for _ in 0..rounds {
        let player = rng.random_range(0..players.len());
        let (user, known) = (name(player), &mut players[player]);
        let before = *known;
        if rng.random_range(0..3) > 0 {
            let points = rng.random_range(1..10);
            let body = json!({"user_id": user, "points": points});
            sites[rng.random_range(0..2)].post("/v1/boards/main/scores", body).await.is(200);
            known.score += points;
        } else {
            let country = COUNTRIES.choose(&mut rng).copied().filter(|_| rng.random_range(0..6) > 0);
            let answer = set(&sites[rng.random_range(0..2)], &user, json!({"country": country})).await;
            assert!(answer.status < 300, "{answer:?}");
            known.country = country;
        }
        // Each answer includes what was acknowledged before the request.
        let of = async |site: &Site, country: &str| {
            site.get(&format!("/v1/boards/main/scores/{user}?period=year&segment=country:{country}")).await
        };
        let site = &sites[rng.random_range(0..2)];
        if let Some(country) = known.country.filter(|_| known.score > 0) {
            let standing = of(site, country).await.is(200);
            assert_eq!(standing["score"], json!(known.score), "{user} in {country}: {standing}");
            answers.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(left) = before.country.filter(|country| known.country != Some(country)) {
            assert_eq!(of(site, left).await.status, 404, "{user} has left {left}");
            answers.fetch_add(1, Ordering::Relaxed);
        }
        // A page is one state: positions without gaps, no player twice, no better player below.
        if rng.random_range(0..8) == 0 {
            let country = COUNTRIES.choose(&mut rng).unwrap();
            let rows = page(site, "main", &format!("period=year&segment=country:{country}")).await;
            let users: HashSet<&String> = rows.iter().map(|row| &row.2).collect();
            assert_eq!(users.len(), rows.len());
            assert!(rows.iter().zip(1..).all(|(row, n)| row.0 == n), "{rows:?}");
            assert!(rows.is_sorted_by(|a, b| a.3 > b.3 || (a.3 == b.3 && a.1 == b.1)), "{rows:?}");
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
    players.iter().enumerate().map(|(player, known)| (name(player), *known)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_about_segments_are_exact_under_load() {
    let db = TestDb::new().await;
    let sites = Arc::new([Site::start(&db, &[]).await, Site::start(&db, &[]).await]);
    let rules =
        json!({"slug": "main", "mode": "sum", "lanes": 4, "periods": ["all_time", "year"], "segments": ["country"]});
    sites[0].admin(Method::POST, "/v1/boards", rules).await.is(201);
    let answers = Arc::new(AtomicU64::new(0));
    let seed = seed();
    let callers = (0..8)
        .map(|caller| tokio::spawn(play(Arc::clone(&sites), seed, caller, amount(60, 1_500), Arc::clone(&answers))));
    let known: Vec<(String, Known)> = join_all(callers).await.into_iter().flat_map(Result::unwrap).collect();
    assert!(answers.load(Ordering::Relaxed) > amount(200, 5_000));
    let users: Vec<String> = known.iter().map(|(user, _)| user.clone()).collect();
    for period in ["all_time", "year"] {
        for country in COUNTRIES {
            let mut wanted: Vec<(&str, i64)> = known
                .iter()
                .filter(|(_, known)| known.country == Some(country) && known.score > 0)
                .map(|(user, known)| (user.as_str(), known.score))
                .collect();
            wanted.sort_unstable();
            for site in &*sites {
                let segment = format!("country:{country}");
                let rows = chosen(site, "main", period, Some(&segment), &users).await;
                let mut found: Vec<(&str, i64)> = rows.iter().map(|row| (row.2.as_str(), row.3)).collect();
                found.sort_unstable();
                assert_eq!(found, wanted, "{period} {country}");
            }
        }
    }
    run(&db, &["verify"]).well();
    assert!(audit::rankings_are_sound(&db.pool().await).await >= 2 * (1 + COUNTRIES.len()));
}
