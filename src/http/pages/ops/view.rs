//! The operator's page: open tasks, those that need attention first, charts of the last hour,
//! periods, buckets, webhooks, administrative actions, and the state of this instance. It is
//! read-only and works without a script. Longer time series belong to `/metrics`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::{
    http::pages::{
        asset,
        axis::Axis,
        figure::lines,
        number::{age, count, instant, number},
        ops::{
            buckets,
            operation::{InstanceStatus, MaintenanceStatus, Operation, PERIODS_MAX, Stored},
        },
    },
    model::{
        operation::{AuditEntry, LedgerAhead, PeriodStatus},
        outbox::Message,
        presentation::ScoreFormat,
        template::Template,
    },
    ranking::index_registry::status::IndexStatus,
    store::{cluster::Server, upkeep::StoredLimits},
    telemetry::recent::Minute,
};

/// Seconds after which a waiting task needs attention, as in `docs/alerts.yml`.
const ATTENTION_AFTER_SECONDS: f64 = 600.0;

/// Age from which the oldest batch that is not applied, or the oldest submitted score, needs attention.
const WAIT_ATTENTION_SECONDS: f64 = 10.0;

/// The page, read at `now`.
pub(crate) fn page(operation: &Operation, now: DateTime<Utc>) -> Markup {
    let stored = operation.stored.as_ref();
    let main = html! {
        div.ops {
            div.head {
                h1 { "Operation" }
                p.quiet {
                    "As of " time datetime=(now.to_rfc3339()) { (now.format("%H:%M:%S")) " (UTC)" } ". "
                    a href="" { "Refresh" }
                }
            }
            @match stored {
                Some(stored) => (task_list(tasks(stored, &operation.status)))
                None => p.verdict.warning { "A worker is down. Other parts of this page are hidden." }
            }
            (charts(&operation.minutes))
            @if let Some(stored) = stored {
                (periods(&stored.periods))
                (templates(&stored.templates))
                (buckets::section(stored))
                (messages(&stored.waiting))
                (acts(&stored.acts))
            }
            (instance(&operation.status))
            @if !operation.servers.is_empty() { (servers(&operation.servers)) }
        }
    };
    crate::http::pages::styled("Operation · Centile", &[&asset::OPS_STYLE], &main)
}

