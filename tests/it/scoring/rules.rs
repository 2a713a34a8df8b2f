//! Rules against cheating: the limits of a board for each player, whichever key is used, and the
//! fate of events that break them.

mod model;
mod property;
mod quarantine;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query, query_scalar};

use crate::{
    http::api::site::Site,
    http::errors::refused,
    support::{TestDb, boundary::until_no_hour_ends, load::PATIENT, run, spawn_serve},
};

const SCORES: &str = "/v1/boards/main/scores";

async fn site(db: &TestDb) -> Site {
    Site::of(spawn_serve(db, None, PATIENT).await, db.url())
}

fn event(user: &str, points: i64) -> Value {
    json!({"user_id": user, "points": points})
}

/// Sends a player's scores one by one. Returns the new all-time score after each, or the status of
/// the refusal.
async fn played(site: &Site, board: &str, user: &str, points: &[i64]) -> Vec<Value> {
    let mut seen = Vec::new();
    for points in points {
        let answer = site.post(&format!("/v1/boards/{board}/scores"), event(user, *points)).await;
        seen.push(match answer.status {
            200 => answer.body["periods"]["all_time"]["score"].clone(),
            status => json!({ "status": status, "detail": answer.body["detail"] }),
        });
    }
    seen
}

#[tokio::test]
async fn rules_are_set_shown_changed_and_audited() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({"slug": "plain"}), &[]).await;
    let rules = async |board: &str| {
        let board = site.admin(Method::GET, &format!("/v1/boards/{board}"), Value::Null).await.is(200);
        json!([board["events_per_minute"], board["gain_max"], board["on_violation"]])
    };
    assert_eq!(rules("plain").await, json!([null, {}, "refuse"]));
    let given = json!({"events_per_minute": 30, "gain_max": {"day": 5_000, "season": 1}, "on_violation": "quarantine"});
    site.board(given, &[]).await;
    assert_eq!(rules("main").await, json!([30, {"day": 5_000, "season": 1}, "quarantine"]));
    // An absent field keeps its value; null removes a limit.
    let change = json!({"gain_max": {"week": 9_007_199_254_740_991_i64, "season": null}});
    site.admin(Method::PATCH, "/v1/boards/main", change).await.is(200);
    let changed = json!([30, {"day": 5_000, "week": 9_007_199_254_740_991_i64}, "quarantine"]);
    assert_eq!(rules("main").await, changed);
    site.admin(Method::PATCH, "/v1/boards/main", json!({"events_per_minute": null})).await.is(200);
    let before_and_after: (Value, Value) =
        sqlx::query_as("SELECT before, after FROM centile.audit_log ORDER BY audit_id DESC LIMIT 1")
            .fetch_one(&db.pool().await)
            .await
            .unwrap();
    assert_eq!(before_and_after, (json!({"events_per_minute": 30}), json!({"events_per_minute": null})));

    let create = ["board", "create", "laps", "--events-per-minute", "5", "--gain-max", "all_time=7", "--on-violation"];
    let made = run(&db, &[create.as_slice(), &["quarantine", "--json"]].concat()).json();
    let shown = json!([made["events_per_minute"], made["gain_max"], made["on_violation"]]);
    assert_eq!(shown, json!([5, {"all_time": 7}, "quarantine"]));
    let change = ["board", "change", "laps", "--gain-max", "all_time=none", "--gain-max", "month=12000"];
    run(&db, &[change.as_slice(), &["--on-violation", "refuse"]].concat()).well();
    let shown = run(&db, &["board", "show", "laps"]).well();
    for line in ["events_per_minute  5", "gain_max           month: 12,000", "on_violation       refuse"] {
        assert!(shown.contains(&format!("{line}\n")), "{line:?} is not in {shown}");
    }
    run(&db, &["board", "change", "laps", "--events-per-minute", "none"]).well();
    assert!(run(&db, &["board", "show", "laps"]).well().contains("events_per_minute  no limit\n"));
    assert_eq!(rules("laps").await, json!([null, {"month": 12_000}, "refuse"]));
}

