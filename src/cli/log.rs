//! Setup of logging.

use std::{
    fmt,
    fs::OpenOptions,
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::{self, JsonFields, Writer},
        writer::MakeWriterExt as _,
    },
    registry::LookupSpan,
};

use crate::{
    Error, Result,
    config::{Config, LogFormat},
    http::server::observe,
    telemetry::log::{self, LineFormat, LogGuard},
};

/// Default filter of an instance. Libraries log little that Centile does not log itself.
const INSTANCE: &str = "info,actix_server=warn,refinery_core=warn";

/// Default filter of commands that do one thing and exit.
const COMMAND: &str = "warn";

/// Logs an instance to standard error.
pub(super) fn of_instance(config: &Config) -> Result<LogGuard> {
    let failed = |error| Error::Internal(format!("cannot start the log: {error}"));
    buffered(config, io::stderr().is_terminal(), io::stderr()).map_err(failed)
}

/// Logs an instance to the end of `file`.
pub(super) fn to_file(config: &Config, file: &Path) -> Result<LogGuard> {
    let failed = |error| Error::Internal(format!("cannot log to {}: {error}", file.display()));
    let out = OpenOptions::new().create(true).append(true).open(file);
    out.and_then(|out| buffered(config, false, out)).map_err(failed)
}

/// Logs a command to standard error.
pub(super) fn of_command(config: &Config) {
    start(config, COMMAND, io::stderr().is_terminal(), io::stderr);
}

fn buffered(config: &Config, colours: bool, out: impl Write + Send + 'static) -> io::Result<LogGuard> {
    let format = match config.log_format {
        // Only `tracing` writes colours.
        LogFormat::Text if colours => None,
        LogFormat::Text => Some(LineFormat::Text),
        LogFormat::Json => Some(LineFormat::Json),
    };
    let guard = log::start(format, out)?;
    start(config, INSTANCE, colours, log::warnings.with_max_level(Level::WARN).or_else(log::lines));
    Ok(guard)
}

fn start<W>(config: &Config, default: &str, colours: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = tracing_subscriber::fmt().with_env_filter(config.log_filter(default));
    let subscriber = subscriber.with_ansi(colours).with_writer(writer);
    // Fails only if a subscriber is already set, which then logs.
    match config.log_format {
        LogFormat::Text => subscriber.event_format(WithRequestId(format::format())).try_init().ok(),
        LogFormat::Json => {
            let json = WithRequestId(format::json().flatten_event(true));
            subscriber.fmt_fields(JsonFields::new()).event_format(json).try_init().ok()
        }
    };
}

/// Formats lines within a request inside a span with its id.
struct WithRequestId<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithRequestId<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        observe::current_span().in_scope(|| self.0.format_event(context, writer, event))
    }
}