/// A table whose columns are (title, whether it holds numbers). A table wider than the page
/// scrolls, even by keyboard.
fn table(caption: &str, columns: &[(&str, bool)], rows: &[Markup]) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead { tr { @for (column, is_number) in columns { th.number[*is_number] scope="col" { (column) } } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}

/// A kind of open task.
struct Task {
    what: &'static str,
    /// Its column of `centile.upkeep`, another view of `centile`, or a metric.
    name: &'static str,
    count: i64,
    remark: String,
    needs_attention: bool,
    /// Its page in `docs/runbooks/`, without the extension.
    runbook: &'static str,
}

#[expect(clippy::too_many_lines, reason = "a list of tasks")]
fn tasks(stored: &Stored, status: &InstanceStatus) -> Vec<Task> {
    let inbox_age = Duration::try_from_secs_f64(stored.upkeep.inbox_age_seconds).unwrap_or_default();
    let unapplied_age = Duration::try_from_secs_f64(stored.upkeep.unapplied_age_seconds).unwrap_or_default();
    let upkeep = &stored.upkeep;
    let (due, waiting) = (upkeep.oldest_due_age_seconds, upkeep.outbox_oldest_age_seconds);
    let wrong = i64::try_from(status.count_differences).unwrap_or(i64::MAX);
    let task = |what, name, count: i64, remark: &str, is_alarm: bool, runbook| Task {
        what,
        name,
        count,
        remark: if count > 0 { remark.to_owned() } else { String::new() },
        needs_attention: count > 0 && is_alarm,
        runbook,
    };
    let oldest = |seconds: f64| format!("the oldest for {}", age(seconds));
    let mut tasks = vec![
        task(
            "Periods due",
            "periods_due",
            upkeep.periods_due,
            &oldest(due),
            due > ATTENTION_AFTER_SECONDS,
            "period-due",
        ),
        task(
            "Rolling windows not ready",
            "windows_missing",
            upkeep.windows_missing,
            "being filled; reads get 503",
            true,
            "window-missing",
        ),
        task(
            "Combined boards not refreshed",
            "combinations_failing",
            upkeep.combinations_failing,
            "see centile.combinations",
            true,
            "combination-failing",
        ),
        task(
            "Closings unfinished",
            "closings_unfinished",
            upkeep.closings_unfinished,
            "cut off, not yet closed",
            false,
            "closing-unfinished",
        ),
        task(
            "Players whose archive and live ranking differed",
            "archive_differences",
            upkeep.archive_differences,
            "see centile.archive_differences",
            true,
            "archive-differences",
        ),
        task(
            "Archives without a correction",
            "archives_to_refresh",
            upkeep.archives_to_refresh,
            "run centile refresh",
            true,
            "archive-needs-refresh",
        ),
        task(
            "Imports running",
            "imports_open",
            upkeep.imports_open,
            "the periods of their boards wait",
            false,
            "import-running",
        ),
        task(
            "Imports interrupted",
            "imports_cut_short",
            upkeep.imports_cut_short,
            "repeat the import, or run centile import --abandon",
            true,
            "import-interrupted",
        ),
        task(
            "Released rankings with rows",
            "released_rankings",
            upkeep.released_rankings,
            "centile maintain removes them",
            false,
            "released-rankings",
        ),
        task(
            "Messages for webhooks",
            "outbox_waiting",
            upkeep.outbox_waiting,
            &oldest(waiting),
            waiting > ATTENTION_AFTER_SECONDS,
            "messages-waiting",
        ),
        task(
            "Events in quarantine",
            "quarantine_waiting",
            upkeep.quarantine_waiting,
            "run centile quarantine list --board BOARD",
            false,
            "quarantine-waiting",
        ),
        task(
            "Damaged rankings",
            "rankings_damaged",
            upkeep.rankings_damaged,
            "instances with maintenance rebuild them",
            true,
            "ranking-damaged",
        ),
        task(
            "Bucket rows behind the scores, in seconds",
            "unapplied_age",
            i64::try_from(unapplied_age.as_secs()).unwrap_or(i64::MAX),
            "ranks by SQL wait; ranks in psql are older",
            upkeep.unapplied_age_seconds > WAIT_ATTENTION_SECONDS,
            "bucket-rows-behind",
        ),
        task(
            "Submitted scores that wait, in seconds",
            "inbox_age",
            i64::try_from(inbox_age.as_secs()).unwrap_or(i64::MAX),
            "instances write them every 25 ms",
            upkeep.inbox_age_seconds > WAIT_ATTENTION_SECONDS,
            "submissions-wait",
        ),
        task(
            "Wrong bucket counts found by this instance",
            "centile_count_differences",
            wrong,
            "run centile verify",
            true,
            "count-differences",
        ),
    ];
    tasks.extend(stored.ledger.iter().flat_map(ledger_tasks));
    tasks.extend(limit_tasks(&stored.limits));
    tasks
}

/// Limits that are near, as in `docs/alerts.yml`.
fn limit_tasks(limits: &StoredLimits) -> Vec<Task> {
    let share = |used: i64, of: i64| used as f64 / (of as f64).max(1.0);
    let (behind, snapshot) = (limits.clock_behind_seconds, limits.oldest_snapshot_age_seconds);
    let (xid_age, dead, relations, user_id) = (limits.xid_age, limits.dead_rows, limits.relations, limits.user_id);
    let mut tasks = Vec::new();
    let mut add = |is_near: bool, what, name, count, remark: &str, runbook| {
        if is_near {
            tasks.push(Task { what, name, count, remark: remark.to_owned(), needs_attention: true, runbook });
        }
    };
    add(behind > 1.0, "Clock behind the last event", "clock_behind", 1, &age(behind), "clock-behind");
    let is_old = share(xid_age, limits.xid_age_max) > 1.5;
    add(is_old, "Age of transaction ids", "xid_age", xid_age, "not frozen in time", "vacuum-behind");
    let are_many = dead > limits.live_rows / 2 + 1_000_000;
    add(are_many, "Dead rows", "dead_rows", dead, "not vacuumed in time", "vacuum-behind");
    add(snapshot > 7_200.0, "Old snapshot", "oldest_snapshot_age", 1, &age(snapshot), "snapshot-old");
    let is_full = share(relations, limits.relations_max) > 0.7;
    add(is_full, "Tables and archives", "relations", relations, "raise max_locks_per_transaction", "lock-table-small");
    let is_high = share(user_id, limits.user_id_max) > 0.5;
    add(is_high, "Highest internal id of a player", "user_id", user_id, "indexes hold 32 bits", "user-ids-high");
    tasks
}

/// Unlike the other tasks, the first needs attention if its count is low.
fn ledger_tasks(ledger: &LedgerAhead) -> [Task; 2] {
    let ahead = Task {
        what: "Months of the ledger ahead",
        name: "ledger_months",
        count: ledger.months,
        remark: if ledger.ends_soon { "run centile maintain".to_owned() } else { String::new() },
        needs_attention: ledger.ends_soon,
        runbook: "ledger-ends",
    };
    let frozen = Task {
        what: "Ended months of the ledger to freeze",
        name: "freeze_due",
        count: ledger.to_freeze,
        remark: if ledger.to_freeze > 0 { "run centile maintain as the owner".to_owned() } else { String::new() },
        needs_attention: false,
        runbook: "vacuum-behind",
    };
    [ahead, frozen]
}

/// The number of tasks that need attention, and a list of open tasks that begins with them.
fn task_list(mut tasks: Vec<Task>) -> Markup {
    tasks.sort_by_key(|task| !task.needs_attention);
    let alarms = tasks.iter().filter(|task| task.needs_attention).count();
    let rows: Vec<_> = tasks
        .iter()
        .filter(|task| !task.remark.is_empty())
        .map(|task| {
            html! {
                th scope="row" { (task.what) }
                td.number { (number(task.count)) }
                td.warning[task.needs_attention] { @if task.needs_attention { "Check: " } (task.remark) }
                td { code { (task.name) } }
                td { (task.runbook) }
            }
        })
        .collect();
    let columns = [("Task", false), ("Count", true), ("Remark", false), ("Name", false), ("Runbook", false)];
    html! {
        p.verdict.warning[alarms > 0] {
            @match alarms {
                0 => "Nothing needs attention."
                1 => "1 task needs attention."
                more => { (more) " tasks need attention." }
            }
        }
        section {
            h2 { "Tasks" }
            @if rows.is_empty() { p.empty { "No task is open." } } @else { (table("Open tasks of all boards", &columns, &rows)) }
        }
    }
}

/// Templates, which stand for their boards.
fn templates(templates: &[Template]) -> Markup {
    let rows: Vec<_> = templates
        .iter()
        .map(|template| {
            html! {
                th scope="row" { (template.name) }
                td { (template.pattern) }
                td.number { (number(template.boards.into())) }
                td.number { (number(template.max_boards.into())) }
            }
        })
        .collect();
    let columns = [("Template", false), ("Pattern", false), ("Boards", true), ("Maximum", true)];
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Templates" }
                (table("Templates and the number of their boards", &columns, &rows))
            }
        }
    }
}

