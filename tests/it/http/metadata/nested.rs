//! JSON that nests deeply, in arrays or in texts of a key that `serde_json` treats specially: every
//! entrance refuses it, and every read shows what is stored.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, query_scalar};

use super::SCORES;
use crate::{
    delivery::copying::{Queues as _, Running, Streams},
    http::api::site::Site,
    support::{Files, TestDb, import, run, wait::until},
};

/// With its feature `raw_value`, which sqlx enables, `serde_json` parses the text of this member again
/// when it reads a `Value`.
const KEY: &str = "$serde_json::private::RawValue";

/// Returns an object of arrays that nest this deep.
fn in_arrays(levels: usize) -> String {
    format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
}

/// Returns an object whose text contains such an object, and so on. Escapes by number keep it short.
fn in_texts(levels: usize) -> String {
    let (open, close) = ("[".repeat(100), "]".repeat(100));
    let around = |text: String, _| {
        let escaped = text.replace('\\', r"\u005c").replace('"', r"\u0022");
        format!(r#"{open}{{"{KEY}":"{escaped}"}}{close}"#)
    };
    format!(r#"{{"a":{}}}"#, (0..levels).fold("1".to_owned(), around))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_entrance_refuses_nested_json() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &["--default-board", "main"]).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let mut streams = Streams::new(&db).await;
    // A line of a file has at most 64 KiB.
    for (object, of_line) in [(in_arrays(200), in_arrays(200)), (in_texts(200), in_texts(60))] {
        let event = format!(r#"{{"user_id":"ada","points":1,"metadata":{object}}}"#);
        let batch = format!(r#"{{"events":[{event}]}}"#);
        for (method, path, body) in [
            (Method::POST, SCORES, event.clone()),
            (Method::POST, "/v1/boards/main/scores/batch", batch.clone()),
            (Method::POST, "/v1/scores", event.clone()),
            (Method::POST, "/v1/scores", format!("[{event}]")),
            (Method::POST, "/v1/scores/batch", batch),
            (Method::PUT, "/v1/users/ada", format!(r#"{{"metadata":{object}}}"#)),
            (Method::PUT, "/v1/users/ada", format!(r#"{{"attributes":{object}}}"#)),
            (Method::POST, "/v1/users/ada/friends", format!(r#"{{"change":"add","user_ids":{object}}}"#)),
            (Method::POST, "/v1/boards", format!(r#"{{"slug":"b","mode":"sum","gain_max":{object}}}"#)),
            (Method::PATCH, "/v1/boards/main", format!(r#"{{"kept_archives":{object}}}"#)),
            (Method::POST, "/v1/boards/main/seasons", object.clone()),
            (Method::POST, "/v1/boards/main/scores/query", format!(r#"{{"user_ids":{object}}}"#)),
            (Method::POST, "/v1/keys", object.clone()),
            (Method::POST, "/v1/users/ada/ban", object.clone()),
        ] {
            let answer = site.json(method, path, &site.admin_key, body).await;
            let refused = match answer.status {
                400 | 413 | 422 => answer.body["code"].clone(),
                200 => answer.body["results"][0]["error"]["code"].clone(),
                _ => Value::Null,
            };
            let codes = ["malformed_body", "invalid_value", "body_too_large"];
            assert!(codes.map(Value::from).contains(&refused), "{path}: {answer:?}");
        }
        let csv = format!("user_id,points,metadata\nada,1,\"{}\"\n", of_line.replace('"', "\"\""));
        let csv = files.write("a.csv", csv);
        let ndjson = files.write("a.ndjson", event.replace(&object, &of_line));
        for file in [csv, ndjson] {
            let rejects = import(&db, &file, "main", &[]).rejects.unwrap();
            assert!(rejects.values().all(|(reason, _)| reason.starts_with("metadata: ")), "{rejects:?}");
            assert_eq!(rejects.len(), 1);
        }
        streams.add("in", &[vec![("user_id", "ada".to_owned()), ("points", "1".into()), ("metadata", object)]]).await;
    }
    let url = streams.url("in");
    let consumer = Running::start(&db, &["consume", &url, "--board", "main"]);
    until("both messages are consumed", async || streams.open("in").await == (0, 0)).await;
    assert_eq!(consumer.stop().well(), "0 events accepted, 0 repeated, 0 quarantined, 2 dead letters\n");
    // Arguments have at most 128 KiB.
    for object in [in_arrays(200), in_texts(90)] {
        run(&db, &["score", "submit", "ada", "1", "--board", "main", "--metadata", &object])
            .refused(2, &["--metadata"]);
        run(&db, &["user", "set", "ada", "--metadata", &object]).refused(2, &["--metadata"]);
    }
    assert_eq!(site.get("/v1/boards/main/scores/ada").await.is(200)["score"], 1);
}

#[tokio::test]
async fn a_key_of_serde_json_is_like_any_other() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"points_max": 100, "on_violation": "quarantine"}), &[]).await;
    let objects = [
        json!({(KEY): "{\"a\": 1}"}),
        json!({"x": {(KEY): "{\"a\": 1}"}}),
        json!({"x": [{(KEY): "}"}, {(KEY): 1}, {(KEY): {(KEY): "[["}}]}),
    ];
    for (n, object) in objects.iter().enumerate() {
        let user = format!("p{n}");
        let event = |points| json!({"user_id": user, "points": points, "metadata": object});
        site.post(SCORES, event(5)).await.is(200);
        site.post(SCORES, event(500)).await.is(202);
        let path = format!("/v1/users/{user}");
        let sql = "SELECT centile.put_user($1, p_metadata => $2::jsonb)";
        sqlx::query(sql).bind(format!("sql-{user}")).bind(object.to_string()).execute(&db.pool().await).await.unwrap();
        let texts = [
            site.admin(Method::PUT, &path, json!({"metadata": object})).await.text,
            site.get(&format!("{SCORES}/{user}?metadata=true")).await.text,
            site.get(&format!("{SCORES}/{user}/history")).await.text,
            site.admin(Method::GET, "/v1/boards/main/quarantine", Value::Null).await.text,
            site.admin(Method::GET, &path, Value::Null).await.text,
            site.admin(Method::GET, &format!("/v1/users/sql-{user}"), Value::Null).await.text,
            run(&db, &["user", "show", &user, "--json"]).well(),
            run(&db, &["user", "show", &user]).well(),
            run(&db, &["quarantine", "list", "--board", "main", "--json"]).well(),
        ];
        let plain = |text: &str| text.replace([' ', '\n'], "");
        let wanted = plain(&object.to_string());
        for text in &texts {
            assert!(plain(text).contains(&wanted), "{wanted}: {text}");
        }
        // A repetition finds the same content.
        let mut event = event(7);
        event["id"] = json!("e");
        site.post(SCORES, &event).await.is(200);
        assert_eq!(site.post(SCORES, &event).await.is(200)["repeated"], true);
    }
}

#[tokio::test]
async fn what_sql_has_stored_can_be_read() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"points_max": 100, "on_violation": "quarantine"}), &[("ada", 5), ("bob", 6)]).await;
    for user in ["ada", "bob"] {
        site.post(SCORES, json!({"user_id": user, "points": 500, "metadata": {"n": 1}})).await.is(202);
    }
    // Too deep for a parser, and too large for a double.
    for object in [in_arrays(500), r#"{"n": 1e400}"#.to_owned(), in_texts(3)] {
        db.execute(&format!("SELECT centile.put_user('ada', p_metadata => '{object}')")).await;
        let user = site.admin(Method::GET, "/v1/users/ada", Value::Null).await;
        assert!(user.status == 200 && user.text.contains("\"metadata\":{"), "{user:?}");
        run(&db, &["user", "show", "ada", "--json"]).well();
        if object.len() <= 1_024 {
            let update = format!("UPDATE centile_store.quarantine SET metadata = '{object}' WHERE user_id = 1");
            db.execute(&update).await;
        }
        let list = site.admin(Method::GET, "/v1/boards/main/quarantine", Value::Null).await;
        assert!(list.status == 200 && list.text.contains(r#"{"n": 1}"#), "{list:?}");
    }
    let pool = db.pool().await;
    // PostgreSQL's `json` accepts texts that `jsonb`, and so the views, cannot hold.
    for bad in [r#"{"a": "\u0000"}"#, r#"{"a": "\ud800"}"#] {
        for table in ["quarantine", "score_transactions"] {
            let update = format!("UPDATE centile_store.{table} SET metadata = '{bad}' RETURNING 1");
            assert!(query_scalar::<_, i32>(AssertSqlSafe(&*update)).fetch_one(&pool).await.is_err(), "{update}");
        }
    }
}
