//! Random boards with rules and concurrent random players: accepted events break no rule, and
//! refused events break one.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::{
    model::{Row, Rules, ledger},
    site,
};
use crate::{
    http::api::site::Site,
    support::{TestDb, amount, random::now},
};

/// Number of callers. Each has its own players, so that the test knows a player's ledger when an
/// event is refused.
const CALLERS: usize = 4;

/// Returns the rules of a random board; `seed % 6` selects mode and order.
fn rules(seed: u64, rng: &mut StdRng) -> Rules {
    let mode = ["sum", "best", "latest"][usize::try_from(seed % 3).unwrap()];
    let mut gain_max = Vec::new();
    for kind in ["all_time", "day", "week", "month"] {
        if rng.random_ratio(1, 2) {
            gain_max.push((kind, rng.random_range(5..120)));
        }
    }
    Rules {
        mode,
        ascending: seed % 6 >= 3,
        points_min: -40,
        points_max: 40,
        events_per_minute: rng.random_range(amount(3..13, 6..25)),
        gain_max,
    }
}

fn slug(seed: u64) -> String {
    format!("board-{seed}")
}

/// An event that was refused or quarantined.
#[derive(Debug)]
struct Refused {
    user: String,
    points: i64,
    rule: String,
    /// The last row of the player's ledger before the event.
    after: i64,
    sent_at: DateTime<Utc>,
    answered_at: DateTime<Utc>,
}

async fn end_of(pool: &PgPool, board: &str, user: &str) -> i64 {
    ledger(pool, board, user).await.last().map_or(0, |row| row.transaction_id)
}

/// Sends lists of events for two players of this caller and one that all callers share, with an
/// administrator's acts in between.
async fn play(site: &Site, pool: &PgPool, seed: u64, caller: usize, keeps: bool) -> Vec<Refused> {
    let mut rng = StdRng::seed_from_u64(seed * 100 + caller as u64);
    let board = slug(seed);
    let own = [format!("a{caller}"), format!("b{caller}")];
    let mut refused = Vec::new();
    for _ in 0..amount(12, 40) {
        let user = own.choose(&mut rng).unwrap();
        match rng.random_range(0..10) {
            0 => {
                let rows = ledger(pool, &board, user).await;
                if let Some(row) = rows.iter().rfind(|row| row.kind == "score") {
                    let path = format!("/v1/boards/{board}/transactions/{}/void", row.transaction_id);
                    site.admin(Method::POST, &path, json!({"reason": "void"})).await.is(204);
                }
            }
            1 if rng.random_ratio(1, 2) => {
                let path = format!("/v1/boards/{board}/scores/{user}/reset");
                let answer = site.admin(Method::POST, &path, json!({"reason": "reset"})).await;
                assert!([204, 404].contains(&answer.status), "{answer:?}");
            }
            // A past score: from recent days, or about to leave the last minute.
            1 | 2 => {
                let ago =
                    if rng.random_ratio(1, 2) { rng.random_range(1.0..3e6) } else { rng.random_range(55.0..60.0) };
                sqlx::query("SELECT centile.ensure_users(ARRAY[$1])").bind(user).execute(pool).await.unwrap();
                sqlx::query(
                    "SELECT centile.correct_score($4, $1, $2, clock_timestamp() - make_interval(secs => $3), 'past', 'dora')",
                )
                .bind(user)
                .bind(rng.random_range(-60..60_i64))
                .bind(ago)
                .bind(&board)
                .execute(pool)
                .await
                .unwrap();
            }
            _ => {
                let events: Vec<(String, i64)> = (0..rng.random_range(1..6))
                    .map(|_| {
                        let user = if rng.random_ratio(1, 4) { "shared" } else { own.choose(&mut rng).unwrap() };
                        (user.to_owned(), rng.random_range(-45..45))
                    })
                    .collect();
                refused.extend(send(site, pool, &board, &events, &own, keeps).await);
            }
        }
    }
    refused
}

