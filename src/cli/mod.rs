//! The command line: a file per command. Every command calls the same domain functions as HTTP does.

mod act;
mod board;
mod by;
mod close;
mod correct;
mod demo;
mod explain;
mod export;
mod import;
mod key;
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
mod user;
mod verify;
mod webhook;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::{
    Error, Result,
    config::{self, Config},
    instance::Instance,
    model::settings::Settings,
    store::migrate::check_url,
};

/// Leaderboards with exact ranks among millions, with PostgreSQL as the only truth.
#[derive(Debug, Parser)]
#[command(name = "centile", version, max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = "Exit status: 0 when all went well, 1 when it did not, 2 when the command line cannot be read.")]
struct Cli {
    #[command(flatten)]
    config: Config,
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order in which a newcomer meets them.
#[derive(Debug, Subcommand)]
enum Command {
    /// Start a PostgreSQL and a Redis of its own, and serve boards on which games are played
    ///
    /// The database and the Redis of the settings are not used. Ctrl-C stops all that was started; the next start finds the data again.
    Demo(config::Demo),
    /// Bring the database to this program's schema; again is harmless
    Migrate(migrate::Migrate),
    /// Serve the HTTP API until SIGINT or SIGTERM
    Serve(config::Serve),
    /// Make, change and show boards
    #[command(subcommand)]
    Board(board::Command),
    /// Make and list seasons: periods with a name and bounds of their own
    #[command(subcommand)]
    Season(season::Command),
    /// Make, show and revoke API keys
    #[command(subcommand)]
    Key(key::Command),
    /// Seal the secrets that the database keeps
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Bring events from a file into a board, with times of their own
    ///
    /// CSV begins with a header that names the columns `id`, `user_id`, `user_name`, `points`, `occurred_at`,
    /// `reason` and `tiebreak` in any order; NDJSON has them as members. Only `user_id` and `points` are needed.
    /// A line without `occurred_at` counts for the time at which it is written. However an import ended, the same
    /// file can be imported again: lines that have an id count once.
    ///
    /// Lines that cannot be taken go to the rejects file with the reason, and the command fails; all others are in.
    #[command(verbatim_doc_comment)]
    Import(import::Import),
    /// Show, name, ban and unban players
    #[command(subcommand)]
    User(user::Command),
    /// Show how a player's rank is made up: each step with its value, its time and its statement for psql
    Explain(explain::Explain),
    /// Write a whole period to standard output: every player, best first, in one state
    Export(export::Export),
    /// Undo scores
    #[command(subcommand)]
    Score(score::Command),
    /// Show events that broke a rule of their board, and accept or reject them
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    /// Add a score of the past, also to a closed period
    ///
    /// Open periods show it at once, closed ones once they are refreshed. Who did it and why is kept in the audit log.
    Correct(correct::Correct),
    /// Close periods that are over: their rankings become archives that never change by themselves
    ///
    /// `serve` does this by itself unless told not to. Again is harmless, and so is being killed.
    Close(close::Close),
    /// Bring the archive of a closed period up to the ledger, after a correction, a void or a ban
    Refresh(refresh::Refresh),
    /// Look after everything but closing, once: ledger months, expired ids, layouts, archives beyond retention, old rankings, outbox
    ///
    /// `serve` does this by itself unless told not to. Again is harmless, and so is being killed.
    Maintain,
    /// Compare everything derived with the ledger, period by period, and say exactly what differs
    ///
    /// Fails when something does. Safe while scores come in: each period is compared in one snapshot.
    Verify(verify::Verify),
    /// Make a period's entries, bucket rows, layout and counts anew from the ledger, and put them into place
    ///
    /// Players notice nothing, scores go on. May be killed at any moment, and run again.
    Rebuild(rebuild::Rebuild),
    /// Say where the events of a board are sent: one for each period that was closed, for rewards
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Show events, send them, and send them again
    #[command(subcommand)]
    Outbox(outbox::Command),
}

/// Runs the command that this process was started with; a failure is one line on standard error.
pub async fn main() -> ExitCode {
    // Wrong usage ends here, with status 2 and clap's explanation.
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let matches = Cli::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let is_instance = matches!(cli.command, Command::Serve(_));
    match run(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let told = format!("error: {}", as_written(error, &matches));
            if is_instance {
                output::last_note(told);
            } else {
                output::note(told);
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<()> {
    let config = &cli.config;
    // Dropped at the end, which writes the lines that wait.
    let _log = match &cli.command {
        // The demo keeps standard error free of its log.
        Command::Demo(_) => None,
        Command::Serve(_) => Some(log::of_instance(config)),
        _ => {
            log::of_command(config);
            None
        }
    };
    match cli.command {
        Command::Demo(settings) => demo::run(config, &settings).await,
        Command::Migrate(how) => migrate::run(config.database_url()?, how).await,
        Command::Serve(settings) => serve::run(config, &settings).await,
        Command::Board(command) => board::run(config, command).await,
        Command::Key(command) => key::run(config, command).await,
        Command::Secrets(command) => secrets::run(config, command).await,
        Command::Import(import) => import::run(config, import).await,
        Command::User(command) => user::run(config, command).await,
        Command::Explain(asked) => explain::run(config, asked).await,
        Command::Export(wanted) => export::run(config, wanted).await,
        Command::Score(command) => score::run(config, command).await,
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

/// Does `job` with a service that is shut down afterwards, however the job ends.
async fn with_service<T>(config: &Config, job: impl AsyncFnOnce(&Instance) -> Result<T>) -> Result<T> {
    with_settings(&config.for_command()?, job).await
}

/// As [`with_service`], connected as `settings` say.
async fn with_settings<T>(settings: &Settings, job: impl AsyncFnOnce(&Instance) -> Result<T>) -> Result<T> {
    check_url(settings.database_url.as_str()).await?;
    let instance = Instance::connect(settings).await?;
    let result = job(&instance).await;
    instance.shut_down().await;
    result
}

/// The same error, in which a field of the domain is called as on the command line: `time_zone` is `--time-zone`.
fn as_written(error: Error, matches: &ArgMatches) -> Error {
    let Error::Invalid { field, message } = error else { return error };
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
    Error::Invalid { field: written.unwrap_or(field), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn refusals_name_what_was_written() -> Result<(), clap::Error> {
        let matches =
            Cli::command().try_get_matches_from(["centile", "board", "create", "a", "--time-zone", "Mars"])?;
        for (field, written) in [("time_zone", "--time-zone"), ("slug", "SLUG"), ("database_url", "--database-url")] {
            let error = as_written(Error::invalid(field, "no"), &matches);
            assert_eq!(error.to_string(), format!("{written}: no"));
        }
        assert_eq!(as_written(Error::Conflict("time_zone".into()), &matches).to_string(), "time_zone");
        Ok(())
    }
}
