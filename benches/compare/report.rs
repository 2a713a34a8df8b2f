//! Results as Markdown and as JSON.

use std::fmt::Write as _;

use clap::ValueEnum as _;
use serde::Serialize;

use crate::{
    cell::Cell,
    common::{BenchResult, median, percentile},
    measure::{Figures, Table},
    mix::{Kind, Mix, Rates},
    size::Size,
    system::System,
};

/// The figures of a cell and system, by round.
#[derive(Debug, Serialize)]
pub struct Record {
    pub cell: Cell,
    pub system: System,
    pub rounds: Vec<Figures>,
}

/// Ranks for one caller among a number of players.
#[derive(Debug, Serialize)]
pub struct Growth {
    pub players: u64,
    pub system: System,
    pub rounds: Vec<Figures>,
}

/// Peak memory of a system's server, in MiB.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub system: System,
    pub mib: f64,
}

/// All results.
#[derive(Debug, Serialize)]
pub struct Results {
    pub machine: String,
    pub players: u64,
    pub page: u64,
    pub seconds: u32,
    pub mix_rates: [u32; 3],
    pub mix_seconds: u64,
    pub cells: Vec<Record>,
    pub growth: Vec<Growth>,
    pub mixes: Vec<Mix>,
    pub sizes: Vec<Size>,
    pub memory: Vec<Memory>,
}

pub fn records(table: Table) -> Vec<Record> {
    table.into_iter().map(|((cell, system), rounds)| Record { cell, system, rounds }).collect()
}

impl Record {
    pub fn middle(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        middle(&self.rounds, of)
    }

    /// Returns the median over rounds of the ratio to another system in the same round. Load on the
    /// machine affects both systems of a round.
    fn ratio(&self, other: &Self, of: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(own, other)| of(own) / of(other)).collect())
    }
}

impl Growth {
    pub fn middle(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        middle(&self.rounds, of)
    }
}

fn middle(rounds: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    median(rounds.iter().map(of).collect())
}

/// Formats the range from minimum to maximum.
fn spread(rounds: &[Figures], of: impl Fn(&Figures) -> f64) -> String {
    let mut values: Vec<_> = rounds.iter().map(of).collect();
    format!("{} – {}", number(percentile(&mut values, 0.0)), number(percentile(&mut values, 100.0)))
}

