//! `centile explain`: explains how a rank is computed.

use clap::Args;

use crate::{
    Result,
    cli::{output, with_instance},
    config::{Config, value},
    model::{board::BoardSlug, period::PeriodSelector, user::UserId},
    ranking::explain,
};

/// The rank to explain.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Player id
    #[arg(value_name = "USER", value_parser = value::<UserId>)]
    user_id: UserId,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Period: `all_time`, `week`, `week:previous`, `week:2024-01-15`, `season:NAME`, or a segment of a
    /// period, such as `week@country:DE` [default: the default period of the board]
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>)]
    period: Option<PeriodSelector>,
}

/// Prints a line for each step.
pub(super) async fn run(config: &Config, explain: Explain) -> Result<()> {
    let steps = with_instance(config, async |instance| {
        explain::explain(&instance.rankings, &explain.board, &explain.user_id, explain.period.as_ref()).await
    })
    .await?;
    let rows = steps.into_iter().map(|step| {
        let statement = step.statement.map(|statement| statement + ";");
        [step.what, step.value.unwrap_or_default(), format!("{:.3}", step.time_ms), statement.unwrap_or_default()]
    });
    output::print(output::table(["STEP", "VALUE", "MS", "STATEMENT"], rows.collect()))
}
