//! What one instance has counted, on the page and at `/metrics`.

use std::collections::BTreeMap;

use super::{busy, look};
use crate::support::{
    TestDb,
    markup::{table, whole},
};

#[tokio::test]
async fn what_the_instance_counts_is_shown_as_at_metrics() {
    let db = TestDb::new().await;
    let site = busy(&db).await;
    // The first look makes what connections there are.
    look(&site, Some(&site.admin_key)).await;
    let page = look(&site, Some(&site.admin_key)).await.text;
    let metrics = site.get("/metrics").await.text;
    let label = |name: &str, value: &str| format!("{name}=\"{value}\"");

    for row in table(&page, "What there is now") {
        match &*row[2] {
            "centile_postgres_connections" => {
                let pool = match &*row[0] {
                    reading if reading.contains("reading") => "read",
                    writing if writing.contains("writing") => "write",
                    index if index.contains("rank indexes") => "index",
                    _ => "keep",
                };
                let all = row[1].rsplit_once(" of ").unwrap().1;
                same(all, at_metrics(&metrics, &row[2], &[label("pool", pool)]), pool);
            }
            "centile_bucket_skew" => assert_eq!(row[1], at_metrics(&metrics, &row[2], &[]).to_string()),
            name => same(&row[1], at_metrics(&metrics, name, &[]), name),
        }
    }
    let (mut calls, mut some) = (0.0, 0);
    for row in table(&page, "Calls, the most frequent first") {
        let (method, route) = row[0].split_once(' ').unwrap();
        // Each look counts as one more.
        if route == "/ops/" {
            continue;
        }
        let labels = [label("method", method), label("route", route)];
        let by_status = |class: &str| [&labels[..], &[format!("status=\"{class}")]].concat();
        let requests = "centile_http_requests_total";
        same(&row[1], at_metrics(&metrics, requests, &labels), route);
        same(&row[2], at_metrics(&metrics, requests, &by_status("4")), route);
        same(&row[3], at_metrics(&metrics, requests, &by_status("5")), route);
        for (shown, part) in [(&row[4], 0.5), (&row[5], 0.99)] {
            let times = "centile_http_request_duration_seconds";
            within(shown, part, &metrics, times, &labels, 1_000.0, " ms");
        }
        calls += at_metrics(&metrics, requests, &labels);
        some += 1;
    }
    let all = at_metrics(&metrics, "centile_http_requests_total", &[]);
    let looks = at_metrics(&metrics, "centile_http_requests_total", &[label("route", "/ops/")]);
    assert_eq!(calls.to_string(), (all - looks).to_string(), "no call is left out");
    assert!(some >= 5, "{page}");

    let spread = by_name(table(&page, "Batches and tops"));
    for (what, name, scale, unit) in [
        ("Events of a batch", "centile_batch_events", 1.0, ""),
        ("Time of a batch", "centile_batch_duration_seconds", 1_000.0, " ms"),
        ("Age of a top", "centile_top_age_seconds", 1_000.0, " ms"),
    ] {
        let row = &spread[what];
        let count = at_metrics(&metrics, &format!("{name}_count"), &[]);
        assert!(count > 0.0, "{what}");
        same(&row[0], count, what);
        let mean = at_metrics(&metrics, &format!("{name}_sum"), &[]) / count * scale;
        let shown: f64 = row[1].trim_end_matches(unit).parse().unwrap();
        assert!((shown - mean).abs() < 0.01, "{what}: {shown} is not {mean}");
        within(&row[2], 0.5, &metrics, name, &[], scale, unit);
        within(&row[3], 0.99, &metrics, name, &[], scale, unit);
    }

    let reads = by_name(table(&page, "Reads of what may be cached, by where it was found"));
    assert!(reads.contains_key("top"), "{reads:?}");
    for (kind, row) in &reads {
        let of =
            |place: &str| at_metrics(&metrics, "centile_reads_total", &[label("kind", kind), label("from", place)]);
        for (shown, place) in row.iter().zip(["process", "shared", "database", "stale"]) {
            same(shown, of(place), place);
        }
        let all = at_metrics(&metrics, "centile_reads_total", &[label("kind", kind)]);
        let near: f64 = row[4].trim_end_matches(" %").parse().unwrap();
        assert!((near - 100.0 * (of("process") + of("shared")) / all).abs() <= 0.1, "{kind}: {row:?}");
    }

    for row in table(&page, "What was refused, cut off or failed") {
        let by = if row[2] == "centile_shared_cache_failures_total" { "reason" } else { "why" };
        let told: Vec<_> = row[1].split(", ").map(|part| part.split_once(' ').unwrap()).collect();
        assert_eq!(told.len(), metrics.lines().filter(|line| line.starts_with(&format!("{}{{", row[2]))).count());
        for (why, count) in told {
            same(count, at_metrics(&metrics, &row[2], &[label(by, why)]), why);
        }
    }
}

/// The rows of a table by what stands in the first cell.
fn by_name(rows: Vec<Vec<String>>) -> BTreeMap<String, Vec<String>> {
    rows.into_iter().map(|mut row| (row.remove(0), row)).collect()
}

/// A number at `/metrics`, with the labels that have been asked for among its own: their sum.
fn at_metrics(metrics: &str, name: &str, labels: &[String]) -> f64 {
    let is_it = |series: &str| {
        let (found, told) = series.split_once('{').unwrap_or((series, ""));
        found == name && labels.iter().all(|label| told.contains(label))
    };
    let lines = metrics.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    lines.filter(|(series, _)| is_it(series)).map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}

#[track_caller]
fn same(shown: &str, wanted: f64, what: &str) {
    assert!((whole(shown) as f64 - wanted).abs() < 0.5, "{what}: {shown} in place of {wanted}");
}

/// Whether `shown` is the least bound of a histogram within which so large a part is.
#[track_caller]
fn within(shown: &str, part: f64, metrics: &str, name: &str, labels: &[String], scale: f64, unit: &str) {
    let of = |labels: &[String]| at_metrics(metrics, &format!("{name}_bucket"), labels);
    let not_above = |bound: &str| of(&[labels, &[format!("le=\"{bound}\"")]].concat());
    let all = at_metrics(metrics, &format!("{name}_count"), labels);
    let mut bounds: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with(&format!("{name}_bucket")))
        .map(|line| line.split("le=\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    bounds.sort_by(|one, other| one.parse::<f64>().unwrap().total_cmp(&other.parse().unwrap()));
    let least = bounds.into_iter().find(|bound| not_above(bound) >= part * all).unwrap();
    let wanted: f64 = least.parse().unwrap();
    let told: f64 = if let Some(seconds) = shown.strip_suffix(" s") {
        seconds.parse::<f64>().unwrap() * scale
    } else {
        shown.strip_suffix(unit).unwrap().parse().unwrap()
    };
    assert!((told - wanted * scale).abs() < 1e-6, "{shown} in place of {least}");
}
