//! SQL in every text of every call is treated as plain text.
//!
//! Calls and fields come from the OpenAPI document, so that new ones are covered.

use std::{collections::BTreeMap, fmt};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt as _;
use reqwest::Method;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use crate::{
    http::api::site::{Answer, Site},
    support::{TestDb, amount, audit, next_number, random::seeded, run},
};

/// Texts that could end a string, a statement or an identifier, wait, read secrets, or change data.
/// Others become dangerous only when they are normalized or decoded again.
const CORPUS: [&str; 24] = [
    "'",
    "''",
    "\\'",
    "\"",
    "`",
    "' OR '1'='1",
    "' OR 1=1 --",
    "1 OR 1=1",
    "1; UPDATE centile_store.leaderboard SET score = 0",
    "'; DROP SCHEMA centile CASCADE; --",
    "\"; DROP TABLE centile_store.users CASCADE; --",
    "'); DELETE FROM centile_store.score_transactions; --",
    "$$; TRUNCATE centile_store.boards CASCADE; $$",
    "' UNION SELECT version() --",
    "main' UNION ALL SELECT id, secret_hash FROM centile_store.api_keys --",
    "'||(SELECT pg_sleep(60))||'",
    "'; COPY (SELECT '') TO PROGRAM 'true' --",
    "{\"$ne\": null}",
    "x','x'),('y','y",
    "{a,\"b'c\"}",
    "/**/",
    "pg_sleep",
    "%27%20OR%201%3D1",
    "\u{ff07} OR \u{2bc}1\u{2bc}=\u{2bc}1",
];

/// The place in a request that holds a text of the corpus.
#[derive(Clone)]
enum Place {
    Path(String),
    Query(String),
    Header(&'static str),
    /// A field of the body, by the names that lead to it; a number is an index of a list.
    Field(Vec<String>),
    /// The name of a member of that object.
    Member(Vec<String>),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(name) => write!(formatter, "{{{name}}}"),
            Self::Query(name) => write!(formatter, "?{name}="),
            Self::Header(name) => write!(formatter, "{name}:"),
            Self::Field(names) => write!(formatter, "/{}", names.join("/")),
            Self::Member(names) => write!(formatter, "/{}/…", names.join("/")),
        }
    }
}

/// A call of the document.
struct Call {
    method: Method,
    path: String,
    parameters: Vec<Value>,
    /// The schema of its body; null without a body.
    body: Value,
}

/// The OpenAPI document.
struct Document(Value);

impl Document {
    fn calls(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for (path, item) in self.0["paths"].as_object().expect("paths") {
            for (method, call) in item.as_object().expect("methods") {
                calls.push(Call {
                    method: method.to_uppercase().parse().expect("a method"),
                    path: path.clone(),
                    parameters: call["parameters"].as_array().cloned().unwrap_or_default(),
                    body: call["requestBody"]["content"]["application/json"]["schema"].clone(),
                });
            }
        }
        calls
    }

    /// Resolves references and takes the first alternative of a choice.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(target) = schema["$ref"].as_str() {
            return self.resolved(self.0.pointer(target.trim_start_matches('#')).expect("a schema"));
        }
        let choices = ["oneOf", "anyOf", "allOf"].into_iter().find_map(|choice| schema[choice].as_array());
        match choices.and_then(|choices| choices.iter().find(|one| one["type"] != "null")) {
            Some(first) => self.resolved(first),
            None => schema,
        }
    }

    /// Collects every field of a body.
    fn fields(&self, schema: &Value, names: &[String], places: &mut Vec<Place>) {
        let schema = self.resolved(schema);
        let below = |name: &str| [names, &[name.to_owned()]].concat();
        if let Some(members) = schema["properties"].as_object() {
            for (name, member) in members {
                self.fields(member, &below(name), places);
            }
        } else if has_type(schema, "object") {
            places.push(Place::Member(names.to_vec()));
            places.push(Place::Field(below("day")));
        } else if has_type(schema, "array") {
            self.fields(&schema["items"], &below("0"), places);
        } else {
            places.push(Place::Field(names.to_vec()));
        }
    }

    /// Returns a minimal valid body for a schema.
    fn ordinary(&self, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        if has_type(schema, "object") {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let member = |name: &Value| {
                let name = name.as_str().expect("a name").to_owned();
                let value = self.ordinary(&schema["properties"][&name]);
                (name, value)
            };
            return Value::Object(required.iter().map(member).collect());
        }
        let first = schema["enum"][0].clone();
        match &schema["example"] {
            Value::Null if !first.is_null() => first,
            Value::Null if has_type(schema, "array") => json!([self.ordinary(&schema["items"])]),
            Value::Null if has_type(schema, "integer") => json!(1),
            Value::Null => json!("x"),
            example => example.clone(),
        }
    }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    schema["type"] == wanted || schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == wanted))
}

