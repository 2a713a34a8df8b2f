//! The operator's page: what is left to do, how periods and buckets are, and what this instance has counted. Read-only, and without a script all
//! the same.

mod instance;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::{
    http::{
        operation::{Operation, PERIODS_MAX},
        pages::{
            asset,
            number::{count, grouped, instant, number},
        },
    },
    maintenance::rebalance::UNIT_MIN,
    model::{
        operation::{Act, BucketStatus, PeriodStatus},
        outbox::Event,
    },
    store::upkeep::StoredUpkeep,
};

/// How long something may wait before somebody should look, in seconds: by the alarms of `docs/operations.md`.
const PATIENCE_SECONDS: f64 = 600.0;

/// Units of a picture of buckets: it grows and shrinks with the page.
const WIDTH: f64 = 400.0;

const HEIGHT: f64 = 100.0;

/// Least height of a bucket that has a player.
const LEAST: f64 = 1.5;

/// The page, as things are at `now`.
pub(crate) fn page(operation: &Operation, now: DateTime<Utc>) -> Markup {
    let tasks = tasks(operation);
    let wanting = tasks.iter().filter(|task| task.wants_attention).count();
    let main = html! {
        div.ops {
            div.head {
                h1 { "Operation" }
                p.quiet {
                    "As it was at " time datetime=(now.to_rfc3339()) { (now.format("%H:%M:%S")) " (UTC)" } ". "
                    a href="" { "Refresh" }
                }
            }
            p.verdict.warning[wanting > 0] {
                @match wanting {
                    0 => "Nothing wants attention."
                    1 => "One thing wants attention."
                    more => { (more) " things want attention." }
                }
            }
            (todo(&tasks))
            (periods(&operation.periods))
            (buckets(operation))
            (events(&operation.waiting))
            (acts(&operation.acts))
            (instance::sections(&operation.numbers, &operation.indexes))
        }
    };
    crate::http::pages::styled("Operation · Centile", &[&asset::OPS_STYLE], &main)
}

/// A table with these columns, of which each is said to hold numbers or not. It may be wider than the page, and is moved within it then, also by
/// keyboard.
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

/// Something that is left to do.
struct Task {
    what: &'static str,
    /// Its column of `centile.upkeep`, another view of `centile`, or its name at `/metrics`.
    name: &'static str,
    count: i64,
    remark: String,
    wants_attention: bool,
}

fn tasks(operation: &Operation) -> Vec<Task> {
    let StoredUpkeep { oldest_due_age_seconds: due, outbox_oldest_age_seconds: waiting, .. } = operation.upkeep;
    let upkeep = &operation.upkeep;
    let task = |what, name, count: i64, remark: &str, is_wrong: bool| Task {
        what,
        name,
        count,
        remark: if count > 0 { remark.to_owned() } else { String::new() },
        wants_attention: count > 0 && is_wrong,
    };
    let wrong = operation.numbers.sum("centile_count_differences", &[]);
    vec![
        task(
            "Periods over, not closed",
            "periods_due",
            upkeep.periods_due,
            &age("the first for ", due),
            due > PATIENCE_SECONDS,
        ),
        task(
            "Closings unfinished",
            "closings_unfinished",
            upkeep.closings_unfinished,
            "cut off, not closed yet",
            false,
        ),
        task(
            "Players on whom archive and live ranking differed",
            "archive_differences",
            upkeep.archive_differences,
            "centile.archive_differences names them",
            true,
        ),
        task(
            "Archives without a correction",
            "archives_to_refresh",
            upkeep.archives_to_refresh,
            "centile refresh",
            true,
        ),
        task("Imports under way", "imports_open", upkeep.imports_open, "their boards' periods wait", false),
        task(
            "Imports cut short",
            "imports_cut_short",
            upkeep.imports_cut_short,
            "run again, or centile import --abandon",
            true,
        ),
        task(
            "Rankings let go, rows still there",
            "released_rankings",
            upkeep.released_rankings,
            "centile maintain removes them",
            false,
        ),
        task(
            "Events for webhooks",
            "outbox_waiting",
            upkeep.outbox_waiting,
            &age("the first for ", waiting),
            waiting > PATIENCE_SECONDS,
        ),
        Task {
            what: "Months of the ledger ahead",
            name: "ledger_months",
            count: operation.ledger.months,
            remark: if operation.ledger.ends_soon { "centile maintain makes them".to_owned() } else { String::new() },
            wants_attention: operation.ledger.ends_soon,
        },
        task("Events in quarantine", "quarantine_waiting", upkeep.quarantine_waiting, "centile quarantine list", false),
        // Few enough for an integer, whatever is wrong.
        #[expect(clippy::cast_possible_truncation, reason = "a count that was made of one")]
        task(
            "Counts wrong when this instance last looked",
            "centile_count_differences",
            wrong as i64,
            "centile verify",
            true,
        ),
    ]
}

