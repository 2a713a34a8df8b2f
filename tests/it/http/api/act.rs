//! Administrative acts, and their traces in the ledger.

use std::collections::HashSet;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::{column, pairs, site::Site};
use crate::support::TestDb;

const SCORES: &str = "/v1/boards/main/scores";
const PERIODS: [&str; 4] = ["all_time", "month", "week", "day"];

/// Returns the whole ranking, which must be the same in each period.
async fn ranking(site: &Site) -> Vec<(String, i64)> {
    let mut lists = Vec::new();
    for period in PERIODS {
        let list = site.get(&format!("{SCORES}?period={period}")).await.is(200);
        assert_eq!(list["players"], json!(list["data"].as_array().unwrap().len()));
        lists.push(column(&list["data"], "score"));
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:?}");
    lists.remove(0)
}

#[tokio::test]
async fn a_ban_removes_a_player_from_all_periods_and_an_unban_restores() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30), ("ada", 5), ("cyd", 10)]).await;
    let before = ranking(&site).await;
    assert_eq!(before, pairs([("ada", 45), ("bob", 30), ("cyd", 10)]));
    // A repeated ban has no further effect. The body is optional.
    for body in [json!({"reason": "cheated"}), Value::Null] {
        let user = site.admin(Method::POST, "/v1/users/ada/ban", body).await.is(200);
        assert_eq!((&user["user_id"], &user["banned"]), (&json!("ada"), &json!(true)));
        assert_eq!(ranking(&site).await, pairs([("bob", 30), ("cyd", 10)]));
    }
    for period in PERIODS {
        site.get(&format!("{SCORES}/ada?period={period}")).await.is(404);
    }
    assert_eq!(site.get(&format!("{SCORES}/bob")).await.is(200)["rank"], 1);
    let event = json!({"user_id": "ada", "points": 1});
    assert_eq!(site.post(SCORES, &event).await.is(409)["code"], "user_banned");
    let bulk = site.post(SCORES, json!([event, {"user_id": "bob", "points": 1}])).await.is(200);
    assert_eq!(
        (&bulk["results"][0]["error"]["status"], &bulk["results"][1]["state"]),
        (&json!(409), &json!("accepted"))
    );

    for body in [Value::Null, json!({"reason": "a mistake"})] {
        let user = site.admin(Method::POST, "/v1/users/ada/unban", body).await.is(200);
        assert_eq!(user["banned"], false);
        assert_eq!(ranking(&site).await, pairs([("ada", 45), ("bob", 31), ("cyd", 10)]));
    }
    site.post(SCORES, &event).await.is(200);
    assert_eq!(site.get(&format!("{SCORES}/ada")).await.is(200)["score"], 46);
    site.admin(Method::POST, "/v1/users/nobody/ban", Value::Null).await.is(404);
    site.admin(Method::POST, "/v1/users/nobody/unban", Value::Null).await.is(404);
}

#[tokio::test]
async fn a_void_cancels_one_score_a_reset_all_and_the_history_has_both() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    let score = site.post(SCORES, json!({"user_id": "ada", "points": 5, "reason": "won"})).await.is(200);
    let id = score["transaction_id"].as_i64().unwrap();
    let void = format!("/v1/boards/main/transactions/{id}/void");
    // A repeated void has no further effect.
    for _ in 0..2 {
        site.admin(Method::POST, &void, json!({"reason": "a bug"})).await.is(204);
        assert_eq!(ranking(&site).await, pairs([("ada", 40), ("bob", 30)]));
    }
    site.admin(Method::POST, "/v1/boards/main/transactions/999999/void", Value::Null).await.is(404);

    site.admin(Method::POST, &format!("{SCORES}/ada/reset"), json!({"reason": "asked for it"})).await.is(204);
    assert_eq!(ranking(&site).await, pairs([("bob", 30)]));
    site.get(&format!("{SCORES}/ada")).await.is(404);
    site.post(SCORES, json!({"user_id": "ada", "points": 7})).await.is(200);
    assert_eq!(ranking(&site).await, pairs([("bob", 30), ("ada", 7)]));
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    site.admin(Method::POST, "/v1/users/ada/unban", Value::Null).await.is(200);
    assert_eq!(ranking(&site).await, pairs([("bob", 30), ("ada", 7)]));

    let mut history = Vec::new();
    let mut next = Some(String::new());
    while let Some(cursor) = next {
        let page = site.admin(Method::GET, &format!("{SCORES}/ada/history?limit=2{cursor}"), Value::Null).await.is(200);
        let rows = page["data"].as_array().unwrap();
        assert!((1..=2).contains(&rows.len()), "{page}");
        history.extend(rows.iter().cloned());
        next =
            page["next_cursor"].as_str().map(|next| format!("&cursor={}", utf8_percent_encode(next, NON_ALPHANUMERIC)));
    }
    let kinds: Vec<&str> = history.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    // A void has the time of the score that it cancels.
    assert_eq!(kinds, ["unban", "ban", "score", "reset", "void", "score", "score"]);
    let ids: HashSet<i64> = history.iter().map(|row| row["transaction_id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), 7, "no row appears twice");
    assert_eq!((&history[4]["voids"], &history[4]["reason"]), (&json!(id), &json!("a bug")));
    assert_eq!((&history[3]["reason"], &history[3]["points"]), (&json!("asked for it"), &Value::Null));
    assert_eq!((&history[5]["reason"], &history[5]["points"]), (&json!("won"), &json!(5)));
    let whole = site.admin(Method::GET, &format!("{SCORES}/ada/history"), Value::Null).await.is(200);
    // Everyone may read the scores, without their reasons.
    let public = site.get(&format!("{SCORES}/ada/history")).await.is(200);
    let mut scores: Vec<Value> = history.iter().filter(|row| row["kind"] == "score").cloned().collect();
    for score in &mut scores {
        score.as_object_mut().unwrap().remove("reason");
    }
    assert_eq!((&public["data"], scores.len()), (&json!(scores), 3));
    assert_eq!(
        (&whole["data"], &whole["next_cursor"], &whole["user_id"]),
        (&json!(history), &Value::Null, &json!("ada"))
    );
    site.get(&format!("{SCORES}/nobody/history")).await.is(404);
}

#[tokio::test]
async fn a_void_that_would_overflow_a_sum_changes_nothing() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    let bounds = json!({"points_min": -i64::MAX, "points_max": i64::MAX});
    site.board(bounds, &[("ada", i64::MAX), ("bob", 30)]).await;
    let negative = site.post(SCORES, json!({"user_id": "ada", "points": -i64::MAX})).await.is(200);
    site.post(SCORES, json!({"user_id": "ada", "points": 5})).await.is(200);
    let before = ranking(&site).await;
    assert_eq!(before, pairs([("bob", 30), ("ada", 5)]));
    let void = format!("/v1/boards/main/transactions/{}/void", negative["transaction_id"]);
    let refused = site.admin(Method::POST, &void, Value::Null).await.is(422);
    assert_eq!(refused["code"], "score_out_of_range");
    // Nor does a ban hide the sum, which an unban would bring back.
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    site.admin(Method::POST, &void, Value::Null).await.is(422);
    site.admin(Method::POST, "/v1/users/ada/unban", Value::Null).await.is(200);
    assert_eq!(ranking(&site).await, before);
    let history = site.admin(Method::GET, &format!("{SCORES}/ada/history"), Value::Null).await.is(200);
    let kinds: Vec<&str> =
        history["data"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["unban", "ban", "score", "score", "score"]);
}
