//! Measures the effect of PostgreSQL settings and of storage parameters of the hot tables: the same
//! scores with each variant in turn, on the same data. `cargo bench --bench settings` prints the
//! figures of docs/configuration.md.
//!
//! `BENCH_PLAYERS` (1,000,000), `BENCH_SECONDS` (45, each) and `BENCH_ROUNDS` (2) set the size.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    env,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use centile::dev::local::PostgresOptions;
use rand::RngExt as _;
use serde_json::json;

#[path = "../common/mod.rs"]
mod common;

use common::{Bench, BenchResult, RECOMMENDED, Serve, median};

const BOARD: &str = "live";
/// Concurrent requests, and events per request.
const CALLERS: usize = 8;
const EVENTS: usize = 500;

/// A variant to compare.
struct Variant {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Whether `shared_buffers` is a quarter of the memory instead of 128 MB.
    has_quarter: bool,
    /// Whether `shared_buffers` is in huge pages.
    has_huge_pages: bool,
    /// Statements that apply the variant, and statements that revert it.
    sql: (&'static [&'static str], &'static [&'static str]),
}

const VARIANTS: [Variant; 10] = [
    server("as PostgreSQL comes", &[]),
    Variant { has_quarter: true, ..server("shared_buffers a quarter of the memory", &[]) },
    server(
        "max_wal_size 16 GB, checkpoint_timeout 30 min",
        &[("max_wal_size", "16GB"), ("checkpoint_timeout", "30min")],
    ),
    server("wal_compression lz4", &[("wal_compression", "lz4")]),
    Variant { has_quarter: true, ..server("all of these and min_wal_size 4 GB", RECOMMENDED) },
    Variant { has_quarter: true, has_huge_pages: true, ..server("the same with huge pages", RECOMMENDED) },
    table(
        "players: fillfactor 100",
        &["ALTER TABLE centile_store.players SET (fillfactor = 100)", "VACUUM FULL centile_store.players"],
        &["ALTER TABLE centile_store.players SET (fillfactor = 80)", "VACUUM FULL centile_store.players"],
    ),
    table(
        "bucket_counts: fillfactor 100",
        &["ALTER TABLE centile_store.bucket_counts SET (fillfactor = 100)"],
        &["ALTER TABLE centile_store.bucket_counts SET (fillfactor = 25)"],
    ),
    table(
        "board_lanes: fillfactor 100",
        &["ALTER TABLE centile_store.board_lanes SET (fillfactor = 100)"],
        &["ALTER TABLE centile_store.board_lanes SET (fillfactor = 20)"],
    ),
    table(
        "bucket tables: autovacuum at 0.2",
        &[
            "DO $$ BEGIN FOR n IN 0..99 LOOP EXECUTE format('ALTER TABLE centile_store.%I RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor)', centile_store.bucket_table(n::smallint)); END LOOP; END $$",
        ],
        &[
            "DO $$ BEGIN FOR n IN 0..99 LOOP EXECUTE format('ALTER TABLE centile_store.%I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)', centile_store.bucket_table(n::smallint)); END LOOP; END $$",
        ],
    ),
];

