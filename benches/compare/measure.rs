//! The cells: one system, one kind of request, a few seconds.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    cell::Cell,
    check,
    common::{
        Bench, Outcome, Serve,
        wrk::{self, Answers},
    },
    system::{Options, Site, System, serve_constant},
};

/// How long a system may take to answer what it was asked.
const PATIENCE: Duration = Duration::from_mins(10);

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

/// What a server is asked.
#[derive(Clone, Copy)]
struct Run<'a> {
    cell: Cell,
    connections: u32,
    players: u64,
    /// The same seed asks for the same players.
    seed: u32,
    /// Server key, where one is asked for.
    key: &'a str,
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
            let run = Run {
                cell: *cell,
                connections: cell.connections(),
                players: site.players,
                seed: round + 1,
                key: &site.key,
            };
            let figures = self.cell(&serve, run, Some(site)).await?;
            eprintln!("round {}: {}: {}: {:.0}/s", round + 1, system.title(), cell.title(), figures.per_second);
            table.entry((*cell, system)).or_default().push(figures);
        }
        let peak = serve.peak_memory_mb()?;
        if check.after {
            self.compare_at_rest(site, system, serve).await?;
        } else {
            drop(serve);
        }
        self.tidy(site)?;
        Ok(peak)
    }

    /// What a system leaves behind is done now: else it would be done while the next is measured.
    pub fn tidy(&self, site: &Site) -> Outcome<()> {
        self.bench.psql_in(&site.database, &["VACUUM (ANALYZE)", "CHECKPOINT"])?;
        Ok(())
    }

    /// Compares once all that was sent has been written. Counts that may be a minute old are read anew by a server that starts.
    pub async fn compare_at_rest(&self, site: &Site, system: System, mut serve: Serve) -> Outcome<()> {
        self.rest(site).await?;
        if system.is_stale_by_design() {
            serve = site.serve(self.bench, system, self.options)?;
        }
        check::compare(self.bench, site, system, &serve.address, self.page).await
    }

    /// Waits until a store's server works on nothing that it was asked: `wrk` leaves without its last answers.
    async fn rest(&self, site: &Site) -> Outcome<()> {
        let sql = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle'
                     AND pid <> pg_backend_pid()";
        let (mut quiet, end) = (0, Instant::now() + PATIENCE);
        while quiet < 5 {
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
        let run = Run { cell: Cell::Rank, connections: 1, players: site.players, seed: round + 1, key: &site.key };
        self.cell(&serve, run, Some(site)).await
    }

    /// The top 10 as a constant, which tells what HTTP and load cost by themselves.
    pub async fn constant(&self, round: u32, table: &mut Table) -> Outcome<()> {
        if !self.cells.contains(&Cell::Top) {
            return Ok(());
        }
        let serve = serve_constant(self.options)?;
        let run = Run { cell: Cell::Top, connections: Cell::Top.connections(), players: 1, seed: round + 1, key: "" };
        let figures = self.cell(&serve, run, None).await?;
        eprintln!("round {}: {}: {:.0}/s", round + 1, System::Constant.title(), figures.per_second);
        table.entry((Cell::Top, System::Constant)).or_default().push(figures);
        Ok(())
    }

    /// `site` is what the server works on, if on anything.
    async fn cell(&self, serve: &Serve, run: Run<'_>, site: Option<&Site>) -> Outcome<Figures> {
        // Half as long beforehand, which does not count: connections are made, and statements prepared on each.
        let length = self.seconds * run.cell.stretch();
        self.load(serve, Run { seed: run.seed + 1_000, ..run }, self.seconds.div_ceil(2))?;
        if let Some(site) = site {
            self.rest(site).await?;
        }
        let writes = run.cell.writes();
        let mut wal = String::new();
        if writes {
            // So that none pays for what others have written.
            self.bench.psql("CHECKPOINT")?;
            wal = self.bench.psql("SELECT pg_current_wal_lsn()")?;
        }
        let Answers { requests, seconds, p50, p99, p999, errors } = self.load(serve, run, length)?;
        let scores = requests.saturating_sub(errors) as f64 * run.cell.weight();
        let wal_bytes_per_score = if writes && scores > 0.0 {
            let sql = format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{wal}')");
            Some(self.bench.psql(&sql)?.parse::<f64>()? / scores)
        } else {
            None
        };
        if let Some(site) = site {
            self.rest(site).await?;
        }
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

    fn load(&self, serve: &Serve, run: Run<'_>, seconds: u32) -> Outcome<Answers> {
        let request = run.cell.request(run.players, self.page);
        let (address, varies) = (&serve.address, run.cell.varies());
        let Run { connections, seed, key, .. } = run;
        wrk::run(self.dir, &wrk::Run { address, connections, seconds, seed, key, request: &request, varies })
    }
}
