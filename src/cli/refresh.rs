//! `centile refresh`: updates the archive of a closed period from the ledger, or computes combined
//! boards again.

use clap::{ArgGroup, Args};

use crate::{
    Error, Result, boards,
    cli::{
        act::ActFlags,
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    instance::Instance,
    model::{
        act::Act,
        board::{BoardSlug, Mode},
        period::PeriodSelector,
    },
    periods::{
        closing,
        combining::{self, RefreshedBoard},
    },
};

/// The archive or the combined boards to refresh.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["due", "board"])))]
pub(super) struct Refresh {
    /// Compute all combined boards again whose --refresh says so
    #[arg(long)]
    due: bool,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: Option<BoardSlug>,
    /// Closed period, such as `week:2024-01-15`, with its segments; none for a combined board
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>, requires = "board", conflicts_with = "due")]
    period: Option<PeriodSelector>,
    #[command(flatten)]
    act: ActFlags,
}

/// Refreshes and prints a line for each archive or combined board.
pub(super) async fn run(config: &Config, refresh: Refresh) -> Result<()> {
    let Refresh { due: _, board, period, act } = refresh;
    let spinner = output::spinner("refreshing");
    let printed = with_instance(config, async |instance| match board {
        Some(board) => refresh_one(instance, &board, period.as_ref(), &act.read()?).await,
        None if act.has_reason() => Err(no_reason()),
        None => refresh_due(instance, |line| spinner.suspend(|| output::print(line))).await,
    })
    .await;
    spinner.finish_and_clear();
    output::print(printed?)
}

async fn refresh_one(
    instance: &Instance,
    slug: &BoardSlug,
    period: Option<&PeriodSelector>,
    act: &Act,
) -> Result<String> {
    let board = boards::find(&instance.boards, slug).await?;
    let Some(period) = period else {
        if board.mode == Mode::Combined && act.reason().is_some() {
            return Err(no_reason());
        }
        let done = combining::refresh(&instance.store.admin, &instance.cache, &board, &act.by).await?;
        return Ok(line(&done));
    };
    if board.mode == Mode::Combined {
        return Err(Error::invalid(
            "period",
            format!("board {slug} is combined and has one ranking: leave this flag out"),
        ));
    }
    let refreshed = closing::refresh(&instance.store.admin, &instance.cache, &board, period, act).await?;
    let (name, revision, players) = (refreshed.period, refreshed.revision, thousands(refreshed.players));
    Ok(format!("refreshed {slug} {name}: revision {revision}, {players} players"))
}

fn no_reason() -> Error {
    Error::invalid("reason", "is recorded for archives only: leave this flag out for combined boards")
}

/// Refreshes what is due. Fails if a refresh failed.
async fn refresh_due(instance: &Instance, print: impl Fn(String) -> Result<()>) -> Result<String> {
    let (mut done, mut failed) = (0_u32, 0_u32);
    let has_run = combining::refresh_due(&instance.store.admin, &instance.cache, |board, result| {
        let line = match result {
            Ok(combination) => {
                done += 1;
                line(&combination)
            }
            Err(error) => {
                failed += 1;
                format!("failed    {board}: {error}")
            }
        };
        print(line).ok();
    })
    .await?;
    match (has_run, done, failed) {
        (false, ..) => Ok("another process is refreshing combined boards; nothing was done".to_owned()),
        (_, 0, 0) => Ok("nothing is due".to_owned()),
        (_, done, 0) => Ok(format!("{done} refreshed")),
        (_, _, failed) => {
            Err(Error::other_conflict(format!("{failed} could not be refreshed; readers get the previous rankings")))
        }
    }
}

fn line(done: &RefreshedBoard) -> String {
    let RefreshedBoard { board, revision, players, time } = done;
    format!("refreshed {board}: revision {revision}, {} players, {:.1} s", thousands(*players), time.as_secs_f64())
}
