//! Shared parts of the benchmarks: private servers, commands, and a description of the machine.

use std::{
    env,
    error::Error,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

#[allow(dead_code, reason = "one benchmark does not use it")]
pub mod load;
#[allow(dead_code, reason = "only two benchmarks measure processes")]
pub mod processor;
#[allow(dead_code, reason = "only two benchmarks compare rankings")]
pub mod ranking_reads;
pub mod read;
#[allow(dead_code, reason = "not every benchmark uses it")]
pub mod wrk;

use centile::{dev::demo::Servers, dev::local::PostgresOptions};

/// The measured program.
pub const CENTILE: &str = env!("CARGO_BIN_EXE_centile");

/// PostgreSQL settings recommended in docs/configuration.md, without `shared_buffers`.
#[allow(dead_code, reason = "some measure what PostgreSQL comes with")]
pub const RECOMMENDED: &[(&str, &str)] =
    &[("min_wal_size", "4GB"), ("max_wal_size", "16GB"), ("checkpoint_timeout", "30min"), ("wal_compression", "lz4")];

pub type BenchResult<T> = Result<T, Box<dyn Error>>;

/// Returns the number in an environment variable, or the default if it is empty or not set.
#[allow(dead_code, reason = "not every benchmark uses it")]
pub fn number_of(variable: &str, default: u32) -> BenchResult<u32> {
    let text = env::var(variable).unwrap_or_default();
    if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{variable}: {error}"))?) }
}

/// Memory of this machine, in MiB.
pub fn memory_mb() -> BenchResult<u32> {
    let kib: u64 = line_of("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse()?;
    Ok(u32::try_from(kib / 1024)?)
}

/// Huge pages that a server can still take, in MiB.
#[allow(dead_code, reason = "only one benchmark chooses whether to use them")]
pub fn free_huge_mb() -> u64 {
    let number = |name| line_of("/proc/meminfo", name).trim_end_matches(" kB").parse().unwrap_or(0_u64);
    // Pages promised to a running server count as free.
    number("HugePages_Free").saturating_sub(number("HugePages_Rsvd")) * number("Hugepagesize") / 1024
}

/// Returns the value of a name in a file of /proc.
fn line_of(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_start_matches(['\t', ' ', ':']).trim().to_owned()
}

/// A private PostgreSQL and Redis.
pub struct Bench {
    pub servers: Servers,
}

impl Bench {
    /// Like [`Self::run`], with the settings recommended in docs/configuration.md.
    #[allow(dead_code, reason = "some measure what PostgreSQL comes with")]
    pub async fn run_as_recommended(measure: impl AsyncFnOnce(&Self, &Path) -> BenchResult<()>) -> BenchResult<()> {
        Self::run_as_recommended_for(0, measure).await
    }

    /// Like [`Self::run_as_recommended`], with `shared_buffers` for players with three open periods
    /// as docs/sizing.md recommends: a quarter of the memory, at least 330 bytes per player and
    /// period.
    #[allow(dead_code, reason = "most benchmarks have few players")]
    pub async fn run_as_recommended_for(
        players: u64,
        measure: impl AsyncFnOnce(&Self, &Path) -> BenchResult<()>,
    ) -> BenchResult<()> {
        let settings = RECOMMENDED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let hot_mb = u32::try_from((players * 3 * 330).div_ceil(1 << 20))?;
        let shared_buffers_mb = hot_mb.max(memory_mb()? / 4);
        Self::run_with(PostgresOptions { settings, shared_buffers_mb, ..Self::ephemeral() }, measure).await
    }

    /// Starts the servers, migrates, measures, and removes everything. `measure` may write files in
    /// its folder.
    #[allow(dead_code, reason = "one benchmark restarts its servers")]
    pub async fn run(measure: impl AsyncFnOnce(&Self, &Path) -> BenchResult<()>) -> BenchResult<()> {
        Self::run_with(Self::ephemeral(), measure).await
    }

    async fn run_with(
        options: PostgresOptions,
        measure: impl AsyncFnOnce(&Self, &Path) -> BenchResult<()>,
    ) -> BenchResult<()> {
        Self::in_folder(async |dir| {
            Self::on(dir, options, async |bench| {
                bench.centile(&["migrate"])?;
                measure(bench, dir).await
            })
            .await
        })
        .await
    }

    /// Runs `measure` with a temporary folder.
    pub async fn in_folder(measure: impl AsyncFnOnce(&Path) -> BenchResult<()>) -> BenchResult<()> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(".centile/bench-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let result = measure(&dir).await;
        fs::remove_dir_all(&dir)?;
        result
    }

    /// Starts the servers on the data in `dir`, measures, and stops the servers.
    pub async fn on<T>(
        dir: &Path,
        options: PostgresOptions,
        measure: impl AsyncFnOnce(&Self) -> BenchResult<T>,
    ) -> BenchResult<T> {
        let bench = Self { servers: Servers::start(dir, options).await? };
        let measured = measure(&bench).await;
        bench.servers.stop().await?;
        measured
    }

    /// Returns options of a server whose data are removed at the end.
    pub fn ephemeral() -> PostgresOptions {
        PostgresOptions { ephemeral: true, ..PostgresOptions::durable() }
    }

    /// Runs a command of centile and returns its output.
    pub fn centile(&self, arguments: &[&str]) -> BenchResult<String> {
        output(self.command().args(arguments))
    }

    /// Like [`Self::centile`], in another database.
    #[allow(dead_code, reason = "only one benchmark has several databases")]
    pub fn centile_in(&self, database: &str, arguments: &[&str]) -> BenchResult<String> {
        output(self.command().env("DATABASE_URL", self.servers.postgres.url(database)).args(arguments))
    }

    /// Returns a command of centile with the URLs of the servers.
    pub fn command(&self) -> Command {
        let mut command = Command::new(CENTILE);
        command.env("DATABASE_URL", self.servers.database_url()).env("REDIS_URL", self.servers.redis_url());
        // Benchmarks bound the in-flight scores themselves, and none must be refused.
        command.env("CENTILE_WRITE_WAIT", "60000");
        command
    }

    /// Runs statements in one session. Returns rows as lines, with columns separated by `|`.
    pub fn psql(&self, sql: &str) -> BenchResult<String> {
        self.psql_in("postgres", &[sql])
    }

    /// Like [`Self::psql`], in another database. Each text is a separate `-c` and may be a psql
    /// command.
    pub fn psql_in(&self, database: &str, texts: &[&str]) -> BenchResult<String> {
        let mut command = Command::new(self.servers.postgres.program("psql"));
        command.arg(self.servers.postgres.url(database)).args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        for text in texts {
            command.args(["-c", text]);
        }
        Ok(output(&mut command)?.trim_end().to_owned())
    }

    /// Describes the date, the machine and the server in a line.
    #[allow(dead_code, reason = "one benchmark has several servers")]
    pub fn machine(&self) -> BenchResult<String> {
        let line = machine_with(&self.psql("SHOW server_version")?);
        let file = fs::read_to_string(Path::new(&self.psql("SHOW data_directory")?).join("postmaster.pid"))?;
        let pid = file.lines().next().unwrap_or_default();
        let has_huge_pages = !matches!(&*line_of(&format!("/proc/{pid}/status"), "HugetlbPages"), "" | "0 kB");
        Ok(if has_huge_pages { format!("{line} with huge pages") } else { line })
    }
}

/// Describes the date, the machine and the version of PostgreSQL in a line.
pub fn machine_with(version: &str) -> String {
    format!(
        "{}, {} cores ({}) shared by servers and load, {} RAM, PostgreSQL {version}",
        chrono::Utc::now().format("%Y-%m-%d"),
        std::thread::available_parallelism().map_or(0, usize::from),
        Some(line_of("/proc/cpuinfo", "model name"))
            .filter(|name| !name.is_empty())
            .as_deref()
            .unwrap_or("CPU unknown"),
        memory_mb().map_or_else(|_| "unknown".to_owned(), |mb| format!("{:.0} GB", f64::from(mb) / 1024.0)),
    )
}

/// A leaderboard server, usually `centile serve`, that stops when this value is dropped.
pub struct Serve {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
}

impl Serve {
    #[allow(dead_code, reason = "one benchmark has a database per system")]
    pub fn start(bench: &Bench, arguments: &[&str]) -> BenchResult<Self> {
        Self::spawn(
            bench
                .command()
                .args(["serve", "--listen", "127.0.0.1:0", "--address-rate", "0", "--key-rate", "0"])
                .args(arguments),
        )
    }

    /// Starts a program that prints its address like `centile serve`.
    pub fn spawn(command: &mut Command) -> BenchResult<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("serve has no standard output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").ok_or("serve did not start")?.to_owned();
        Ok(Self { child, address })
    }
}

#[allow(dead_code, reason = "one benchmark does not use it")]
impl Serve {
    /// Returns its peak memory, in MiB.
    pub fn peak_memory_mb(&self) -> BenchResult<f64> {
        self.memory_mb("VmHWM")
    }

    /// Returns its current (`VmRSS`) or peak (`VmHWM`) memory, in MiB.
    pub fn memory_mb(&self, which: &str) -> BenchResult<f64> {
        let memory = line_of(&format!("/proc/{}/status", self.child.id()), which);
        Ok(memory.trim_end_matches(" kB").parse::<f64>().map_err(|_| "the kernel does not report memory")? / 1024.0)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Errors only mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command and returns its output. The error of a failed command contains all of its output.
pub fn output(command: &mut Command) -> BenchResult<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        Ok(text)
    } else {
        Err(format!("{name}: {text}{}", String::from_utf8_lossy(&done.stderr)).into())
    }
}

/// Creates a board with three periods, in which each player has scored once, with set-based SQL.
#[allow(dead_code, reason = "one benchmark fills weeks instead")]
pub fn fill(bench: &Bench, board: &str, players: u32) -> BenchResult<()> {
    let board_id = bench.psql(&format!(
        "SELECT centile.create_board('{board}', '{{\"periods\": [\"all_time\", \"week\", \"month\"]}}')"
    ))?;
    bench.psql(&format!(
        "INSERT INTO centile_store.users (external_id, name, lane_hash)
         SELECT 'player-' || n, 'Player ' || n, centile.lane_hash('player-' || n) FROM generate_series(1, {players}) AS n"
    ))?;
    bench.psql(&format!(
        "SELECT setseed(0.5), centile_store.open_periods({board_id}, ARRAY[now()]);
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         SELECT {board_id}, u.id, (random() * 1000000)::bigint, clock_timestamp(), u.lane_hash % 2, 1 FROM centile_store.users u;
         UPDATE centile_store.board_lanes SET batch = 1, last_at = clock_timestamp() WHERE board_id = {board_id}"
    ))?;
    bench.psql("ANALYZE centile_store.score_transactions")?;
    let period_ids = bench.psql(&format!("SELECT id FROM centile_store.periods WHERE board_id = {board_id}"))?;
    fill_rankings(bench, "postgres", &period_ids.lines().collect::<Vec<_>>())?;
    bench.psql("VACUUM ANALYZE").map(drop)
}

/// Writes players and events of a board without events from a CSV file of
/// `user_id,user_name,points`, with set-based SQL. All events have the same time. The board has no
/// standings yet.
#[allow(dead_code, reason = "only two benchmarks fill boards from files")]
pub fn fill_ledger(bench: &Bench, database: &str, board: &str, file: &Path) -> BenchResult<()> {
    let given = "CREATE UNLOGGED TABLE given (user_id text COLLATE \"C\", user_name text, points bigint)";
    let copy = format!("\\copy given FROM '{}' CSV HEADER", file.display());
    let users = "INSERT INTO centile_store.users (external_id, name, lane_hash)
                 SELECT g.user_id, min(g.user_name), centile.lane_hash(g.user_id) FROM given g GROUP BY g.user_id ORDER BY g.user_id
                 ON CONFLICT ON CONSTRAINT users_external_id_key DO NOTHING";
    // Sorted by player, so that rows are appended to the ledger's indexes.
    let ledger = format!(
        "SELECT centile_store.open_periods(b.board_id, ARRAY[now()]) FROM centile.boards b WHERE b.slug = '{board}';
         INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, occurred_at, lane, batch)
         SELECT b.id, u.id, 'score', g.points, now(), u.lane_hash % b.lanes, 1
         FROM given g
         JOIN centile_store.users u ON u.external_id = g.user_id
         CROSS JOIN centile_store.boards b
         WHERE b.slug = '{board}'
         ORDER BY u.id;
         UPDATE centile_store.board_lanes l SET batch = 1, last_at = now()
         FROM centile_store.boards b
         WHERE b.id = l.board_id AND b.slug = '{board}'"
    );
    bench.psql_in(
        database,
        &[
            "SET work_mem = '256MB'",
            "SELECT centile.ensure_ledger_months()",
            given,
            &copy,
            "ANALYZE given",
            users,
            "ANALYZE centile_store.users",
            &ledger,
            "DROP TABLE given",
            "ANALYZE centile_store.score_transactions",
        ],
    )?;
    Ok(())
}

