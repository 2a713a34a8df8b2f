//! What one instance has counted, as at `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::{
    http::{
        operation::numbers::{Histogram, Numbers},
        pages::{
            number::number,
            ops::{table, two},
        },
    },
    ranking::IndexStatus,
};

/// Calls that are listed, those that were made most often.
const CALLS: usize = 20;

/// Where a read may find what it looks for, nearest first.
const PLACES: [&str; 4] = ["process", "shared", "database", "stale"];

/// What is there now, and what came since the instance started.
pub(crate) fn sections(numbers: &Numbers, indexes: &[IndexStatus]) -> Markup {
    html! {
        section {
            h2 { "This instance, now" }
            (now(numbers))
            (memory(indexes))
        }
        section {
            h2 { "This instance, since it started" }
            (spreads(numbers))
            (calls(numbers))
            (reads(numbers))
            (turned_away(numbers))
        }
    }
}

/// A whole number that is kept as a double.
fn whole(value: f64) -> Markup {
    #[expect(clippy::cast_possible_truncation, reason = "counts, far below what a double has exactly")]
    number(value as i64)
}

fn now(numbers: &Numbers) -> Markup {
    let mut rows: Vec<Markup> = [
        ("Events waiting for their writers", "centile_queue_events"),
        ("Requests under way", "centile_http_requests_in_progress"),
        ("Connections of clients", "centile_http_connections"),
        ("Listeners", "centile_live_listeners"),
        ("Redis left alone, 1 for yes", "centile_redis_breaker_open"),
    ]
    .into_iter()
    .map(|(what, name)| {
        html! {
            th scope="row" { (what) }
            td.number { (whole(numbers.sum(name, &[]))) }
            td { code { (name) } }
        }
    })
    .collect();
    rows.push(html! {
        th scope="row" { "Fullest bucket, in units of a hundredth of its ranking or 1,000 players" }
        td.number { (two(numbers.sum("centile_bucket_skew", &[]))) }
        td { code { "centile_bucket_skew" } }
    });
    for (pool, what) in
        [("read", "reading"), ("index", "rank indexes"), ("write", "writing"), ("keep", "keeping layouts")]
    {
        let connections = |state| numbers.sum("centile_postgres_connections", &[("pool", pool), ("state", state)]);
        let (busy, idle) = (connections("busy"), connections("idle"));
        rows.push(html! {
            th scope="row" { "PostgreSQL for " (what) ", busy of all" }
            td.number { (whole(busy)) " of " (whole(busy + idle)) }
            td { code { "centile_postgres_connections" } }
        });
    }
    table("What there is now", &[("What", false), ("How many", true), ("Name", false)], &rows)
}

/// The rank indexes, and those for which there is no memory.
fn memory(indexes: &[IndexStatus]) -> Markup {
    let rows: Vec<Markup> = indexes
        .iter()
        .map(|index| {
            let state = match index.age {
                Some(age) => format!("{} ago", time(age.as_secs_f64())),
                None => "no memory for it; SQL answers".to_owned(),
            };
            html! {
                th scope="row" { (index.name) }
                td.number { (number(i64::try_from(index.players).unwrap_or(i64::MAX))) }
                td.number { (number(i64::try_from(index.bytes).unwrap_or(i64::MAX))) }
                td { (state) }
            }
        })
        .collect();
    let columns = [("Ranking", false), ("Players", true), ("Bytes", true), ("Last round", false)];
    html! { @if !rows.is_empty() { (table("Rank indexes", &columns, &rows)) } }
}

/// How batches, their times and the ages of tops are spread.
fn spreads(numbers: &Numbers) -> Markup {
    let rows: Vec<Markup> = [
        ("Events of a batch", "centile_batch_events", false),
        ("Time of a batch", "centile_batch_duration_seconds", true),
        ("Age of a top", "centile_top_age_seconds", true),
    ]
    .into_iter()
    .map(|(what, name, is_time)| {
        let spread = numbers.histogram(name, &[]);
        let write = |value: f64| if is_time { time(value) } else { two(value) };
        let mean = if spread.count > 0.0 { write(spread.sum / spread.count) } else { String::new() };
        html! {
            th scope="row" { (what) }
            td.number { (whole(spread.count)) }
            td.number { (mean) }
            td.number { (part(&spread, 0.5, write)) }
            td.number { (part(&spread, 0.99, write)) }
            td { code { (name) } }
        }
    })
    .collect();
    let columns = [
        ("What", false),
        ("How many", true),
        ("Mean", true),
        ("Half within", true),
        ("99 % within", true),
        ("Name", false),
    ];
    table("Batches and tops", &columns, &rows)
}

