//! `centile close`: closes periods that are over, and prepares rolling windows.

use clap::{ArgGroup, Args};
use indicatif::ProgressBar;

use crate::{
    Error, Result, boards,
    cli::{
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    maintenance::window::{self, FilledWindow, Prepared},
    model::{board::BoardSlug, period::PeriodSelector},
    periods::closing::{self, CloseOutcome},
};

/// Which periods to close.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["due", "board"])))]
pub(super) struct Close {
    /// Close all periods of all boards that are over, and prepare rolling windows
    #[arg(long)]
    due: bool,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>, requires = "period")]
    board: Option<BoardSlug>,
    /// Period, such as `week:2024-01-15`, `week:previous` or `season:spring`; closes its segments, too
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>, requires = "board", conflicts_with = "due")]
    period: Option<PeriodSelector>,
}

/// Closes the periods and prints a line for each. Fails if an operator needs to act.
pub(super) async fn run(config: &Config, close: Close) -> Result<()> {
    let spinner = output::spinner("closing");
    let mut tally = Tally::new(spinner.clone());
    let has_run = with_instance(config, async |instance| {
        let (admin, cache) = (&instance.store.admin, &instance.cache);
        let (Some(board), Some(period)) = (&close.board, &close.period) else {
            let has_run = closing::close_due(admin, cache, |outcome| tally.add(&outcome)).await?;
            let prepared = |prepared| tally.add_window(&prepared);
            window::prepare_due(admin, &instance.store.bucket_writer, prepared).await?;
            return Ok(has_run);
        };
        let board = boards::find(&instance.boards, board).await?;
        closing::close_one(admin, cache, &board, period, |outcome| tally.add(&outcome)).await
    })
    .await?;
    spinner.finish_and_clear();
    if !has_run {
        output::print("another process is closing periods; no period was closed")?;
    } else if !tally.has_printed {
        output::print("nothing is due")?;
    }
    tally.result()
}

/// Totals over all periods.
#[derive(Debug)]
struct Tally {
    spinner: ProgressBar,
    has_printed: bool,
    different: u64,
    failed: u64,
    interrupted: u64,
}

impl Tally {
    fn new(spinner: ProgressBar) -> Self {
        Self { spinner, has_printed: false, different: 0, failed: 0, interrupted: 0 }
    }

    fn add(&mut self, outcome: &CloseOutcome) {
        let line = match outcome {
            CloseOutcome::Closed(closed) => {
                let differences = match closed.differences {
                    0 => String::new(),
                    some => format!(", {} DIFFERENCES: see centile.archive_differences", thousands(some)),
                };
                self.different += u64::from(closed.differences > 0);
                format!(
                    "closed   {} {}: {} players, {:.1} s{differences}",
                    closed.board,
                    closed.period,
                    thousands(closed.players),
                    closed.time.as_secs_f64()
                )
            }
            CloseOutcome::Nothing { board, period, was_closed: true } => {
                format!("skipped  {board} {period}: already closed")
            }
            CloseOutcome::Nothing { board, period, was_closed: false } => {
                format!("skipped  {board} {period}: no scores")
            }
            CloseOutcome::Waits { board, period, source, is_running: true } => {
                format!("waiting  {board} {period}: {source} is being imported")
            }
            CloseOutcome::Waits { board, period, source, is_running: false } => {
                self.interrupted += 1;
                format!("waiting  {board} {period}: the import of {source} was interrupted")
            }
            CloseOutcome::Failed { board, period, error } => {
                self.failed += 1;
                format!("failed   {board} {period}: {error}")
            }
        };
        self.print(&line);
    }

    fn add_window(&mut self, Prepared { board, period, result }: &Prepared) {
        let line = match result {
            Ok(FilledWindow { players, limited, time }) => {
                let limited = match limited {
                    0 => String::new(),
                    some => format!(", {} SUMS BEYOND 64 BITS, which stand at the limit", thousands(*some)),
                };
                format!(
                    "prepared {board} {period}: {} players, {:.1} s{limited}",
                    thousands(*players),
                    time.as_secs_f64()
                )
            }
            Err(error) => {
                self.failed += 1;
                format!("failed   {board} {period}: {error}")
            }
        };
        self.print(&line);
    }

    fn print(&mut self, line: &str) {
        self.has_printed = true;
        // Continue closing even if standard output is closed.
        self.spinner.suspend(|| output::print(line)).ok();
    }

    fn result(&self) -> Result<()> {
        if self.failed > 0 {
            Err(Error::other_conflict(format!("periods that could not be closed or prepared: {}", self.failed)))
        } else if self.different > 0 {
            Err(Error::other_conflict(format!(
                "periods whose live ranking differed from the ledger: {}; their archives follow the ledger",
                self.different
            )))
        } else if self.interrupted > 0 {
            Err(Error::other_conflict(
                "periods wait for an interrupted import: run the import again, or abandon it with \
                 `centile import --abandon --board SLUG`"
                    .to_owned(),
            ))
        } else {
            Ok(())
        }
    }
}
