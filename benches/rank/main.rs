//! The rank of a random player among a million: Centile over HTTP beside `count(*)` over an indexed table, on one private
//! PostgreSQL, in one run, in turn. `make bench` runs it and prints the table that stands in docs/benchmarks.md.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use centile::{demo::Servers, local::PostgresOptions};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

const CENTILE: &str = env!("CARGO_BIN_EXE_centile");
const PLAYERS: u32 = 1_000_000;
const ROUNDS: usize = 3;
const SECONDS: u32 = 10;
const SEED: u64 = 1;
/// Players whose ranks are compared before and after the timing.
const SAMPLE: usize = 200;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(".centile/bench-{}", std::process::id()));
    let result = run(&dir).await;
    fs::remove_dir_all(&dir)?;
    result
}

async fn run(dir: &Path) -> Outcome<()> {
    fs::create_dir_all(dir)?;
    let servers = Servers::start(dir, PostgresOptions { ephemeral: true, ..PostgresOptions::durable() }).await?;
    let bench = Bench { url: servers.database_url(), redis: servers.redis_url(), dir: dir.to_owned() };
    let measured = bench.measure(&|name| servers.postgres.program(name));
    servers.stop().await?;
    measured
}

struct Bench {
    url: String,
    redis: String,
    dir: PathBuf,
}

impl Bench {
    fn measure(&self, program: &dyn Fn(&str) -> PathBuf) -> Outcome<()> {
        self.centile(&["migrate"])?;
        self.centile(&[
            "board",
            "create",
            "bench",
            "--mode",
            "best",
            "--periods",
            "all_time",
            "--expected-points",
            "1000000",
        ])?;
        let file = self.dir.join("scores.csv");
        write_scores(&file)?;
        let began = Instant::now();
        self.centile(&["import", file.to_str().ok_or("a path that is no text")?, "--board", "bench"])?;
        let import_seconds = began.elapsed().as_secs_f64();

        let psql = |sql: &str| -> Outcome<String> {
            output(Command::new(program("psql")).args([
                self.url.as_str(),
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                sql,
            ]))
        };
        psql("CREATE TABLE plain AS SELECT u.user_id, s.score FROM centile.standings s JOIN centile.users u USING (user_id)
              WHERE s.board = 'bench'")?;
        psql("ALTER TABLE plain ADD PRIMARY KEY (user_id)")?;
        psql("CREATE INDEX plain_score_idx ON plain (score)")?;
        psql("VACUUM ANALYZE")?;
        psql("CHECKPOINT")?;

        let serve = Serve::start(self)?;
        Self::compare(&serve.address, &psql)?;
        let script = self.dir.join("random.lua");
        fs::write(&script, random_player_script())?;
        let plain = self.dir.join("plain.sql");
        fs::write(
            &plain,
            format!(
                "\\set n random(1, {PLAYERS})\nSELECT count(*) + 1 FROM plain WHERE score > (SELECT score FROM plain WHERE user_id = 'player-' || :n);\n"
            ),
        )?;
        let mut rounds = Vec::new();
        // The first round warms caches and plans, and does not count.
        for round in 0..=ROUNDS {
            let ranks = self.wrk(&script, &serve.address)?;
            let counts = pgbench(&program("pgbench"), &self.url, &plain)?;
            if round > 0 {
                rounds.push((ranks, counts));
            }
        }
        Self::compare(&serve.address, &psql)?;
        report(&rounds, import_seconds, psql("SHOW server_version")?.trim());
        Ok(())
    }

    fn centile(&self, arguments: &[&str]) -> Outcome<String> {
        output(Command::new(CENTILE).args(arguments).env("DATABASE_URL", &self.url).env("REDIS_URL", &self.redis))
    }

    /// Ranks over HTTP of a sample against plain `rank()`: a wrong answer is no result.
    fn compare(address: &str, psql: &dyn Fn(&str) -> Outcome<String>) -> Outcome<()> {
        let expected = psql(&format!(
            "SELECT user_id || ' ' || rank FROM (SELECT user_id, rank() OVER (ORDER BY score DESC) FROM plain) r
             ORDER BY md5(user_id) LIMIT {SAMPLE}"
        ))?;
        for line in expected.lines() {
            let (user, rank) = line.split_once(' ').ok_or("a row without a rank")?;
            let body = output(
                Command::new("curl").args(["-sf", &format!("{address}/v1/boards/bench/scores/{user}?around=0")]),
            )?;
            let answer: serde_json::Value = serde_json::from_str(&body)?;
            if answer["rank"] != rank.parse::<u64>()? {
                return Err(format!("{user} has rank {rank}, and Centile says {}", answer["rank"]).into());
            }
        }
        Ok(())
    }

    /// Requests per second and the latencies that wrk prints.
    fn wrk(&self, script: &Path, address: &str) -> Outcome<Ranks> {
        let text = output(
            Command::new("wrk")
                .args(["-t1", "-c32", &format!("-d{SECONDS}s"), "--latency", "-s"])
                .arg(script)
                .arg(address)
                .current_dir(&self.dir),
        )?;
        if text.contains("Non-2xx") || text.contains("Socket errors") {
            return Err(format!("wrk saw errors:\n{text}").into());
        }
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.trim().strip_prefix(name))
                .map(|rest| rest.trim().to_owned())
                .ok_or(format!("wrk prints no {name}"))
        };
        Ok(Ranks { per_second: field("Requests/sec:")?.parse()?, p50: field("50%")?, p99: field("99%")? })
    }
}

