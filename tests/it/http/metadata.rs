//! Metadata of score events: limits, the event that decides an entry, files, streams and pages.

mod erasure;
mod nested;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar};

use crate::{
    access::rights::erase,
    delivery::live::stream::Stream,
    http::api::site::{Answer, Site},
    support::{Files, TestDb, amount, import, random::seeded, run},
};

const SCORES: &str = "/v1/boards/main/scores";

#[track_caller]
fn refused(answer: &Answer, field: &str) {
    let given = (answer.status, &answer.body["code"], &answer.body["field"]);
    assert_eq!(given, (422, &json!("invalid_value"), &json!(field)), "{answer:?}");
}

/// Returns the id and the metadata of each row of a list.
fn shown(list: &Value) -> Vec<(String, Value)> {
    let row = |row: &Value| (row["user_id"].as_str().unwrap().to_owned(), row["metadata"].clone());
    list["data"].as_array().unwrap().iter().map(row).collect()
}

/// Returns an object whose compact JSON has this many bytes.
fn of_size(bytes: usize) -> Value {
    json!({"a": "x".repeat(bytes - 8)})
}

#[tokio::test]
async fn metadata_are_an_object_of_up_to_1024_bytes() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let with = |metadata: Value| json!({"user_id": "ada", "points": 1, "metadata": metadata});
    let good = [
        of_size(1_024),
        json!({}),
        json!({"é": "x".repeat(1_015)}),
        json!({"deep": {"er": [[{"a": [1, -2.5, 1e300, null, true, "\\u0000"]}]]}}),
        json!({"n": i64::MIN, "m": u64::MAX, "s": " \"\\\n\u{7f}\u{1f600}</script>"}),
    ];
    for metadata in &good {
        site.post(SCORES, with(metadata.clone())).await.is(200);
        let history = site.get(&format!("{SCORES}/ada/history?limit=1")).await.is(200);
        assert_eq!(history["data"][0]["metadata"], *metadata);
        assert_eq!(shown(&site.get(&format!("{SCORES}?metadata=true")).await.is(200))[0].1, *metadata);
    }
    let bad = [of_size(1_025), json!({"é": "x".repeat(1_016)}), json!([]), json!("{}"), json!(1), json!({"a": "\0"})];
    let mut batch = Vec::new();
    for metadata in &bad {
        refused(&site.post(SCORES, with(metadata.clone())).await, "metadata");
        batch.extend([with(metadata.clone()), with(json!({"n": batch.len()}))]);
    }
    // Each event of a batch is refused alone.
    let results = site.post(SCORES, json!(batch)).await.is(200)["results"].clone();
    for (n, result) in results.as_array().unwrap().iter().enumerate() {
        if n % 2 == 0 {
            let field = &result["error"]["field"];
            assert_eq!((&result["state"], field), (&json!("refused"), &json!(format!("events[{n}].metadata"))));
        } else {
            assert_eq!(result["state"], "accepted", "{result}");
        }
    }
    // Spaces and repeated members do not count; the last member holds.
    let text = format!(r#"{{"user_id":"ada","points":1,"metadata": {{ "a" : 1, "a":"{}" }} }}"#, "x".repeat(1_016));
    site.post(SCORES, text).await.is(200);
    assert_eq!(shown(&site.get(&format!("{SCORES}?metadata=true")).await.is(200))[0].1, of_size(1_024));
    // `null` is no metadata.
    site.post(SCORES, with(Value::Null)).await.is(200);
    assert_eq!(shown(&site.get(&format!("{SCORES}?metadata=true")).await.is(200))[0].1, Value::Null);

    // On the command line.
    let submit = |metadata: &str| run(&db, &["score", "submit", "bob", "5", "--board", "main", "--metadata", metadata]);
    submit(r#"{"b": 1, "a": [2]}"#).well();
    for bad in [&*of_size(1_025).to_string(), "[]", "", "{"] {
        submit(bad).refused(2, &["--metadata"]);
    }
    let pool = db.pool().await;
    let newest = "SELECT metadata::text FROM centile_store.score_transactions ORDER BY id DESC LIMIT 1";
    assert_eq!(query_scalar::<_, String>(newest).fetch_one(&pool).await.unwrap(), r#"{"a":[2],"b":1}"#);
    let view = "SELECT metadata ->> 'b' FROM centile.score_history WHERE user_id = 'bob'";
    assert_eq!(query_scalar::<_, String>(view).fetch_one(&pool).await.unwrap(), "1");

    // In files: a CSV field is the text of the object.
    let csv = [
        "user_id,points,metadata".to_owned(),
        r#"cyd,1,"{""level"": 3}""#.to_owned(),
        "dan,1,".to_owned(),
        "eve,1,[1]".to_owned(),
        format!("fay,1,{}", r#""{""a"":""X""}""#.replace('X', &"x".repeat(1_017))),
    ];
    let imported = import(&db, &files.write("a.csv", csv.join("\n")), "main", &[]);
    let rejected = imported.rejects.as_ref().unwrap().iter().map(|(line, (reason, _))| (*line, reason.as_str()));
    let rejected: Vec<(u64, &str)> = rejected.collect();
    assert!(
        matches!(rejected[..], [(4, array), (5, long)] if array.starts_with("metadata: must be a JSON object") && long.contains("1025 bytes")),
        "{rejected:?}"
    );
    let ndjson = r#"{"user_id":"gus","points":1,"metadata":{"level":{"n":4}}}
                    {"user_id":"hal","points":1,"metadata":null}
                    {"user_id":"ida","points":1,"metadata":"{}"}"#;
    let imported = import(&db, &files.write("b.ndjson", ndjson), "main", &[]);
    assert_eq!(imported.rejects.as_ref().unwrap().keys().collect::<Vec<_>>(), [&3], "{imported:?}");
    let list = site.get(&format!("{SCORES}?metadata=true")).await.is(200);
    let list: BTreeMap<String, Value> = shown(&list).into_iter().collect();
    assert_eq!(list["cyd"], json!({"level": 3}));
    assert_eq!(list["gus"], json!({"level": {"n": 4}}));
    assert_eq!([&list["dan"], &list["hal"]], [&Value::Null, &Value::Null]);

    // The database refuses what the service does.
    for bad in [of_size(1_025).to_string(), "[]".to_owned(), "null".to_owned()] {
        for (constraint, sql) in [
            (
                "score_transactions_metadata_form",
                "UPDATE centile_store.score_transactions SET metadata = $1::text::json",
            ),
            (
                "quarantine_metadata_form",
                "INSERT INTO centile_store.quarantine (board_id, user_id, points, rule, detail, submitted_at, metadata)
                 VALUES (1, 1, 1, 'gain_too_large', '', now(), $1::text::json)",
            ),
        ] {
            let error = sqlx::query(sql).bind(&bad).execute(&pool).await.unwrap_err();
            assert_eq!(error.as_database_error().and_then(|error| error.constraint()), Some(constraint), "{bad}");
        }
    }
}

#[tokio::test]
async fn rows_have_metadata_only_on_request() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"periods": ["all_time", "week"]}), &[("bob", 5)]).await;
    site.post(SCORES, json!({"user_id": "ada", "points": 9, "metadata": {"n": 1}})).await.is(200);
    site.admin(Method::PUT, "/v1/users/ada/friends/bob", Value::Null).await.is(204);
    let (ada, none) = (json!({"n": 1}), Value::Null);
    let both = [("ada".to_owned(), ada.clone()), ("bob".to_owned(), none.clone())];
    for query in [
        "?",
        "?moved=true&",
        "?from=1&limit=2&",
        "?friends_of=ada&",
        "?friends_of=ada&around=3&",
        "?score_text=true&",
        "/query?user_id=bob&user_id=ada&",
    ] {
        let path = format!("{SCORES}{query}");
        let plain = site.get(&path).await;
        assert!(plain.status == 200 && !plain.text.contains("metadata"), "{plain:?}");
        let mut list = site.get(&format!("{path}metadata=true")).await.is(200);
        assert_eq!(shown(&list), both, "{query}");
        list["data"].as_array_mut().unwrap().iter_mut().for_each(|row| {
            row.as_object_mut().unwrap().remove("metadata");
        });
        assert_eq!(list, plain.body, "nothing else differs");
    }
    let cursor = site.get(&format!("{SCORES}?limit=1")).await.is(200)["next_cursor"].clone();
    let page = site.get(&format!("{SCORES}?limit=1&metadata=true&cursor={}", cursor.as_str().unwrap())).await.is(200);
    assert_eq!(shown(&page), both[1..]);
    let chosen = json!({"user_ids": ["bob", "ada"], "metadata": true});
    assert_eq!(shown(&site.post(&format!("{SCORES}/query"), chosen).await.is(200)), both);
    for (user, row, neighbours, near) in [("ada", &ada, "below", &none), ("bob", &none, "above", &ada)] {
        let standing = site.get(&format!("{SCORES}/{user}?metadata=true&period=week")).await.is(200);
        assert_eq!((&standing["metadata"], &standing[neighbours][0]["metadata"]), (row, near));
    }
    site.board(json!({"slug": "other", "mode": "best"}), &[]).await;
    site.post("/v1/boards/other/scores", json!({"user_id": "ada", "points": 2, "metadata": {"n": 2}})).await.is(200);
    let standings = site.get("/v1/users/ada/standings?metadata=true").await.is(200);
    let of_each: Vec<&Value> = standings["data"].as_array().unwrap().iter().map(|row| &row["metadata"]).collect();
    assert_eq!(of_each, [&json!({"n": 1}), &json!({"n": 2})]);
    for path in [format!("{SCORES}/ada"), "/v1/users/ada/standings".to_owned(), format!("{SCORES}/bob/history")] {
        let answer = site.get(&path).await;
        assert!(answer.status == 200 && !answer.text.contains("metadata"), "{answer:?}");
    }
    // A combined board has no events.
    let source = json!({"sources": [{"board": "main", "period": "all_time"}]});
    let rules = json!({"slug": "sum", "mode": "combined", "combination": source});
    site.admin(Method::POST, "/v1/boards", rules).await.is(201);
    run(&db, &["refresh", "--board", "sum", "--by", "dora"]).well();
    let combined = site.get("/v1/boards/sum/scores?metadata=true").await.is(200);
    assert_eq!(shown(&combined), [("ada".to_owned(), Value::Null), ("bob".to_owned(), Value::Null)]);
}

