//! The metrics for operators, and the dashboard that shows them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    http::api::site::Site,
    support::{TestDb, run},
};

const DASHBOARD: &str = include_str!("../../../docs/grafana.json");

/// Returns the metrics by name and labels, as written.
pub fn numbers(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Returns Centile's metric names in a text.
pub fn names(text: &str) -> BTreeSet<String> {
    let is_part = |character: char| character.is_ascii_lowercase() || character == '_';
    text.split(|character| !is_part(character)).filter(|word| word.starts_with("centile_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_dashboard_shows_existing_metrics() {
    let db = TestDb::new().await;
    // The primary takes the place of a replica.
    let site = Site::start(&db, &["--read-url", db.url()]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    site.get("/v1/boards/main/scores").await.is(200);
    run(&db, &["board", "combine", "hero", "--source", "main@all_time"]).well();
    let metrics = site.get("/metrics").await.text;
    // A family without a series, such as that of refused indexes, still has a type line.
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let types: BTreeSet<String> = types.filter(|name| name.starts_with("centile_index_")).map(str::to_owned).collect();
    let mut output: BTreeSet<String> = numbers(&metrics).keys().flat_map(|name| names(name)).collect();
    output.extend(types);
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    let places: BTreeSet<String> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
    assert_eq!((ids.len(), places.len()), (panels.len(), panels.len()), "panels share an id or a place");
    let mut asked = BTreeSet::new();
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        asked.extend(names(target["expr"].as_str().unwrap()));
    }
    let missing: Vec<_> = asked.difference(&output).collect();
    assert!(missing.is_empty(), "{missing:?} is not among {output:?}");
    // The dashboard shows every metric: a histogram by one of its parts.
    let is_shown = |name: &&String| {
        let whole = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        asked.iter().any(|asked| asked.starts_with(whole))
    };
    let unseen: Vec<_> = output.iter().filter(|name| !is_shown(name)).collect();
    assert!(unseen.is_empty(), "{unseen:?} is on no panel");
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[("ada", 40), ("bob", 30)]).await;
    for user in 0..50 {
        site.get(&format!("/v1/boards/main/scores/p{user}")).await.is(404);
        site.get(&format!("/nowhere/{user}")).await.is(404);
    }
    let counted = numbers(&site.get("/metrics").await.text);
    let requests = |method: &str, route: &str, status: u16| {
        counted
            .iter()
            .find(|(name, _)| {
                let labels =
                    [format!("method=\"{method}\""), format!("route=\"{route}\""), format!("status=\"{status}\"")];
                name.starts_with("centile_http_requests_total{") && labels.iter().all(|label| name.contains(label))
            })
            .map(|(_, value)| *value)
    };
    assert_eq!(requests("GET", "/v1/boards/{board}/scores/{user_id}", 404), Some(50.0));
    assert_eq!(requests("GET", "none", 404), Some(50.0));
    assert_eq!(requests("POST", "/v1/boards/{board}/scores", 200), Some(2.0));
    assert_eq!(counted["centile_batch_events_sum"].to_string(), "2", "each event counts once");
    let labels = counted.keys().filter(|name| name.starts_with("centile_http_requests_total")).count();
    assert!(labels < 20, "{labels} labels for 105 requests");
}

#[tokio::test]
async fn a_request_id_is_accepted_returned_and_logged() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--log", "info", "--log-format", "json"]).await;
    let id = async |given: &str| {
        let answer =
            site.send(reqwest::Method::GET, "/v1/boards/none", &[("x-request-id", given)], String::new()).await;
        assert_eq!(answer.status, 404);
        answer.headers["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(id("trace-7/a.b:c").await, "trace-7/a.b:c");
    let long = "x".repeat(129);
    let made = [id("").await, id("two words").await, id("<script>").await, id(&long).await];
    for made in &made {
        assert!(made.len() == 32 && made.bytes().all(|byte| byte.is_ascii_hexdigit()), "{made}");
    }
    assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), made.len(), "each id is unique");
    let output = site.serve.logged("trace-7/a.b:c", 1).await;
    let lines: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |id: &str| lines.iter().filter(|line| line.to_string().contains(id)).collect::<Vec<_>>();
    let output = of("trace-7/a.b:c");
    assert_eq!(output.len(), 1, "{output:?}");
    for (member, value) in [("method", json!("GET")), ("path", json!("/v1/boards/none")), ("status", json!(404))] {
        assert_eq!(output[0][member], value, "{}", output[0]);
    }
    assert!(output[0]["duration_ms"].is_f64(), "{}", output[0]);
}
