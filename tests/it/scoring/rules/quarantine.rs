//! The quarantine: events that break a rule are kept for review, and each is decided once.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_scalar, raw_sql};

use super::{SCORES, event, site};
use crate::{
    http::api::site::Site,
    http::errors::refused,
    support::{TestDb, run},
};

const QUARANTINE: &str = "/v1/boards/main/quarantine";

/// Creates a board that accepts 0 to 100 points and quarantines the rest.
async fn quarantining(db: &TestDb) -> Site {
    let site = site(db).await;
    site.board(json!({"points_min": 0, "points_max": 100, "on_violation": "quarantine"}), &[("ada", 40)]).await;
    site
}

async fn waiting(site: &Site) -> Vec<Value> {
    let list = site.admin(Method::GET, QUARANTINE, Value::Null).await.is(200);
    list["data"].as_array().unwrap().clone()
}

/// Submits an event that must be quarantined; returns its quarantine id.
async fn kept(site: &Site, event: Value) -> i64 {
    site.post(SCORES, event).await.is(202)["quarantine_id"].as_i64().unwrap()
}

async fn decide(site: &Site, id: i64, what: &str) -> crate::http::api::site::Answer {
    site.admin(Method::POST, &format!("{QUARANTINE}/{id}/{what}"), json!({"reason": "looked at"})).await
}

async fn score(site: &Site, user: &str) -> Value {
    site.get(&format!("{SCORES}/{user}")).await.body["score"].clone()
}

#[tokio::test]
async fn an_event_that_breaks_a_rule_is_quarantined_and_repeats_its_answer() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    let cheat = json!({"user_id": "ada", "points": 101, "id": "match-1", "reason": "won"});
    let first = site.post(SCORES, cheat.clone()).await.is(202);
    let id = first["quarantine_id"].as_i64().unwrap();
    let wanted = json!({"state": "quarantined", "repeated": false, "quarantine_id": id, "rule": "points_out_of_bounds",
                        "detail": "points: board main allows 0 to 100 points per event"});
    assert_eq!(first, wanted);
    let again = site.post(SCORES, cheat.clone()).await.is(202);
    assert_eq!((&again["quarantine_id"], &again["repeated"]), (&json!(id), &json!(true)));
    let mut other = cheat.clone();
    other["points"] = json!(102);
    refused(&site.post(SCORES, other).await, 409, "", "another event under the id");
    // In a list, and twice in that list.
    let list = json!([event("ada", 5), {"user_id": "bob", "points": -1, "id": "b"}, {"user_id": "bob", "points": -1, "id": "b"}, cheat]);
    let results = site.post(SCORES, list).await.is(200)["results"].clone();
    let output =
        |place: usize| (results[place]["state"].as_str().unwrap(), results[place]["repeated"].as_bool().unwrap());
    assert_eq!(
        [output(0), output(1), output(2), output(3)],
        [("accepted", false), ("quarantined", false), ("quarantined", true), ("quarantined", true)]
    );
    assert_eq!(results[1]["quarantine_id"], results[2]["quarantine_id"]);
    assert_eq!(score(&site, "ada").await, 45);
    assert_eq!(score(&site, "bob").await, Value::Null);

    let events = waiting(&site).await;
    assert_eq!(events.len(), 2, "{events:?}");
    let one = &events[0];
    let shown = json!([
        one["quarantine_id"],
        one["user_id"],
        one["points"],
        one["reason"],
        one["id"],
        one["rule"],
        one["detail"],
        one["state"]
    ]);
    assert_eq!(shown, json!([id, "ada", 101, "won", "match-1", "points_out_of_bounds", "0 to 100", "waiting"]));
    // Events that no ledger could hold are refused under every setting.
    refused(&site.post(SCORES, event("ada", i64::MIN)).await, 422, "points", "the least number");
    refused(
        &site.post(SCORES, json!({"user_id": "ada", "points": 500, "tiebreak": 1})).await,
        422,
        "tiebreak",
        "no tiebreaks here",
    );
    let output = site.get("/metrics").await.text;
    assert!(output.lines().any(|line| line == "centile_quarantine_waiting 2"), "{output}");
    // The path without a board in it as well.
    assert_eq!(site.post("/v1/scores", event("cyd", 101)).await.is(202)["state"], "quarantined");
}