/// A row of the ledger.
#[derive(Debug, Clone, sqlx::FromRow)]
struct LedgerRow {
    id: i64,
    user: String,
    kind: String,
    points: Option<i64>,
    tiebreak: Option<i64>,
    voids_id: Option<i64>,
    occurred_at: DateTime<Utc>,
    metadata: Option<String>,
}

/// Reads the ledger of a board.
async fn ledger(db: &TestDb, board: &str) -> Vec<LedgerRow> {
    query_as(
        r#"SELECT t.id, u.external_id AS "user", t.kind, t.points, coalesce(t.second_number, t.tiebreak) AS tiebreak, t.voids_id, t.occurred_at, t.metadata::text
           FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
           JOIN centile_store.boards b ON b.id = t.board_id WHERE b.slug = $1 ORDER BY t.id"#,
    )
    .bind(board)
    .fetch_all(&db.pool().await)
    .await
    .unwrap()
}

/// Returns the event that decides an entry, of all that count.
fn decisive<'a>(events: &[&'a LedgerRow], mode: &str, ascending: bool, ties: &str) -> &'a LedgerRow {
    let points = |row: &LedgerRow| row.points.unwrap();
    let events = events.iter().copied();
    let score = |row: &LedgerRow| if ascending { -points(row) } else { points(row) };
    let decisive = match mode {
        "sum" if ties == "second" => events.max_by_key(|row| (row.occurred_at, row.id)),
        "best" if ties == "second" => {
            events.max_by_key(|row| (score(row), row.tiebreak.unwrap_or(0), row.occurred_at, row.id))
        }
        "sum" => {
            let latest = events.clone().filter(|row| points(row) != 0).max_by_key(|row| (row.occurred_at, row.id));
            let first = events.clone().map(|row| row.occurred_at).min();
            latest.or(events.filter(|row| Some(row.occurred_at) == first).max_by_key(|row| row.id))
        }
        "best" => events
            .max_by_key(|row| (score(row), row.tiebreak.unwrap_or(0), -row.occurred_at.timestamp_micros(), -row.id)),
        _ => events.max_by_key(|row| (row.occurred_at, row.id)),
    };
    decisive.unwrap()
}

