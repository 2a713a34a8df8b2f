//! The cells: one system and one kind of request for a few seconds.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    cell::Cell,
    check,
    common::{
        Bench, BenchResult, Serve,
        wrk::{self, Answers},
    },
    system::{Options, Site, System, serve_constant},
};

/// Timeout for a system to finish its requests.
const PATIENCE: Duration = Duration::from_mins(10);
/// Minimum responses per connection and cell, so that in-flight requests at the end, which do not
/// count, are few.
const ANSWERS_EACH: f64 = 20.0;
/// Maximum duration of a cell, in seconds.
const LONGEST: u32 = 30;

/// Results of a cell in a round. Percentiles are absent (null in JSON) with too few responses.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    /// Seconds, and the responses in that time, including errors.
    pub seconds: f64,
    pub requests: u64,
    pub errors: u64,
    /// Seconds after the last response until Centile's bucket rows were current.
    pub behind_seconds: f64,
    /// Answered requests, or scores. The time until bucket rows were current counts.
    pub per_second: f64,
    /// The same until the last response.
    pub answered_per_second: f64,
    /// Acknowledged scores, including the warm-up.
    #[serde(skip)]
    acknowledged: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
}

impl Figures {
    fn of(cell: Cell, before: Answers, answers: Answers, behind_seconds: f64) -> Self {
        let Answers { requests, seconds, p50, p99, p999, errors } = answers;
        let latency = |ms, least| if requests < least { f64::NAN } else { ms };
        let answered = requests.saturating_sub(errors) as f64 * cell.weight();
        let rate = |more: f64| if requests == 0 { f64::NAN } else { answered / (seconds + more) };
        Self {
            seconds,
            requests,
            errors,
            behind_seconds,
            per_second: rate(behind_seconds),
            answered_per_second: rate(0.0),
            acknowledged: answered + before.requests.saturating_sub(before.errors) as f64 * cell.weight(),
            p50_ms: latency(p50, 1),
            p99_ms: latency(p99, 100),
            p999_ms: latency(p999, 1_000),
        }
    }
}

/// Figures of each cell and system, by round.
pub type Table = BTreeMap<(Cell, System), Vec<Figures>>;

/// Parameters that cells share.
pub struct Measure<'a> {
    pub bench: &'a Bench,
    pub dir: &'a Path,
    pub options: &'a Options,
    pub cells: &'a [Cell],
    pub seconds: u32,
    pub page: u64,
}

/// Parameters of a load.
#[derive(Clone, Copy)]
struct Run<'a> {
    cell: Cell,
    connections: u32,
    players: u64,
    /// Random seed of the players.
    seed: u32,
    /// Server key, if required.
    key: &'a str,
}

/// When to compare responses with `rank()`.
#[derive(Clone, Copy)]
pub struct Check {
    pub before: bool,
    pub after: bool,
}

