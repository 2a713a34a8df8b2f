//! The checked-in `OpenAPI` document makes API changes visible in review, and the service accepts
//! exactly what the document allows.

use std::{collections::HashSet, env, fs, path::Path};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use reqwest::Method;
use serde_json::{Number, Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{http::api::site::Site, support::TestDb};

/// Compares the document with `docs/openapi.json`; `UPDATE_SNAPSHOTS=1 cargo test --test it http::openapi`
/// updates the file.
#[test]
fn the_document_matches_the_checked_in_file() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let current = centile::openapi().to_pretty_json()? + "\n";
    if env::var_os("UPDATE_SNAPSHOTS").is_some_and(|flag| flag == "1") {
        fs::write(&file, &current)?;
    }
    let checked_in = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        checked_in == current,
        "docs/openapi.json is not what the code says; look at the difference after UPDATE_SNAPSHOTS=1 cargo test \
         --test it http::openapi"
    );
    Ok(())
}

/// Compares the table of codes in docs/api.md with the program; `UPDATE_SNAPSHOTS=1` updates it.
#[test]
fn every_error_code_is_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
    let text = fs::read_to_string(&file).unwrap();
    let (start, end) = ("<!-- codes -->\n", "<!-- end -->");
    let (before, rest) = text.split_once(start).expect("the start of the table");
    let (table, after) = rest.split_once(end).expect("the end of the table");
    let row = |code: centile::Code| format!("| `{}` | {} | {} |\n", code.name(), code.status(), code.description());
    let current = "| code | status | cause |\n| --- | --- | --- |\n".to_owned()
        + &centile::Code::all().map(row).collect::<String>();
    if env::var_os("UPDATE_SNAPSHOTS").is_some_and(|flag| flag == "1") {
        fs::write(&file, format!("{before}{start}{current}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(table, current, "docs/api.md is not what the code says; UPDATE_SNAPSHOTS=1 updates it");
}

/// Returns whether `value` satisfies `schema`. Supports the part of JSON Schema that the document
/// uses for requests.
fn fits(document: &Value, schema: &Value, value: &Value) -> bool {
    let fits = |schema: &Value, value: &Value| fits(document, schema, value);
    let limit = |name: &str| schema[name].as_u64().map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
    if let Some(target) = schema["$ref"].as_str() {
        return fits(document.pointer(target.strip_prefix('#').unwrap()).unwrap(), value);
    }
    if let Some(schemas) = schema["oneOf"].as_array() {
        return schemas.iter().filter(|schema| fits(schema, value)).count() == 1;
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        return false;
    }
    let is_of_type = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    };
    if !schema["type"].as_array().map_or_else(|| is_of_type(&schema["type"]), |names| names.iter().any(is_of_type)) {
        return false;
    }
    match value {
        Value::String(text) => {
            let length = text.chars().count();
            let form = match schema["format"].as_str() {
                Some("date") => "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                Some("date-time") => "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})$",
                _ => "",
            };
            let pattern = schema["pattern"].as_str().unwrap_or(form);
            length <= limit("maxLength")
                && length >= schema["minLength"].as_u64().map_or(0, |_| limit("minLength"))
                && Regex::new(pattern).unwrap().is_match(text)
        }
        Value::Number(number) => {
            // Compares integers exactly, because doubles cannot distinguish neighbouring 64-bit
            // integers; uses doubles otherwise.
            let is_below = |number: &Number, other: &Number| match (number.as_i64(), other.as_i64()) {
                (Some(number), Some(other)) => number < other,
                _ => number.as_f64() < other.as_f64(),
            };
            schema["minimum"].as_number().is_none_or(|least| !is_below(number, least))
                && schema["maximum"].as_number().is_none_or(|most| !is_below(most, number))
        }
        Value::Array(items) => {
            items.len() <= limit("maxItems")
                && items.len() >= schema["minItems"].as_u64().map_or(0, |_| limit("minItems"))
                && (schema["uniqueItems"] != true || items.iter().collect::<HashSet<_>>().len() == items.len())
                && items.iter().all(|item| fits(&schema["items"], item))
        }
        Value::Object(members) => {
            let required = schema["required"].as_array().into_iter().flatten();
            required.into_iter().all(|name| members.contains_key(name.as_str().unwrap()))
                && members.iter().all(|(name, member)| {
                    match (&schema["properties"][name], &schema["additionalProperties"]) {
                        (Value::Null, Value::Bool(false)) => false,
                        (Value::Null, Value::Null) => true,
                        (Value::Null, others) => {
                            fits(others, member)
                                && (schema["propertyNames"].is_null() || fits(&schema["propertyNames"], &json!(name)))
                        }
                        (schema, _) => fits(schema, member),
                    }
                })
        }
        _ => true,
    }
}