fn todo(tasks: &[Task]) -> Markup {
    let rows: Vec<_> = tasks
        .iter()
        .map(|task| {
            html! {
                th scope="row" { (task.what) }
                td.number { (number(task.count)) }
                td.warning[task.wants_attention] { @if task.wants_attention { "Look: " } (task.remark) }
                td { code { (task.name) } }
            }
        })
        .collect();
    html! {
        section {
            h2 { "To do" }
            (table("What is left to do, of all boards", &[("What", false), ("How many", true), ("Remark", false), ("Name", false)], &rows))
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
                p.empty { "There is none that is open." }
            } @else {
                (table("Open periods, and closed ones that something is the matter with", &columns, &periods.iter().map(row).collect::<Vec<_>>()))
            }
            @if periods.len() >= PERIODS_MAX as usize { p.quiet { "There are more: " code { "centile.period_status" } " has all." } }
        }
    }
}

fn buckets(operation: &Operation) -> Markup {
    let Some((chosen, buckets)) = &operation.chosen else { return html! {} };
    let is_same = |one: &BucketStatus, other: &BucketStatus| (&one.kind, &one.label) == (&other.kind, &other.label);
    html! {
        section #buckets {
            h2 { "Buckets of board " (chosen) }
            nav.boards-of aria-label="Board" {
                ul {
                    @for board in &operation.boards {
                        li { a href={ "?board=" (board.slug) "#buckets" } aria-current=[(board.slug == *chosen).then_some("true")] { (board.slug) } }
                    }
                }
            }
            @if buckets.is_empty() { p.empty { "No period of it has players." } }
            @else { p.quiet { "Worst scores to the left. All bars would end at the line if they were even." } }
            div.rankings { @for ranking in buckets.chunk_by(is_same) { (bars(ranking)) } }
        }
    }
}

/// The buckets of a ranking as bars, worst scores to the left, with a line where all would end if they were even.
fn bars(buckets: &[BucketStatus]) -> Markup {
    let Some(first) = buckets.first() else { return html! {} };
    let name = if first.kind == "all_time" { first.kind.clone() } else { format!("{}:{}", first.kind, first.label) };
    let players: i64 = buckets.iter().map(|bucket| bucket.players).sum();
    let used = buckets.iter().filter(|bucket| bucket.players > 0).count();
    let fullest = buckets.iter().map(|bucket| bucket.players).max().unwrap_or(0);
    let unit = (players as f64 / buckets.len() as f64).max(UNIT_MIN as f64);
    let width = WIDTH / buckets.len() as f64;
    let highest = (fullest as f64).max(1.0);
    html! {
        figure.buckets {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                aria-label={ (name) ": " (used) " of " (buckets.len()) " buckets have players, the fullest " (grouped(fullest)) } {
                @for (place, bucket) in buckets.iter().enumerate() {
                    @let height = if bucket.players > 0 { (HEIGHT * bucket.players as f64 / highest).max(LEAST) } else { 0.0 };
                    rect x=(two(place as f64 * width + width * 0.06)) y=(two(HEIGHT - height)) width=(two(width * 0.88)) height=(two(height)) {
                        title {
                            "bucket " (bucket.bucket) ": " (grouped(bucket.players)) " players"
                            @if let Some(from) = bucket.from_score { ", from score " (grouped(from)) }
                            @if let Some(to) = bucket.to_score { " to " (grouped(to)) }
                        }
                    }
                }
                @if unit <= highest {
                    @let y = two(HEIGHT - HEIGHT * unit / highest);
                    line.here x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                }
            }
            figcaption {
                strong { (name) }
                span { (number(players)) " players" }
                span { (count(used as u64)) " buckets" }
                span { "fullest " (number(fullest)) @if players > 0 { " (" (two(fullest as f64 / unit)) " × the even size)" } }
            }
        }
    }
}

