//! Fills all systems with the same players and scores.

use std::{
    error::Error,
    fs::File,
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    time::Instant,
};

use centile::dev::local::LocalRedis;
use deadpool_redis::redis::{cmd, pipe};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    common::{Bench, BenchResult, fill_ledger, fill_rankings},
    peers::{
        PeerResult, buckets, plain,
        redis::{Redis, RedisClient},
        sorted_sets,
    },
    system::{BOARD, Site, System},
};

/// Maximum score; the minimum is 0.
const SCORE_MAX: i64 = 1_000_000;
/// Players per Redis pipeline.
const CHUNK: usize = 10_000;

/// Writes a file of players and scores, the same for equal numbers of players.
pub fn write_scores(dir: &Path, players: u64) -> BenchResult<PathBuf> {
    let file = dir.join("scores.csv");
    let mut random = StdRng::seed_from_u64(1);
    let mut out = BufWriter::new(File::create(&file)?);
    writeln!(out, "user_id,user_name,points")?;
    for n in 1..=players {
        writeln!(out, "player-{n},Player {n},{}", random.random_range(0..=SCORE_MAX))?;
    }
    out.flush()?;
    Ok(file)
}

/// Creates a store with the players of the file.
pub async fn fill(bench: &Bench, dir: &Path, file: &Path, system: System, players: u64) -> BenchResult<Site> {
    let began = Instant::now();
    let database = format!("{}_{players}", format!("{system:?}").to_lowercase());
    bench.psql(&format!("CREATE DATABASE {database}"))?;
    let mut site = Site { system, database, players, redis: None, key: String::new() };
    match system {
        System::Plain => fill_tables(bench, &site, file, plain::TABLES, plain::FILL)?,
        System::Buckets => fill_tables(bench, &site, file, buckets::TABLES, buckets::FILL)?,
        System::SortedSets => {
            fill_tables(bench, &site, file, sorted_sets::TABLES, sorted_sets::FILL)?;
            let dir = dir.join(format!("sets-{players}"));
            let settings = [("appendonly", "yes"), ("appendfsync", "everysec")];
            let redis = tokio::task::spawn_blocking(move || LocalRedis::start_with(&dir, &settings)).await??;
            fill_sets(&redis, file).await.map_err(|error| -> Box<dyn Error> { error })?;
            site.redis = Some(redis);
        }
        System::Centile => site.key = fill_centile(bench, &site, file)?,
        System::Constant | System::SortedSetsBatched => return Err("the system has no players of its own".into()),
    }
    bench.psql_in(&site.database, &["VACUUM ANALYZE", "CHECKPOINT"])?;
    eprintln!("{}: {players} players loaded in {:.0} s", system.title(), began.elapsed().as_secs_f64());
    Ok(site)
}

/// Returns a checksum of a store's players and scores.
pub fn fingerprint(bench: &Bench, site: &Site) -> BenchResult<String> {
    let players = site.system.authority();
    let sql = format!("SELECT count(*), sum(hashtextextended(a.user_id, a.score)) FROM ({players}) a");
    bench.psql_in(&site.database, &["SET work_mem = '256MB'", &sql])
}

fn fill_tables(bench: &Bench, site: &Site, file: &Path, tables: &str, rows: &str) -> BenchResult<()> {
    let copy = format!("\\copy given FROM '{}' CSV HEADER", file.display());
    let given = "CREATE UNLOGGED TABLE given (user_id text, user_name text, points bigint)";
    bench.psql_in(&site.database, &[tables, given, &copy, "ANALYZE given", rows, "DROP TABLE given"])?;
    Ok(())
}

/// Writes three sets and a hash per player, in pipelines.
async fn fill_sets(redis: &LocalRedis, file: &Path) -> PeerResult<()> {
    let redis = Redis::connect(&redis.url(), RedisClient::Multiplexed).await?;
    let mut connection = redis.connection().await?;
    let mut lines = BufReader::new(File::open(file)?).lines().skip(1).peekable();
    while lines.peek().is_some() {
        let mut adds = sorted_sets::SETS.map(|set| {
            let mut add = cmd("ZADD");
            add.arg(set);
            add
        });
        let mut commands = pipe();
        for line in lines.by_ref().take(CHUNK) {
            let line = line?;
            let [user, name, points] = line.split(',').collect::<Vec<_>>()[..] else {
                return Err(format!("invalid line of players: {line}").into());
            };
            for add in &mut adds {
                add.arg(points).arg(user);
            }
            commands.cmd("HSET").arg(sorted_sets::user_key(user)).arg("name").arg(name).ignore();
        }
        for add in adds {
            commands.add_command(add).ignore();
        }
        connection.run::<()>(&commands).await?;
    }
    Ok(())
}

fn fill_centile(bench: &Bench, site: &Site, file: &Path) -> BenchResult<String> {
    let centile = |arguments: &[&str]| bench.centile_in(&site.database, arguments);
    centile(&["migrate"])?;
    centile(&["board", "create", BOARD, "--periods", "all_time,week,month"])?;
    fill_ledger(bench, &site.database, BOARD, file)?;
    let period_ids = bench.psql_in(&site.database, &["SELECT id FROM centile_store.periods ORDER BY id"])?;
    fill_rankings(bench, &site.database, &period_ids.lines().collect::<Vec<_>>())?;
    Ok(centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?.trim().to_owned())
}
