//! Where log lines go.

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal as _},
    path::Path,
    sync::Mutex,
};

use tracing_subscriber::fmt::{MakeWriter, fmt};

use crate::{
    Error, Result,
    config::{Config, LogFormat},
};

/// What an instance logs unless the settings say otherwise: the libraries tell little that we do not.
pub(super) const INSTANCE: &str = "info,actix_server=warn,refinery_core=warn";
/// What commands that do one thing and end log unless the settings say otherwise.
pub(super) const COMMAND: &str = "warn";

/// Logs to standard error what the settings say, or `default`.
pub(super) fn to_stderr(config: &Config, default: &str) {
    start(config, default, io::stderr().is_terminal(), io::stderr);
}

/// Logs to the end of `file` what the settings say, or what an instance logs.
pub(super) fn to_file(config: &Config, file: &Path) -> Result<()> {
    let open = OpenOptions::new().create(true).append(true).open(file);
    let open = open.map_err(|error| Error::Internal(format!("cannot log to {}: {error}", file.display())))?;
    start(config, INSTANCE, false, Mutex::new(open));
    Ok(())
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
