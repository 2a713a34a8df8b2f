//! Setup of logging.

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

/// Default log filter of an instance. The libraries log little that Centile does not log itself.
const INSTANCE_FILTER: &str = "info,actix_server=warn,refinery_core=warn";

/// Default log filter of one-shot commands.
const COMMAND_FILTER: &str = "warn";

/// Starts logging to standard error, with the default filter of an instance. Dropping the result
/// stops the log writer.
pub(super) fn of_instance(config: &Config) -> Result<Writing> {
    start_writer(config, io::stderr().is_terminal(), io::stderr())
}

/// Starts logging to the end of `file`, with the default filter of an instance. Dropping the result
/// stops the log writer.
pub(super) fn to_file(config: &Config, file: &Path) -> Result<Writing> {
    let open = OpenOptions::new().create(true).append(true).open(file);
    let open = open.map_err(|error| Error::Internal(format!("cannot log to {}: {error}", file.display())))?;
    start_writer(config, false, open)
}

/// Starts logging to standard error, with the default filter of a one-shot command.
pub(super) fn of_command(config: &Config) {
    start(config, COMMAND_FILTER, io::stderr().is_terminal(), io::stderr);
}

fn start_writer(config: &Config, colours: bool, out: impl Write + Send + 'static) -> Result<Writing> {
    let report = |lines| tracing::warn!(lines, "lines of this log were lost: they could not be written fast enough");
    let started = Lines::start(out, report);
    let (lines, writing) = started.map_err(|error| Error::Internal(format!("cannot log: {error}")))?;
    start(config, INSTANCE_FILTER, colours, lines);
    Ok(writing)
}

fn start<W>(config: &Config, default: &str, colours: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = fmt().with_env_filter(config.log_filter(default)).with_ansi(colours).with_writer(writer);
    // Fails only if a subscriber is already set; then that one logs.
    match config.log_format {
        LogFormat::Text => subscriber.try_init().ok(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init().ok(),
    };
}