/// Calls by method and route, with what became of them.
fn calls(numbers: &Numbers) -> Markup {
    const REQUESTS: &str = "centile_http_requests_total";
    let mut answered = BTreeMap::<(&str, &str), [f64; 3]>::new();
    for sample in numbers.of(REQUESTS, &[]) {
        let [all, refused, failed] = answered.entry((sample.label("method"), sample.label("route"))).or_default();
        *all += sample.value;
        match sample.label("status").as_bytes().first() {
            Some(b'4') => *refused += sample.value,
            Some(b'5') => *failed += sample.value,
            _ => {}
        }
    }
    let mut answered: Vec<_> = answered.into_iter().collect();
    answered.sort_by(|(_, [one, ..]), (_, [other, ..])| other.total_cmp(one));
    let rows: Vec<Markup> = answered
        .iter()
        .take(CALLS)
        .map(|((method, route), [all, refused, failed])| {
            let times =
                numbers.histogram("centile_http_request_duration_seconds", &[("method", method), ("route", route)]);
            html! {
                th scope="row" { code { (method) " " (route) } }
                td.number { (whole(*all)) }
                td.number { (whole(*refused)) }
                td.number.warning[*failed > 0.0] { (whole(*failed)) }
                td.number { (part(&times, 0.5, time)) }
                td.number { (part(&times, 0.99, time)) }
            }
        })
        .collect();
    let columns = [
        ("Call", false),
        ("Answered", true),
        ("4xx", true),
        ("5xx", true),
        ("Half within", true),
        ("99 % within", true),
    ];
    table("Calls, the most frequent first", &columns, &rows)
}

/// Reads by where they found what they looked for.
fn reads(numbers: &Numbers) -> Markup {
    const READS: &str = "centile_reads_total";
    let kinds: BTreeSet<&str> = numbers.of(READS, &[]).map(|sample| sample.label("kind")).collect();
    let row = |kind: &&str| {
        let found = PLACES.map(|place| numbers.sum(READS, &[("kind", kind), ("from", place)]));
        let all: f64 = found.iter().sum();
        let near = if all > 0.0 {
            format!("{} %", two(((found[0] + found[1]) / all * 1_000.0).floor() / 10.0))
        } else {
            String::new()
        };
        html! {
            th scope="row" { (kind) }
            @for found in found { td.number { (whole(found)) } }
            td.number { (near) }
        }
    };
    let columns = [
        ("Of", false),
        ("This process", true),
        ("Redis", true),
        ("PostgreSQL", true),
        ("Stale", true),
        ("From a cache", true),
    ];
    html! {
        @if !kinds.is_empty() {
            (table("Reads of what may be cached, by where it was found", &columns, &kinds.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

/// What was refused, cut off or failed, and how often by why.
fn turned_away(numbers: &Numbers) -> Markup {
    let rows = [
        ("Requests refused: too many", "centile_http_requests_refused_total", "why"),
        ("Connections cut off", "centile_http_connections_cut_total", "why"),
        ("Calls of Redis that failed", "centile_shared_cache_failures_total", "reason"),
    ]
    .map(|(what, name, label)| {
        html! {
            th scope="row" { (what) }
            td {
                @for (place, sample) in numbers.of(name, &[]).enumerate() {
                    @if place > 0 { ", " }
                    (sample.label(label)) " " (whole(sample.value))
                }
            }
            td { code { (name) } }
        }
    });
    table(
        "What was refused, cut off or failed",
        &[("What", false), ("How often, by why", false), ("Name", false)],
        &rows,
    )
}

/// The least bound that holds a part; what lies beyond the last is said to.
fn part(spread: &Histogram, part: f64, write: impl Fn(f64) -> String) -> String {
    match spread.within(part) {
        Some(bound) => write(bound),
        None if spread.count > 0.0 => {
            spread.last().map_or_else(String::new, |last| format!("more than {}", write(last)))
        }
        None => String::new(),
    }
}

/// Seconds as people say them.
fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{} ms", two(seconds * 1_000.0)) } else { format!("{} s", two(seconds)) }
}