#[tokio::test]
async fn an_accepted_event_counts_from_its_acceptance_and_a_rejected_one_never() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    let (taken, left) = (kept(&site, event("ada", 500)).await, kept(&site, event("ada", 600)).await);
    // As if it had waited for a long time.
    db.execute("UPDATE centile_store.quarantine SET submitted_at = submitted_at - interval '70 days'").await;
    // An event accepted after a reset counts after it.
    site.admin(Method::POST, "/v1/boards/main/scores/ada/reset", json!({"reason": "again"})).await.is(204);
    let before: chrono::DateTime<chrono::Utc> =
        query_scalar("SELECT clock_timestamp()").fetch_one(&db.pool().await).await.unwrap();
    let transaction_id = decide(&site, taken, "accept").await.is(200)["transaction_id"].clone();
    assert_eq!(decide(&site, taken, "accept").await.is(200)["transaction_id"], transaction_id);
    for _ in 0..2 {
        let decision = json!({"quarantine_id": left, "state": "rejected", "transaction_id": null});
        assert_eq!(decide(&site, left, "reject").await.is(200), decision);
    }
    refused(&decide(&site, taken, "reject").await, 409, "", "it is in the ledger");
    refused(&decide(&site, left, "accept").await, 409, "", "it was rejected");
    assert_eq!(score(&site, "ada").await, 500);
    let history = site.get(&format!("{SCORES}/ada/history?limit=1")).await.is(200)["data"][0].clone();
    assert_eq!((&history["transaction_id"], &history["points"]), (&transaction_id, &json!(500)));
    assert!(history["occurred_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap() >= before);
    let difference: i64 = query_scalar("SELECT count(*) FROM centile.boards b CROSS JOIN LATERAL unnest('{all_time,day,week,month}'::text[]) p CROSS JOIN LATERAL centile.verify(b.slug, p) v")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(difference, 0);

    assert!(waiting(&site).await.is_empty());
    let accepted =
        site.admin(Method::GET, &format!("{QUARANTINE}?state=accepted"), Value::Null).await.is(200)["data"][0].clone();
    let actor = format!("key {}", site.admin_key.split('_').nth(1).unwrap());
    let shown =
        json!([accepted["quarantine_id"], accepted["transaction_id"], accepted["decided_by"], accepted["decided_why"]]);
    assert_eq!(shown, json!([taken, transaction_id, actor, "looked at"]));
    let acts: Vec<(String, String, Value)> = sqlx::query_as(
        "SELECT action, subject, after FROM centile.audit_log WHERE action LIKE '%_event' AND actor = $1 ORDER BY audit_id",
    )
    .bind(&actor)
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    let named: Vec<(&str, &str)> =
        acts.iter().map(|(action, subject, _)| (action.as_str(), subject.as_str())).collect();
    assert_eq!(named, [("accept_event", "ada"), ("reject_event", "ada")], "one audit entry for each decision");
    assert_eq!(acts[0].2["reason"], "looked at");

    refused(&site.admin(Method::GET, &format!("{QUARANTINE}?state=lost"), Value::Null).await, 422, "state", "a state");
    refused(&site.admin(Method::GET, &format!("{QUARANTINE}?cursor=x"), Value::Null).await, 422, "cursor", "a cursor");
    for (path, status, field) in [
        (format!("{QUARANTINE}/999/accept"), 404, ""),
        (format!("{QUARANTINE}/x/reject"), 422, "quarantine_id"),
        (format!("/v1/boards/other/quarantine/{left}/reject"), 404, ""),
    ] {
        refused(&site.admin(Method::POST, &path, Value::Null).await, status, field, &path);
    }
    site.board(json!({"slug": "other"}), &[]).await;
    let elsewhere = site.admin(Method::POST, &format!("/v1/boards/other/quarantine/{taken}/accept"), Value::Null).await;
    refused(&elsewhere, 404, "", "an event of another board");
}

#[tokio::test]
async fn one_of_many_concurrent_decisions_counts() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    let mut accepted = 0;
    for round in 0..10_i64 {
        let id = kept(&site, event("ada", 1_000)).await;
        let what = |place: i64| if (place + round) % 2 == 0 { "accept" } else { "reject" };
        let answers = join_all((0..10).map(|place| decide(&site, id, what(place)))).await;
        let taken: Vec<&Value> =
            answers.iter().map(|answer| &answer.body["transaction_id"]).filter(|id| id.is_number()).collect();
        let rejected = answers.iter().filter(|answer| answer.body["state"] == "rejected").count();
        let conflicts = answers.iter().filter(|answer| answer.status == 409).count();
        assert!(matches!((taken.len(), rejected, conflicts), (5, 0, 5) | (0, 5, 5)), "{answers:?}");
        assert!(taken.windows(2).all(|two| two[0] == two[1]), "{taken:?}");
        accepted += i64::from(!taken.is_empty());
    }
    let rows: i64 = query_scalar("SELECT count(*) FROM centile.score_history WHERE points = 1000")
        .fetch_one(&db.pool().await)
        .await
        .unwrap();
    assert_eq!(rows, accepted);
    assert_eq!(score(&site, "ada").await, 40 + accepted * 1_000);
    let acts: i64 =
        query_scalar("SELECT count(*) FROM centile.audit_log WHERE action IN ('accept_event', 'reject_event')")
            .fetch_one(&db.pool().await)
            .await
            .unwrap();
    assert_eq!(acts, 10);
}