#[tokio::test]
async fn an_invalid_rule_is_refused_with_its_field() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({"periods": ["week"]}), &[]).await;
    for (rules, field) in [
        (json!({"events_per_minute": 0}), "events_per_minute"),
        (json!({"events_per_minute": 10_001}), "events_per_minute"),
        (json!({"events_per_minute": 1.5}), "events_per_minute"),
        (json!({"gain_max": {"week": 0}}), "gain_max.week"),
        (json!({"gain_max": {"week": 9_007_199_254_740_992_i64}}), "gain_max.week"),
        (json!({"gain_max": {"week": "1"}}), "gain_max.week"),
        (json!({"gain_max": {"decade": 1}}), "gain_max.decade"),
        // A kind of period that the board does not have.
        (json!({"gain_max": {"day": 1}}), "gain_max"),
        (json!({"gain_max": [1]}), "gain_max"),
        (json!({"on_violation": "ignore"}), "on_violation"),
    ] {
        let answer = site.admin(Method::PATCH, "/v1/boards/main", rules.clone()).await;
        refused(&answer, 422, field, &rules.to_string());
        let mut new = json!({"slug": "new", "mode": "sum", "periods": ["week"]});
        new.as_object_mut().unwrap().extend(rules.as_object().cloned().unwrap());
        refused(&site.admin(Method::POST, "/v1/boards", new).await, 422, field, &rules.to_string());
    }
    let change = ["board", "change", "main"];
    for (flags, code, words) in [
        (["--events-per-minute", "0"].as_slice(), 2, ["--events-per-minute", "10000"]),
        (&["--gain-max", "week"], 2, ["--gain-max", "day=5000"]),
        (&["--gain-max", "decade=1"], 2, ["--gain-max", "season"]),
        (&["--gain-max", "week=0"], 2, ["--gain-max", "9007199254740991"]),
        (&["--gain-max", "week=1", "--gain-max", "week=2"], 1, ["--gain-max: ", "twice"]),
        (&["--gain-max", "day=1"], 1, ["--gain-max: ", "keeps"]),
        (&["--on-violation", "ignore"], 2, ["--on-violation", "quarantine"]),
    ] {
        run(&db, &[change.as_slice(), flags].concat()).refused(code, &words);
    }
    for (call, words) in [
        ("centile.create_board('new', '{\"events_per_minute\": 10001}')", "events_per_minute: must be 1 to 10000"),
        ("centile.update_board('main', '{\"gain_max\": {\"day\": 1}}')", "gain_max: must be a JSON object"),
        ("centile.update_board('main', '{\"gain_max\": [1]}')", "gain_max: must be a JSON object"),
        ("centile.update_board('main', '{\"gain_max\": {\"week\": 1.5}}')", "gain_max: must be whole numbers"),
        ("centile.update_board('main', '{\"gain_max\": {\"week\": \"1\"}}')", "gain_max: must be whole numbers"),
        ("centile.create_board('new', '{\"on_violation\": \"ignore\"}')", "on_violation: must be refuse"),
    ] {
        let error = query(sqlx::AssertSqlSafe(format!("SELECT {call}"))).execute(&db.pool().await).await.unwrap_err();
        let error = centile::Error::from(error);
        assert_eq!(error.code().status(), 422, "{call}");
        assert!(error.to_string().starts_with(words), "{call}: {error}");
    }
}

#[tokio::test]
async fn events_are_limited_in_a_sliding_window_and_a_refused_id_stays_free() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    site.board(json!({"events_per_minute": 3}), &[]).await;
    // Events of a list are checked in order, each against those accepted before it. Other players
    // are unaffected.
    let list: Vec<Value> = (0..5)
        .map(|number| json!({"user_id": "ada", "points": 1, "id": format!("ada-{number}")}))
        .chain([event("bob", 1)])
        .collect();
    let results = site.post(SCORES, json!(list)).await.is(200);
    let statuses: Vec<&str> = (0..6).map(|place| results["results"][place]["state"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["accepted", "accepted", "accepted", "refused", "refused", "accepted"]);
    let error = &results["results"][3]["error"];
    assert_eq!((&error["status"], &error["code"]), (&json!(429), &json!("too_many_events")));
    assert_eq!(error["retry_after"], 60);
    assert_eq!(error["detail"], "board main allows 3 events in 60 seconds per player");
    // A repeat gets its first answer and does not count. A refused event is checked again.
    assert_eq!(site.post(SCORES, list[0].clone()).await.is(200)["repeated"], true);
    refused(&site.post(SCORES, list[3].clone()).await, 429, "", "the fourth");

    // Moves the ledger a minute into the past, score by score, the oldest first.
    let pool = db.pool().await;
    let age = async |number: i64, seconds: f64| {
        query(
            "UPDATE centile_store.score_transactions SET occurred_at = clock_timestamp() - make_interval(secs => $2)
             WHERE id = (SELECT transaction_id FROM centile.score_history WHERE user_id = 'ada' ORDER BY 1 LIMIT 1 OFFSET $1)",
        )
        .bind(number)
        .bind(seconds)
        .execute(&pool)
        .await
        .unwrap();
    };
    age(0, 30.0).await;
    refused(&site.post(SCORES, list[3].clone()).await, 429, "", "half a minute too early");
    age(0, 60.0).await;
    site.post(SCORES, list[3].clone()).await.is(200);
    refused(&site.post(SCORES, list[4].clone()).await, 429, "", "three again");
    // A void removes a score's points, but the event still counts.
    let third: i64 = query_scalar("SELECT max(transaction_id) FROM centile.score_history WHERE user_id = 'ada'")
        .fetch_one(&pool)
        .await
        .unwrap();
    site.admin(Method::POST, &format!("/v1/boards/main/transactions/{third}/void"), Value::Null).await.is(204);
    refused(&site.post(SCORES, list[4].clone()).await, 429, "", "a voided score was sent");
    // Administrators' corrections are exempt from the rules.
    let correct = ["correct", "ada", "5", "--board", "main", "--reason", "forgotten", "--at"];
    run(&db, &[correct.as_slice(), &["2024-01-16T12:00:00Z"]].concat()).well();
}

