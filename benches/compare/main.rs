//! Centile beside the alternatives: the same players, the same HTTP calls, the same load, in one run on one machine. README.md says
//! what the alternatives are. `make bench` runs it and prints what stands in docs/benchmarks.md.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::{error::Error, path::Path};

use clap::{Parser, ValueEnum as _};

#[path = "../common/mod.rs"]
mod common;

mod check;
mod fill;
mod load;
mod measure;
mod peers;
mod server;
mod system;

use common::{Bench, Outcome};
use load::Cell;
use measure::{Check, Measure, Table};
use server::Serving;
use system::{Options, Site, System};

/// What to compare.
#[derive(Debug, Parser)]
struct Arguments {
    /// Players of every system
    #[arg(long, default_value_t = 1_000_000)]
    players: u64,

    /// Rounds; each asks every system in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,

    /// Seconds of each cell
    #[arg(long, default_value_t = 8)]
    seconds: u32,

    /// Only these systems, with commas between
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<System>,

    /// Only these cells, with commas between
    #[arg(long, value_enum, value_delimiter = ',')]
    cells: Vec<Cell>,

    #[command(flatten)]
    serving: Serving,

    /// What cargo gives to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    if arguments.serving.run().await.map_err(|error| -> Box<dyn Error> { error })? {
        return Ok(());
    }
    Bench::run_as_recommended(async |bench, dir| measure(bench, dir, &arguments).await).await
}

async fn measure(bench: &Bench, dir: &Path, arguments: &Arguments) -> Outcome<()> {
    let systems = if arguments.only.is_empty() { System::value_variants() } else { &arguments.only };
    let cells = if arguments.cells.is_empty() { Cell::value_variants() } else { &arguments.cells };
    let options = Options { redis_client: "multiplexed", lanes: 2, body: dir.join("top.json") };
    let file = fill::write_scores(dir, arguments.players)?;
    let mut sites = Vec::new();
    for system in systems {
        let store = system.store();
        if store.has_players() && !sites.iter().any(|site: &Site| site.system == store) {
            sites.push(fill::fill(bench, dir, &file, store, arguments.players).await?);
        }
    }
    let page = 500_000.min(arguments.players / 2);
    let measure = Measure { bench, dir, options: &options, cells, seconds: arguments.seconds, page };
    let mut table = Table::new();
    for round in 0..arguments.rounds {
        for system in systems {
            let Some(site) = sites.iter().find(|site| site.system == system.store()) else {
                measure.constant(round, &mut table)?;
                continue;
            };
            let check = Check { before: round == 0, after: round + 1 == arguments.rounds };
            measure.system(site, *system, round, check, &mut table).await?;
        }
    }
    println!("{table:#?}");
    Ok(())
}