/// Returns the metadata that a list of a period should show, by player: a definition in plain words of
/// the event that decides an entry.
fn wanted(ledger: &[LedgerRow], rules: [&str; 3], period: [DateTime<Utc>; 2]) -> BTreeMap<String, Value> {
    let [mode, order, ties] = rules;
    let within = |row: &&LedgerRow| period[0] <= row.occurred_at && row.occurred_at < period[1];
    let mut counted: BTreeMap<&str, Vec<&LedgerRow>> = BTreeMap::new();
    for row in ledger.iter().filter(within).filter(|row| row.kind == "score") {
        let is_voided = ledger.iter().any(|void| void.voids_id == Some(row.id));
        let mut resets = ledger.iter().filter(within).filter(|reset| reset.kind == "reset" && reset.user == row.user);
        if !is_voided && resets.all(|reset| reset.occurred_at <= row.occurred_at) {
            counted.entry(&row.user).or_default().push(row);
        }
    }
    let metadata =
        |row: &LedgerRow| row.metadata.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
    counted
        .into_iter()
        .map(|(user, events)| (user.to_owned(), metadata(decisive(&events, mode, order == "asc", ties))))
        .collect()
}

/// Returns the metadata that a whole period shows, by player.
async fn read(site: &Site, board: &str, period: &str) -> BTreeMap<String, Value> {
    let path = format!("/v1/boards/{board}/scores?metadata=true&limit=1000&moved=");
    let moved = if period == "all_time" { "true" } else { "false" };
    let list = site.get(&format!("{path}{moved}&period={period}")).await;
    if list.status == 404 {
        return BTreeMap::new();
    }
    shown(&list.is(200)).into_iter().collect()
}