/// Sets a value at a path, and creates what is missing on the way.
fn put(body: &mut Value, names: &[String], value: Value) {
    let Some((first, rest)) = names.split_first() else {
        *body = value;
        return;
    };
    if let Ok(place) = first.parse::<usize>() {
        if !body.is_array() {
            *body = json!([]);
        }
        let list = body.as_array_mut().expect("a list");
        list.resize(list.len().max(place + 1), Value::Null);
        put(&mut list[place], rest, value);
    } else {
        if !body.is_object() {
            *body = Value::Object(Map::new());
        }
        put(&mut body[first.as_str()], rest, value);
    }
}

/// Counts of what the answers reported as done.
#[derive(Default)]
struct Done {
    requests: usize,
    statuses: BTreeMap<u16, usize>,
    boards: i64,
    keys: i64,
    scores: i64,
    acts: i64,
    erased: i64,
}

impl Done {
    fn note(&mut self, call: &Call, answer: &Answer) {
        self.requests += 1;
        *self.statuses.entry(answer.status).or_default() += 1;
        match (call.method.as_str(), call.path.as_str(), answer.status) {
            ("POST", "/v1/boards", 201) => self.boards += 1,
            ("POST", "/v1/keys", 201) => self.keys += 1,
            ("POST", "/v1/scores", 200) => self.scores += 1,
            ("POST", "/v1/boards/{board}/scores/batch" | "/v1/scores/batch", 200) => {
                let results = answer.body["results"].as_array().into_iter().flatten();
                self.scores += results.map(|result| i64::from(result["repeated"] == false)).sum::<i64>();
            }
            ("POST", "/v1/boards/{board}/scores", 200) => self.scores += i64::from(answer.body["repeated"] == false),
            ("DELETE", "/v1/users/{user_id}", 200..=299) => self.erased += 1,
            ("POST", "/v1/boards/{board}/scores/{user_id}/reset", 204) => self.acts += 1,
            ("POST", path, 200 | 204) if path.ends_with("ban") || path.ends_with("/void") => self.acts += 1,
            _ => {}
        }
    }
}

/// Returns a valid value for a parameter without an example.
fn named(parameter: &str, transaction_id: i64) -> String {
    match parameter {
        "board" => "main".to_owned(),
        "user_id" | "user_ids" => "ada".to_owned(),
        "transaction_id" => transaction_id.to_string(),
        "score" | "from" | "limit" | "around" => "1".to_owned(),
        "period" => "all_time".to_owned(),
        "ranks" => "true".to_owned(),
        "tag" => "moba".to_owned(),
        _ => "x".to_owned(),
    }
}