fn events(waiting: &[Event]) -> Markup {
    let row = |event: &Event| {
        html! {
            th scope="row" { (number(event.id)) }
            td { (event.board) }
            td { (event.period) }
            td { (instant(event.created_at, "UTC")) }
            td.number { (number(event.attempts.into())) }
            td { @if let Some(next) = event.next_attempt_at { (instant(next, "UTC")) } }
            td { @match (event.last_status, &event.last_error) {
                (Some(status), _) => { "answered " (status) }
                (None, Some(error)) => (error)
                (None, None) => {}
            } }
        }
    };
    let columns = [
        ("Event", false),
        ("Board", false),
        ("Period", false),
        ("Since", false),
        ("Attempts", true),
        ("Next", false),
        ("Last", false),
    ];
    html! {
        section {
            h2 { "Webhooks" }
            @if waiting.is_empty() { p.empty { "No event waits." } }
            @else { (table("Events that wait to be sent, newest first", &columns, &waiting.iter().map(row).collect::<Vec<_>>())) }
        }
    }
}

fn acts(acts: &[Act]) -> Markup {
    let row = |act: &Act| {
        html! {
            th scope="row" { (instant(act.happened_at, "UTC")) }
            td { bdi { (act.actor) } }
            td { (act.action) }
            td { (act.board.as_deref().unwrap_or_default()) }
            td { bdi { (act.subject.as_deref().unwrap_or_default()) } }
        }
    };
    let columns = [("When", false), ("Who", false), ("What", false), ("Board", false), ("Whom or what", false)];
    html! {
        section {
            h2 { "Acts" }
            @if acts.is_empty() { p.empty { "No administrator has done anything yet." } }
            @else { (table("What administrators did last, newest first", &columns, &acts.iter().map(row).collect::<Vec<_>>())) }
        }
    }
}

/// For how long something has been, in the largest unit that says enough.
fn age(before: &str, seconds: f64) -> String {
    let text = match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    };
    format!("{before}{text}")
}

fn two(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http::operation::numbers::Numbers, model::operation::LedgerAhead};

    #[test]
    fn a_time_is_told_in_a_unit_that_says_enough() {
        for (seconds, text) in
            [(0.4, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7_200.0, "2 h"), (200_000.0, "2 days")]
        {
            assert_eq!(age("", seconds), text);
        }
    }

    #[test]
    fn what_waits_for_too_long_wants_attention() {
        let seen = |due: i64, seconds: f64, ends_soon: bool| {
            let upkeep = StoredUpkeep {
                periods_due: due,
                oldest_due_age_seconds: seconds,
                closings_unfinished: 0,
                archive_differences: 0,
                archives_to_refresh: 0,
                imports_open: 1,
                imports_cut_short: 0,
                released_rankings: 1,
                outbox_waiting: 1,
                outbox_oldest_age_seconds: 1.0,
                quarantine_waiting: 1,
            };
            let operation = Operation {
                boards: Vec::new(),
                upkeep,
                ledger: LedgerAhead { months: 1, ends_soon },
                periods: Vec::new(),
                chosen: None,
                waiting: Vec::new(),
                acts: Vec::new(),
                indexes: Vec::new(),
                numbers: Numbers::read(""),
            };
            let named: Vec<_> =
                tasks(&operation).iter().filter(|task| task.wants_attention).map(|task| task.name).collect();
            named.join(" ")
        };
        assert_eq!(seen(0, 0.0, false), "");
        assert_eq!(seen(1, 600.0, false), "");
        assert_eq!(seen(1, 601.0, false), "periods_due");
        assert_eq!(seen(0, 0.0, true), "ledger_months");
    }

    #[test]
    fn a_bucket_is_as_high_as_it_is_full() {
        let bucket = |bucket: i16, players: i64| BucketStatus {
            kind: "week".into(),
            label: "2024-01-15".into(),
            bucket,
            players,
            from_score: None,
            to_score: None,
        };
        let text = bars(&[bucket(0, 0), bucket(1, 20), bucket(2, 2_000), bucket(3, 1_980)]).into_string();
        let heights: Vec<&str> =
            text.split(" height=\"").skip(1).map(|part| part.split('"').next().unwrap_or_default()).collect();
        assert_eq!(heights, ["0", "1.5", "100", "99"]);
        assert!(text.contains("y1=\"50\""), "a unit of 1,000 players is half of the fullest: {text}");
        assert!(text.contains("3 of 4 buckets have players"), "{text}");
    }
}
