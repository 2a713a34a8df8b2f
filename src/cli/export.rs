//! `centile export`: a whole period as a file.

use std::io::{self, ErrorKind, Write as _};

use clap::{Args, ValueEnum};

use crate::{
    Error, Result, boards,
    cli::{output, with_instance},
    config::{Config, value},
    model::{board::BoardSlug, period::PeriodSelector},
    ranking::export,
};

/// What to write, and how.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// The period, as over HTTP: `all_time`, `week`, `week:previous`, `week:2024-01-15`, `season:NAME`
    #[arg(long, value_name = "PERIOD", default_value = "all_time", value_parser = value::<PeriodSelector>)]
    period: PeriodSelector,
    /// How a player is written
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
}

/// How a player is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Comma-separated values, with a header
    Csv,
    /// A JSON object a line
    Ndjson,
}

/// Writes the period to standard output, and of which state it is to standard error. That nobody reads on is no failure.
pub(super) async fn run(config: &Config, wanted: Export) -> Result<()> {
    let format = match wanted.format {
        Format::Csv => export::Format::Csv,
        Format::Ndjson => export::Format::Ndjson,
    };
    with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, &wanted.board).await?;
        let mut export = export::begin(&instance.rankings, &board, &wanted.period, format).await?;
        let header = &export.header;
        output::note(format!(
            "{} {}: {} players, version {}",
            board.slug,
            header.period.name(),
            output::thousands(header.players),
            header.version
        ));
        let mut stdout = io::stdout();
        while let Some(piece) = export.read_on().await? {
            match stdout.write_all(&piece).and_then(|()| stdout.flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(Error::Internal(format!("cannot write to standard output: {error}"))),
            }
        }
        Ok(())
    })
    .await
}