impl Results {
    pub fn new(machine: String, players: u64, page: u64, seconds: u32, rates: Rates) -> Self {
        Self {
            machine,
            players,
            page,
            seconds,
            mix_rates: [rates.mix_scores, rates.mix_ranks, rates.mix_tops],
            mix_seconds: rates.duration().as_secs(),
            cells: Vec::new(),
            growth: Vec::new(),
            mixes: Vec::new(),
            sizes: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// Returns the tables for docs/benchmarks.md.
    pub fn markdown(&self) -> BenchResult<String> {
        let mut text = format!("{}; {} players.\n", self.machine, number(self.players as f64));
        for cell in Cell::value_variants().iter().copied() {
            self.cell(&mut text, cell)?;
        }
        self.growth(&mut text)?;
        self.mixes(&mut text)?;
        self.staleness(&mut text)?;
        self.sizes(&mut text)?;
        Ok(text)
    }

    fn cell(&self, text: &mut String, cell: Cell) -> BenchResult<()> {
        let records: Vec<_> = self.cells.iter().filter(|record| record.cell == cell).collect();
        if records.is_empty() {
            return Ok(());
        }
        let centile = records.iter().copied().find(|record| record.system == System::Centile);
        let at = if cell == Cell::Page { format!(", from {}", number(self.page as f64)) } else { String::new() };
        let (connections, seconds) = (cell.connections(), self.seconds);
        writeln!(
            text,
            "\n**{}{at}** (connections: {connections}; {seconds} s or more per round)\n",
            capital(cell.title())
        )?;
        let what = if cell.writes() { "scores, all applied" } else { "requests" };
        let burst = if cell.writes() { " until the last response (÷ Centile) |" } else { "" };
        writeln!(
            text,
            "| | {what}/s: median | from – to | ÷ Centile |{burst} p50, ms (÷) | p99, ms (÷) | p99.9, ms (÷) | errors |"
        )?;
        writeln!(
            text,
            "| --- | --- | --- | --- |{} --- | --- | --- | --- |",
            if cell.writes() { " --- |" } else { "" }
        )?;
        for record in &records {
            let ratio =
                |of: fn(&Figures) -> f64| centile.map_or("–".to_owned(), |centile| number(record.ratio(centile, of)));
            let latency = |of: fn(&Figures) -> f64| format!("{} ({})", number(record.middle(of)), ratio(of));
            let burst = if cell.writes() {
                format!(" {} |", latency(|figures| figures.answered_per_second))
            } else {
                String::new()
            };
            writeln!(
                text,
                "| {} | {} | {} | {} |{burst} {} | {} | {} | {} |",
                record.system.title(),
                number(record.middle(|figures| figures.per_second)),
                spread(&record.rounds, |figures| figures.per_second),
                ratio(|figures| figures.per_second),
                latency(|figures| figures.p50_ms),
                latency(|figures| figures.p99_ms),
                latency(|figures| figures.p999_ms),
                record.rounds.iter().map(|figures| figures.errors).sum::<u64>()
            )?;
        }
        Ok(())
    }

    fn growth(&self, text: &mut String) -> BenchResult<()> {
        let mut sizes: Vec<_> = self.growth.iter().map(|growth| growth.players).collect();
        sizes.dedup();
        if sizes.is_empty() {
            return Ok(());
        }
        writeln!(text, "\n**Rank by number of players** (1 connection; p50 with its range, and p99, in ms)\n")?;
        write!(text, "| |")?;
        for players in &sizes {
            write!(text, " {} players: p50 | from – to | p99 |", number(*players as f64))?;
        }
        writeln!(text, "\n| --- |{}", " --- | --- | --- |".repeat(sizes.len()))?;
        for system in self.growth.iter().filter(|growth| growth.players == sizes[0]).map(|growth| growth.system) {
            write!(text, "| {} |", system.title())?;
            for growth in self.growth.iter().filter(|growth| growth.system == system) {
                let (p50, p99) = (growth.middle(|figures| figures.p50_ms), growth.middle(|figures| figures.p99_ms));
                let spread = spread(&growth.rounds, |figures| figures.p50_ms);
                write!(text, " {} | {spread} | {} |", number(p50), number(p99))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }

    fn mixes(&self, text: &mut String) -> BenchResult<()> {
        if self.mixes.is_empty() {
            return Ok(());
        }
        let ([scores, ranks, tops], seconds) = (self.mix_rates, self.mix_seconds);
        writeln!(
            text,
            "\n**The mix** ({scores} scores/s, {ranks} ranks/s, {tops} tops/s for {seconds} s, open loop; a row per round)\n"
        )?;
        writeln!(text, "| | | requests | failed | answered/s | p50, ms (÷ Centile) | p99, ms (÷) | p99.9, ms (÷) |")?;
        writeln!(text, "| --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for mix in &self.mixes {
            let is_beside = |other: &&Mix| other.system == System::Centile && other.round == mix.round;
            let centile = self.mixes.iter().find(is_beside);
            for (n, kind) in mix.kinds.iter().enumerate() {
                let latency = |of: fn(&Kind) -> Option<f64>| match (of(kind), centile.and_then(|mix| of(&mix.kinds[n])))
                {
                    (Some(ms), Some(other)) => format!("{} ({})", number(ms), number(ms / other)),
                    (Some(ms), None) => number(ms),
                    (None, _) => "no answer".to_owned(),
                };
                writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} | {} | {} |",
                    mix.system.title(),
                    kind.name,
                    kind.requests,
                    kind.failed,
                    number(kind.per_second),
                    latency(|kind| kind.p50_ms),
                    latency(|kind| kind.p99_ms),
                    latency(|kind| kind.p999_ms)
                )?;
            }
        }
        Ok(())
    }

    fn staleness(&self, text: &mut String) -> BenchResult<()> {
        if self.mixes.is_empty() {
            return Ok(());
        }
        writeln!(text, "\n**Staleness of responses** during the mix\n")?;
        writeln!(
            text,
            "| | ranks checked | wrong | by, median | by, max | oldest counts, s | delay until a score is visible: p50, ms | max, ms | no answer |"
        )?;
        writeln!(text, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for mix in &self.mixes {
            let stale = &mix.staleness;
            let mut times = stale.visible_after_ms.clone();
            let mut differences: Vec<_> = stale.rank_differences.iter().map(|ranks| *ranks as f64).collect();
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                mix.system.title(),
                differences.len(),
                stale.rank_differences.iter().filter(|ranks| **ranks > 0).count(),
                whole(percentile(&mut differences, 50.0)),
                whole(percentile(&mut differences, 100.0)),
                if stale.counts_age_ms > 0 { number(stale.counts_age_ms as f64 / 1e3) } else { "–".to_owned() },
                number(percentile(&mut times, 50.0)),
                number(percentile(&mut times, 100.0)),
                stale.unanswered
            )?;
        }
        Ok(())
    }

    fn sizes(&self, text: &mut String) -> BenchResult<()> {
        writeln!(text, "\n**Bytes per player**, after loading\n")?;
        writeln!(
            text,
            "| | PostgreSQL: disk | of it in buffers | Redis: disk | Redis: memory |\n| --- | --- | --- | --- | --- |"
        )?;
        for size in &self.sizes {
            writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                size.system.title(),
                whole(size.postgres),
                whole(size.buffers.unwrap_or(f64::NAN)),
                whole(size.redis_disk),
                whole(size.redis_memory)
            )?;
        }
        writeln!(
            text,
            "\n| | peak memory of the HTTP server, MiB | in the mix | WAL in the mix, bytes per score |\n| --- | --- | --- | --- |"
        )?;
        for memory in &self.memory {
            let in_mixes = |of: fn(&Mix) -> f64, percent| {
                let mixes = self.mixes.iter().filter(|mix| mix.system == memory.system);
                number(percentile(&mut mixes.map(of).collect::<Vec<_>>(), percent))
            };
            let (most, wal) = (in_mixes(|mix| mix.memory_mib, 100.0), in_mixes(|mix| mix.wal_bytes_per_score, 50.0));
            writeln!(text, "| {} | {} | {most} | {wal} |", memory.system.title(), number(memory.mib))?;
        }
        Ok(())
    }
}

fn capital(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// Formats a whole number; a dash if it is not finite.
fn whole(value: f64) -> String {
    if value.is_finite() { format!("{value:.0}") } else { "–".to_owned() }
}

/// Formats three significant digits, or all digits of a large number; a dash if it is not finite.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "–".to_owned(),
        size if size >= 1_000.0 => {
            let digits = format!("{value:.0}");
            let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
            groups.join(",")
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
