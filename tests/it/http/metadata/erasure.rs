//! Metadata of closed periods stay until their player is erased.

use reqwest::{
    Method,
    header::{ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar};

use super::{SCORES, shown};
use crate::{
    access::rights::erase,
    http::api::site::Site,
    support::{Files, TestDb, import, run},
};

#[tokio::test]
async fn metadata_of_a_closed_period_stay_until_the_player_is_erased() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &[]).await;
    site.board(json!({"mode": "best", "periods": ["all_time", "week"], "frozen_top_size": 1}), &[]).await;
    let lines = [("ada", 20, "needle-one"), ("ada", 10, "needle-two"), ("bob", 15, "haystack")];
    let lines = lines.map(|(user, points, text)| {
        json!({"user_id": user, "points": points, "occurred_at": "2024-01-16T12:00:00Z", "metadata": {"text": text}}).to_string()
    });
    import(&db, &files.write("week.ndjson", lines.join("\n")), "main", &[]).well(3, 0);
    site.admin(Method::PUT, "/v1/users/ada", json!({"name": "Ada"})).await.is(200);
    run(&db, &["close", "--due"]).well();
    site.admin(Method::PUT, "/v1/users/ada", json!({"name": "Countess"})).await.is(200);
    let (top, whole) = (
        format!("{SCORES}?period={}&metadata=true&limit=1", erase::WEEK),
        format!("{SCORES}?period={}&metadata=true", erase::WEEK),
    );
    let first = site.get(&top).await;
    let tag = first.headers[ETAG].to_str().unwrap().to_owned();
    // The top is frozen with the name of that time; a longer list shows current names.
    assert_eq!(
        (&first.body["data"][0]["name"], shown(&first.body)),
        (&json!("Ada"), vec![("ada".to_owned(), json!({"text": "needle-one"}))])
    );
    let list = site.get(&whole).await.is(200);
    assert_eq!(
        (&list["data"][0]["name"], &list["data"][1]["metadata"]),
        (&json!("Countess"), &json!({"text": "haystack"}))
    );
    let known =
        async |tag: &str| site.send(Method::GET, &top, &[(IF_NONE_MATCH.as_str(), tag)], String::new()).await.status;
    assert_eq!(known(&tag).await, 304);
    // A void does not change a closed period.
    let id: i64 =
        query_scalar("SELECT min(id) FROM centile_store.score_transactions").fetch_one(&db.pool().await).await.unwrap();
    site.admin(Method::POST, &format!("/v1/boards/main/transactions/{id}/void"), json!({})).await.is(204);
    let again = site.get(&top).await;
    assert_eq!((again.text, known(&tag).await), (first.text, 304));
    assert_eq!(
        shown(&site.get(&format!("{SCORES}?metadata=true&moved=true")).await.is(200))[1].1,
        json!({"text": "needle-two"})
    );

    // More events than one step erases, one of them in quarantine.
    site.admin(Method::PATCH, "/v1/boards/main", json!({"points_max": 100, "on_violation": "quarantine"}))
        .await
        .is(200);
    site.post(SCORES, json!({"user_id": "ada", "points": 101, "metadata": {"text": "needle-three"}})).await.is(202);
    db.execute(
        "INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, occurred_at, lane, batch, metadata)
         SELECT t.board_id, t.user_id, 'score', 1, t.occurred_at, t.lane, t.batch, '{\"text\":\"needle-four\"}'
         FROM centile_store.score_transactions t, generate_series(1, 10001) WHERE t.id = (SELECT min(id) FROM centile_store.score_transactions)",
    )
    .await;
    let needles = ["needle-one", "needle-two", "needle-three", "needle-four"];
    assert_eq!(erase::found(&db, &needles), needles);
    let erased = site.admin(Method::DELETE, "/v1/users/ada", Value::Null).await.is(200);
    let new_id = erased["new_user_id"].as_str().unwrap().to_owned();
    assert_eq!(erase::found(&db, &needles), Vec::<String>::new());
    let gone = [(new_id, Value::Null), ("bob".to_owned(), json!({"text": "haystack"}))];
    assert_eq!(shown(&site.get(&whole).await.is(200)), gone);
    assert_eq!(shown(&site.get(&top).await.is(200)), gone[..1]);
    assert_eq!(known(&tag).await, 200);
}

#[tokio::test]
async fn metadata_of_an_erased_player_vanish_at_once() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    site.post(SCORES, json!({"user_id": "ada", "points": 9, "metadata": {"n": 1}})).await.is(200);
    assert_eq!(shown(&site.get(&format!("{SCORES}?metadata=true")).await.is(200))[0].1, json!({"n": 1}));
    // As if the process ended after the first transaction.
    db.execute("SELECT centile.erase_user('ada', p_in_steps => true)").await;
    assert_eq!(shown(&site.get(&format!("{SCORES}?metadata=true&moved=true")).await.is(200))[0].1, Value::Null);
    let left = "SELECT count(*) FROM centile_store.score_transactions WHERE metadata IS NOT NULL";
    assert_eq!(query_scalar::<_, i64>(left).fetch_one(&db.pool().await).await.unwrap(), 1);
    let id: String = query_scalar("SELECT user_id FROM centile.users").fetch_one(&db.pool().await).await.unwrap();
    let history = site.admin(Method::GET, &format!("{SCORES}/{id}/history"), Value::Null).await;
    assert!(history.status == 200 && !history.text.contains("\"n\""), "{history:?}");
    let seen = "SELECT count(*) FROM centile.score_history WHERE metadata IS NOT NULL";
    assert_eq!(query_scalar::<_, i64>(seen).fetch_one(&db.pool().await).await.unwrap(), 0);
    run(&db, &["maintain"]).well();
    assert_eq!(query_scalar::<_, i64>(left).fetch_one(&db.pool().await).await.unwrap(), 0);
}

#[tokio::test]
async fn a_batch_beside_an_erasure_leaves_no_metadata() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    // The batch begins before the erasure commits, and writes after it.
    let mut erasure = db.hold("SELECT centile.erase_user('ada', p_in_steps => true)").await;
    let score = json!({"user_id": "ada", "points": 9, "metadata": {"n": 1}});
    let (answer, ()) = tokio::join!(site.post(SCORES, score), async {
        db.until_waiting(1, || false).await;
        sqlx::raw_sql("COMMIT").execute(&mut erasure).await.unwrap();
    });
    answer.is(200);
    run(&db, &["maintain"]).well();
    let rows = "SELECT count(*), count(metadata) FROM centile_store.score_transactions";
    let found: (i64, i64) = query_as(rows).fetch_one(&db.pool().await).await.unwrap();
    assert_eq!(found, (2, 0));
}

#[tokio::test]
async fn an_erasure_removes_metadata_in_steps() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    for slug in ["main", "other"] {
        site.board(json!({"slug": slug}), &[]).await;
        for n in 0..7 {
            let score = json!({"user_id": "ada", "points": 1, "metadata": {"n": n}});
            site.post(&format!("/v1/boards/{slug}/scores"), score).await.is(200);
        }
    }
    db.execute("SELECT centile.erase_user('ada', p_in_steps => true)").await;
    let pool = db.pool().await;
    let mut left = vec![14];
    loop {
        let step = "SELECT centile_store.erase_metadata(u.id, 3) FROM centile_store.users u";
        let is_done: bool = query_scalar(step).fetch_one(&pool).await.unwrap();
        let count = "SELECT count(metadata) FROM centile_store.score_transactions";
        left.push(query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap());
        if is_done {
            break;
        }
    }
    assert_eq!(left, [14, 11, 8, 5, 2, 0]);
}