impl Measure<'_> {
    /// Runs all cells of a system on a new server. Returns the peak memory of the server, in MiB.
    pub async fn system(
        &self,
        site: &Site,
        system: System,
        round: u32,
        check: Check,
        table: &mut Table,
    ) -> BenchResult<f64> {
        let serve = site.serve(self.bench, system, self.options)?;
        if check.before {
            check::compare(self.bench, site, system, &serve.address, self.page).await?;
        }
        self.read_in(site)?;
        let mut written = Written::begin(self.bench, site, system)?;
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
            if cell.writes() {
                written.acknowledged += figures.acknowledged;
            }
            table.entry((*cell, system)).or_default().push(figures);
        }
        written.check(self.bench, site, system)?;
        let peak = serve.peak_memory_mb()?;
        if check.after {
            self.compare_at_rest(site, system, serve).await?;
        } else {
            drop(serve);
        }
        self.tidy(site)?;
        Ok(peak)
    }

    /// Reads all files of a store once to warm the page cache. The other stores on this machine
    /// evict its data, which would not happen in production.
    pub fn read_in(&self, site: &Site) -> BenchResult<()> {
        let place = "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database WHERE datname = current_database()";
        for file in fs::read_dir(self.bench.psql_in(&site.database, &[place])?)? {
            match File::open(file?.path()) {
                Ok(mut file) => io::copy(&mut file, &mut io::sink())?,
                // PostgreSQL has removed the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }

    /// Vacuums and writes out dirty pages, so that this work does not slow the next system.
    pub fn tidy(&self, site: &Site) -> BenchResult<()> {
        self.bench.psql_in(&site.database, &["VACUUM (ANALYZE)", "CHECKPOINT"])?;
        Ok(())
    }

    /// Compares once all sent scores are written. Starts a new server if its counts may be a minute
    /// old.
    pub async fn compare_at_rest(&self, site: &Site, system: System, mut serve: Serve) -> BenchResult<()> {
        self.rest(site).await?;
        if system.is_stale_by_design() {
            serve = site.serve(self.bench, system, self.options)?;
        }
        check::compare(self.bench, site, system, &serve.address, self.page).await
    }

    /// Waits until the servers are idle, because `wrk` does not wait for its last responses.
    async fn rest(&self, site: &Site) -> BenchResult<()> {
        let sql = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle'
                     AND pid <> pg_backend_pid()";
        let (mut quiet, end) = (0, Instant::now() + PATIENCE);
        while quiet < 5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            quiet = if self.bench.psql_in(&site.database, &[sql])? == "0" { quiet + 1 } else { 0 };
            if Instant::now() > end {
                return Err(format!("{}: the server does not become idle", site.system.title()).into());
            }
        }
        Ok(())
    }

    /// Measures latencies of ranks for one caller, on a new server.
    pub async fn growth(&self, site: &Site, round: u32, must_check: bool) -> BenchResult<Figures> {
        let serve = site.serve(self.bench, site.system, self.options)?;
        if must_check {
            check::compare(self.bench, site, site.system, &serve.address, self.page).await?;
        }
        self.read_in(site)?;
        let run = Run { cell: Cell::Rank, connections: 1, players: site.players, seed: round + 1, key: &site.key };
        self.cell(&serve, run, Some(site)).await
    }

    /// Measures a constant top 10, which shows the cost of HTTP and load alone.
    pub async fn constant(&self, round: u32, table: &mut Table) -> BenchResult<()> {
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

    /// `site` is the store of the server, if any.
    async fn cell(&self, serve: &Serve, run: Run<'_>, site: Option<&Site>) -> BenchResult<Figures> {
        // The warm-up of half the duration opens connections, prepares statements and estimates the
        // number of responses.
        let before = self.load(serve, Run { seed: run.seed + 1_000, ..run }, self.seconds.div_ceil(2))?;
        if let Some(site) = site {
            self.rest(site).await?;
            self.catch_up(site).await?;
        }
        if run.cell.writes() {
            // Checkpoint, so that no cell pays for the writes of another.
            self.bench.psql("CHECKPOINT")?;
        }
        let wanted = ANSWERS_EACH * f64::from(run.connections) * before.seconds / before.requests as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most half a minute")]
        let seconds = wanted.clamp(self.seconds.into(), self.seconds.max(LONGEST).into()).ceil() as u32;
        let answers = self.load(serve, run, seconds)?;
        let Some(site) = site else { return Ok(Figures::of(run.cell, before, answers, 0.0)) };
        let behind = if run.cell.writes() { self.catch_up(site).await? } else { Duration::ZERO };
        self.rest(site).await?;
        Ok(Figures::of(run.cell, before, answers, behind.as_secs_f64()))
    }

    /// Waits until bucket rows are current, and returns how long that took: zero for other systems.
    async fn catch_up(&self, site: &Site) -> BenchResult<Duration> {
        if site.system != System::Centile {
            return Ok(Duration::ZERO);
        }
        let begin = Instant::now();
        let sql = "SELECT exists (SELECT FROM centile_store.boards_behind())";
        while self.bench.psql_in(&site.database, &[sql])? == "t" {
            if begin.elapsed() > PATIENCE {
                return Err("bucket rows do not become current".into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(begin.elapsed())
    }

    fn load(&self, serve: &Serve, run: Run<'_>, seconds: u32) -> BenchResult<Answers> {
        let request = run.cell.request(run.players, self.page);
        let (address, varies) = (&serve.address, run.cell.varies());
        let Run { connections, seed, key, .. } = run;
        wrk::run(self.dir, &wrk::Run { address, connections, seconds, seed, key, request: &request, varies })
    }
}

/// Checks that a store holds the acknowledged scores, because losing scores would be fast.
pub struct Written {
    points: f64,
    pub acknowledged: f64,
}

impl Written {
    /// Records the state before scores are sent.
    pub fn begin(bench: &Bench, site: &Site, system: System) -> BenchResult<Self> {
        Ok(Self { points: points(bench, site, system)?, acknowledged: 0.0 })
    }

    /// Checks the state after the responses. Scores are random, 0 to 1,000 points, so their number
    /// gives a lower limit of the sum, within five standard deviations. Unacknowledged scores may
    /// add to it.
    pub fn check(&self, bench: &Bench, site: &Site, system: System) -> BenchResult<()> {
        let (mean, deviation) = (500.0, (1_001_f64.powi(2) - 1.0).sqrt() / 12_f64.sqrt());
        let least = self.acknowledged * mean - 5.0 * deviation * self.acknowledged.sqrt();
        let grown = points(bench, site, system)? - self.points;
        if grown < least {
            let Self { acknowledged, .. } = self;
            return Err(format!(
                "{}: {acknowledged} scores acknowledged, but only {grown} points written",
                system.title()
            )
            .into());
        }
        Ok(())
    }
}

/// Returns the sum of all points in a store.
fn points(bench: &Bench, site: &Site, system: System) -> BenchResult<f64> {
    Ok(bench.psql_in(&site.database, &[system.points()])?.parse()?)
}
