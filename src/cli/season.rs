//! `centile season`: creates and lists seasons, periods with explicit start and end.

use clap::{Args, Subcommand};

use crate::{
    Result,
    cli::{
        by::By,
        output::{self, table},
        with_board,
    },
    config::{Config, value},
    model::{
        board::{BoardSlug, Mode},
        name::Named as _,
        season::{Season, SeasonBound},
    },
    periods::season,
};

/// Subcommands of `centile season`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a season
    ///
    /// Create it before its first score.
    Create(Create),
    /// List the seasons of a board
    List {
        /// The board
        #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
        board: BoardSlug,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A new season.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter or a digit
    #[arg(value_name = "NAME")]
    name: String,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// Start: 2030-03-01T12:00:00Z, or 2030-03-01 for the start of that day in the board's time
    /// zone
    #[arg(long = "starts", value_name = "TIME", value_parser = value::<SeasonBound>)]
    starts_at: SeasonBound,
    /// End (exclusive), in the same formats
    #[arg(long = "ends", value_name = "TIME", value_parser = value::<SeasonBound>)]
    ends_at: SeasonBound,
    /// Print the season as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let by = create.by.actor()?;
            let season = with_board(config, &create.board, async |instance, board| {
                season::create(&instance.store.admin, board, &create.name, (create.starts_at, create.ends_at), &by)
                    .await
            })
            .await?;
            if create.json {
                return output::print_json(&season);
            }
            let (starts_at, ends_at) = (output::time(Some(season.starts_at)), output::time(Some(season.ends_at)));
            output::print(format!("season {} of board {} created: {starts_at} to {ends_at}", season.name, create.board))
        }
        Command::List { board: slug, json } => {
            let (mode, seasons) = with_board(config, &slug, async |instance, board| {
                Ok((board.mode, instance.store.reader.seasons(board, None).await?))
            })
            .await?;
            if json {
                return output::print_json(&seasons);
            }
            if mode == Mode::Combined {
                output::note("A combined board has no seasons.");
            } else if seasons.is_empty() {
                output::note(format!(
                    "There are no seasons yet. Create one: centile season create NAME --board {slug} --starts … --ends …"
                ));
            }
            output::print(table(["NAME", "STARTS", "ENDS", "STATE"], seasons.iter().map(row).collect()))
        }
    }
}

fn row(season: &Season) -> [String; 4] {
    [
        season.name.clone(),
        output::time(Some(season.starts_at)),
        output::time(Some(season.ends_at)),
        season.state.name().to_owned(),
    ]
}