#[tokio::test]
async fn the_quarantine_is_limited_and_decided_events_are_deleted() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    let flood: Vec<Value> = (0..150).map(|_| event("eve", 101)).collect();
    for round in 0..2 {
        let results = site.post(SCORES, json!(flood)).await.is(200)["results"].clone();
        let count = |status: &str| results.as_array().unwrap().iter().filter(|one| one["state"] == status).count();
        let wanted = if round == 0 { (100, 50) } else { (0, 150) };
        assert_eq!((count("quarantined"), count("refused")), wanted);
    }
    refused(&site.post(SCORES, event("eve", 101)).await, 422, "points", "the quarantine is full");
    kept(&site, event("ada", 101)).await;
    // All pages together hold each event once, in order.
    let mut ids = Vec::new();
    let mut path = format!("{QUARANTINE}?limit=40");
    loop {
        let page = site.admin(Method::GET, &path, Value::Null).await.is(200);
        ids.extend(page["data"].as_array().unwrap().iter().map(|one| one["quarantine_id"].as_i64().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("{QUARANTINE}?limit=40&cursor={next}");
    }
    assert!(ids.len() == 101 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    // A decision frees a place.
    decide(&site, ids[0], "reject").await.is(200);
    kept(&site, event("eve", 102)).await;
    refused(&site.post(SCORES, event("eve", 101)).await, 422, "points", "the quarantine is full again");

    let forget = "SELECT centile_store.forget_decided_events()";
    assert_eq!(query_scalar(forget).fetch_one(&db.pool().await).await.ok(), Some(0_i64));
    db.execute("UPDATE centile_store.quarantine SET decided_at = decided_at - interval '91 days', submitted_at = submitted_at - interval '1 year'").await;
    assert_eq!(query_scalar(forget).fetch_one(&db.pool().await).await.ok(), Some(1_i64));
    assert_eq!(
        query_scalar("SELECT count(*) FROM centile.quarantine").fetch_one(&db.pool().await).await.ok(),
        Some(101_i64)
    );
}

#[tokio::test]
async fn events_of_a_banned_player_wait_and_the_command_line_decides() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    let (first, second) = (kept(&site, event("ada", 500)).await, kept(&site, event("ada", 600)).await);
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    refused(&decide(&site, first, "accept").await, 409, "", "the player is banned");
    site.admin(Method::POST, "/v1/users/ada/unban", Value::Null).await.is(200);

    let listed = run(&db, &["quarantine", "list", "--board", "main"]).well();
    let line = listed.lines().find(|line| line.starts_with(&format!("{first} "))).unwrap();
    assert!(line.contains("ada") && line.contains("500") && line.contains("points_out_of_bounds"), "{listed}");
    let (first, second) = (first.to_string(), second.to_string());
    let act = ["--board", "main", "--by", "dora", "--reason", "on video"];
    let said = run(&db, &[["quarantine", "accept", &first].as_slice(), &act].concat()).well();
    assert!(said.starts_with(&format!("event {first} accepted as score transaction ")), "{said}");
    let said = run(&db, &[["quarantine", "reject", &second].as_slice(), &act].concat()).well();
    assert_eq!(said, format!("event {second} of board main rejected\n"));
    run(&db, &[["quarantine", "reject", &first].as_slice(), &act].concat()).refused(1, &["was accepted"]);
    run(&db, &[["quarantine", "accept", "999"].as_slice(), &act].concat())
        .refused(1, &["no event in quarantine", "999"]);
    let rejected = run(&db, &["quarantine", "list", "--board", "main", "--state", "rejected", "--json"]).json();
    assert_eq!((&rejected[0]["decided_by"], &rejected[0]["decided_why"]), (&json!("dora"), &json!("on video")));
    let none = run(&db, &["quarantine", "list", "--board", "main"]);
    assert!(none.err.contains("No event of board main is waiting."), "{none:?}");
    assert_eq!(score(&site, "ada").await, 540);

    // An erased player appears under the new id. Rules that define a score's meaning cannot change
    // while an event waits.
    let erased = site.admin(Method::DELETE, "/v1/users/ada", Value::Null).await.is(200);
    let rejected = run(&db, &["quarantine", "list", "--board", "main", "--state", "rejected", "--json"]).json();
    assert_eq!(rejected[0]["user_id"], erased["new_user_id"]);
    let rules = json!({"slug": "fresh", "points_max": 1, "on_violation": "quarantine"});
    site.board(rules, &[]).await;
    site.post("/v1/boards/fresh/scores", event("bob", 2)).await.is(202);
    refused(&site.admin(Method::PATCH, "/v1/boards/fresh", json!({"order": "asc"})).await, 409, "", "an event waits");

    // An event cannot be accepted if the sum would leave 64 bits.
    let (most, more) = (kept(&site, event("cyd", i64::MAX)).await, kept(&site, event("cyd", 101)).await);
    decide(&site, most, "accept").await.is(200);
    assert_eq!(decide(&site, more, "accept").await.is(422)["code"], "score_out_of_range");
    assert_eq!(score(&site, "cyd").await, i64::MAX);
}

/// The service decides under the player's lane lock. This tests the case without that lock.
#[tokio::test]
async fn a_decided_event_is_not_decided_again() {
    let db = TestDb::new().await;
    let site = quarantining(&db).await;
    kept(&site, event("ada", 500)).await;
    let reject =
        "SELECT centile_store.decide_event(q, 'rejected', 'looked at', 'dora') FROM centile_store.quarantine q";
    let mut first = db.hold(reject).await;
    let second = db.spawn(reject);
    db.until_waiting(1, || second.is_finished()).await;
    raw_sql("COMMIT").execute(&mut first).await.unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(
        error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
        Some("CB001"),
        "{error}"
    );
    let decided: (String, i64) = sqlx::query_as(
        "SELECT q.state, (SELECT count(*) FROM centile.audit_log WHERE action LIKE '%_event') FROM centile.quarantine q",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(decided, ("rejected".to_owned(), 1));
}
