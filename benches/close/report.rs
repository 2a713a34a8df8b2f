//! Prints the results as tables for docs/benchmarks.md.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    acts::WithActs,
    common::{load::Latency, median},
    fill::Size,
    refresh::BothWays,
    watch::Took,
};

/// Prints progress to standard error.
#[allow(clippy::print_stderr, reason = "a command-line tool")]
pub fn say(what: &str) {
    eprintln!("bench: {what}");
}

/// Closing a week compared with a bare table.
pub struct Close {
    /// Seconds of the bare table, with the default `work_mem`.
    pub bare: f64,
    /// Seconds of the bare table, with the `work_mem` of closing.
    pub bare_with_memory: f64,
    pub took: Took,
}

impl Close {
    /// Returns the faster bare time: the planner may sort with little memory and hash with more.
    fn fastest(&self) -> f64 {
        self.bare.min(self.bare_with_memory)
    }
}

/// Latencies of scores without and with a concurrent command.
pub struct UnderLoad {
    pub what: String,
    pub seconds: f64,
    pub before: Latency,
    pub during: Latency,
}

/// All results.
pub struct Report {
    machine: String,
    pub size: Size,
    filling: Duration,
    pub small: Option<Took>,
    pub closes: Vec<Close>,
    pub under_load: Vec<UnderLoad>,
    pub refreshes: Vec<BothWays>,
    pub serves_closed: bool,
    pub reads: BTreeMap<String, usize>,
    pub others: Vec<UnderLoad>,
    /// A `centile correct` during a refresh of the same week: seconds and success.
    pub correct_meanwhile: Option<(f64, bool)>,
    /// `centile maintain` that removes a week's rows.
    pub maintain: Option<Took>,
    pub close_due: Vec<f64>,
    pub idle_maintain: Vec<f64>,
    pub corrects: Vec<f64>,
    pub with_acts: Option<WithActs>,
}

impl Report {
    pub fn new(machine: String, size: Size, filling: Duration) -> Self {
        Self {
            machine,
            size,
            filling,
            small: None,
            closes: Vec::new(),
            under_load: Vec::new(),
            refreshes: Vec::new(),
            serves_closed: false,
            reads: BTreeMap::new(),
            others: Vec::new(),
            correct_meanwhile: None,
            maintain: None,
            close_due: Vec::new(),
            idle_maintain: Vec::new(),
            corrects: Vec::new(),
            with_acts: None,
        }
    }

    pub fn print(&self) {
        let Size { players, events, weeks } = self.size;
        println!("{}; {weeks} weeks of {players} players and {events} scores each.", self.machine);
        println!("Filled in {:.0} s.\n", self.filling.as_secs_f64());
        self.print_closes();
        print_under_load(&self.under_load, "Scores while a week is closed");
        println!(
            "\nMedian ratio of p99: {:.1} (limit: 3).\n",
            median(self.under_load.iter().map(|one| one.during.p99 / one.before.p99).collect())
        );
        print_under_load(&self.others, "Scores during other commands");
        self.print_reads();
        self.print_refreshes();
        self.print_commands();
        if let Some(WithActs { acts, without, with }) = &self.with_acts {
            println!(
                "\nThe archive's query: {without:.2} s; with {acts} resets, voids and bans each {with:.2} s, {:.2} times (limit: 2).",
                with / without
            );
        }
    }

    fn print_closes(&self) {
        println!("Closing a week, beside `CREATE TABLE AS SELECT user_id, sum(points), rank() …` of the same rows:\n");
        println!(
            "| round | bare, default work_mem: s | bare, work_mem 128 MB: s | `centile close`: s | ratio to the faster |"
        );
        println!("| --- | --- | --- | --- | --- |");
        for (n, close) in self.closes.iter().enumerate() {
            let seconds = close.took.seconds();
            println!(
                "| {} | {:.2} | {:.2} | {seconds:.2} | {:.2} |",
                n + 1,
                close.bare,
                close.bare_with_memory,
                seconds / close.fastest()
            );
        }
        let of = |seconds: fn(&Close) -> f64| median(self.closes.iter().map(seconds).collect());
        let (bare, close) = (of(|one| one.bare), of(|one| one.took.seconds()));
        let with_memory = of(|one| one.bare_with_memory);
        let ratio = median(self.closes.iter().map(|one| one.took.seconds() / one.fastest()).collect());
        println!("| median | {bare:.2} | {with_memory:.2} | {close:.2} | {ratio:.2} |");
        println!("\nMedian ratio to the faster of both: {ratio:.2} (limit: 2.5).\n");

        println!(
            "| closing | seconds | peak memory of `centile close` | peak of a server process without shared memory |"
        );
        println!("| --- | --- | --- | --- |");
        let large = self.closes.iter().map(|close| &close.took);
        for (what, took) in
            self.small.iter().map(|took| ("1,000 players", took)).chain(large.map(|took| ("all players", took)))
        {
            println!("| {what} | {:.2} | {:.1} MiB | {:.0} MiB |", took.seconds(), took.peak_mib, took.server_mib);
        }
        println!();
    }

