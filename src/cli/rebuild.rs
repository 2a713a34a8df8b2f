//! `centile rebuild`: rebuilds rankings from the ledger.

use clap::{ArgGroup, Args};

use crate::{
    Error, Result, boards,
    cli::{
        act::ActFlags,
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    maintenance::rebuild::{self, RebuildStep, Rebuilt},
    model::{board::BoardSlug, id::RankingId, period::PeriodSelector},
};

/// The periods to rebuild.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["period", "all"])))]
pub(super) struct Rebuild {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Open period, such as `all_time` or `week`
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>)]
    period: Option<PeriodSelector>,
    /// All open periods of the board
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    act: ActFlags,
}

/// Rebuilds the periods one by one and prints a line for each step. Continues after a failure.
pub(super) async fn run(config: &Config, rebuild: Rebuild) -> Result<()> {
    let act = rebuild.act.read()?;
    let spinner = output::spinner("rebuilding");
    // Continue rebuilding even if standard output is closed.
    let print = |line: String| spinner.suspend(|| output::print(line)).unwrap_or_default();
    with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &rebuild.board).await?;
        let periods = rebuild::open_periods(&instance.store.admin, &board, rebuild.period.as_ref()).await?;
        let (mut failed, mut last) = (0, None);
        for period in &periods {
            let name = format!("{} {}", rebuild.board, period.name());
            let step = |step| print(format!("{name}: {}", step_text(step)));
            match rebuild::rebuild(&instance.store.admin, &instance.store.bucket_writer, period, &act, step).await {
                Ok(outcome) => print(outcome_text(&outcome)),
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
            None if periods.is_empty() => output::print("the board has no open period"),
            None => Ok(()),
            Some(error) if periods.len() == 1 => Err(error),
            Some(_) => Err(Error::other_conflict(format!("{failed} periods could not be rebuilt"))),
        }
    })
    .await
}

fn step_text(step: RebuildStep) -> String {
    match step {
        RebuildStep::Repaired(players) => {
            format!("standings of {} players repaired from the ledger", thousands(players))
        }
        RebuildStep::LaidOut(players) => format!("buckets laid out for {} players", thousands(players)),
        RebuildStep::CaughtUp(changes) => {
            format!("bucket rows up to date, {} logged changes applied", thousands(changes))
        }
    }
}

fn outcome_text(rebuilt: &Rebuilt) -> String {
    let Rebuilt { board, period, before: RankingId(before), after: RankingId(after), players, moves, time } = rebuilt;
    format!(
        "rebuilt  {board} {period}: ranking {after} replaces {before}, {} players, {} rows moved, {:.1} s",
        thousands(players),
        thousands(moves.rows_moved),
        time.as_secs_f64()
    )
}