/// Charts of the last hour.
fn charts(minutes: &[Minute]) -> Markup {
    const MEBIBYTE: u64 = 1_048_576;
    let whole = ScoreFormat::default();
    // Tenths of a millisecond, and hundredths.
    let (milliseconds, hundredths): (ScoreFormat, ScoreFormat) =
        ("decimal:1 ms".parse().unwrap_or_default(), "decimal:2".parse().unwrap_or_default());
    let chart = |name: &str, format: &ScoreFormat, value: &dyn Fn(&Minute) -> Option<i64>| {
        let points: Vec<_> = minutes.iter().filter_map(|minute| Some((minute.ended_at, value(minute)?))).collect();
        let axis = Axis::of_counts(points.iter().map(|(_, value)| *value).max().unwrap_or(0));
        let last = points.last().map(|(_, value)| format.english(*value)).unwrap_or_default();
        html! {
            @if points.len() > 1 {
                figure.chart {
                    (lines(name, &format!("{name}: {last} in the last minute"), &points, &axis, format, false, |at| at.format("%H:%M").to_string()))
                }
            }
        }
    };
    let signed = |count: u64| i64::try_from(count).ok();
    html! {
        section {
            h2 { "Last hour of this instance" }
            @if minutes.len() < 2 {
                p.empty { "The charts begin two minutes after the start." }
            } @else {
                p.quiet { "By minute, in UTC." }
                div.charts {
                    (chart("Requests per minute", &whole, &|minute| signed(minute.requests)))
                    (chart("99 % of requests answered within", &milliseconds, &|minute| i64::try_from(minute.slow?.as_micros().div_ceil(100)).ok()))
                    (chart("Scores per minute", &whole, &|minute| signed(minute.scores)))
                    (chart("Index memory in MiB", &whole, &|minute| signed(minute.index_bytes / MEBIBYTE)))
                    (chart("Fullest bucket, as a multiple of the even size", &hundredths, &|minute| format!("{:.0}", minute.skew? * 100.0).parse().ok()))
                }
            }
        }
    }
}