const fn server(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Variant {
    Variant { name, settings, has_quarter: false, has_huge_pages: false, sql: (&[], &[]) }
}

const fn table(name: &'static str, sql: &'static [&'static str], back: &'static [&'static str]) -> Variant {
    Variant { name, settings: RECOMMENDED, has_quarter: true, has_huge_pages: false, sql: (sql, back) }
}

/// Results of a run.
#[derive(Clone, Copy)]
struct Run {
    scores_per_second: f64,
    wal_bytes_per_score: f64,
    hot_share: f64,
    rank_ms: f64,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let number = |name: &str, default: u32| -> BenchResult<u32> {
        let text = env::var(name).unwrap_or_default();
        if text.is_empty() { Ok(default) } else { Ok(text.parse().map_err(|error| format!("{name}: {error}"))?) }
    };
    let (players, seconds) = (number("BENCH_PLAYERS", 1_000_000)?, number("BENCH_SECONDS", 45)?);
    let rounds = number("BENCH_ROUNDS", 2)?.max(1);
    let stretch = Duration::from_secs(seconds.into());
    let quarter = common::memory_mb()? / 4;
    let mut runs: Vec<Vec<Run>> = VARIANTS.iter().map(|_| Vec::new()).collect();
    let (mut machine, mut key) = (String::new(), String::new());
    Bench::in_folder(async |dir| {
        let settings = vec![("huge_pages".to_owned(), "off".to_owned())];
        Bench::on(dir, PostgresOptions { settings, ..PostgresOptions::durable() }, async |bench| {
            bench.centile(&["migrate"])?;
            machine = bench.machine()?;
            common::fill(bench, BOARD, players)?;
            key = bench.centile(&["key", "create", "--name", "bench", "--role", "server", "--all-boards"])?;
            Ok(())
        })
        .await?;
        for round in 0..rounds {
            for (variant, runs) in VARIANTS.iter().zip(&mut runs) {
                // PostgreSQL needs some memory besides the buffers.
                if variant.has_huge_pages && common::free_huge_mb() < u64::from(quarter) * 21 / 20 {
                    eprintln!("round {}: {}: left out, because too few are free", round + 1, variant.name);
                    continue;
                }
                let run = measure(dir, variant, quarter, key.trim(), players, stretch).await?;
                eprintln!("round {}: {}: {:.0} scores/s", round + 1, variant.name, run.scores_per_second);
                runs.push(run);
            }
        }
        // The last server removes the data.
        Bench::on(dir, Bench::ephemeral(), async |_| Ok(())).await
    })
    .await?;
    println!(
        "{machine}\n{players} players in all_time, week and month; {CALLERS} callers with {EVENTS} scores each, {seconds} s, medians of {rounds}\n\n\
         | | scores/s | WAL bytes per score | HOT updates of entries | rank of a random player after it, ms |\n| --- | --- | --- | --- | --- |"
    );
    for (variant, runs) in VARIANTS.iter().zip(&runs).filter(|(_, runs)| !runs.is_empty()) {
        let middle = |of: fn(&Run) -> f64| median(runs.iter().map(of).collect());
        println!(
            "| {} | {:.0} | {:.0} | {:.0} % | {:.2} |",
            variant.name,
            middle(|run| run.scores_per_second),
            middle(|run| run.wal_bytes_per_score),
            middle(|run| run.hot_share) * 100.0,
            middle(|run| run.rank_ms)
        );
    }
    Ok(())
}

/// Writes scores for a while with a variant applied.
async fn measure(
    dir: &Path,
    variant: &Variant,
    quarter: u32,
    key: &str,
    players: u32,
    stretch: Duration,
) -> BenchResult<Run> {
    let mut options = PostgresOptions::durable();
    options.shared_buffers_mb = if variant.has_quarter { quarter } else { 128 };
    // Without these, private servers compress WAL, and take huge pages if there are enough.
    let own = [("wal_compression", "off"), ("huge_pages", if variant.has_huge_pages { "on" } else { "off" })];
    options.settings =
        own.iter().chain(variant.settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Bench::on(dir, options, async |bench| {
        // VACUUM cannot run with other statements in one call.
        let reset = ["VACUUM ANALYZE", "SELECT pg_stat_reset(), pg_stat_reset_shared('wal')", "CHECKPOINT"];
        for statement in variant.sql.0.iter().chain(&reset) {
            bench.psql(statement)?;
        }
        let run = load(bench, key, players, stretch).await;
        for statement in variant.sql.1 {
            bench.psql(statement)?;
        }
        run
    })
    .await
}

async fn load(bench: &Bench, key: &str, players: u32, stretch: Duration) -> BenchResult<Run> {
    let serve = Serve::start(bench, &[])?;
    let (accepted, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let client = reqwest::Client::new();
    let begin = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let request = client.post(format!("{}/v1/boards/{BOARD}/scores/batch", serve.address)).bearer_auth(key);
        let (accepted, over) = (Arc::clone(&accepted), Arc::clone(&over));
        callers.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let events: Vec<_> = (0..EVENTS)
                    .map(|_| {
                        let mut random = rand::rng();
                        json!({ "user_id": format!("player-{}", random.random_range(1..=players)), "points": random.random_range(0..=1_000) })
                    })
                    .collect();
                let Some(request) = request.try_clone() else { break };
                let answer = request.json(&json!({ "events": events })).send().await?.error_for_status()?;
                answer.bytes().await?;
                accepted.fetch_add(EVENTS as u64, Ordering::Relaxed);
            }
            Ok::<_, reqwest::Error>(())
        });
    }
    tokio::time::sleep(stretch).await;
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let scores = accepted.load(Ordering::Relaxed) as f64;
    let mut ranks = Vec::new();
    for _ in 0..500 {
        let player = rand::rng().random_range(1..=players);
        let url = format!("{}/v1/boards/{BOARD}/scores/player-{player}?period=week", serve.address);
        let asked = Instant::now();
        client.get(url).send().await?.error_for_status()?.bytes().await?;
        ranks.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    drop(serve);
    let wal: f64 = bench.psql("SELECT wal_bytes FROM pg_stat_wal")?.parse()?;
    let hot_share = bench
        .psql("SELECT n_tup_hot_upd / greatest(n_tup_upd, 1)::float8 FROM pg_stat_user_tables WHERE relid = 'centile_store.players'::regclass")?
        .parse()?;
    Ok(Run {
        scores_per_second: scores / seconds,
        wal_bytes_per_score: wal / scores,
        hot_share,
        rank_ms: median(ranks),
    })
}
