//! The cells: one system, one kind of request, a few seconds.

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
        Bench, Outcome, Serve,
        wrk::{self, Answers},
    },
    system::{Options, Site, System, serve_constant},
};

/// How long a system may take to answer what it was asked.
const PATIENCE: Duration = Duration::from_mins(10);
/// Answers that a cell is to give on each connection: what is under way at its end does not count, and is to be little beside them.
const ANSWERS_EACH: f64 = 20.0;
/// Longest cell, in seconds, where that many take too long.
const LONGEST: u32 = 30;

/// What a cell gave in a round. Absent, as null in JSON, is what cannot be told from so few answers.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    /// How long it took, and what was answered meanwhile, with errors too.
    pub seconds: f64,
    pub requests: u64,
    pub errors: u64,
    /// Requests answered, or scores.
    pub per_second: f64,
    /// Scores acknowledged, those before the cell too.
    #[serde(skip)]
    acknowledged: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
}

impl Figures {
    fn of(cell: Cell, before: Answers, Answers { requests, seconds, p50, p99, p999, errors }: Answers) -> Self {
        let latency = |ms, least| if requests < least { f64::NAN } else { ms };
        let answered = requests.saturating_sub(errors) as f64 * cell.weight();
        Self {
            seconds,
            requests,
            errors,
            per_second: if requests == 0 { f64::NAN } else { answered / seconds },
            acknowledged: answered + before.requests.saturating_sub(before.errors) as f64 * cell.weight(),
            p50_ms: latency(p50, 1),
            p99_ms: latency(p99, 100),
            p999_ms: latency(p999, 1_000),
        }
    }
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

    /// Reads every file of a store once, so that the memory holds of it what there is room for: whoever uses one of these systems has no
    /// others beside it, which push its data out.
    pub fn read_in(&self, site: &Site) -> Outcome<()> {
        let place = "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database WHERE datname = current_database()";
        for file in fs::read_dir(self.bench.psql_in(&site.database, &[place])?)? {
            match File::open(file?.path()) {
                Ok(mut file) => io::copy(&mut file, &mut io::sink())?,
                // PostgreSQL has removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
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
        self.read_in(site)?;
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
        // Half as long beforehand, which does not count: connections are made, statements prepared on each, and it is seen how many
        // answers there are.
        let before = self.load(serve, Run { seed: run.seed + 1_000, ..run }, self.seconds.div_ceil(2))?;
        if let Some(site) = site {
            self.rest(site).await?;
        }
        if run.cell.writes() {
            // So that none pays for what others have written.
            self.bench.psql("CHECKPOINT")?;
        }
        let wanted = ANSWERS_EACH * f64::from(run.connections) * before.seconds / before.requests as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "half a minute at most")]
        let seconds = wanted.clamp(self.seconds.into(), self.seconds.max(LONGEST).into()).ceil() as u32;
        let figures = Figures::of(run.cell, before, self.load(serve, run, seconds)?);
        if let Some(site) = site {
            self.rest(site).await?;
        }
        Ok(figures)
    }

    fn load(&self, serve: &Serve, run: Run<'_>, seconds: u32) -> Outcome<Answers> {
        let request = run.cell.request(run.players, self.page);
        let (address, varies) = (&serve.address, run.cell.varies());
        let Run { connections, seed, key, .. } = run;
        wrk::run(self.dir, &wrk::Run { address, connections, seconds, seed, key, request: &request, varies })
    }
}

/// Whether a store has what was acknowledged: a score that is answered and not there would be quick.
pub struct Written {
    points: f64,
    pub acknowledged: f64,
}

impl Written {
    /// Before scores are sent.
    pub fn begin(bench: &Bench, site: &Site, system: System) -> Outcome<Self> {
        Ok(Self { points: points(bench, site, system)?, acknowledged: 0.0 })
    }

    /// Once they are answered. Scores are 0 to 1,000 points by chance, so that of the number of them the sum is known to within five
    /// standard deviations; what was sent and never counted comes on top.
    pub fn check(&self, bench: &Bench, site: &Site, system: System) -> Outcome<()> {
        let (mean, deviation) = (500.0, (1_001_f64.powi(2) - 1.0).sqrt() / 12_f64.sqrt());
        let least = self.acknowledged * mean - 5.0 * deviation * self.acknowledged.sqrt();
        let grown = points(bench, site, system)? - self.points;
        if grown < least {
            let Self { acknowledged, .. } = self;
            return Err(format!("{}: {acknowledged} scores answered, {grown} points written", system.title()).into());
        }
        Ok(())
    }
}

/// The sum of all points that a store holds.
fn points(bench: &Bench, site: &Site, system: System) -> Outcome<f64> {
    Ok(bench.psql_in(&site.database, &[system.points()])?.parse()?)
}