struct Ranks {
    per_second: f64,
    p50: String,
    p99: String,
}

/// A `centile serve` that ends with this value.
struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    fn start(bench: &Bench) -> Outcome<Self> {
        let mut child = Command::new(CENTILE)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("DATABASE_URL", &bench.url)
            .env("REDIS_URL", &bench.redis)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output of serve")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").ok_or("serve did not start")?.to_owned();
        Ok(Self { child, address })
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Nothing is left to be told when it has gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One event for each player, scores from 0 to a million.
fn write_scores(file: &Path) -> Outcome<()> {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "user_id,points")?;
    for n in 1..=PLAYERS {
        writeln!(out, "player-{n},{}", random.random_range(0..=1_000_000))?;
    }
    out.flush()?;
    Ok(())
}

fn random_player_script() -> String {
    format!(
        "math.randomseed({SEED})\nfunction request()\n  return wrk.format('GET', '/v1/boards/bench/scores/player-' .. math.random({PLAYERS}) .. '?around=0')\nend\n"
    )
}

fn pgbench(program: &Path, url: &str, script: &Path) -> Outcome<f64> {
    let text = output(
        Command::new(program)
            .args(["-n", "-M", "prepared", "-c", "8", "-j", "1", "-T", &SECONDS.to_string(), "-f"])
            .arg(script)
            .arg(url),
    )?;
    let line = text.lines().find_map(|line| line.strip_prefix("tps = ")).ok_or("pgbench prints no tps")?;
    Ok(line.split(' ').next().unwrap_or_default().parse()?)
}

/// What a command prints; an error with all it said when it fails.
fn output(command: &mut Command) -> Outcome<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        Ok(text)
    } else {
        Err(format!("{name}: {text}{}", String::from_utf8_lossy(&done.stderr)).into())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(rounds: &[(Ranks, f64)], import_seconds: f64, postgres: &str) {
    println!(
        "Players {PLAYERS}, seed {SEED}, PostgreSQL {postgres}, {} cores.",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!(
        "Import of {PLAYERS} events: {import_seconds:.0} s, {:.0} events/s.\n",
        f64::from(PLAYERS) / import_seconds
    );
    println!("| round | Centile, HTTP, 32 connections: ranks/s | p50 | p99 | `count(*)`, 8 clients: ranks/s | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (n, (ranks, counts)) in rounds.iter().enumerate() {
        println!(
            "| {} | {:.0} | {} | {} | {counts:.1} | {:.0} |",
            n + 1,
            ranks.per_second,
            ranks.p50,
            ranks.p99,
            ranks.per_second / counts
        );
    }
    let ratio = median(rounds.iter().map(|(ranks, counts)| ranks.per_second / counts).collect());
    println!("\nMedian ratio: {ratio:.0} ×.");
}