#[tokio::test]
async fn parameters_are_accepted_as_documented() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 50)]).await;
    let document = site.get("/openapi.json").await.is(200);
    let (long, too_long) = ("x".repeat(128), "x".repeat(129));
    let periods = [
        "all_time",
        "day",
        "week",
        "month",
        "week:previous",
        "day:2024-01-15",
        "week:2024-01-15",
        "month:2024-01",
        "hour",
        "quarter:previous",
        "year",
        "hour:2024-01-15T14",
        "quarter:2024-Q1",
        "year:2024",
        "season:spring",
        "season:4-x_y",
        "",
        "decade",
        "all_time:previous",
        "day:",
        "day:2024-1-5",
        "day:2024-13-01",
        "day:2024-01-00",
        "day:2024-01-32",
        "day:2024-01",
        "month:2024-01-15",
        "month:2024-00",
        "month:2024-1",
        "hour:2024-01-15T24",
        "hour:2024-01-15",
        "quarter:2024-Q5",
        "quarter:2024-01",
        "year:24",
        "season",
        "season:",
        "season:Spring",
        "season:-x",
        "Day",
        "week ",
        "week\n",
        "\u{0}",
    ];
    let users = ["ada", "x y", "é/ö", "🏆", "%41", &long, &too_long, "a\u{0}", "a\nb", "\u{7f}", "a\u{85}", "\u{a0}"];
    let cases: [(&str, &str, &str, &[&str]); 8] = [
        ("/v1/boards/{board}/scores", "period", "/v1/boards/main/scores?period={}", &periods),
        ("/v1/boards/{board}/scores/{user_id}", "period", "/v1/boards/main/scores/ada?period={}", &periods),
        ("/v1/boards/{board}/distribution", "period", "/v1/boards/main/distribution?period={}", &periods),
        ("/v1/boards/{board}/tiers", "period", "/v1/boards/main/tiers?period={}", &periods),
        ("/v1/boards/{board}/rank", "period", "/v1/boards/main/rank?score=1&period={}", &periods),
        ("/v1/boards/{board}/scores/{user_id}", "user_id", "/v1/boards/main/scores/{}", &users),
        ("/v1/users/{user_id}", "user_id", "/v1/users/{}", &users),
        ("/v1/scores/{user_id}", "user_id", "/v1/scores/{}", &users),
    ];
    for (path, name, url, values) in cases {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let schema = &parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"];
        for value in values {
            let sent = url.replace("{}", &utf8_percent_encode(value, NON_ALPHANUMERIC).to_string());
            let is_taken = site.get(&sent).await.status != 422;
            assert_eq!(is_taken, fits(&document, schema, &json!(value)), "{sent}");
        }
    }
    let parameters = document["paths"]["/v1/boards/{board}/rank"]["get"]["parameters"].as_array().unwrap();
    let schema = &parameters.iter().find(|parameter| parameter["name"] == "score").unwrap()["schema"];
    for score in [i64::MIN, i64::MIN + 1, 0, i64::MAX] {
        let is_taken = site.get(&format!("/v1/boards/main/rank?score={score}")).await.status != 422;
        assert_eq!(is_taken, fits(&document, schema, &json!(score)), "{score}");
    }
}

