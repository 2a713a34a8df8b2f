//! Numbers for operators, in the text format of Prometheus. What the database knows is read when somebody asks; the rest is
//! counted as it happens.

use std::sync::OnceLock;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::{Error, Result, closing::ClosedPeriod, service::Service};

const PERIODS_CLOSED: &str = "centile_periods_closed_total";
const ARCHIVE_DIFFERENCES: &str = "centile_archive_differences_total";
const ROWS_MOVED: &str = "centile_layout_rows_moved_total";
const COUNT_DIFFERENCES: &str = "centile_count_differences_total";

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to count, in a process that will be asked. In others nothing is counted.
pub fn install() {
    RECORDER.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        // Only a second recorder could fail here, and there is none.
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("numbers for operators are counted elsewhere already");
        }
        describe();
        // What has not happened yet is 0, not missing: a rate can be told from the first time on.
        for name in [PERIODS_CLOSED, ARCHIVE_DIFFERENCES, ROWS_MOVED, COUNT_DIFFERENCES] {
            counter!(name).increment(0);
        }
        handle
    });
}

/// Everything there is to know now, as Prometheus reads it. [`Error::Unavailable`] while PostgreSQL does not answer.
pub async fn render(service: &Service) -> Result<String> {
    let handle = RECORDER.get().ok_or_else(|| Error::Internal("nothing is counted in this process".to_owned()))?;
    let upkeep = service.store.upkeep().await?;
    for (name, value) in [
        ("centile_periods_due", upkeep.periods_due),
        ("centile_closings_unfinished", upkeep.closings_unfinished),
        ("centile_archive_differences", upkeep.archive_differences),
        ("centile_archives_to_refresh", upkeep.archives_to_refresh),
        ("centile_imports_open", upkeep.imports_open),
        ("centile_imports_cut_short", upkeep.imports_cut_short),
        ("centile_released_rankings", upkeep.released_rankings),
        ("centile_outbox_waiting", upkeep.outbox_waiting),
    ] {
        gauge!(name).set(value as f64);
    }
    gauge!("centile_oldest_due_age_seconds").set(upkeep.oldest_due_age_seconds);
    gauge!("centile_outbox_oldest_age_seconds").set(upkeep.outbox_oldest_age_seconds);
    Ok(handle.render())
}

/// Counts a period that this process has closed.
pub(crate) fn count_closed(closed: &ClosedPeriod) {
    counter!(PERIODS_CLOSED).increment(1);
    counter!(ARCHIVE_DIFFERENCES).increment(closed.differences);
}

/// Counts rows that went to another bucket with their stripe.
pub(crate) fn count_moved_rows(rows: u64) {
    counter!(ROWS_MOVED).increment(rows);
}

/// Says how many counts of players were wrong at the last look.
pub(crate) fn set_count_differences(count: usize) {
    gauge!("centile_count_differences").set(count as f64);
}

/// Counts a count of players that turned out to be wrong.
pub(crate) fn count_count_differences(found: u64) {
    counter!(COUNT_DIFFERENCES).increment(found);
}

fn describe() {
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
        ("centile_count_differences", "Counts of players that were wrong when this process last looked."),
        ("centile_archives_to_refresh", "Archives that a correction waits to get into."),
        ("centile_imports_open", "Imports that have not ended; their boards' periods wait."),
        ("centile_imports_cut_short", "Those of them whose process is gone."),
        ("centile_released_rankings", "Rankings of closed periods whose rows are still to be removed."),
        ("centile_outbox_waiting", "Events that wait to be delivered to a webhook."),
        ("centile_outbox_oldest_age_seconds", "How old the first of them is."),
    ] {
        describe_gauge!(name, text);
    }
}
