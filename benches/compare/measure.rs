//! The cells: one system, one kind of request, a few seconds.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    check,
    common::{Bench, Outcome, Serve},
    load::{self, Answers, Cell, Run},
    system::{Options, Site, System, serve_constant},
};

/// Seconds of load before a cell that do not count.
const WARM_UP: u32 = 1;

/// How long a system may take to write what it was sent.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a cell gave in a round.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    /// Requests, or scores.
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub errors: u64,
    /// Of a cell that writes.
    pub wal_bytes_per_score: Option<f64>,
}

/// Figures of each cell and system, a round after the other.
pub type Table = BTreeMap<(Cell, System), Vec<Figures>>;

/// What cells have in common.
pub struct Measure<'a> {
    pub bench: &'a Bench,
    pub dir: &'a Path,
    pub options: &'a Options,
    pub cells: &'a [Cell],
    pub seconds: u32,
    pub page: u64,
}

/// When answers are to be compared with `rank()`.
#[derive(Clone, Copy)]
pub struct Check {
    pub before: bool,
    pub after: bool,
}

impl Measure<'_> {
    /// All cells of a system, on a server of its own that ends with them; gives the most memory that the server had, in MiB.
    pub async fn system(
        &self,
        site: &Site,
        system: System,
        round: u32,
        check: Check,
        table: &mut Table,
    ) -> Outcome<f64> {
        let serve = site.serve(self.bench, system, self.options)?;
        if check.before {
            check::compare(self.bench, site, system, &serve.address, self.page).await?;
        }
        for cell in self.cells {
            // Reading goes the same way with batching before the ledger and without.
            if system != site.system && !cell.writes() {
                continue;
            }
            let run = Run {
                cell: *cell,
                connections: cell.connections(),
                seconds: self.seconds,
                players: site.players,
                page: self.page,
                seed: round + 1,
                key: &site.key,
            };
            let figures = self.cell(&serve, run, &site.database)?;
            eprintln!("round {}: {}: {}: {:.0}/s", round + 1, system.title(), cell.title(), figures.per_second);
            table.entry((*cell, system)).or_default().push(figures);
        }
        // What it has accepted must be through before it is killed: between the ledger and the sets nobody would find it again.
        self.rest(site).await?;
        let peak = serve.peak_memory_mb()?;
        if check.after {
            self.compare_at_rest(site, system, serve).await?;
        }
        Ok(peak)
    }

    /// Compares once all that was sent has been written. Counts that may be a minute old are read anew by a server that starts.
    pub async fn compare_at_rest(&self, site: &Site, system: System, mut serve: Serve) -> Outcome<()> {
        self.rest(site).await?;
        if system.is_stale_by_design() {
            serve = site.serve(self.bench, system, self.options)?;
        }
        check::compare(self.bench, site, system, &serve.address, self.page).await
    }

    /// Waits until nobody works in a store's database for a second.
    async fn rest(&self, site: &Site) -> Outcome<()> {
        let sql = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()";
        let (mut quiet, end) = (0, Instant::now() + PATIENCE);
        while quiet < 10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            quiet = if self.bench.psql_in(&site.database, &[sql])? == "0" { quiet + 1 } else { 0 };
            if Instant::now() > end {
                return Err(format!("{}: it does not come to rest", site.system.title()).into());
            }
        }
        Ok(())
    }

    /// Latencies of ranks for one caller, on a server of its own.
    pub async fn growth(&self, site: &Site, round: u32, must_check: bool) -> Outcome<Figures> {
        let serve = site.serve(self.bench, site.system, self.options)?;
        if must_check {
            check::compare(self.bench, site, site.system, &serve.address, self.page).await?;
        }
        let run = Run {
            cell: Cell::Rank,
            connections: 1,
            seconds: self.seconds,
            players: site.players,
            page: self.page,
            seed: round + 1,
            key: &site.key,
        };
        self.cell(&serve, run, &site.database)
    }

    /// The top 10 as a constant, which tells what HTTP and load cost by themselves.
    pub fn constant(&self, round: u32, table: &mut Table) -> Outcome<()> {
        if !self.cells.contains(&Cell::Top) {
            return Ok(());
        }
        let serve = serve_constant(self.options)?;
        let run = Run {
            cell: Cell::Top,
            connections: 32,
            seconds: self.seconds,
            players: 1,
            page: 1,
            seed: round + 1,
            key: "",
        };
        let figures = self.cell(&serve, run, "postgres")?;
        eprintln!("round {}: {}: {:.0}/s", round + 1, System::Constant.title(), figures.per_second);
        table.entry((Cell::Top, System::Constant)).or_default().push(figures);
        Ok(())
    }

    fn cell(&self, serve: &Serve, run: Run, database: &str) -> Outcome<Figures> {
        load::run(self.dir, &serve.address, Run { seconds: WARM_UP, seed: run.seed + 1_000, ..run })?;
        let mut wal = String::new();
        if run.cell.writes() {
            // So that none pays for what others have written.
            self.bench.psql("CHECKPOINT")?;
            wal = self.bench.psql("SELECT pg_current_wal_lsn()")?;
        }
        let Answers { requests, seconds, p50, p99, p999, errors } = load::run(self.dir, &serve.address, run)?;
        let scores = requests.saturating_sub(errors) as f64 * run.cell.weight();
        let wal_bytes_per_score = if run.cell.writes() && scores > 0.0 {
            let sql = format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{wal}')");
            Some(self.bench.psql_in(database, &[&sql])?.parse::<f64>()? / scores)
        } else {
            None
        };
        let per_second = scores / seconds;
        let latency = |ms| if requests == 0 { f64::NAN } else { ms };
        Ok(Figures {
            per_second,
            p50_ms: latency(p50),
            p99_ms: latency(p99),
            p999_ms: latency(p999),
            errors,
            wal_bytes_per_score,
        })
    }
}
