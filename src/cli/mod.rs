//! The command line, a file per command. Commands call the same domain functions as the HTTP
//! handlers.

mod act;
mod board;
mod by;
mod close;
mod cluster;
mod consume;
mod correct;
mod demo;
mod explain;
mod export;
mod import;
mod import_friends;
mod key;
mod league;
mod log;
mod maintain;
mod migrate;
mod outbox;
mod output;
mod quarantine;
mod rebuild;
mod refresh;
mod score;
mod season;
mod secrets;
mod serve;
mod stop;
mod stream;
mod template;
mod user;
mod verify;
mod webhook;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::{
    Error, Result, boards,
    config::{self, Config},
    instance::Instance,
    model::{
        board::{Board, BoardSlug},
        settings::Settings,
    },
    store::migrate::check_url,
};

/// Leaderboards with exact ranks among millions of players, stored in PostgreSQL
#[derive(Debug, Parser)]
#[command(name = "centile", version, max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = "Exit status: 0 on success, 1 on failure, 2 on a usage error.")]
struct Cli {
    #[command(flatten)]
    config: Config,
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order a new user needs them.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo with its own PostgreSQL, Redis and simulated games
    ///
    /// The demo ignores the configured database and Redis. Ctrl-C stops everything; the next start
    /// reuses the data.
    Demo(config::Demo),
    /// Create or upgrade the database schema
    ///
    /// Safe to run again.
    Migrate(migrate::Migrate),
    /// Distribute boards over several PostgreSQL servers with Citus (experimental)
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Serve the HTTP API until SIGINT or SIGTERM
    Serve(config::Serve),
    /// Create, change and show boards
    #[command(subcommand)]
    Board(board::Command),
    /// Create, change and show templates: rules of boards that their first score creates
    #[command(subcommand)]
    Template(template::Command),
    /// Create, change and show leagues: divisions of small cohorts, whose best members move up
    #[command(subcommand)]
    League(league::Command),
    /// Create and list seasons: periods with explicit start and end
    #[command(subcommand)]
    Season(season::Command),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(key::Command),
    /// Encrypt the secrets stored in the database
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Import score events with their own times from a file
    ///
    /// A CSV file begins with a header that names the columns `id`, `user_id`, `name`,
    /// `points`, `occurred_at`, `reason`, `tiebreak` and `metadata`, in any order. An NDJSON file
    /// has one object per line with the same fields. Only `user_id` and `points` are required.
    /// `metadata` is a JSON object, in CSV as text. An event without `occurred_at` counts for the
    /// time of the import. An interrupted import can be repeated with the same file: lines with an
    /// id count once.
    ///
    /// Rejected lines go to the rejects file with a reason, and the command fails. All other lines
    /// are imported.
    #[command(verbatim_doc_comment)]
    Import(import::Import),
    /// Import friends of players from a file
    ///
    /// A CSV file begins with a header that names the columns `user_id` and `friend_id`. An NDJSON
    /// file has one object per line with these fields. Each line is one direction: mutual friends
    /// need two lines. The import creates unknown players. A player has at most 5,000 friends. You
    /// can safely run the import again.
    ///
    /// Rejected lines go to the rejects file with a reason, and the command fails. All other lines
    /// are imported.
    #[command(verbatim_doc_comment)]
    ImportFriends(import_friends::ImportFriends),
    /// Show, change, ban, unban and erase players
    #[command(subcommand)]
    User(user::Command),
    /// Explain a player's rank
    ///
    /// Prints each step with its value, its time and its SQL statement for psql.
    Explain(explain::Explain),
    /// Export all players of a period to standard output
    ///
    /// Writes players in order of position, best first, from one snapshot.
    Export(export::Export),
    /// Submit, void and reset scores
    #[command(subcommand)]
    Score(score::Command),
    /// Write the score events of a Redis Stream until SIGINT or SIGTERM
    ///
    /// Acknowledges each message after the commit of its event, and writes no event twice. Messages
    /// that can never be written go to the stream `NAME:dead`, with the reason. Safe to interrupt and
    /// to run again. See docs/streams.md.
    Consume(consume::Consume),
    /// Copy the transactions of a board into a Redis Stream until SIGINT or SIGTERM
    ///
    /// Stores its cursor in the key `NAME:cursor:BOARD`, together with the entries. Safe to interrupt
    /// and to run again. See docs/streams.md.
    Stream(stream::Stream),
    /// List, accept and reject quarantined events
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    /// Add a score at a past time, also to closed periods
    ///
    /// Open periods include it at once, closed periods after `centile refresh`. The audit log
    /// records actor and reason.
    Correct(correct::Correct),
    /// Close periods that are over and archive their rankings
    ///
    /// An archive changes only through `centile refresh`. `serve` closes periods in the background
    /// unless `--no-maintenance` is set. Safe to interrupt and to run again.
    Close(close::Close),
    /// Update the archive of a closed period from the ledger
    ///
    /// Run it after a correction, a void or a ban.
    Refresh(refresh::Refresh),
    /// Run the maintenance once that no other command runs
    ///
    /// Creates ledger months, deletes expired ids, rebalances layouts, drops archives beyond
    /// retention, removes the rows of old rankings and delivers webhook messages. `serve` does this
    /// in the background unless `--no-maintenance` is set. `close --due` closes periods and prepares
    /// rolling windows, `refresh --due` computes combined boards, and `verify` checks counts. Safe to
    /// interrupt and to run again.
    Maintain,
    /// Compare all derived data with the ledger and report differences
    ///
    /// Fails if anything differs. Safe during writes: it compares each period in one snapshot.
    Verify(verify::Verify),
    /// Rebuild the rankings of open periods from the ledger
    ///
    /// Replaces a ranking's entries, bucket rows, layout and counts. Reads and writes continue
    /// meanwhile. Safe to interrupt and to run again.
    Rebuild(rebuild::Rebuild),
    /// Set, show and remove the webhook of a board
    ///
    /// A webhook receives a message for each closed period, for example to grant rewards.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// List, deliver and resend webhook messages
    #[command(subcommand)]
    Outbox(outbox::Command),
}

