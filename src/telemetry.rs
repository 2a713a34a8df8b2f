//! Numbers for operators, in the text format of Prometheus. What the database knows is read when somebody asks; the rest is
//! counted as it happens.

use std::{sync::OnceLock, time::Duration};

use metrics::{Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::model::closing::ClosedPeriod;

const PERIODS_CLOSED: &str = "centile_periods_closed_total";

const ARCHIVE_DIFFERENCES: &str = "centile_archive_differences_total";

const ROWS_MOVED: &str = "centile_layout_rows_moved_total";

const COUNT_DIFFERENCES: &str = "centile_count_differences_total";

const COUNTS_WRONG: &str = "centile_count_differences";

const REQUESTS: &str = "centile_http_requests_total";

const REQUESTS_NOW: &str = "centile_http_requests_in_progress";

const CONNECTIONS_NOW: &str = "centile_http_connections";

const CONNECTIONS_CUT: &str = "centile_http_connections_cut_total";

const LISTENERS: &str = "centile_live_listeners";

const LISTENERS_DROPPED: &str = "centile_live_listeners_dropped_total";

const LOOKS: &str = "centile_live_reads_total";

const REFUSED: &str = "centile_http_requests_refused_total";

const REQUEST_TIME: &str = "centile_http_request_duration_seconds";

const READS: &str = "centile_reads_total";

const TOP_AGE: &str = "centile_top_age_seconds";

const SHARED_READS: &str = "centile_shared_cache_reads_total";

const SKEW: &str = "centile_bucket_skew";

const BATCH_EVENTS: &str = "centile_batch_events";

const BATCH_TIME: &str = "centile_batch_duration_seconds";

/// Bounds of the histograms of times, in seconds: from what a cached top takes to what a caller is let wait.
const TIMES: [f64; 15] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Bounds of the histogram of events in a batch.
const EVENTS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

pub(crate) static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to count, in a process that will be asked. In others nothing is counted.
pub fn install() {
    RECORDER.get_or_init(|| {
        let recorder = with_bounds(PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        // Only a second recorder could fail here, and there is none.
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("numbers for operators are counted elsewhere already");
        }
        describe();
        // What has not happened yet is 0, not missing: a rate can be told from the first time on.
        for name in [PERIODS_CLOSED, ARCHIVE_DIFFERENCES, ROWS_MOVED, COUNT_DIFFERENCES, LISTENERS_DROPPED, LOOKS] {
            counter!(name).increment(0);
        }
        for name in [COUNTS_WRONG, SKEW, LISTENERS] {
            gauge!(name).set(0);
        }
        for why in ["rate", "handshake", "head", "body", "answer", "idle", "unread"] {
            counter!(CONNECTIONS_CUT, "why" => why).increment(0);
        }
        for why in ["scores", "bodies", "files", "listeners"] {
            counter!(REFUSED, "why" => why).increment(0);
        }
        handle
    });
}

/// Histograms with the bounds that are told here; without any they would be summaries, which cannot be added up over instances.
fn with_bounds(builder: PrometheusBuilder) -> PrometheusBuilder {
    let bounds = [
        (Matcher::Suffix("_duration_seconds".to_owned()), &TIMES[..]),
        (Matcher::Full(TOP_AGE.to_owned()), &TIMES[..]),
        (Matcher::Full(BATCH_EVENTS.to_owned()), &EVENTS[..]),
    ];
    // Only no bounds at all are refused.
    let bounded =
        bounds.into_iter().try_fold(builder, |builder, (names, bounds)| builder.set_buckets_for_metric(names, bounds));
    bounded.unwrap_or_default()
}

/// Brings the histograms up to date, which would else keep every value until somebody asks.
pub(crate) fn run_upkeep() {
    if let Some(handle) = RECORDER.get() {
        handle.run_upkeep();
    }
}

/// What is under way, a request or a connection, as long as this value lives.
#[derive(Debug)]
pub(crate) struct UnderWay(Gauge);

impl UnderWay {
    fn count(name: &'static str) -> Self {
        let gauge = gauge!(name);
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Counts a request as under way.
pub(crate) fn one_more_request() -> UnderWay {
    UnderWay::count(REQUESTS_NOW)
}

/// Counts a connection of a client.
pub(crate) fn one_more_connection() -> UnderWay {
    UnderWay::count(CONNECTIONS_NOW)
}

/// Counts one who follows a ranking.
pub(crate) fn one_more_listener() -> UnderWay {
    UnderWay::count(LISTENERS)
}

/// Counts a listener whose connection was closed because nothing was taken of it.
pub(crate) fn count_dropped_listener() {
    counter!(LISTENERS_DROPPED).increment(1);
}

/// Counts a look at a ranking for all who follow it.
pub(crate) fn count_look() {
    counter!(LOOKS).increment(1);
}

/// Counts a connection that was closed because of its client: no TLS that both sides know (`handshake`), what was too slow (`head`, `body`,
/// `answer`), `idle`, or `unread` for more than anybody would read.
pub(crate) fn count_cut_connection(why: &'static str) {
    counter!(CONNECTIONS_CUT, "why" => why).increment(1);
}

/// Counts a request that was refused because there are too many: `scores` that wait already, `bodies` that are being received, or
/// `files` that are being sent, or `listeners` that follow.
pub(crate) fn count_refused(why: &'static str) {
    counter!(REFUSED, "why" => why).increment(1);
}

/// Counts a request that was answered.
pub(crate) fn count_request(method: &'static str, route: &'static str, status: u16, time: Duration) {
    counter!(REQUESTS, "method" => method, "route" => route, "status" => status.to_string()).increment(1);
    histogram!(REQUEST_TIME, "method" => method, "route" => route).record(time);
}

/// Where something was found that may be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In this process.
    Here,
    /// In the cache that instances share.
    Shared,
    /// In PostgreSQL.
    Database,
    /// In this process, known to be old: PostgreSQL did not answer.
    Stale,
}

/// Counts a read of what may be cached.
pub(crate) fn count_read(kind: &'static str, origin: Origin) {
    let from = match origin {
        Origin::Here => "process",
        Origin::Shared => "shared",
        Origin::Database => "database",
        Origin::Stale => "stale",
    };
    counter!(READS, "kind" => kind, "from" => from).increment(1);
}

/// Says how long before its answer a top was last seen to be current.
pub(crate) fn note_top_age(age: Duration) {
    histogram!(TOP_AGE).record(age);
}

/// Counts a read of the cache that instances share.
pub(crate) fn count_shared_read(kind: &'static str, is_hit: bool) {
    counter!(SHARED_READS, "kind" => kind, "result" => if is_hit { "hit" } else { "miss" }).increment(1);
}

/// Says how uneven the most uneven ranking was at the last look.
pub(crate) fn set_bucket_skew(skew: f64) {
    gauge!(SKEW).set(skew);
}

/// Counts a batch that was written.
pub(crate) fn count_batch(events: usize, time: Duration) {
    histogram!(BATCH_EVENTS).record(events as f64);
    histogram!(BATCH_TIME).record(time);
}

/// Counts a period that this process has closed.
pub(crate) fn count_closed(closed: &ClosedPeriod) {
    counter!(PERIODS_CLOSED).increment(1);
    counter!(ARCHIVE_DIFFERENCES).increment(closed.differences);
}

/// Counts rows that went to another bucket.
pub(crate) fn count_moved_rows(rows: u64) {
    counter!(ROWS_MOVED).increment(rows);
}

/// Says how many counts of players were wrong at the last look.
pub(crate) fn set_count_differences(count: usize) {
    gauge!(COUNTS_WRONG).set(count as f64);
}

/// Counts a count of players that turned out to be wrong.
pub(crate) fn count_count_differences(found: u64) {
    counter!(COUNT_DIFFERENCES).increment(found);
}

fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by method, route and status.");
    describe_gauge!(REQUESTS_NOW, "Requests that are under way.");
    describe_gauge!(CONNECTIONS_NOW, "Connections of clients.");
    describe_counter!(
        CONNECTIONS_CUT,
        "Connections closed because of their clients, by what these were too slow with, sent too much of, or could not do."
    );
    describe_gauge!(LISTENERS, "Those who follow rankings.");
    describe_counter!(LISTENERS_DROPPED, "Listeners that were cut off because they took nothing.");
    describe_counter!(LOOKS, "Looks at rankings, each for all who follow it.");
    describe_counter!(REFUSED, "Requests refused because there are too many, by what there is too much of.");
    describe_histogram!(REQUEST_TIME, "Time from a request's head to its answer's.");
    describe_histogram!(BATCH_EVENTS, "Events of a batch.");
    describe_histogram!(BATCH_TIME, "Time that a batch takes in PostgreSQL, with its commit.");
    describe_gauge!("centile_queue_events", "Events that wait for their lane's writer, or are with it.");
    describe_gauge!("centile_postgres_connections", "Connections to PostgreSQL, by pool and state.");
    describe_gauge!(
        "centile_redis_breaker_open",
        "Whether Redis failed so often that it is left alone for the moment."
    );
    describe_counter!(READS, "Reads of what may be cached, by kind and by where it was found.");
    describe_histogram!(TOP_AGE, "How long before its answer a top was last seen to be current.");
    describe_counter!(SHARED_READS, "Reads of the cache that instances share, by kind and result.");
    describe_counter!(
        "centile_shared_cache_failures_total",
        "Calls of the cache that instances share that came to nothing, by reason."
    );
    describe_gauge!(
        SKEW,
        "Players of the fullest bucket in units, of the ranking where it is fullest. A unit is a hundredth of the players, at least 1,000."
    );
    describe_counter!(COUNT_DIFFERENCES, "Counts of players that this process has found to be wrong.");
    describe_counter!(ROWS_MOVED, "Rows that this process has moved between buckets to keep them even.");
    describe_counter!(PERIODS_CLOSED, "Periods that this process has closed.");
    describe_counter!(
        ARCHIVE_DIFFERENCES,
        "Players of whom the live ranking said something else than the ledger when this process closed a period."
    );
    for (name, text) in [
        ("centile_periods_due", "Periods that are over and not closed."),
        ("centile_oldest_due_age_seconds", "How long the first of them has been over."),
        ("centile_closings_unfinished", "Periods that are cut off and not closed."),
        (
            "centile_archive_differences",
            "Players of whom live rankings said something else than the ledger, over all archives.",
        ),
        (COUNTS_WRONG, "Counts of players that were wrong when this process last looked."),
        ("centile_archives_to_refresh", "Archives that a correction waits to get into."),
        ("centile_imports_open", "Imports that have not ended; their boards' periods wait."),
        ("centile_imports_cut_short", "Those of them whose process is gone."),
        ("centile_released_rankings", "Rankings of closed periods whose rows are still to be removed."),
        ("centile_outbox_waiting", "Events that wait to be delivered to a webhook."),
        ("centile_outbox_oldest_age_seconds", "How old the first of them is."),
        ("centile_quarantine_waiting", "Events that broke a rule and wait for an administrator."),
    ] {
        describe_gauge!(name, text);
    }
}
