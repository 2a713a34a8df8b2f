//! `centile refresh`: updates the archive of a closed period from the ledger, or computes combined
//! boards again.

use std::time::Duration;

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
        closing::{self, RefreshedPeriod},
        combining::{self, RefreshedBoard},
    },
};

/// The archive or the combined boards to refresh.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["due", "board"])))]
pub(super) struct Refresh {
    /// Refresh all archives that lack a correction, of boards with --refresh-corrected, and compute all
    /// combined boards again whose --refresh says so
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
        None => refresh_due(instance, &act.read()?, |line| spinner.suspend(|| output::print(line))).await,
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
    Ok(archive_line(slug.as_str(), &refreshed))
}

fn archive_line(board: &str, refreshed: &RefreshedPeriod) -> String {
    let RefreshedPeriod { period, revision, players } = refreshed;
    format!("refreshed {board} {period}: revision {revision}, {} players", thousands(*players))
}

fn no_reason() -> Error {
    Error::invalid("reason", "is recorded for archives only: leave this flag out for combined boards")
}

/// Refreshes what is due. Fails if a refresh failed.
async fn refresh_due(instance: &Instance, act: &Act, print: impl Fn(String) -> Result<()>) -> Result<String> {
    let (mut done, mut failed) = (0_u32, 0_u32);
    let mut report = |result: Result<String>, name: &str| {
        let line = match result {
            Ok(line) => {
                done += 1;
                line
            }
            Err(error) => {
                failed += 1;
                format!("failed    {name}: {error}")
            }
        };
        print(line).ok();
    };
    let (admin, cache) = (&instance.store.admin, &instance.cache);
    // The archives first, because combined boards may read them.
    let has_refreshed = closing::refresh_due(admin, cache, Duration::ZERO, Some(act), |board, period, result| {
        report(result.map(|done| archive_line(board, &done)), &format!("{board} {period}"));
    })
    .await?;
    let has_combined = combining::refresh_due(admin, cache, |board, result| {
        report(result.map(|done| line(&done)), board);
    })
    .await?;
    match (has_refreshed && has_combined, done, failed) {
        (false, _, 0) => Ok(format!("another process is closing or refreshing: {done} refreshed")),
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
