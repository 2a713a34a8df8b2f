//! `centile league`: divisions of small cohorts, whose best members move up at the end of a period.

use clap::{Args, Subcommand};

use crate::{
    Error, Result,
    cli::{
        by::By,
        output::{self, table},
        with_instance,
    },
    config::Config,
    model::league::{League, LeagueSettings},
};

/// Subcommands of `centile league`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a league, or change how many players move and how
    Create(Box<Create>),
    /// Delete a league with its history
    Delete {
        /// Name of the league
        #[arg(value_name = "NAME")]
        name: String,
        /// The same name again
        #[arg(long, value_name = "NAME")]
        confirm: String,
        #[command(flatten)]
        by: By,
    },
    /// List the leagues
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a league as JSON
    Show {
        /// Name of the league
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
    #[arg(value_name = "NAME")]
    name: String,
    /// The board; cannot change
    #[arg(long, value_name = "SLUG")]
    board: String,
    /// Kind of period of the board, such as "week"; cannot change
    #[arg(long, value_name = "KIND")]
    period: String,
    /// Maximum members of a cohort, 2 to 1000; cannot change
    #[arg(long, value_name = "N")]
    size: i32,
    /// Names of the divisions, lowest first, such as "bronze,silver,gold"; cannot change
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    divisions: Vec<String>,
    /// Members of each cohort who move up
    #[arg(long, value_name = "N")]
    promote: i32,
    /// Members of each cohort who move down
    #[arg(long, value_name = "N")]
    relegate: i32,
    /// Which players of a division come together: those who arrive together, or those with similar
    /// results in the period before [new league: arrival]
    #[arg(long, value_parser = ["arrival", "form"])]
    fill: Option<String>,
    /// Whether players without a score stay in their divisions or move down [new league: leave]
    #[arg(long, value_parser = ["leave", "relegate"])]
    idle: Option<String>,
    /// Whether players of the same rank count as the best or the worst of them [new league: up]
    #[arg(long, value_parser = ["up", "down"])]
    ties: Option<String>,
    #[command(flatten)]
    by: By,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let Create { name, board, period, size, divisions, promote, relegate, fill, idle, ties, by } = *create;
            let settings = LeagueSettings { board, period, size, divisions, promote, relegate, fill, idle, ties };
            let by = by.actor()?;
            let league =
                with_instance(config, async |instance| instance.store.admin.set_league(&name, &settings, &by).await)
                    .await?;
            output::print(format!("league {name} stored; it starts at {}", league.starts_at.to_rfc3339()))
        }
        Command::Delete { name, confirm, by } => {
            if name != confirm {
                return Err(Error::invalid("confirm", format!("must be {name}, the name of the league")));
            }
            let by = by.actor()?;
            with_instance(config, async |instance| instance.store.admin.delete_league(&name, &by).await).await?;
            output::print(format!("league {name} deleted"))
        }
        Command::List { json } => {
            let leagues = with_instance(config, async |instance| instance.store.reader.leagues(None).await).await?;
            if json {
                return output::print_json(&leagues);
            }
            let header = ["NAME", "BOARD", "PERIOD", "SIZE", "DIVISIONS", "PROMOTE", "RELEGATE"];
            output::print(table(header, leagues.iter().map(row).collect()))
        }
        Command::Show { name } => {
            let league = with_instance(config, async |instance| instance.store.reader.league(&name).await).await?;
            output::print_json(&league)
        }
    }
}

fn row(league: &League) -> [String; 7] {
    [
        league.name.clone(),
        league.board.clone(),
        league.period.clone(),
        league.size.to_string(),
        league.divisions.join(","),
        league.promote.to_string(),
        league.relegate.to_string(),
    ]
}