#[tokio::test]
async fn each_mode_counts_gains_in_its_way() {
    let db = TestDb::new().await;
    until_no_hour_ends(&db.pool().await).await;
    let site = site(&db).await;
    let at = "(now() - interval '40 days')";
    for (number, (mut rules, before, points, wanted)) in (1..).zip([
        // Losses do not offset gains: the player gained 60 + 30 + 10.
        (
            json!({"mode": "sum", "gain_max": {"day": 100}}),
            None,
            vec![60, 41, -50, 30, 11, 10, 0, -1],
            json!([60, "101", 10, 40, "101", 50, 50, 49]),
        ),
        (
            json!({"mode": "sum", "order": "asc", "gain_max": {"day": 100}}),
            None,
            vec![-60, -41, 50, -40, -1],
            json!([-60, "101", -10, -50, "101"]),
        ),
        // Without an earlier score the first one is the baseline, and a worse score gains nothing.
        (
            json!({"mode": "best", "gain_max": {"day": 100}}),
            None,
            vec![1_000, 1_101, 1_100, 5, 1_101],
            json!([1_000, "101", 1_100, 1_100, "101"]),
        ),
        (
            json!({"mode": "best", "order": "asc", "gain_max": {"week": 100}}),
            Some(500),
            vec![900, 399, 400],
            json!([500, "101", 400]),
        ),
        (
            json!({"mode": "best", "gain_max": {"month": 100}}),
            Some(500),
            vec![601, 600, 601],
            json!(["101", 600, "101"]),
        ),
        // In mode `latest`, the gain is measured from the score before the period, whatever came in
        // between.
        (
            json!({"mode": "latest", "gain_max": {"day": 100}}),
            Some(500),
            vec![601, 10, 600, 601, 20],
            json!(["101", 10, 600, "101", 20]),
        ),
        (
            json!({"mode": "latest", "gain_max": {"all_time": 100}}),
            Some(500),
            vec![601, 600, 601],
            json!(["101", 600, "101"]),
        ),
    ]) {
        let board = format!("board-{number}");
        rules["slug"] = json!(board);
        site.board(rules.clone(), &[]).await;
        if let Some(before) = before {
            db.execute("SELECT centile.ensure_users('{ada}')").await;
            db.execute(&format!("SELECT centile.correct_score('{board}', 'ada', {before}, {at}, 'then', 'dora')"))
                .await;
        }
        let seen = played(&site, &board, "ada", &points).await;
        // Names each refusal by the gain it would have made.
        let output = seen.iter().map(|one| match one["detail"].as_str() {
            Some(detail) => json!(detail.rsplit("not ").next()),
            None => one.clone(),
        });
        let output: Vec<Value> = output.collect();
        assert_eq!(json!(output), wanted, "{rules}: {seen:?}");
    }
}

#[tokio::test]
async fn voids_and_resets_reduce_gains_and_each_period_has_its_limit() {
    let db = TestDb::new().await;
    until_no_hour_ends(&db.pool().await).await;
    let site = site(&db).await;
    site.board(json!({"gain_max": {"all_time": 250, "day": 100, "season": 80}}), &[]).await;
    let first = site.post(SCORES, event("ada", 90)).await.is(200)["transaction_id"].clone();
    refused(&site.post(SCORES, event("ada", 20)).await, 422, "points", "a day's");
    site.admin(Method::POST, &format!("/v1/boards/main/transactions/{first}/void"), Value::Null).await.is(204);
    site.post(SCORES, event("ada", -30)).await.is(200);
    let lost = site.post(SCORES, event("ada", -40)).await.is(200)["transaction_id"].clone();
    // A voided loss counts as no loss; the gains stay the same.
    site.admin(Method::POST, &format!("/v1/boards/main/transactions/{lost}/void"), Value::Null).await.is(204);
    site.post(SCORES, event("ada", 100)).await.is(200);
    refused(&site.post(SCORES, event("ada", 1)).await, 422, "points", "101");
    site.admin(Method::POST, "/v1/boards/main/scores/ada/reset", json!({"reason": "again"})).await.is(204);
    site.post(SCORES, event("ada", 100)).await.is(200);
    let answer = site.post(SCORES, event("ada", 1)).await;
    refused(&answer, 422, "points", "after a reset");
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.starts_with("points: board main allows a player to gain 100 in day:"), "{detail}");
    assert!(detail.ends_with(", not 101"), "{detail}");

    // A season that begins now and has its own limit.
    db.execute(
        "SELECT centile.create_season('main', 'cup', now() + interval '1 hour', now() + interval '1 day');
         UPDATE centile_store.periods SET starts_at = clock_timestamp() - interval '1 second' WHERE kind = 'season'",
    )
    .await;
    let answer = site.post(SCORES, event("bob", 81)).await;
    refused(&answer, 422, "points", "a season's");
    assert!(answer.body["detail"].as_str().unwrap().contains("80 in season:cup, not 81"), "{answer:?}");
    site.post(SCORES, event("bob", 80)).await.is(200);
}
