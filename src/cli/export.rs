//! `centile export`: writes all players of a period to standard output.

use std::io::{self, ErrorKind, Write as _};

use clap::Args;

use crate::{
    Error, Result, boards,
    cli::{output, with_instance},
    config::{Config, named, value},
    model::{board::BoardSlug, file_format::FileFormat, period::PeriodSelector},
    ranking::export,
};

/// The period to export, and the format.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Period: `all_time`, `week`, `week:previous`, `week:2024-01-15`, `season:NAME`, or a segment of a
    /// period, such as `week@country:DE` [default: the default period of the board]
    #[arg(long, value_name = "PERIOD", value_parser = value::<PeriodSelector>)]
    period: Option<PeriodSelector>,
    /// Output format
    #[arg(long, value_parser = named::<FileFormat>(), default_value = "csv")]
    format: FileFormat,
    /// Add the metadata of the event that decides each score, as JSON
    #[arg(long)]
    metadata: bool,
}

/// Writes the period to standard output and its version to standard error. A closed pipe is not an
/// error.
pub(super) async fn run(config: &Config, args: Export) -> Result<()> {
    with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &args.board).await?;
        let period = args.period.unwrap_or_else(|| board.default_selector());
        let mut export = export::begin(&instance.rankings, &board, &period, args.format, args.metadata).await?;
        let header = &export.header;
        output::note(format!(
            "{} {}: {} players, version {}",
            board.slug,
            header.period.full_name(),
            output::thousands(header.players),
            header.version
        ));
        let mut stdout = io::stdout();
        while let Some(chunk) = export.next_rows().await? {
            match stdout.write_all(&chunk).and_then(|()| stdout.flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(Error::Internal(format!("cannot write to standard output: {error}"))),
            }
        }
        Ok(())
    })
    .await
}
