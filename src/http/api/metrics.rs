//! `/metrics`: the counters of this instance and the current state of its parts.

use std::fmt::Write as _;

use metrics::{counter, gauge};

use crate::{
    Error, Result,
    instance::Instance,
    ranking::{index_registry::status::IndexStatus, read_router::ReplicaStatus},
    store::combination::CombinedBoard,
    telemetry::RECORDER,
};

/// Renders all metrics in the text format of Prometheus. [`Error::Outage`] while PostgreSQL
/// does not respond.
pub async fn render(instance: &Instance) -> Result<String> {
    let handle = RECORDER.get().ok_or_else(|| Error::Internal("this process has no metrics recorder".to_owned()))?;
    let upkeep = instance.store.reader.upkeep().await?;
    // Work that waits for maintenance or an administrator.
    for (name, value) in [
        ("centile_periods_due", upkeep.periods_due),
        ("centile_windows_missing", upkeep.windows_missing),
        ("centile_closings_unfinished", upkeep.closings_unfinished),
        ("centile_archive_differences", upkeep.archive_differences),
        ("centile_archives_to_refresh", upkeep.archives_to_refresh),
        ("centile_imports_open", upkeep.imports_open),
        ("centile_imports_cut_short", upkeep.imports_cut_short),
        ("centile_released_rankings", upkeep.released_rankings),
        ("centile_outbox_waiting", upkeep.outbox_waiting),
        ("centile_quarantine_waiting", upkeep.quarantine_waiting),
        ("centile_rankings_damaged", upkeep.rankings_damaged),
    ] {
        gauge!(name).set(value as f64);
    }
    // Templates stand for their boards, which may be a million.
    for template in instance.store.reader.templates(None).await? {
        gauge!("centile_template_boards", "template" => template.name).set(f64::from(template.boards));
    }
    // How near the database is to its limits.
    let limits = instance.store.reader.database_limits().await?;
    let ledger = instance.store.reader.ledger_ahead().await?;
    for (name, value) in [
        ("centile_xid_age", limits.xid_age),
        ("centile_xid_age_limit", limits.xid_age_max),
        ("centile_dead_rows", limits.dead_rows),
        ("centile_live_rows", limits.live_rows),
        ("centile_relations", limits.relations),
        ("centile_relations_limit", limits.relations_max),
        ("centile_user_id", limits.user_id),
        ("centile_user_id_limit", limits.user_id_max),
        ("centile_months_to_freeze", ledger.map_or(0, |ledger| ledger.to_freeze)),
    ] {
        gauge!(name).set(value as f64);
    }
    gauge!("centile_clock_behind_seconds").set(limits.clock_behind_seconds);
    gauge!("centile_oldest_snapshot_age_seconds").set(limits.oldest_snapshot_age_seconds);
    // State of this instance.
    gauge!("centile_queue_events").set(instance.writers.waiting() as f64);
    for (pool, state, connections) in instance.store.connections() {
        gauge!("centile_postgres_connections", "pool" => pool, "state" => state).set(f64::from(connections));
    }
    gauge!("centile_redis_unreachable").set(if instance.cache.is_down() { 1.0 } else { 0.0 });
    let cache = instance.cache.counts();
    for (reason, count) in [
        ("timeout", cache.timeouts),
        ("connection_failure", cache.connection_failures),
        ("refusal", cache.refusals),
        ("mismatch", cache.mismatches),
        ("skipped", cache.skipped),
        ("too_long", cache.too_long),
    ] {
        counter!("centile_shared_cache_failures_total", "reason" => reason).absolute(count);
    }
    gauge!("centile_oldest_due_age_seconds").set(upkeep.oldest_due_age_seconds);
    gauge!("centile_unapplied_age_seconds").set(upkeep.unapplied_age_seconds);
    gauge!("centile_inbox_age_seconds").set(upkeep.inbox_age_seconds);
    gauge!("centile_outbox_oldest_age_seconds").set(upkeep.outbox_oldest_age_seconds);
    let combined = instance.store.admin.combined(None).await?;
    Ok(handle.render() + &index_numbers(instance) + &replica_numbers(instance) + &combination_numbers(&combined))
}

/// Renders the metrics of the combined boards, as the database knows them.
fn combination_numbers(combined: &[CombinedBoard]) -> String {
    let mut text = String::new();
    let mut add = |name: &str, help: &str, value: fn(&CombinedBoard) -> Option<f64>| {
        // Writing to a String cannot fail.
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge").ok();
        for board in combined {
            if let Some(value) = value(board) {
                writeln!(text, "{name}{{board=\"{}\"}} {value}", board.board).ok();
            }
        }
    };
    add("centile_combination_age_seconds", "Time since the snapshot of a combined board.", |board| {
        board.state.as_of.map(|as_of| (board.state.now - as_of).as_seconds_f64())
    });
    add("centile_combination_failures", "Failed refreshes of a combined board since the last success.", |board| {
        Some(f64::from(board.state.failures))
    });
    add("centile_combination_refresh_seconds", "Duration of the last refresh of a combined board.", |board| {
        board.seconds
    });
    text
}

/// Renders the metrics of the replica; nothing without one.
fn replica_numbers(instance: &Instance) -> String {
    let Some(ReplicaStatus { is_used, lag }) = instance.read_router.replica() else { return String::new() };
    let lag = lag.map_or_else(|| "+Inf".to_owned(), |lag| lag.as_secs_f64().to_string());
    format!(
        "# HELP centile_replica_used Whether the replica answers reads.\n# TYPE centile_replica_used gauge\n\
         centile_replica_used {}\n\
         # HELP centile_replica_lag_seconds Upper bound of the lag of the replica; +Inf if it is unknown.\n\
         # TYPE centile_replica_lag_seconds gauge\ncentile_replica_lag_seconds {lag}\n",
        u8::from(is_used),
    )
}

/// Renders the metrics of the rank indexes. Indexes come and go, but the recorder would keep every
/// series.
fn index_numbers(instance: &Instance) -> String {
    let (indexes, (directory_bytes, directory_users)) = instance.read_router.current().indexes.status();
    let mut text = format!(
        "# HELP centile_index_memory_bytes Maximum bytes of all rank indexes and the user directory.\n\
         # TYPE centile_index_memory_bytes gauge\ncentile_index_memory_bytes {}\n\
         # HELP centile_directory_bytes Bytes of the user directory.\n\
         # TYPE centile_directory_bytes gauge\ncentile_directory_bytes {directory_bytes}\n\
         # HELP centile_directory_users Users in the user directory.\n\
         # TYPE centile_directory_users gauge\ncentile_directory_users {directory_users}\n",
        instance.read_router.current().indexes.memory()
    );
    let mut add = |name: &str, help: &str, value: fn(&IndexStatus) -> Option<f64>| {
        // Writing to a String cannot fail.
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge").ok();
        for index in &indexes {
            if let Some(value) = value(index) {
                writeln!(text, "{name}{{index=\"{}\"}} {value}", index.name).ok();
            }
        }
    };
    add("centile_index_bytes", "Bytes of a rank index.", |index| index.age.map(|_| index.bytes as f64));
    add("centile_index_players", "Players in a rank index.", |index| index.age.map(|_| index.players as f64));
    add("centile_index_age_seconds", "Time since the last round of a rank index.", |index| {
        index.age.map(|age| age.as_secs_f64())
    });
    add(
        "centile_index_refused_bytes",
        "Bytes that a rank index needs and that the memory limit does not allow.",
        |index| index.age.is_none().then_some(index.bytes as f64),
    );
    text
}
