//! `centile import`: imports score events with their own times from a file.

use std::{
    convert::Infallible,
    fs::{self, File},
    io::{self, IsTerminal as _, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    Error, Result, boards,
    cli::{
        by::By,
        output::{self, fields, thousands},
        with_instance, with_settings,
    },
    config::{Config, named, value},
    import::{self, Counts, ImportProgress, Options, Record, RecordFile, Rejects},
    model::{act::Actor, board::BoardSlug, file_format::FileFormat, settings::Settings},
};

/// Interval of progress lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Redraw interval of the progress bar on a terminal.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The file to import, and its board.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// CSV or NDJSON file; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "abandon")]
    file: Option<PathBuf>,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    #[command(flatten)]
    flags: FileFlags,
    /// Rename existing players to their last name in the file
    #[arg(long)]
    update_names: bool,
    /// Events per transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=5_000))]
    batch_size: u16,
    /// Abandon interrupted imports of the board
    ///
    /// Use this for imports that will not be run again. The board's periods can then close with the
    /// scores imported so far. A period that the import never reached closes without players. Later
    /// imports into closed periods are rejected.
    #[arg(long, conflicts_with_all = ["file", "format", "rejects", "update_names"])]
    abandon: bool,
    #[command(flatten)]
    by: By,
}

/// Flags of a file to import.
#[derive(Debug, Args)]
pub(super) struct FileFlags {
    /// File format [default: by file extension: .csv, .ndjson or .jsonl]
    #[arg(long, value_parser = named::<FileFormat>())]
    format: Option<FileFormat>,
    /// File for rejected lines and their reasons [default: FILE.rejects.csv]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
}

/// Imports the file and prints a summary. Fails if lines were rejected.
pub(super) async fn run(config: &Config, import: Import) -> Result<()> {
    let by = import.by.actor()?;
    if import.abandon {
        return abandon(config, &import.board, &by).await;
    }
    // Clap requires it except with `--abandon`.
    let file = import.file.as_deref().unwrap_or(Path::new("-"));
    let settings = Settings { write_connections: import::WRITE_CONNECTIONS, ..config.for_command()? };
    with_settings(&settings, async |instance| {
        let mut board = boards::find(&instance.boards, &import.board).await?;
        if board.is_future() {
            board = Arc::new(instance.writers.create_board(&board).await?);
        }
        let options = Options { by, update_names: import.update_names, batch_size: import.batch_size.into() };
        let name = source_name(file);
        let run = async |source, rejects, progress: &Arc<ImportProgress>| {
            import::import_events(&instance.store, &board, &name, source, options, rejects, progress).await
        };
        let advice =
            "events are imported. Run the import again: lines with an id count once, lines without an id count again";
        import_file(file, &import.flags, run, advice).await
    })
    .await
}

/// Imports `file` with `import`, shows the progress and prints a summary. Fails if lines were
/// rejected. `advice`, after the number of accepted lines, tells how to continue after an error.
pub(super) async fn import_file<R: Record>(
    file: &Path,
    flags: &FileFlags,
    import: impl AsyncFnOnce(RecordFile<R>, Rejects, &Arc<ImportProgress>) -> Result<()>,
    advice: &str,
) -> Result<()> {
    let progress = Arc::new(ImportProgress::default());
    let (input, length) = open(file)?;
    let source = RecordFile::open(input, flags.format(file)?, &progress)?;
    let path = flags.rejects_path(file);
    let rejects = Rejects::new(create_rejects(file, &path)?)?;
    let begin = Instant::now();
    let result = tokio::select! {
        result = import(source, rejects, &progress) => result,
        never = show_progress(&progress, length) => match never {},
    };
    let counts = progress.counts();
    remove_empty_rejects(&path, &counts);
    output::print(summary(&counts, begin.elapsed()))?;
    result.map_err(|error| with_advice(error, &counts, advice))?;
    match counts.rejected {
        0 => Ok(()),
        rejected => Err(Error::other_conflict(format!(
            "{} of {} lines were rejected; see the reasons in {}",
            thousands(rejected),
            thousands(counts.lines()),
            path.display()
        ))),
    }
}

impl FileFlags {
    fn format(&self, file: &Path) -> Result<FileFormat> {
        let unknown =
            || Error::invalid("format", "is required if the file name does not end in .csv, .ndjson or .jsonl");
        self.format.or_else(|| FileFormat::of(file)).ok_or_else(unknown)
    }

