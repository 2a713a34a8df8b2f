//! The alerts for Prometheus use existing metrics, and each alarm has a runbook.

use std::{collections::BTreeSet, fs, path::Path};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    http::{api::site::Site, metrics::names},
    support::{TestDb, markup::table},
};

const ALERTS: &str = include_str!("../../../docs/alerts.yml");
const MONITORING: &str = include_str!("../../../docs/monitoring.md");
const RUNBOOKS: &str = include_str!("../../../docs/runbooks/README.md");

/// Sections of a runbook.
const SECTIONS: [&str; 4] = ["## Symptom", "## Impact", "## Check", "## Fix"];

/// An alert of the rules file, which has each of these on one line.
#[derive(Debug)]
struct Alert {
    name: String,
    expr: String,
    runbook: String,
}

fn alerts() -> Vec<Alert> {
    let alert = |text: &str| {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(key));
            line.unwrap_or_else(|| panic!("no {key} in {text}")).trim().to_owned()
        };
        let name = text.lines().next().unwrap().to_owned();
        Alert { name, expr: value("expr: "), runbook: value("runbook: ") }
    };
    ALERTS.split("- alert: ").skip(1).map(alert).collect()
}

/// Writes `PeriodDue` as `period-due`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}

/// A site whose metrics include every family.
async fn busy(db: &TestDb) -> Site {
    // The primary takes the place of a replica.
    let site = Site::start(db, &["--read-url", db.url()]).await;
    site.board(json!({}), &[("ada", 40)]).await;
    site.admin(Method::PUT, "/v1/templates/level", json!({"pattern": "level-*"})).await.is(200);
    site.get("/v1/boards/main/scores").await.is(200);
    site
}

#[tokio::test]
async fn alerts_use_existing_metrics() {
    let db = TestDb::new().await;
    let site = busy(&db).await;
    let existing = names(&site.get("/metrics").await.text);
    let alerts = alerts();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in &alerts {
        let used = names(&alert.expr);
        let missing: Vec<_> = used.difference(&existing).collect();
        assert!(missing.is_empty(), "{}: {missing:?} is not among {existing:?}", alert.name);
        assert!(!used.is_empty() || alert.expr.starts_with("up{"), "{alert:?}");
    }
}

#[tokio::test]
async fn every_metric_is_documented() {
    let db = TestDb::new().await;
    let site = busy(&db).await;
    let metrics = site.get("/metrics").await.text;
    let families = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let families: BTreeSet<String> = families.map(str::to_owned).collect();
    let section = MONITORING.split_once("\n## Metrics\n").unwrap().1.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented: BTreeSet<String> = rows.flat_map(names).collect();
    let (missing, unknown) = (families.difference(&documented), documented.difference(&families));
    let wrong: Vec<_> = missing.chain(unknown).collect();
    assert!(wrong.is_empty(), "{wrong:?}: in the document or in the response only");
}

#[tokio::test]
async fn every_alarm_has_a_runbook_and_every_runbook_an_alarm() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    // The page lists open tasks. That an import runs has no alert.
    site.board(json!({}), &[]).await;
    db.execute("SELECT centile_store.begin_import(1, 'scores.csv')").await;
    let page = site.admin(Method::GET, "/ops/", Value::Null).await.text;
    let mut named: BTreeSet<String> = BTreeSet::new();
    for alert in alerts() {
        let runbook = kebab(alert.name.strip_prefix("Centile").unwrap());
        assert_eq!(alert.runbook, format!("runbooks/{runbook}.md"), "{alert:?}");
        named.insert(runbook);
    }
    named.extend(table(&page, "Open tasks of all boards").into_iter().map(|row| row[4].clone()));
    named.extend(table(&page, "Servers and maintenance").into_iter().map(|row| row[2].clone()));
    // Alarms that other tools raise.
    let linked = MONITORING.split("(runbooks/").skip(1).map(|text| text.split(".md").next().unwrap());
    named.extend(linked.filter(|name| *name != "README").map(str::to_owned));

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = files.filter(|file| file != "README.md").map(|file| file.strip_suffix(".md").unwrap().to_owned());
    let pages: BTreeSet<String> = pages.collect();
    assert_eq!(pages, named, "files on the left, named runbooks on the right");
    for name in &pages {
        let text = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(sections, SECTIONS, "{name}");
        assert!(RUNBOOKS.contains(&format!("| [{name}]({name}.md) |")), "{name} is not in the list");
    }
}
