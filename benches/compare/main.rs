//! Compares Centile with alternatives: the same players, HTTP calls and load, in one run on one
//! machine. benches/README.md describes the alternatives and the tables. `make bench` runs it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use clap::{Parser, ValueEnum as _};

#[path = "../common/mod.rs"]
mod common;

mod cell;
mod check;
mod fill;
mod measure;
mod mix;
mod peers;
mod plot;
mod report;
mod server;
mod size;
mod stale;
mod system;

use cell::Cell;
use common::{Bench, BenchResult, wrk};
use measure::{Check, Measure, Table};
use mix::Rates;
use report::{Growth, Memory, Results};
use server::Serving;
use size::Size;
use system::{BOARD, Options, Site, System};

/// Comparison of Centile with other designs
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of players
    #[arg(long, default_value_t = 1_000_000)]
    players: u64,

    /// Number of rounds; each measures every system
    #[arg(long, default_value_t = 3)]
    rounds: u32,

    /// Seconds per cell
    #[arg(long, default_value_t = 8)]
    seconds: u32,

    /// Comma-separated numbers of players for the growth table [default: powers of ten]
    #[arg(long, value_delimiter = ',')]
    growth: Vec<u64>,

    /// Comma-separated systems [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<System>,

    /// Comma-separated cells [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    cells: Vec<Cell>,

    /// Output folder for results.json, results.md and the plots
    #[arg(long, default_value = "target/compare")]
    out: PathBuf,

    #[command(flatten)]
    rates: Rates,

    #[command(flatten)]
    serving: Serving,

    /// Passed by cargo to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> BenchResult<()> {
    let arguments = Arguments::parse();
    if arguments.serving.run().await.map_err(|error| -> Box<dyn Error> { error })? {
        return Ok(());
    }
    Bench::run_as_recommended_for(arguments.players, async |bench, dir| measure(bench, dir, &arguments).await).await
}

async fn measure(bench: &Bench, dir: &Path, arguments: &Arguments) -> BenchResult<()> {
    let Arguments { players, rounds, rates, .. } = *arguments;
    let mut systems =
        if arguments.only.is_empty() { System::value_variants().to_vec() } else { arguments.only.clone() };
    if !systems.contains(&System::Centile) {
        // Its response has the size of Centile's top list.
        systems.retain(|system| system.has_players());
    }
    let cells = if arguments.cells.is_empty() { Cell::value_variants() } else { &arguments.cells };
    let options = Options {
        // The number of lanes of a Centile board on this machine.
        lanes: std::thread::available_parallelism()?.get().min(4),
        body: dir.join("top.json"),
        log: dir.join("server.log"),
    };
    let page = far_down(players);
    let measure = Measure { bench, dir, options: &options, cells, seconds: arguments.seconds, page };
    let redis = size::redis_says(&bench.servers.redis_url(), "server", "redis_version").await?;
    let machine = format!("{}, Redis {redis}, {}", bench.machine()?, wrk::version());
    let mut results = Results::new(machine, players, page, arguments.seconds, rates);

    let mut steps = arguments.growth.clone();
    if steps.is_empty() {
        steps = vec![10_000, 100_000, 1_000_000, 10_000_000];
        steps.retain(|step| *step < players);
        steps.push(players);
    }
    steps.sort_unstable();
    steps.dedup();
    let mut fewer = Vec::new();
    for step in steps.iter().copied().filter(|step| *step != players) {
        fewer.extend(fill_all(&measure, &systems, step, None).await?);
    }
    let sites = fill_all(&measure, &systems, players, Some(&mut results.sizes)).await?;
    if let Some(site) = sites.iter().find(|site| site.system == System::Centile) {
        let serve = site.serve(bench, System::Centile, &options)?;
        let url = format!("{}/v1/boards/{BOARD}/scores?limit=10", serve.address);
        fs::write(&options.body, reqwest::get(url).await?.error_for_status()?.bytes().await?)?;
    }
    let all: Vec<_> = fewer.iter().chain(sites.iter().filter(|site| steps.contains(&site.players))).collect();
    results.growth = growth(&measure, &all, players, rounds).await?;
    for site in fewer {
        bench.psql(&format!("DROP DATABASE {} WITH (FORCE)", site.database))?;
    }
    let mut table = Table::new();
    let mut memory = BTreeMap::<System, f64>::new();
    for round in 0..rounds {
        for system in &systems {
            let Some(site) = sites.iter().find(|site| site.system == system.store()) else {
                measure.constant(round, &mut table).await?;
                continue;
            };
            let check = Check { before: round == 0, after: round + 1 == rounds };
            let peak = measure.system(site, *system, round, check, &mut table).await?;
            let most = memory.entry(*system).or_default();
            *most = most.max(peak);
        }
    }
    results.cells = report::records(table);
    results.memory = memory.into_iter().map(|(system, mib)| Memory { system, mib }).collect();
    write(&results, &arguments.out)?;
    let rounds = if rates.duration().is_zero() { 0 } else { rates.mix_rounds };
    for round in 1..=rounds {
        for system in systems.iter().filter(|system| system.has_players()) {
            let site = sites.iter().find(|site| site.system == system.store()).ok_or("a system has no players")?;
            results.mixes.push(mix::hold(&measure, site, *system, round, rates).await?);
            write(&results, &arguments.out)?;
        }
    }
    println!("{}", results.markdown()?);
    Ok(())
}