    fn print_reads(&self) {
        println!();
        if !self.serves_closed {
            println!("This build does not serve closed weeks; reads during the refresh were skipped.\n");
            return;
        }
        println!("Reads of the closed week's top list during the refresh, {} per second:\n", super::TOPS_PER_SECOND);
        println!("| status and version | responses |");
        println!("| --- | --- |");
        for (said, count) in &self.reads {
            println!("| `{}` | {count} |", said.replace('|', "\\|"));
        }
        println!();
    }

    fn print_refreshes(&self) {
        println!(
            "| an archive after a correction | concurrently: s | size: MiB | rebuilt and swapped: s | size: MiB |"
        );
        println!("| --- | --- | --- | --- | --- |");
        for (shifts, what) in [(true, "that shifts every position"), (false, "that shifts none")] {
            let of = |value: fn(&BothWays) -> f64| {
                median(self.refreshes.iter().filter(|both| both.shifts == shifts).map(value).collect())
            };
            println!(
                "| {what} | {:.2} | {:.0} | {:.2} | {:.0} |",
                of(|both| both.concurrently.seconds),
                of(|both| both.concurrently.mib),
                of(|both| both.beside.seconds),
                of(|both| both.beside.mib)
            );
        }
        println!();
    }

    fn print_commands(&self) {
        println!("| command | seconds |");
        println!("| --- | --- |");
        println!("| `centile close --due`, nothing due | {:.3} |", median(self.close_due.clone()));
        println!(
            "| `centile close`, a week | {:.2} |",
            median(self.closes.iter().map(|one| one.took.seconds()).collect())
        );
        let refreshes = |shifts| {
            let of_kind = self.refreshes.iter().filter(|both| both.shifts == shifts);
            median(of_kind.map(|both| both.concurrently.seconds).collect())
        };
        println!("| `centile refresh`, every position shifted | {:.2} |", refreshes(true));
        println!("| `centile refresh`, none shifted | {:.2} |", refreshes(false));
        println!("| `centile correct` | {:.3} |", median(self.corrects.clone()));
        if let Some((seconds, went_through)) = self.correct_meanwhile {
            let end = if went_through { "" } else { ", and failed" };
            println!("| `centile correct` into the week that is being refreshed | {seconds:.2}{end} |");
        }
        println!("| `centile maintain`, nothing to do | {:.3} |", median(self.idle_maintain.clone()));
        if let Some(took) = &self.maintain {
            println!("| `centile maintain`, {} | {:.1} |", removal(&took.text), took.seconds());
        }
    }
}

/// Extracts the removed rows from the output of `centile maintain`.
pub fn removal(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("rankings")).unwrap_or("rankings").trim()
}

fn print_under_load(all: &[UnderLoad], title: &str) {
    println!("{title}, {} per second:\n", super::SCORES_PER_SECOND);
    println!(
        "| during | seconds | scores before and during | failed | p50 before → during: ms | p99: ms | max: ms | ratio of p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for UnderLoad { what, seconds, before, during } in all {
        let pair = |value: fn(&Latency) -> f64| format!("{:.1} → {:.1}", value(before), value(during));
        println!(
            "| {what} | {seconds:.1} | {}, {} | {} | {} | {} | {} | {:.1} |",
            before.answers,
            during.answers,
            before.failed + during.failed,
            pair(|latency| latency.p50),
            pair(|latency| latency.p99),
            pair(|latency| latency.max),
            during.p99 / before.p99
        );
    }
}