    fn rejects_path(&self, file: &Path) -> PathBuf {
        self.rejects.clone().unwrap_or_else(|| {
            let file = if is_stdin(file) { Path::new("stdin") } else { file };
            let mut name = file.as_os_str().to_owned();
            name.push(".rejects.csv");
            name.into()
        })
    }
}

/// Returns the name that identifies the import of a file. The same file resumes an interrupted
/// import.
pub(super) fn source_name(file: &Path) -> String {
    if is_stdin(file) {
        return "stdin".to_owned();
    }
    // The full path: files of the same name in two folders are different imports.
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    path.to_string_lossy().into_owned()
}

async fn abandon(config: &Config, board: &BoardSlug, by: &Actor) -> Result<()> {
    let abandoned = with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, board).await?;
        instance.store.admin.abandon_imports(board.slug.as_str(), by).await
    })
    .await?;
    output::print(match abandoned {
        0 => format!("no import of board {board} was interrupted"),
        1 => format!("1 import of board {board} abandoned; its imported events stay"),
        some => format!("{some} imports of board {board} abandoned; their imported events stay"),
    })
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Opens the file. Returns its length too, if known.
fn open(path: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>)> {
    if is_stdin(path) {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error| Error::invalid("file", format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

/// Creates or truncates the rejects file.
fn create_rejects(file: &Path, path: &Path) -> Result<Box<dyn Write + Send>> {
    let same = fs::canonicalize(path).is_ok_and(|path| fs::canonicalize(file).is_ok_and(|file| file == path));
    if same {
        return Err(Error::invalid("rejects", "must not be the imported file"));
    }
    let created = File::create(path).map_err(|error| {
        Error::invalid("rejects", format!("cannot write {}: {error}; choose another file", path.display()))
    });
    Ok(Box::new(io::BufWriter::new(created?)))
}

/// Removes the rejects file if no line was rejected, so that its existence indicates rejects.
fn remove_empty_rejects(path: &Path, counts: &Counts) {
    if counts.rejected == 0 && fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        fs::remove_file(path).ok();
    }
}

fn summary(counts: &Counts, time: Duration) -> String {
    let per_second = rate(counts, time);
    fields(&[
        ("read", thousands(counts.lines())),
        ("accepted", thousands(counts.accepted)),
        ("repeated", thousands(counts.repeated)),
        ("rejected", thousands(counts.rejected)),
        ("time", format!("{:.1} s ({per_second} per second)", time.as_secs_f64())),
    ])
}

fn rate(counts: &Counts, time: Duration) -> String {
    thousands(u128::from(counts.lines()) * 1_000 / time.as_millis().max(1))
}

/// Adds advice about a second run to an error.
fn with_advice(error: Error, counts: &Counts, advice: &str) -> Error {
    let advice = format!("; {} {advice}", thousands(counts.accepted));
    match error {
        Error::Internal(message) => Error::Internal(message + &advice),
        Error::Invalid { code, field, message } => Error::Invalid { code, field, message: message + &advice },
        other => other.with_message(|message| message + &advice),
    }
}

/// Shows progress on standard error: a bar on a terminal, otherwise a line every few seconds.
async fn show_progress(progress: &ImportProgress, length: Option<u64>) -> Infallible {
    let begin = Instant::now();
    if io::stderr().is_terminal() {
        let (template, bar) = match length {
            Some(length) => ("{bar:30} {bytes} of {total_bytes}  {msg}  {eta} left", ProgressBar::new(length)),
            None => ("{spinner} {bytes}  {msg}", ProgressBar::new_spinner()),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = bar.with_style(style);
        loop {
            let counts = progress.counts();
            bar.set_position(counts.bytes);
            bar.set_message(progress_text(&counts, begin.elapsed()));
            tokio::time::sleep(DRAW_INTERVAL).await;
        }
    }
    loop {
        tokio::time::sleep(LINE_INTERVAL).await;
        let counts = progress.counts();
        let share = length.filter(|&length| length > 0).map(|length| counts.bytes * 100 / length);
        let share = share.map(|percent| format!(", {percent} % of the file read")).unwrap_or_default();
        output::note(format!("{}{share}", progress_text(&counts, begin.elapsed())));
    }
}

fn progress_text(counts: &Counts, time: Duration) -> String {
    let rejected = match counts.rejected {
        0 => String::new(),
        rejected => format!(", {} rejected", thousands(rejected)),
    };
    format!("{} lines, {} per second{rejected}", thousands(counts.lines()), rate(counts, time))
}