fn periods(periods: &[PeriodStatus]) -> Markup {
    let row = |period: &PeriodStatus| {
        let is_late = period.state == "due" || period.state == "closing";
        html! {
            th scope="row" { (period.board) }
            td { (period.kind) @if period.kind != "all_time" { ":" (period.label) } }
            td.warning[is_late] { (period.state) }
            td { @if let Some(ends_at) = period.ends_at { (instant(ends_at, "UTC")) } }
            td.number { (number(period.players)) }
            td.version { @if let Some(version) = &period.version { code { (version) } } }
            td.warning {
                @if period.differences > 0 { (number(period.differences)) " differences" }
                @if period.differences > 0 && period.needs_refresh { ", " }
                @if period.needs_refresh { "lacks a correction" }
            }
        }
    };
    let columns = [
        ("Board", false),
        ("Period", false),
        ("State", false),
        ("Ends", false),
        ("Players", true),
        ("Version", false),
        ("Remark", false),
    ];
    html! {
        section {
            h2 { "Periods" }
            @if periods.is_empty() {
                p.empty { "No period is open." }
            } @else {
                (table("Open periods, and closed periods with problems", &columns, &periods.iter().map(row).collect::<Vec<_>>()))
            }
            @if periods.len() >= PERIODS_MAX as usize { p.quiet { "This list is incomplete; " code { "centile.periods" } " has all periods." } }
        }
    }
}

fn messages(waiting: &[Message]) -> Markup {
    let row = |message: &Message| {
        html! {
            th scope="row" { (number(message.id)) }
            td { (message.board) }
            td { (message.period) }
            td { (instant(message.created_at, "UTC")) }
            td.number { (number(message.attempts.into())) }
            td { @if let Some(next) = message.next_attempt_at { (instant(next, "UTC")) } }
            td { @match (message.last_status, &message.last_error) {
                (Some(status), _) => { "status " (status) }
                (None, Some(error)) => (error)
                (None, None) => {}
            } }
        }
    };
    let columns = [
        ("Message", false),
        ("Board", false),
        ("Period", false),
        ("Created", false),
        ("Attempts", true),
        ("Next attempt", false),
        ("Last result", false),
    ];
    html! {
        section {
            h2 { "Webhooks" }
            @if waiting.is_empty() { p.empty { "No messages are waiting." } }
            @else { (table("Messages waiting for delivery, newest first", &columns, &waiting.iter().map(row).collect::<Vec<_>>())) }
        }
    }
}

fn acts(acts: &[AuditEntry]) -> Markup {
    let row = |act: &AuditEntry| {
        html! {
            th scope="row" { (instant(act.happened_at, "UTC")) }
            td { bdi { (act.actor) } }
            td { (act.action) }
            td { (act.board.as_deref().unwrap_or_default()) }
            td { bdi { (act.subject.as_deref().unwrap_or_default()) } }
        }
    };
    let columns = [("Time", false), ("Actor", false), ("Action", false), ("Board", false), ("Subject", false)];
    html! {
        section {
            h2 { "Audit log" }
            @if acts.is_empty() { p.empty { "No administrative actions yet." } }
            @else { (table("Latest administrative actions, newest first", &columns, &acts.iter().map(row).collect::<Vec<_>>())) }
        }
    }
}

