//! Where log lines go.

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use tracing_subscriber::fmt::{MakeWriter, fmt};

use crate::{
    Error, Result,
    cli::lines::{Lines, Writing},
    config::{Config, LogFormat},
};

/// What an instance logs unless the settings say otherwise: the libraries tell little that we do not.
const INSTANCE: &str = "info,actix_server=warn,refinery_core=warn";

/// What commands that do one thing and end log unless the settings say otherwise.
const COMMAND: &str = "warn";

/// Logs to standard error what the settings say, or what an instance logs, until what is returned is dropped.
pub(super) fn of_instance(config: &Config) -> Result<Writing> {
    by_thread(config, io::stderr().is_terminal(), io::stderr())
}

/// Logs to the end of `file` what the settings say, or what an instance logs, until what is returned is dropped.
pub(super) fn to_file(config: &Config, file: &Path) -> Result<Writing> {
    let open = OpenOptions::new().create(true).append(true).open(file);
    let open = open.map_err(|error| Error::Internal(format!("cannot log to {}: {error}", file.display())))?;
    by_thread(config, false, open)
}

/// Logs to standard error what the settings say, or what a command logs.
pub(super) fn of_command(config: &Config) {
    start(config, COMMAND, io::stderr().is_terminal(), io::stderr);
}

fn by_thread(config: &Config, colours: bool, out: impl Write + Send + 'static) -> Result<Writing> {
    let tell =
        |lines| tracing::warn!(lines, "lines of this log were lost: they could not be written as fast as they came");
    let started = Lines::start(out, tell);
    let (lines, writing) = started.map_err(|error| Error::Internal(format!("cannot log: {error}")))?;
    start(config, INSTANCE, colours, lines);
    Ok(writing)
}

fn start<W>(config: &Config, default: &str, colours: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = fmt().with_env_filter(config.log_filter(default)).with_ansi(colours).with_writer(writer);
    // It fails only when a subscriber is set already: then that one logs.
    match config.log_format {
        LogFormat::Text => subscriber.try_init().ok(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init().ok(),
    };
}
