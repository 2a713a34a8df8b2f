//! Setup of logging.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, IsTerminal as _, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio_util::task::AbortOnDropHandle;
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::{MakeWriter, fmt, writer::MakeWriterExt as _};

use crate::{
    Error, Result,
    config::{Config, LogFormat},
};

/// Default filter of an instance. Libraries log little that Centile does not log itself.
const INSTANCE: &str = "info,actix_server=warn,refinery_core=warn";

/// Default filter of commands that do one thing and exit.
const COMMAND: &str = "warn";

/// Capacity of the queue of lines. Further lines are lost, and counted.
const QUEUED_LINES: usize = 8_192;

/// Capacity of the queue of warnings and errors. It is separate, so that requests cannot fill it.
const QUEUED_WARNINGS: usize = 2_048;

/// Maximum number of bytes in one write, while more lines wait.
const WRITE_BYTES: usize = 64 << 10;

/// Interval between two reports of lost lines.
const LOST_LINES_EVERY: Duration = Duration::from_secs(1);

/// The log of an instance. Dropping it writes the queued lines, for at most about a second.
pub(super) struct Log {
    lost: Arc<LostLines>,
    _reports: AbortOnDropHandle<()>,
    _queues: [WorkerGuard; 2],
}

/// Numbers of lines lost because their queue was full.
struct LostLines {
    counters: [ErrorCounter; 2],
    reported: AtomicUsize,
}

impl LostLines {
    /// Logs how many lines were lost since the last report, if any.
    fn report(&self) {
        let lost: usize = self.counters.iter().map(ErrorCounter::dropped_lines).sum();
        // Another thread may have reported more meanwhile.
        let lines = lost.saturating_sub(self.reported.fetch_max(lost, Ordering::Relaxed));
        if lines > 0 {
            tracing::warn!(lines, "log lines were lost: the log could not be written fast enough");
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lost.report();
    }
}

/// Logs an instance to standard error. Must be called within a runtime.
pub(super) fn of_instance(config: &Config) -> Log {
    queued(config, io::stderr().is_terminal(), io::stderr(), io::stderr())
}

/// Logs an instance to the end of `file`. Must be called within a runtime.
pub(super) fn to_file(config: &Config, file: &Path) -> Result<Log> {
    let open = || OpenOptions::new().create(true).append(true).open(file);
    let failed = |error| Error::Internal(format!("cannot log to {}: {error}", file.display()));
    Ok(queued(config, false, open().map_err(failed)?, open().map_err(failed)?))
}

/// Logs a command to standard error.
pub(super) fn of_command(config: &Config) {
    start(config, COMMAND, io::stderr().is_terminal(), io::stderr);
}

fn queued<W: Write + Send + 'static>(config: &Config, colours: bool, lines: W, warnings: W) -> Log {
    let (lines, lines_guard) = queue("log", QUEUED_LINES, lines);
    let (warnings, warnings_guard) = queue("log-warnings", QUEUED_WARNINGS, warnings);
    let counters = [lines.error_counter(), warnings.error_counter()];
    start(config, INSTANCE, colours, warnings.with_max_level(Level::WARN).or_else(lines));
    let lost = Arc::new(LostLines { counters, reported: AtomicUsize::new(0) });
    let reported = Arc::clone(&lost);
    let reports = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(LOST_LINES_EVERY);
        loop {
            ticks.tick().await;
            reported.report();
        }
    });
    Log { lost, _reports: AbortOnDropHandle::new(reports), _queues: [lines_guard, warnings_guard] }
}

fn queue(thread: &str, lines: usize, out: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(lines).thread_name(thread);
    builder.finish(BufWriter::with_capacity(WRITE_BYTES, out))
}

fn start<W>(config: &Config, default: &str, colours: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = fmt().with_env_filter(config.log_filter(default)).with_ansi(colours).with_writer(writer);
    // Fails only if a subscriber is already set, which then logs.
    match config.log_format {
        LogFormat::Text => subscriber.try_init().ok(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init().ok(),
    };
}