/// Writes the standings of periods of a board from the ledger, and builds the rankings.
#[allow(dead_code, reason = "not every benchmark fills some")]
pub fn fill_rankings(bench: &Bench, database: &str, period_ids: &[&str]) -> BenchResult<()> {
    let standings = format!(
        "INSERT INTO centile_store.players AS p (board_id, lane, user_id, period_ids, rank_keys, tie_keys, zero_periods)
         SELECT b.id, u.lane_hash % b.lanes, u.id, array_agg(q.id ORDER BY q.id), array_agg(e.rank_key ORDER BY q.id),
                array_agg(e.tie_key ORDER BY q.id), array_agg(q.id ORDER BY q.id) FILTER (WHERE e.only_zeros)
         FROM centile_store.periods q
         JOIN centile_store.boards b ON b.id = q.board_id
         CROSS JOIN LATERAL centile.entries_from_ledger(q.id) e
         JOIN centile_store.users u ON u.id = e.user_id
         WHERE q.id IN ({})
         GROUP BY b.id, u.id
         ON CONFLICT (board_id, user_id) DO UPDATE
         SET period_ids = p.period_ids || excluded.period_ids, rank_keys = p.rank_keys || excluded.rank_keys,
             tie_keys = p.tie_keys || excluded.tie_keys, zero_periods = p.zero_periods || excluded.zero_periods
         WHERE NOT excluded.period_ids <@ p.period_ids",
        period_ids.join(",")
    );
    bench.psql_in(database, &["SET work_mem = '256MB'", &standings, "ANALYZE centile_store.players"])?;
    for period_id in period_ids {
        let ranking = format!(
            "DO $$ DECLARE r bigint := centile_store.begin_rebuild({period_id}); l smallint;
             BEGIN
                 PERFORM centile_store.fill_bounds(r);
                 FOR l IN SELECT f.lane FROM centile_store.fillings f WHERE f.ranking_id = r LOOP
                     WHILE (SELECT x.players > 0 FROM centile_store.fill_rows(r, l) x) LOOP END LOOP;
                 END LOOP;
                 PERFORM centile_store.swap_ranking(r, 2147483647);
                 ASSERT (SELECT centile_store.player_count(r)) > 0, 'the ranking has no players';
             END $$"
        );
        bench.psql_in(database, &[&ranking])?;
    }
    Ok(())
}

/// Returns the median, the upper one for an even number of values; NaN without values.
#[allow(dead_code, reason = "not every benchmark has rounds")]
pub fn median(mut values: Vec<f64>) -> f64 {
    percentile(&mut values, 50.0)
}

/// Returns a percentile.
#[allow(dead_code, reason = "not every benchmark uses it")]
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let place = (values.len() as f64 * percent / 100.0) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
