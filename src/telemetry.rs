//! Metrics in Prometheus' text format: counters and histograms. `http/metrics.rs` adds the values
//! that are read on each scrape.

pub(crate) mod log;
pub(crate) mod recent;

use std::{
    sync::{OnceLock, atomic::Ordering::Relaxed},
    time::Duration,
};

use metrics::{Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::model::closing::ClosedPeriod;

const PERIODS_CLOSED: &str = "centile_periods_closed_total";
const ARCHIVE_DIFFERENCES: &str = "centile_archive_differences_total";
const SUMS_LIMITED: &str = "centile_sums_limited_total";
const ROWS_MOVED: &str = "centile_layout_rows_moved_total";
const COUNT_DIFFERENCES: &str = "centile_count_differences_total";
const COUNTS_WRONG: &str = "centile_count_differences";
const REQUESTS: &str = "centile_http_requests_total";
pub(crate) const REQUESTS_NOW: &str = "centile_http_requests_in_progress";
pub(crate) const CONNECTIONS_NOW: &str = "centile_http_connections";
const CONNECTIONS_CUT: &str = "centile_http_connections_cut_total";
pub(crate) const SUBSCRIBERS: &str = "centile_live_subscribers";
const SUBSCRIBERS_DROPPED: &str = "centile_live_subscribers_dropped_total";
const LIVE_READS: &str = "centile_live_reads_total";
const STREAMED: &str = "centile_streamed_transactions_total";
const REFUSED: &str = "centile_http_requests_refused_total";
const REQUEST_TIME: &str = "centile_http_request_duration_seconds";
const READS: &str = "centile_reads_total";
const TOP_AGE: &str = "centile_top_age_seconds";
const SHARED_READS: &str = "centile_shared_cache_reads_total";
const SKEW: &str = "centile_bucket_skew";
const BATCH_EVENTS: &str = "centile_batch_events";
const BATCH_TIME: &str = "centile_batch_duration_seconds";

/// Bounds of duration histograms, in seconds: from a cached top to the longest wait of a caller.
const TIMES: [f64; 15] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Bounds of the histogram of events in a batch.
const EVENTS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

pub(crate) static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Starts recording, in a process that serves metrics. Other processes record nothing.
pub fn install() {
    RECORDER.get_or_init(|| {
        let recorder = with_bounds(PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        // Setting the recorder fails only if there is another one.
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is already installed");
        }
        describe();
        // Start counters at 0 rather than absent, so that a rate includes the first event.
        for name in [
            PERIODS_CLOSED,
            ARCHIVE_DIFFERENCES,
            SUMS_LIMITED,
            ROWS_MOVED,
            COUNT_DIFFERENCES,
            SUBSCRIBERS_DROPPED,
            LIVE_READS,
            STREAMED,
        ] {
            counter!(name).increment(0);
        }
        for name in [COUNTS_WRONG, SKEW, SUBSCRIBERS] {
            gauge!(name).set(0);
        }
        for why in ["rate", "handshake", "head", "body", "response", "idle", "unread"] {
            counter!(CONNECTIONS_CUT, "why" => why).increment(0);
        }
        for why in ["scores", "bodies", "downloads", "subscribers"] {
            counter!(REFUSED, "why" => why).increment(0);
        }
        handle
    });
}

/// Sets the bounds of histograms. Without bounds they would be summaries, which cannot be
/// aggregated over instances.
fn with_bounds(builder: PrometheusBuilder) -> PrometheusBuilder {
    let bounds = [
        (Matcher::Suffix("_duration_seconds".to_owned()), &TIMES[..]),
        (Matcher::Full(TOP_AGE.to_owned()), &TIMES[..]),
        (Matcher::Full(BATCH_EVENTS.to_owned()), &EVENTS[..]),
    ];
    // Setting bounds fails only for an empty list.
    let bounded =
        bounds.into_iter().try_fold(builder, |builder, (names, bounds)| builder.set_buckets_for_metric(names, bounds));
    bounded.unwrap_or_default()
}

/// Moves recorded values into the histograms. Otherwise they would accumulate until the next
/// scrape.
pub(crate) fn run_upkeep() {
    if let Some(handle) = RECORDER.get() {
        handle.run_upkeep();
    }
}

/// A request, connection or subscriber in progress, counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    /// Counts up the gauge of this name.
    pub(crate) fn count(name: &'static str) -> Self {
        let gauge = gauge!(name);
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Counts a subscriber that was disconnected because it did not read.
pub(crate) fn count_dropped_subscriber() {
    counter!(SUBSCRIBERS_DROPPED).increment(1);
}

pub(crate) fn count_live_read() {
    counter!(LIVE_READS).increment(1);
}

/// Counts transactions sent to a client that follows a board.
pub(crate) fn count_streamed(transactions: usize) {
    counter!(STREAMED).increment(transactions as u64);
}

/// Counts a connection closed because of its client.
///
/// `why` is `handshake` (TLS failed), `head`, `body` or `response` (too slow), `idle`, `unread` (sent
/// more than the service would read), or `rate`.
pub(crate) fn count_cut_connection(why: &'static str) {
    counter!(CONNECTIONS_CUT, "why" => why).increment(1);
}

/// Counts a request refused at a limit.
///
/// `why` is `scores` (queued), `bodies` (being received), `downloads` (being sent) or `subscribers`
/// (subscribers).
pub(crate) fn count_refused(why: &'static str) {
    counter!(REFUSED, "why" => why).increment(1);
}

pub(crate) fn count_request(method: &'static str, route: &'static str, status: u16, time: Duration) {
    counter!(REQUESTS, "method" => method, "route" => route, "status" => status.to_string()).increment(1);
    histogram!(REQUEST_TIME, "method" => method, "route" => route).record(time);
    recent::REQUESTS[TIMES.partition_point(|bound| *bound < time.as_secs_f64())].fetch_add(1, Relaxed);
}

/// Where cacheable data was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadSource {
    Here,
    Shared,
    Database,
    /// In this process, marked as stale because PostgreSQL did not answer.
    Stale,
}

/// Counts a read of cacheable data.
pub(crate) fn count_read(kind: &'static str, source: ReadSource) {
    let from = match source {
        ReadSource::Here => "process",
        ReadSource::Shared => "shared",
        ReadSource::Database => "database",
        ReadSource::Stale => "stale",
    };
    counter!(READS, "kind" => kind, "from" => from).increment(1);
}

/// Records the age of a top since it was last known to be current.
pub(crate) fn record_top_age(age: Duration) {
    histogram!(TOP_AGE).record(age);
}

/// Counts a read of the shared cache.
pub(crate) fn count_shared_read(kind: &'static str, is_hit: bool) {
    counter!(SHARED_READS, "kind" => kind, "result" => if is_hit { "hit" } else { "miss" }).increment(1);
}

/// Sets the skew of the most uneven ranking.
pub(crate) fn set_bucket_skew(skew: f64) {
    gauge!(SKEW).set(skew);
    recent::set_skew(skew);
}

pub(crate) fn count_batch(events: usize, time: Duration) {
    histogram!(BATCH_EVENTS).record(events as f64);
    histogram!(BATCH_TIME).record(time);
    recent::SCORES.fetch_add(events as u64, Relaxed);
}

/// Counts a period closed by this process.
pub(crate) fn count_closed(closed: &ClosedPeriod) {
    counter!(PERIODS_CLOSED).increment(1);
    counter!(ARCHIVE_DIFFERENCES).increment(closed.differences);
}

/// Counts players whose sum in a new rolling window lies beyond 64 bits.
pub(crate) fn count_limited_sums(players: u64) {
    counter!(SUMS_LIMITED).increment(players);
}

/// Counts rows moved to another bucket.
pub(crate) fn count_moved_rows(rows: u64) {
    counter!(ROWS_MOVED).increment(rows);
}

/// Sets the number of counts of players that are wrong at present.
pub(crate) fn set_count_differences(count: usize) {
    gauge!(COUNTS_WRONG).set(count as f64);
}

/// Counts newly found wrong counts of players.
pub(crate) fn count_count_differences(found: u64) {
    counter!(COUNT_DIFFERENCES).increment(found);
}

fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by method, route and status.");
    describe_gauge!(REQUESTS_NOW, "Requests in progress.");
    describe_gauge!(CONNECTIONS_NOW, "Open client connections.");
    describe_counter!(CONNECTIONS_CUT, "Connections closed because of their clients, by reason.");
    describe_gauge!(SUBSCRIBERS, "Subscribers of rankings.");
    describe_counter!(SUBSCRIBERS_DROPPED, "Subscribers disconnected because they did not read.");
    describe_counter!(LIVE_READS, "Reads of followed rankings, each for all their subscribers.");
    describe_counter!(STREAMED, "Transactions sent to clients that follow boards.");
    describe_counter!(REFUSED, "Requests refused at a limit, by limit.");
    describe_histogram!(REQUEST_TIME, "Time from a request's head to its response's head.");
    describe_histogram!(BATCH_EVENTS, "Events per batch.");
    describe_histogram!(BATCH_TIME, "Time of a batch in PostgreSQL, including its commit.");
    describe_gauge!("centile_queue_events", "Events queued or being written.");
    describe_gauge!("centile_postgres_connections", "Connections to PostgreSQL, by pool and state.");
    describe_gauge!("centile_redis_unreachable", "1 while Redis is skipped because it does not answer.");
    describe_counter!(READS, "Reads of cacheable data, by kind and origin.");
    describe_histogram!(TOP_AGE, "Age of a served top since it was last known to be current.");
    describe_counter!(SHARED_READS, "Reads of the shared cache, by kind and result.");
    describe_counter!("centile_shared_cache_failures_total", "Failed calls of the shared cache, by reason.");
    describe_gauge!(
        SKEW,
        "Players of the fullest bucket, divided by a hundredth of its ranking's players or by 1,000, whichever is larger. Maximum over rankings."
    );
    describe_counter!(COUNT_DIFFERENCES, "Wrong counts of players found by this process.");
    describe_counter!(
        SUMS_LIMITED,
        "Players whose sum lies beyond 64 bits in a rolling window that this process filled."
    );
    describe_counter!(ROWS_MOVED, "Rows moved between buckets by this process.");
    describe_counter!(PERIODS_CLOSED, "Periods closed by this process.");
    describe_counter!(
        ARCHIVE_DIFFERENCES,
        "Players whose live entry differed from the ledger when this process closed a period."
    );
    for (name, text) in [
        ("centile_periods_due", "Periods that have ended and are not closed."),
        ("centile_oldest_due_age_seconds", "Time since the end of the oldest period that is due."),
        ("centile_rankings_damaged", "Open rankings whose bucket rows are damaged."),
        ("centile_unapplied_age_seconds", "Age of the oldest batch that is not applied to bucket rows."),
        ("centile_inbox_age_seconds", "Age of the oldest submitted score that waits in the inbox."),
        ("centile_windows_missing", "Current rolling windows that are not filled yet."),
        ("centile_closings_unfinished", "Periods with a cut-off that are not closed."),
        ("centile_archive_differences", "Players whose live entry differed from the ledger, over all archives."),
        (COUNTS_WRONG, "Wrong counts of players at this process's last check."),
        ("centile_archives_to_refresh", "Archives that need a refresh after a correction."),
        ("centile_template_boards", "Boards of a template."),
        ("centile_imports_open", "Imports that have not ended; their boards' periods stay open."),
        ("centile_imports_cut_short", "Imports that were interrupted and not abandoned."),
        ("centile_released_rankings", "Released rankings with rows still to be removed."),
        ("centile_outbox_waiting", "Messages waiting for delivery to a webhook."),
        ("centile_outbox_oldest_age_seconds", "Age of the oldest message that waits for delivery."),
        ("centile_clock_behind_seconds", "Time by which the database's clock is behind the last event of a board."),
        ("centile_xid_age", "Age of the oldest transaction id of the database, in transactions."),
        ("centile_xid_age_limit", "Age at which PostgreSQL vacuums tables to freeze them: autovacuum_freeze_max_age."),
        ("centile_dead_rows", "Deleted or replaced rows that are not vacuumed yet."),
        ("centile_live_rows", "Live rows of the same tables."),
        ("centile_oldest_snapshot_age_seconds", "Age of the oldest visible transaction that keeps dead rows."),
        ("centile_relations", "Tables and archives, which pg_dump locks all at once."),
        ("centile_relations_limit", "Maximum number of locks in PostgreSQL's lock table."),
        ("centile_user_id", "Highest internal id of a player."),
        ("centile_user_id_limit", "Highest internal id that a rank index can hold."),
        ("centile_months_to_freeze", "Ended months of the ledger that maintenance has yet to freeze."),
        ("centile_quarantine_waiting", "Events in quarantine that wait for a decision."),
    ] {
        describe_gauge!(name, text);
    }
}