/// Boards of the random test: name, mode, order and ties.
const BOARDS: [[&str; 4]; 7] = [
    ["sum", "sum", "desc", "shared"],
    ["best", "best", "asc", "tiebreak"],
    ["latest", "latest", "desc", "first"],
    ["first", "best", "desc", "first"],
    ["sum-second", "sum", "desc", "second"],
    ["best-second", "best", "asc", "second"],
    ["latest-second", "latest", "desc", "second"],
];

/// Past days of their imported events.
const DAYS: [&str; 2] = ["2024-01-15", "2024-01-16"];

/// Returns the metadata of all boards on the past days.
async fn past_days(site: &Site) -> Vec<BTreeMap<String, Value>> {
    let mut found = Vec::new();
    for [slug, ..] in BOARDS {
        for day in DAYS {
            found.push(read(site, slug, &format!("day:{day}")).await);
        }
    }
    found
}

/// Plays a round on a board: a batch, an import, some voids, and sometimes a reset. Few players, times
/// and points make many events equal. `number` numbers the events.
async fn play(db: &TestDb, site: &Site, random: &mut StdRng, [slug, _, _, ties]: [&str; 4], number: &mut i64) {
    const PLAYERS: [&str; 3] = ["p0", "p1", "p2"];
    let mut event = |random: &mut StdRng| {
        *number += 1;
        let mut event = json!({"user_id": PLAYERS.choose(random), "points": random.random_range(-1..2)});
        if ["tiebreak", "second"].contains(&ties) && random.random() {
            event["tiebreak"] = json!(random.random_range(-1..2));
        }
        if random.random_ratio(3, 4) {
            event["metadata"] = json!({"n": *number});
        }
        event
    };
    let path = format!("/v1/boards/{slug}/scores");
    // The events of a batch have the same time.
    let batch: Vec<Value> = (0..random.random_range(1..7)).map(|_| event(random)).collect();
    site.post(&path, json!(batch)).await.is(200);
    let lines = (0..4).map(|_| {
        let mut event = event(random);
        let (day, second) = (DAYS.choose(random).unwrap(), random.random_range(0..2));
        event["occurred_at"] = json!(format!("{day}T12:00:0{second}Z"));
        event.to_string()
    });
    let (lines, files) = (lines.collect::<Vec<_>>(), Files::new());
    import(db, &files.write("past.ndjson", lines.join("\n")), slug, &[]).well(4, 0);
    let rows = ledger(db, slug).await;
    let scores: Vec<&LedgerRow> = rows.iter().filter(|row| row.kind == "score").collect();
    for _ in 0..random.random_range(0..4) {
        let path = format!("/v1/boards/{slug}/transactions/{}/void", scores.choose(random).unwrap().id);
        site.admin(Method::POST, &path, json!({})).await.is(204);
    }
    if random.random_ratio(1, 6) {
        let path = format!("{path}/{}/reset", PLAYERS.choose(random).unwrap());
        let reset = site.admin(Method::POST, &path, json!({})).await;
        assert!([204, 404].contains(&reset.status), "{reset:?}");
    }
}