#[tokio::test]
async fn a_long_address_is_refused_as_documented() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 50)]).await;
    let document = site.get("/openapi.json").await.is(200);
    let documented = &document["paths"]["/v1/boards/{board}/scores/query"]["get"]["responses"];
    for (bytes, status) in [(65_534, "404"), (65_535, "400")] {
        let start = "/v1/boards/none/scores/query?user_id=ada";
        let target = format!("{start}{}", "&".repeat(bytes - start.len()));
        let address = site.serve.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes} bytes: {answer}");
        assert!(documented[status].is_object(), "{status}");
        // A response without a documented body has none.
        let has_body = !answer.ends_with("\r\n\r\n");
        assert_eq!(has_body, status != "400", "{answer}");
    }
}

#[tokio::test]
async fn bodies_are_accepted_as_documented() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 50)]).await;
    let document = site.get("/openapi.json").await.is(200);
    let board = |slug: &str, change: Value| {
        let mut board = json!({"slug": slug, "mode": "best"});
        board.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        ("/v1/boards", "/v1/boards", Method::POST, board)
    };
    let change = |change: Value| ("/v1/boards/{board}", "/v1/boards/main", Method::PATCH, change);
    let event = |event: Value| ("/v1/boards/{board}/scores", "/v1/boards/main/scores", Method::POST, event);
    let chosen = |body: Value| ("/v1/boards/{board}/scores/query", "/v1/boards/main/scores/query", Method::POST, body);
    let season = |name: &str, starts_at: &str| {
        let body = json!({"name": name, "starts_at": starts_at, "ends_at": "2050-01-01"});
        ("/v1/boards/{board}/seasons", "/v1/boards/main/seasons", Method::POST, body)
    };
    let user = |body: Value| ("/v1/users/{user_id}", "/v1/users/ada", Method::PUT, body);
    let ban = |body: Value| ("/v1/users/{user_id}/ban", "/v1/users/ada/ban", Method::POST, body);
    let key = |name: &str, boards: Value| {
        ("/v1/keys", "/v1/keys", Method::POST, json!({"name": name, "role": "reader", "boards": boards}))
    };
    let cases = [
        board("a", json!({"lanes": 2.0, "frozen_top_size": 1e1, "events_per_minute": 60.0})),
        board("b", json!({"lanes": 65.0})),
        board("c", json!({"frozen_top_size": 0.0})),
        board("d", json!({"points_min": i64::MIN + 1, "points_max": 1e3})),
        board("e", json!({"kept_archives": {"day": 1, "week": 1_000_000.0, "month": null}})),
        board("f", json!({"kept_archives": {"day": 0}})),
        board("g", json!({"kept_archives": {"week": 1_000_001}})),
        board("h", json!({"kept_archives": {"all_time": 1}})),
        board("i", json!({"gain_max": {"day": 1, "season": 9_007_199_254_740_991_i64}})),
        board("j", json!({"gain_max": {"day": 0}})),
        board("k", json!({"gain_max": {"decade": 5}})),
        board("l", json!({"first_layout": {"bounds": [-1, 0, 1e3]}})),
        board("m", json!({"first_layout": {"bounds": []}})),
        board("n", json!({"first_layout": {"bounds": [1, 1]}})),
        board("o", json!({"first_layout": {"bounds": (0..100).collect::<Vec<_>>()}})),
        board("p", json!({"first_layout": {"expected_points": 100.0}})),
        board("q", json!({"first_layout": {"expected_points": 99}})),
        board("r", json!({"first_layout": {"expected_points": 100, "bounds": [1]}})),
        board("s", json!({"first_layout": {"expected_points": 100, "colour": null}})),
        board("t", json!({"first_layout": {}})),
        board("u", json!({"first_layout": null, "periods": ["day", "week"]})),
        board("v", json!({"periods": ["day", "day"]})),
        board("w", json!({"periods": []})),
        board("x", json!({"title": ""})),
        board("y", json!({"title": "a\u{9f}"})),
        change(json!({"title": "x".repeat(128)})),
        change(json!({"title": "x".repeat(129)})),
        change(json!({"time_zone": ""})),
        change(json!({"time_zone": "U\tC"})),
        change(json!({"events_per_minute": null})),
        change(json!({"points_max": 1.5})),
        event(json!({"user_id": "ada", "points": 5.0})),
        event(json!({"user_id": "ada", "points": 0.5})),
        event(json!({"user_id": "", "points": 5})),
        event(json!({"user_id": "a\u{0}", "points": 5})),
        event(json!({"user_id": "ada", "points": 5, "reason": "\u{1b}"})),
        event(json!({"user_id": "ada", "points": 5, "id": "a\u{80}"})),
        chosen(json!({"user_ids": ["ada"], "period": "week:previous"})),
        chosen(json!({"user_ids": ["ada", ""]})),
        chosen(json!({"user_ids": ["ada"], "period": "decade"})),
        chosen(json!({"user_ids": []})),
        season("spring", "2040-03-01"),
        season("summer", "2040-06-01T00:00:00+02:00"),
        season("autumn", ""),
        season("winter", "soon"),
        season("-", "2040-01-01"),
        user(json!({"name": "Ada", "avatar_url": ""})),
        user(json!({"name": "A\rda"})),
        user(json!({"avatar_url": "\u{0}"})),
        user(json!({"avatar_url": null, "metadata": {"clan": [1.5]}})),
        ban(json!({"reason": "é"})),
        ban(json!({"reason": ""})),
        ban(json!({"reason": "\u{84}"})),
        key("one", json!(["main"])),
        key("two", json!(["Main"])),
        key("th\u{7}ree", json!([])),
    ];
    for (path, url, method, body) in cases {
        let operation = &document["paths"][path][method.as_str().to_lowercase()];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let answer = site.admin(method, url, body.clone()).await;
        assert_eq!(answer.status != 422, fits(&document, schema, &body), "{url} {body}: {answer:?}");
    }
}