/// Sends the call with a text in one place and valid values elsewhere. `None` if the text cannot
/// appear in that place.
async fn send(site: &Site, document: &Document, call: &Call, place: &Place, text: &str, id: i64) -> Option<Answer> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let (mut path, mut query) = (call.path.clone(), Vec::new());
    for parameter in &call.parameters {
        let name = parameter["name"].as_str().expect("a name");
        let is_here = matches!(place, Place::Path(here) | Place::Query(here) if here == name);
        let value = if is_here { text.to_owned() } else { named(name, id) };
        match parameter["in"].as_str() {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &encoded(&value)),
            Some("query") if is_here || parameter["required"] == true => {
                query.push(format!("{name}={}", encoded(&value)));
            }
            _ => {}
        }
    }
    let mut body = if call.body.is_null() { Value::Null } else { document.ordinary(&call.body) };
    if call.path == "/v1/keys" {
        // A key needs boards or `all_boards`, which the document cannot express.
        body["all_boards"] = json!(true);
    }
    // Names that must be unique.
    for unique in ["slug", "name"] {
        if body[unique].is_string() {
            body[unique] = json!(format!("made-{}", next_number()));
        }
    }
    match place {
        Place::Field(names) => put(&mut body, names, text.into()),
        Place::Member(names) => put(&mut body, &[names.as_slice(), &[text.to_owned()]].concat(), json!(1)),
        _ => {}
    }
    let authorization = format!("Bearer {}", site.admin_key);
    let mut headers = vec![("content-type", "application/json"), ("authorization", authorization.as_str())];
    if let Place::Header(name) = place {
        if !text.is_ascii() {
            return None;
        }
        headers.retain(|(other, _)| other != name);
        headers.push((name, text));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    Some(site.send(call.method.clone(), &path, &headers, body).await)
}

/// Returns a digest of each table's rows of a board that no request names, and of the roles.
async fn digests(pool: &PgPool) -> Vec<(String, String)> {
    const OF: &str = "(SELECT id FROM centile_store.boards WHERE slug = 'canary')";
    let mut digests = Vec::new();
    for (table, wanted) in [
        // A verification raises the revision of all boards.
        ("(SELECT id, to_jsonb(b) - 'structure_revision' FROM centile_store.boards b)", format!("t.id = {OF}")),
        // Bans advance the lanes of all boards.
        ("(SELECT board_id, lane, last_at FROM centile_store.board_lanes)", format!("t.board_id = {OF}")),
        ("centile_store.periods", format!("t.board_id = {OF}")),
        ("centile_store.score_transactions", format!("t.board_id = {OF}")),
        (
            "(SELECT board_id, user_id, standings FROM (SELECT p.*, to_jsonb(p) - 'batch' AS standings FROM centile_store.players p) p)",
            format!("t.board_id = {OF}"),
        ),
        (
            "centile_store.leaderboard_bucket",
            format!("t.ranking_id IN (SELECT ranking_id FROM centile_store.periods WHERE board_id = {OF})"),
        ),
        ("centile_store.users", "t.external_id LIKE 'canary%'".to_owned()),
        ("centile_store.schema_history", "true".to_owned()),
        ("centile_store.applied_sql", "true".to_owned()),
        // Other tests create logins meanwhile.
        ("pg_roles", "t.rolname NOT LIKE 'login%'".to_owned()),
    ] {
        let statement = format!(
            "SELECT md5(coalesce(string_agg(t::text, ';' ORDER BY t::text), '')) FROM {table} t WHERE {wanted}"
        );
        let digest = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(pool).await.expect("a digest");
        digests.push((table.to_owned(), digest));
    }
    digests
}