#[tokio::test]
async fn every_row_shows_the_metadata_of_the_deciding_event() {
    let mut random = seeded();
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--index-memory", "64"]).await;
    let by_sql = Site::start(&db, &["--index-memory", "0"]).await;
    for [slug, mode, order, ties] in BOARDS {
        let periods = ["all_time", "day"];
        let rules = json!({"slug": slug, "mode": mode, "order": order, "ties": ties, "periods": periods, "lanes": 2});
        site.board(rules, &[]).await;
    }
    let compare = async |state: &str| {
        for [slug, mode, order, ties] in BOARDS {
            let rows = ledger(&db, slug).await;
            let day = |day: &str| format!("{day}T00:00:00Z").parse::<DateTime<Utc>>().unwrap();
            let days = DAYS.map(|label| (format!("day:{label}"), [day(label), day(label) + TimeDelta::days(1)]));
            let all = ("all_time".to_owned(), [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC]);
            for (period, bounds) in days.into_iter().chain([all]) {
                let wanted = wanted(&rows, [mode, order, ties], bounds);
                for (site, source) in [(&site, "index"), (&by_sql, "SQL")] {
                    assert_eq!(read(site, slug, &period).await, wanted, "{state}: {slug} {period} by {source}");
                }
            }
        }
    };
    let mut number = 0;
    for round in 0..amount(5, 60) {
        for board in BOARDS {
            play(&db, &site, &mut random, board, &mut number).await;
        }
        compare(&format!("round {round}")).await;
    }
    run(&db, &["close", "--due"]).well();
    compare("closed").await;
    // Voids and corrections after the closing change archives only by a refresh.
    let before = past_days(&site).await;
    for [slug, ..] in BOARDS {
        for row in ledger(&db, slug).await.iter().filter(|row| row.kind == "score" && row.id % 3 == 0) {
            let path = format!("/v1/boards/{slug}/transactions/{}/void", row.id);
            site.admin(Method::POST, &path, json!({})).await.is(204);
        }
        for (user, day) in ["p0", "p1"].into_iter().zip(DAYS) {
            let at = format!("{day}T12:00:01Z");
            let correction = ["correct", user, "1", "--board", slug, "--at", &at, "--reason", "lost", "--by", "dora"];
            run(&db, &correction).well();
        }
    }
    assert_eq!(past_days(&by_sql).await, before);
    for [slug, ..] in BOARDS {
        for day in DAYS {
            run(&db, &["refresh", "--board", slug, "--period", &format!("day:{day}"), "--by", "dora"]).well();
        }
    }
    compare("refreshed").await;
    assert_ne!(past_days(&site).await, before);
}