/// Runs the command given on the command line. A failure prints one line on standard error.
pub async fn main() -> ExitCode {
    // A usage error exits here with status 2 and clap's message.
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let matches = Cli::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let is_instance = matches!(cli.command, Command::Serve(_));
    match run(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("error: {}", with_flag_name(error, &matches));
            if is_instance {
                output::last_note(message);
            } else {
                output::note(message);
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<()> {
    let config = &cli.config;
    // Dropped last: dropping it writes the queued log lines.
    let _log = match &cli.command {
        // The demo logs to a file instead of standard error.
        Command::Demo(_) => None,
        Command::Serve(_) => Some(log::of_instance(config)?),
        _ => {
            log::of_command(config);
            None
        }
    };
    match cli.command {
        Command::Demo(settings) => demo::run(config, &settings).await,
        Command::Migrate(migrate) => migrate::run(config.database_url()?, migrate).await,
        Command::Cluster(command) => cluster::run(config, command).await,
        Command::Serve(settings) => serve::run(config, &settings).await,
        Command::Board(command) => board::run(config, command).await,
        Command::League(command) => league::run(config, command).await,
        Command::Template(command) => template::run(config, command).await,
        Command::Key(command) => key::run(config, command).await,
        Command::Secrets(command) => secrets::run(config, command).await,
        Command::Import(import) => import::run(config, import).await,
        Command::ImportFriends(friends) => import_friends::run(config, friends).await,
        Command::User(command) => user::run(config, command).await,
        Command::Explain(explain) => explain::run(config, explain).await,
        Command::Export(export) => export::run(config, export).await,
        Command::Score(command) => score::run(config, command).await,
        Command::Consume(consume) => consume::run(config, consume).await,
        Command::Stream(stream) => stream::run(config, stream).await,
        Command::Quarantine(command) => quarantine::run(config, command).await,
        Command::Correct(correct) => correct::run(config, correct).await,
        Command::Close(close) => close::run(config, close).await,
        Command::Refresh(refresh) => refresh::run(config, refresh).await,
        Command::Maintain => maintain::run(config).await,
        Command::Verify(verify) => verify::run(config, verify).await,
        Command::Rebuild(rebuild) => rebuild::run(config, rebuild).await,
        Command::Season(command) => season::run(config, command).await,
        Command::Webhook(command) => webhook::run(config, command).await,
        Command::Outbox(command) => outbox::run(config, command).await,
    }
}

/// Runs `job` with an instance, then shuts the instance down.
async fn with_instance<T>(config: &Config, job: impl AsyncFnOnce(&Instance) -> Result<T>) -> Result<T> {
    with_settings(&config.for_command()?, job).await
}

/// Like [`with_instance`], with a board.
async fn with_board<T>(
    config: &Config,
    slug: &BoardSlug,
    job: impl AsyncFnOnce(&Instance, &Board) -> Result<T>,
) -> Result<T> {
    with_instance(config, async |instance| job(instance, &*boards::find(&instance.boards, slug).await?).await).await
}

/// Like [`with_instance`], with explicit settings.
async fn with_settings<T>(settings: &Settings, job: impl AsyncFnOnce(&Instance) -> Result<T>) -> Result<T> {
    check_url(settings.database_url.as_str()).await?;
    let instance = Instance::connect(settings).await?;
    let result = job(&instance).await;
    instance.shut_down().await;
    result
}

/// Replaces the field name of an error by the flag: `time_zone` becomes `--time-zone`.
fn with_flag_name(error: Error, matches: &ArgMatches) -> Error {
    let Error::Invalid { code, field, message } = error else { return error };
    let mut command = Cli::command();
    command.build();
    let mut leaf = Some(&command);
    let mut matches = matches;
    while let Some((name, inner)) = matches.subcommand() {
        leaf = leaf.and_then(|command| command.find_subcommand(name));
        matches = inner;
    }
    let argument =
        leaf.and_then(|command| command.get_arguments().find(|argument| argument.get_id() == field.as_str()));
    let written = argument.and_then(|argument| match argument.get_long() {
        Some(flag) => Some(format!("--{flag}")),
        None => argument.get_value_names()?.first().map(ToString::to_string),
    });
    Error::Invalid { code, field: written.unwrap_or(field), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn errors_name_the_flag() -> Result<(), clap::Error> {
        let matches =
            Cli::command().try_get_matches_from(["centile", "board", "create", "a", "--time-zone", "Mars"])?;
        for (field, written) in [("time_zone", "--time-zone"), ("slug", "SLUG"), ("database_url", "--database-url")] {
            let error = with_flag_name(Error::invalid(field, "no"), &matches);
            assert_eq!(error.to_string(), format!("{written}: no"));
        }
        assert_eq!(with_flag_name(Error::other_conflict("time_zone"), &matches).to_string(), "time_zone");
        Ok(())
    }
}
