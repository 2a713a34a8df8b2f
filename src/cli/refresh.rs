//! `centile refresh`: updates the archive of a closed period from the ledger.

use clap::Args;

use crate::{
    Result, boards,
    cli::{
        act::ActFlags,
        output::{self, thousands},
        with_instance,
    },
    config::{Config, value},
    model::{board::BoardSlug, period::PeriodSelector},
    periods::closing,
};

/// The archive to refresh.
#[derive(Debug, Args)]
pub(super) struct Refresh {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Closed period, such as `week:2024-01-15`
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>)]
    period: PeriodSelector,
    #[command(flatten)]
    act: ActFlags,
}

/// Refreshes the archive and prints its revision.
pub(super) async fn run(config: &Config, refresh: Refresh) -> Result<()> {
    let act = refresh.act.read()?;
    let spinner = output::spinner("refreshing");
    let refreshed = with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &refresh.board).await?;
        closing::refresh(&instance.store, &instance.cache, &board, &refresh.period, &act).await
    })
    .await?;
    spinner.finish_and_clear();
    output::print(format!(
        "refreshed {} {}: revision {}, {} players",
        refresh.board,
        refreshed.period,
        refreshed.revision,
        thousands(refreshed.players)
    ))
}