#[tokio::test]
async fn an_event_keeps_its_metadata_under_its_id_and_through_the_quarantine() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"points_max": 100, "on_violation": "quarantine"}), &[]).await;
    let event = |points: i64, id: &str, metadata: &str| {
        format!(
            r#"{{"user_id":"ada","points":{points},"id":"{id}"{}}}"#,
            if metadata.is_empty() { String::new() } else { format!(r#","metadata":{metadata}"#) }
        )
    };
    for (points, id, status) in [(1, "a", 200), (500, "b", 202)] {
        let first = site.post(SCORES, event(points, id, r#"{"x":1,"y":[2,1.5]}"#)).await.is(status);
        // The order of members does not matter.
        let again = site.post(SCORES, event(points, id, r#"{ "y":[2,1.50], "x":1 }"#)).await.is(status);
        assert_eq!((&first["repeated"], &again["repeated"]), (&json!(false), &json!(true)));
        assert_eq!(
            (&first["transaction_id"], &first["quarantine_id"]),
            (&again["transaction_id"], &again["quarantine_id"])
        );
        for other in ["", r#"{"x":1,"y":[1.5,2]}"#, "{}"] {
            let conflict = site.post(SCORES, event(points, id, other)).await;
            assert_eq!((conflict.status, &conflict.body["code"]), (409, &json!("id_conflict")), "{other}");
        }
    }
    site.post(SCORES, event(2, "c", "")).await.is(200);
    assert_eq!(site.post(SCORES, event(2, "c", "{}")).await.status, 409);
    let same_batch = site.post(
        SCORES,
        format!("[{},{},{}]", event(3, "d", r#"{"z":1}"#), event(3, "d", r#"{"z":2}"#), event(3, "d", r#"{"z":1}"#)),
    );
    let states: Vec<Value> =
        same_batch.await.is(200)["results"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["accepted", "refused", "accepted"]);

    let list = site.admin(Method::GET, "/v1/boards/main/quarantine", Value::Null).await.is(200);
    let metadata = json!({"x": 1, "y": [2, 1.5]});
    assert_eq!(list["data"][0]["metadata"], metadata);
    assert_eq!(run(&db, &["quarantine", "list", "--board", "main", "--json"]).json()[0]["metadata"], metadata);
    let path = format!("/v1/boards/main/quarantine/{}/accept", list["data"][0]["quarantine_id"]);
    site.admin(Method::POST, &path, json!({})).await.is(200);
    let standing = site.get(&format!("{SCORES}/ada?metadata=true")).await.is(200);
    assert_eq!((&standing["score"], &standing["metadata"]), (&json!(506), &metadata));
    site.post(SCORES, event(500, "e", "")).await.is(202);
    let list = site.admin(Method::GET, "/v1/boards/main/quarantine", Value::Null).await;
    assert!(!list.text.contains("metadata"), "{list:?}");
}

#[tokio::test]
async fn metadata_of_a_private_board_need_its_key() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"reading": "key"}), &[]).await;
    site.post(SCORES, json!({"user_id": "ada", "points": 9, "metadata": {"text": "needle"}})).await.is(200);
    let paths = [
        format!("{SCORES}?metadata=true"),
        format!("{SCORES}/ada?metadata=true"),
        format!("{SCORES}/query?user_id=ada&metadata=true"),
        format!("{SCORES}/ada/history"),
        "/v1/boards/main/scores.csv?metadata=true".to_owned(),
        "/v1/boards/main/scores.ndjson?metadata=true".to_owned(),
        "/v1/boards/main/live?metadata=true".to_owned(),
        "/v1/users/ada/standings?metadata=true".to_owned(),
        "/boards/main?player=ada".to_owned(),
    ];
    for path in &paths {
        let answer = site.get(path).await;
        let is_hidden = answer.status == 401 || path.contains("standings");
        assert!(is_hidden && !answer.text.contains("needle"), "{answer:?}");
    }
    let query = json!({"user_ids": ["ada"], "metadata": true}).to_string();
    let headers = [("content-type", "application/json")];
    assert_eq!(site.send(Method::POST, &format!("{SCORES}/query"), &headers, query).await.status, 401);
    let key = format!("Bearer {}", site.server_key);
    for path in &paths[..6] {
        let answer = site.send(Method::GET, path, &[("authorization", &key)], String::new()).await;
        assert!(answer.status == 200 && answer.text.contains("needle"), "{answer:?}");
    }
}

#[tokio::test]
async fn files_have_a_column_of_metadata_on_request() {
    let (db, files) = (TestDb::new().await, Files::new());
    let site = Site::start(&db, &[]).await;
    site.board(json!({"tiers": ["gold: rank 1"], "periods": ["all_time", "week"]}), &[]).await;
    site.board(json!({"slug": "plain"}), &[]).await;
    let lines = [("ada", 9, json!({"text": "a \"quote\", and\nmore"})), ("bob", 5, Value::Null), ("cyd", 2, json!({}))];
    let at = "2024-01-16T12:00:00Z";
    let lines = lines.map(|(user, points, metadata)| {
        json!({"user_id": user, "points": points, "occurred_at": at, "metadata": metadata}).to_string()
    });
    let file = files.write("events.ndjson", lines.join("\n"));
    import(&db, &file, "main", &[]).well(3, 0);
    import(&db, &file, "plain", &[]).well(3, 0);
    run(&db, &["close", "--due"]).well();
    let wanted = [json!({"text": "a \"quote\", and\nmore"}), Value::Null, json!({})];
    for (board, period, columns) in [("main", "all_time", 8), ("main", erase::WEEK, 8), ("plain", "all_time", 7)] {
        let path = |format: &str| format!("/v1/boards/{board}/scores.{format}?period={period}");
        let csv = site.get(&format!("{}&metadata=true", path("csv"))).await.text;
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names = reader.headers().unwrap().clone();
        assert_eq!((names.len(), &names[columns - 1]), (columns, "metadata"));
        let of_csv = reader.records().map(|record| {
            let text = record.unwrap()[columns - 1].to_owned();
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
        });
        assert_eq!(of_csv.collect::<Vec<_>>(), wanted);
        let ndjson = site.get(&format!("{}&metadata=true", path("ndjson"))).await.text;
        let rows: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.iter().map(|row| row["metadata"].clone()).collect::<Vec<_>>(), wanted);
        assert!(rows.iter().all(|row| row.as_object().unwrap().len() == columns));
        for format in ["csv", "ndjson"] {
            assert!(!site.get(&path(format)).await.text.contains("metadata"));
            let of_cli = ["export", "--board", board, "--period", period, "--format", format, "--metadata"];
            assert_eq!(run(&db, &of_cli).well(), if format == "csv" { csv.clone() } else { ndjson.clone() });
        }
    }
}

#[tokio::test]
async fn a_stream_shows_metadata_on_request() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"mode": "latest"}), &[("ada", 9), ("bob", 5)]).await;
    let path = "/v1/boards/main/live?limit=2&user_id=bob";
    let mut plain = Stream::open(&site.serve, path, &[]).await;
    let mut with = Stream::open(&site.serve, &format!("{path}&metadata=true"), &[]).await;
    let (without, begun) = (plain.one("started").await, with.one("started").await);
    assert_eq!(begun["scores"][0]["metadata"], Value::Null);
    assert!(begun["scores"][0].as_object().unwrap().contains_key("metadata"), "{begun}");
    assert!(!without.to_string().contains("metadata"), "{without}");
    site.post(SCORES, json!({"user_id": "bob", "points": 5, "metadata": {"n": 1}})).await.is(200);
    let changed = with.until(|event| event.kind == "changed").await.data;
    let bob = json!({"n": 1});
    assert_eq!((&changed["scores"][1]["metadata"], &changed["standings"][0]["metadata"]), (&bob, &bob));
    assert_eq!(changed["standings"][0]["above"][0]["metadata"], Value::Null);
    let changed = plain.until(|event| event.kind == "changed").await.data;
    assert!(!changed.to_string().contains("metadata"), "{changed}");
    // An id of one stream does not continue the other.
    let headers = [("last-event-id", &*with.last_id)];
    assert_eq!(Stream::open(&site.serve, path, &headers).await.one("started").await["restarted"], true);
    let mut same = Stream::open(&site.serve, &format!("{path}&metadata=true"), &headers).await;
    same.one("continued").await;
}

#[tokio::test]
async fn a_page_shows_metadata_of_the_selected_player_as_text() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("bob", 5)]).await;
    let metadata = json!({"</code><script>": "<script>alert(1)</script>\"'&"});
    site.post(SCORES, json!({"user_id": "ada", "points": 9, "metadata": metadata})).await.is(200);
    let page = site.get("/boards/main?player=ada").await;
    let text =
        metadata.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    assert!(page.text.contains(&format!("<code>{text}</code>")), "{}", page.text);
    assert!(!page.text.contains("<script>"), "{}", page.text);
    for path in ["/boards/main?player=bob", "/boards/main", "/embed/main"] {
        let page = site.get(path).await;
        assert!(page.status == 200 && !page.text.contains("alert(1)") && !page.text.contains("Metadata"), "{page:?}");
    }
}