/// The service writes these texts without the structs that describe them.
#[tokio::test]
async fn files_and_webhooks_have_the_documented_members() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    crate::access::rights::erase::played_on(&db, &site, json!({"tiers": ["gold: rank 1"]})).await;
    let document = site.get("/openapi.json").await.is(200);
    let check = |schema: &str, value: &Value, absent: &[&str]| {
        let schema = &document["components"]["schemas"][schema];
        assert!(fits(&document, schema, value), "{value} is not {schema}");
        // Only responses about a segment have the member segment.
        let names = |object: &Value| {
            let names = object.as_object().unwrap().keys().filter(|name| *name != "segment");
            names.cloned().collect::<HashSet<_>>()
        };
        let mut wanted = names(&schema["properties"]);
        wanted.retain(|name| !absent.contains(&&**name));
        assert_eq!(names(value), wanted);
    };
    let file = site.get("/v1/boards/main/scores.ndjson?period=week:2024-01-15&metadata=true").await;
    assert_eq!(file.text.lines().count(), 3);
    for line in file.text.lines() {
        check("FileRowResponse", &serde_json::from_str(line).unwrap(), &["tiebreak"]);
    }
    let payload: String =
        sqlx::query_scalar("SELECT payload::text FROM centile.outbox").fetch_one(&db.pool().await).await.unwrap();
    let message: Value = serde_json::from_str(&payload).unwrap();
    check("PeriodClosedMessage", &message, &["league"]);
    check("PeriodResponse", &message["period"], &[]);
    check("FileRowResponse", &message["top"][0], &["metadata", "tiebreak"]);
}