fn instance(status: &InstanceStatus) -> Markup {
    let (busy, all) = status.connections;
    let redis = match status.redis_answers {
        None => "not configured; this instance caches in its own memory",
        Some(true) => "answers",
        Some(false) => "does not answer; requests are only slower",
    };
    let maintenance = match status.maintenance {
        MaintenanceStatus::Off => "off; cron must run the commands".to_owned(),
        MaintenanceStatus::Pending => "not run yet".to_owned(),
        MaintenanceStatus::Ran(since) => format!("ran {} ago", age(since.as_secs_f64())),
    };
    let row = |what, state, runbook| html! { th scope="row" { (what) } td { (state) } td { (runbook) } };
    let rows = [
        row("PostgreSQL", format!("answers; {busy} of {all} connections busy"), "server-errors"),
        row("Redis", redis.to_owned(), "redis-unreachable"),
        row("Background maintenance", maintenance, "maintenance-stopped"),
    ];
    html! {
        section {
            h2 { "This instance" }
            (table("Servers and maintenance", &[("Part", false), ("State", false), ("Runbook", false)], &rows))
            @if !status.indexes.is_empty() { (indexes(&status.indexes)) }
        }
    }
}

fn servers(servers: &[Server]) -> Markup {
    let row = |server: &Server| {
        let [address, state, lanes, size, lag, groups] = server.cells();
        html! {
            th scope="row" { (address) }
            td { (state) }
            td.number { (lanes) }
            td.number { (size) }
            td.number { (lag) }
            td { (groups) }
        }
    };
    let columns = [
        ("Server", false),
        ("State", false),
        ("Lanes", true),
        ("Size", true),
        ("Lag of replicas", true),
        ("Groups", false),
    ];
    html! {
        section {
            h2 { "Cluster" }
            (table("Servers, their lanes, the sizes of their databases, and the lag of their replicas", &columns, &servers.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

/// The rank indexes, and those refused for lack of memory.
fn indexes(indexes: &[IndexStatus]) -> Markup {
    let row = |index: &IndexStatus| {
        let state = match index.age {
            Some(round) => format!("{} ago", age(round.as_secs_f64())),
            None => "not enough memory; SQL answers".to_owned(),
        };
        html! {
            th scope="row" { (index.name) }
            td.number { (count(index.players)) }
            td.number { (count(index.bytes)) }
            td { (state) }
        }
    };
    let columns = [("Ranking", false), ("Players", true), ("Bytes", true), ("Last round", false)];
    table("Rank indexes", &columns, &indexes.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::upkeep::StoredUpkeep;

    #[test]
    fn a_task_that_waits_too_long_needs_attention() {
        let seen = |due: i64, seconds: f64, ends_soon: bool| {
            let upkeep = StoredUpkeep {
                periods_due: due,
                oldest_due_age_seconds: seconds,
                windows_missing: 0,
                combinations_failing: 0,
                closings_unfinished: 0,
                archive_differences: 0,
                archives_to_refresh: 0,
                imports_open: 1,
                imports_cut_short: 0,
                released_rankings: 1,
                outbox_waiting: 1,
                outbox_oldest_age_seconds: 1.0,
                quarantine_waiting: 1,
                rankings_damaged: 0,
                unapplied_age_seconds: 1.0,
                inbox_age_seconds: 0.0,
            };
            let stored = Stored {
                boards: Vec::new(),
                templates: Vec::new(),
                upkeep,
                limits: StoredLimits::default(),
                ledger: Some(LedgerAhead { months: 1, ends_soon, to_freeze: 1 }),
                periods: Vec::new(),
                selected: None,
                waiting: Vec::new(),
                acts: Vec::new(),
            };
            let tasks = tasks(&stored, &InstanceStatus::default());
            let named: Vec<_> = tasks.iter().filter(|task| task.needs_attention).map(|task| task.name).collect();
            named.join(" ")
        };
        assert_eq!(seen(0, 0.0, false), "");
        assert_eq!(seen(1, 600.0, false), "");
        assert_eq!(seen(1, 601.0, false), "periods_due");
        assert_eq!(seen(0, 0.0, true), "ledger_months");
    }

    /// Returns the number that follows `text` in a document.
    fn number_after(document: &str, text: &str) -> f64 {
        let (_, rest) = document.split_once(text).unwrap_or_else(|| panic!("no {text}"));
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers and the same decimals")]
    fn alerts_checks_and_the_page_have_the_same_thresholds() {
        let alerts = include_str!("../../../../docs/alerts.yml");
        let checks = include_str!("../../../../docs/monitoring.md");
        let threshold = |alert: &str, check: &str, seconds: f64| {
            let of_alert = number_after(alerts, alert);
            assert_eq!(of_alert, number_after(checks, check) * seconds, "{alert} and {check}");
            of_alert
        };
        let clock = threshold("max(centile_clock_behind_seconds) > ", "clock_behind > interval '", 1.0);
        let snapshot = threshold("_snapshot_age_seconds) > ", "oldest_snapshot_age > interval '", 3_600.0);
        let xid = threshold("max(centile_xid_age) > ", "WHERE xid_age > ", 1.0);
        let dead = threshold("max(centile_dead_rows) > ", "dead_rows > ", 1.0);
        let live = threshold("max(centile_dead_rows) > 1000000 + ", "dead_rows > 1000000 + ", 1.0);
        let relations = threshold("max(centile_relations) > ", "relations > ", 1.0);
        let user_id = threshold("max(centile_user_id) > ", "user_id > ", 1.0);
        let due = threshold("max(centile_oldest_due_age_seconds) > ", "oldest_due_age > interval '", 60.0);
        let waiting = threshold("_outbox_oldest_age_seconds) > ", "created_at < now() - interval '", 60.0);
        assert_eq!([due, waiting], [ATTENTION_AFTER_SECONDS; 2]);
        let unapplied = threshold("max(centile_unapplied_age_seconds) > ", "unapplied_age > interval '", 1.0);
        let inbox = threshold("max(centile_inbox_age_seconds) > ", "inbox_age > interval '", 1.0);
        assert_eq!([unapplied, inbox], [WAIT_ATTENTION_SECONDS; 2]);

        // The page's tasks begin just above them. Limits of 1,000,000 make the numbers whole.
        let of = 1_000_000;
        let whole = |share: f64| format!("{:.0}", share * of as f64).parse::<i64>().unwrap_or_default();
        let near = |above: i64| {
            let limits = StoredLimits {
                clock_behind_seconds: clock + above as f64,
                xid_age: whole(xid) + above,
                xid_age_max: of,
                dead_rows: whole(dead / of as f64) + whole(live) + above,
                live_rows: of,
                oldest_snapshot_age_seconds: snapshot + above as f64,
                relations: whole(relations) + above,
                relations_max: of,
                user_id: whole(user_id) + above,
                user_id_max: of,
            };
            limit_tasks(&limits).len()
        };
        assert_eq!((near(0), near(1)), (0, 6));
    }

    #[test]
    fn without_a_worker_the_page_shows_the_instance() {
        let operation =
            Operation { stored: None, status: InstanceStatus::default(), servers: Vec::new(), minutes: Vec::new() };
        let text = page(&operation, DateTime::UNIX_EPOCH).into_string();
        assert!(text.contains("A worker is down.") && text.contains("This instance"), "{text}");
        assert!(!text.contains("Audit log"), "{text}");
    }

    #[test]
    fn charts_leave_out_what_is_unknown() {
        let minute = |minute: i64, slow: Option<u64>| Minute {
            ended_at: DateTime::from_timestamp(1_700_000_000 + 60 * minute, 0).unwrap_or_default(),
            requests: 120,
            slow: slow.map(Duration::from_micros),
            scores: 0,
            index_bytes: 3 << 20,
            skew: (minute > 0).then_some(1.256),
        };
        assert!(!charts(&[minute(0, None)]).into_string().contains("<svg"));
        // A single known time is no line.
        let text = charts(&[minute(0, None), minute(1, Some(2_500))]).into_string();
        assert_eq!(text.matches("<svg").count(), 3, "{text}");
        let text = charts(&[minute(0, Some(500)), minute(1, None), minute(2, Some(2_500))]).into_string();
        for part in [
            "Requests per minute: 120 in",
            "99 % of requests answered within: 2.5 ms in",
            "Scores per minute: 0 in",
            "Index memory in MiB: 3 in",
            "as a multiple of the even size: 1.26 in",
            ">22:13<",
            ">22:15<",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