/// Creates the stores of the systems with the same players, and records the size of each after
/// loading.
async fn fill_all(
    measure: &Measure<'_>,
    systems: &[System],
    players: u64,
    mut taken: Option<&mut Vec<Size>>,
) -> BenchResult<Vec<Site>> {
    let Measure { bench, dir, .. } = *measure;
    let file = fill::write_scores(dir, players)?;
    let mut sites: Vec<Site> = Vec::new();
    for store in systems.iter().map(|system| system.store()).filter(|store| store.has_players()) {
        if !sites.iter().any(|site| site.system == store) {
            let site = fill::fill(bench, dir, &file, store, players).await?;
            if let Some(taken) = &mut taken {
                taken.push(Size::of(bench, &site).await?);
            }
            sites.push(site);
        }
    }
    fs::remove_file(file)?;
    let prints = sites.iter().map(|site| fill::fingerprint(bench, site)).collect::<BenchResult<Vec<_>>>()?;
    if prints.iter().any(|print| *print != prints[0]) {
        return Err(format!("the systems do not hold the same players: {prints:?}").into());
    }
    Ok(sites)
}

/// Measures ranks for one caller among growing numbers of players. Alternates the stores, so that
/// other load on the machine affects all sizes. Also checks responses, except for the full stores,
/// which are checked before their first round of cells.
async fn growth(measure: &Measure<'_>, sites: &[&Site], compared: u64, rounds: u32) -> BenchResult<Vec<Growth>> {
    let mut found: Vec<_> =
        sites.iter().map(|site| Growth { players: site.players, system: site.system, rounds: Vec::new() }).collect();
    for round in 0..rounds {
        for (site, growth) in sites.iter().zip(&mut found) {
            let measure = Measure { page: far_down(site.players), ..*measure };
            let must_check = round == 0 && site.players != compared;
            growth.rounds.push(measure.growth(site, round, must_check).await?);
        }
    }
    Ok(found)
}

/// Returns the first position of the far page.
fn far_down(players: u64) -> u64 {
    500_000.min(players / 2).max(1)
}

/// Writes tables, figures and plots of the results so far.
fn write(results: &Results, out: &Path) -> BenchResult<()> {
    fs::create_dir_all(out)?;
    fs::write(out.join("results.json"), serde_json::to_string_pretty(results)?)?;
    fs::write(out.join("results.md"), results.markdown()?)?;
    plot::draw(results, out)
}