/// Sends events as one list; returns the refused events of the caller's own players.
async fn send(
    site: &Site,
    pool: &PgPool,
    board: &str,
    events: &[(String, i64)],
    own: &[String; 2],
    keeps: bool,
) -> Vec<Refused> {
    let mut ends = [end_of(pool, board, &own[0]).await, end_of(pool, board, &own[1]).await];
    let list: Vec<Value> = events.iter().map(|(user, points)| json!({"user_id": user, "points": points})).collect();
    let sent_at = now();
    let results = site.post(&format!("/v1/boards/{board}/scores"), json!(list)).await.is(200)["results"].clone();
    let answered_at = now();
    let mut refused = Vec::new();
    for ((user, points), result) in events.iter().zip(results.as_array().unwrap()) {
        let place = own.iter().position(|one| one == user);
        match (result["state"].as_str().unwrap(), place) {
            ("accepted", Some(place)) => ends[place] = result["transaction_id"].as_i64().unwrap(),
            (_, None) => {}
            (status, Some(place)) => {
                assert_eq!(status, if keeps { "quarantined" } else { "refused" }, "{result}");
                let detail = if keeps { &result["detail"] } else { &result["error"]["detail"] };
                let detail = detail.as_str().unwrap();
                let rule = if detail.contains("per event") {
                    "points_out_of_bounds"
                } else if detail.contains("gain") {
                    "gain_too_large"
                } else {
                    "too_many_events"
                };
                let (user, rule) = (user.clone(), rule.to_owned());
                refused.push(Refused { user, points: *points, rule, after: ends[place], sent_at, answered_at });
            }
        }
    }
    refused
}

/// Checks that each live row broke no rule when it was written. Returns the number of live rows.
fn check_taken(rules: &Rules, user: &str, rows: &[Row]) -> usize {
    let live = rows.iter().enumerate().filter(|(_, row)| row.is_live);
    for (place, row) in live.clone() {
        let broken = rules.broken(&rows[..place], row.points.unwrap(), row.occurred_at);
        assert!(broken.is_empty(), "{rules:?}: {user}, {row:?} broke {broken:?} after {:#?}", &rows[..place]);
    }
    live.count()
}

#[tokio::test]
async fn accepted_events_break_no_rule_and_refused_ones_do() {
    let (mut taken, mut rules_met) = (0, std::collections::BTreeMap::<String, usize>::new());
    let db = TestDb::new().await;
    let site = site(&db).await;
    let pool = db.pool().await;
    for seed in 0..6_u64 {
        let mut rng = StdRng::seed_from_u64(seed);
        let rules = rules(seed, &mut rng);
        let keeps = seed % 2 == 1;
        let gain_max: serde_json::Map<String, Value> = rules
            .gain_max
            .iter()
            .map(|(kind, most)| ((*kind).to_owned(), json!(i64::try_from(*most).unwrap())))
            .collect();
        let board = slug(seed);
        let settings = json!({
            "slug": board, "mode": rules.mode, "order": if rules.ascending { "asc" } else { "desc" }, "lanes": 2,
            "points_min": rules.points_min, "points_max": rules.points_max, "events_per_minute": rules.events_per_minute,
            "gain_max": gain_max, "on_violation": if keeps { "quarantine" } else { "refuse" },
        });
        site.board(settings, &[]).await;
        let refused = join_all((0..CALLERS).map(|caller| play(&site, &pool, seed, caller, keeps))).await;

        let mut users: Vec<String> =
            (0..CALLERS).flat_map(|caller| [format!("a{caller}"), format!("b{caller}")]).collect();
        users.push("shared".to_owned());
        for user in &users {
            taken += check_taken(&rules, user, &ledger(&pool, &board, user).await);
        }
        for one in refused.iter().flatten() {
            let rows = ledger(&pool, &board, &one.user).await;
            let before: Vec<Row> = rows.into_iter().filter(|row| row.transaction_id <= one.after).collect();
            // A sliding minute contains most events at its start, and a period may have begun in
            // between.
            let broken = [one.sent_at, one.answered_at].map(|at| rules.broken(&before, one.points, at));
            assert!(
                broken.iter().flatten().any(|rule| *rule == one.rule),
                "seed {seed}, {rules:?}: {one:?} broke {broken:?} after {before:#?}"
            );
            *rules_met.entry(one.rule.clone()).or_default() += 1;
        }
    }
    assert!(taken > amount(150, 500) && rules_met.len() == 3, "{taken} taken, {rules_met:?}");
}
