//! `centile rebuild`: a ranking made anew from the ledger.

use clap::{ArgGroup, Args};

use crate::{
    Error, Result, boards,
    cli::{
        act::Act,
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    maintenance::rebuild::{self, Rebuilt, Step},
    model::{board::BoardSlug, period::PeriodSelector},
};

/// Which periods to rebuild, and who does.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["period", "all"])))]
pub(super) struct Rebuild {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// One period that is not closed, such as `all_time` or `week`
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>)]
    period: Option<PeriodSelector>,
    /// Every period of the board that is not closed
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    act: Act,
}

/// Rebuilds one period after the other, with a line for each step; one that fails does not hold up the others.
pub(super) async fn run(config: &Config, rebuild: Rebuild) -> Result<()> {
    let act = rebuild.act.read()?;
    let spinner = output::spinner("rebuilding");
    // A closed pipe is no reason to stop rebuilding.
    let print = |line: String| spinner.suspend(|| output::print(line)).unwrap_or_default();
    with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &rebuild.board).await?;
        let periods = rebuild::open_periods(&instance.store, &board, rebuild.period.as_ref()).await?;
        let (mut failed, mut last) = (0, None);
        for period in &periods {
            let name = format!("{} {}", rebuild.board, period.name());
            let step = |step| print(format!("{name}: {}", told(step)));
            match rebuild::rebuild(&instance.store, period, &act, step).await {
                Ok(outcome) => print(done(&outcome)),
                Err(error) => {
                    if periods.len() > 1 {
                        print(format!("failed   {name}: {error}"));
                    }
                    failed += 1;
                    last = Some(error);
                }
            }
        }
        spinner.finish_and_clear();
        match last {
            None if periods.is_empty() => output::print("no period of the board is open"),
            None => Ok(()),
            Some(error) if periods.len() == 1 => Err(error),
            Some(_) => Err(Error::Conflict(format!("{failed} periods could not be rebuilt"))),
        }
    })
    .await
}

fn told(step: Step) -> String {
    match step {
        Step::Entries(entries) => format!("{} entries from the ledger", thousands(entries)),
        Step::LaidOut(players) => format!("{} players in their buckets and counts", thousands(players)),
        Step::CaughtUp(players) => format!("caught up, {} players had scored meanwhile", thousands(players)),
    }
}

fn done(rebuilt: &Rebuilt) -> String {
    let Rebuilt { board, period, before, after, players, kept, time } = rebuilt;
    format!(
        "rebuilt  {board} {period}: ranking {after} in place of {before}, {} players, {} rows moved, {:.1} s",
        thousands(players),
        thousands(kept.rows_moved),
        time.as_secs_f64()
    )
}