async fn count(pool: &PgPool, what: &'static str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM centile_store.{what}")))
        .fetch_one(pool)
        .await
        .expect(what)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_in_a_text_is_treated_as_text() {
    let db = TestDb::new().await;
    // The answer on a path without a board does not show whether its id is a repeat. On a separate
    // board it never is.
    let site = Site::start(&db, &["--default-board", "classic"]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    site.board(json!({"slug": "classic"}), &[]).await;
    site.board(json!({"slug": "canary"}), &[("canary-1", 5), ("canary-2", 3), ("canary-1", 2)]).await;
    // The first template creates tables for the results of its boards.
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*"})).await.is(200);
    // Bucket rows follow scores.
    db.execute("CALL centile.apply('canary')").await;
    let score = site.post("/v1/boards/main/scores", json!({"user_id": "bob", "points": 1})).await.is(200);
    let id = score["transaction_id"].as_i64().expect("an id");
    let document = Document(serde_json::to_value(centile::openapi()).expect("the document"));
    let pool = db.pool().await;
    let (schema, canary) = (db.dump(), digests(&pool).await);
    let before = [
        count(&pool, "boards").await,
        count(&pool, "api_keys").await,
        count(&pool, "score_transactions WHERE kind = 'score'").await,
    ];

    // In the quick run each place gets a part of the corpus, which differs between places and runs.
    let mut first: usize = seeded().random_range(0..CORPUS.len());
    let some = amount(5, CORPUS.len());
    let mut done = Done::default();
    for call in document.calls() {
        let mut places = Vec::new();
        // Headers are read in one place for all calls.
        if call.path == "/v1/boards/{board}/scores" {
            places.extend(["authorization", "if-none-match", "x-request-id"].map(Place::Header));
        }
        for parameter in &call.parameters {
            let name = parameter["name"].as_str().expect("a name").to_owned();
            places.push(if parameter["in"] == "path" { Place::Path(name) } else { Place::Query(name) });
        }
        if !call.body.is_null() {
            document.fields(&call.body, &[], &mut places);
        }
        for place in places {
            let texts = CORPUS.into_iter().cycle().skip(first).take(some);
            first = (first + some) % CORPUS.len();
            for text in texts {
                let Some(answer) = send(&site, &document, &call, &place, text, id).await else { continue };
                let Call { method, path, .. } = &call;
                assert!(answer.status < 500, "{method} {path}, {text:?} in {place}: {answer:?}");
                assert!(
                    !answer.text.contains("-linux-gnu"),
                    "{method} {path}, {text:?} in {place} reveals server details: {answer:?}"
                );
                if matches!((path.as_str(), &place), ("/v1/users/{user_id}", Place::Field(names)) if names[0] == "name")
                    && method == Method::PUT
                {
                    assert_eq!(answer.body["name"], text, "{answer:?}");
                }
                done.note(&call, &answer);
            }
        }
    }
    eprintln!("{} requests were answered {:?}", done.requests, done.statuses);
    let Done { requests, keys, scores, acts, .. } = done;
    let least = amount([300, 20, 1, 4, 4], [1_500, 100, 10, 20, 20]);
    let met = [requests, done.statuses[&200]].map(|count| i64::try_from(count).expect("a small number"));
    assert!(met[0] > least[0] && met[1] > least[1], "too few requests were sent or accepted");
    assert!(keys > least[2] && scores > least[3] && acts > least[4], "requests with free text were refused");

    // Nothing unexpected was created, and nothing is gone.
    assert_eq!(db.dump(), schema, "the schema");
    assert_eq!(digests(&pool).await, canary);
    let after = [
        count(&pool, "boards").await,
        count(&pool, "api_keys").await,
        count(&pool, "score_transactions WHERE kind = 'score'").await,
    ];
    assert_eq!(
        after,
        [before[0] + done.boards, before[1] + done.keys, before[2] + done.scores],
        "boards, keys, scores"
    );
    let acts = count(&pool, "score_transactions WHERE kind <> 'score'").await;
    assert!(acts <= done.acts, "{acts} acts, of which {} were answered", done.acts);
    let players: Vec<String> =
        sqlx::query_scalar("SELECT external_id FROM centile_store.users").fetch_all(&pool).await.expect("players");
    let known = |player: &&String| {
        // The players of ordinary requests, and friends.
        let is_ordinary = ["ada", "bob", "cyd", "x"].contains(&player.as_str());
        CORPUS.contains(&player.as_str()) || is_ordinary || player.starts_with("canary-")
    };
    let strangers: Vec<_> = players.iter().filter(|player| !known(player)).collect();
    // An erased player's new id was not in any request.
    assert!(i64::try_from(strangers.len()).is_ok_and(|strangers| strangers <= done.erased), "{strangers:?}");
    // The stored texts do nothing when other commands read them.
    for command in [&["close", "--due"][..], &["maintain"], &["verify"], &["board", "list"], &["key", "list"]] {
        run(&db, command).well();
    }
    assert_eq!(digests(&pool).await, canary);
    audit::rankings_are_sound(&pool).await;
}
