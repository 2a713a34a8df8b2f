//! `centile import`: events from a file, with times of their own.

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
    config::{Config, value},
    import::{self, Counts, Format, Options, Progress, Rejects, Source},
    model::{act::Actor, board::BoardSlug, settings::Settings},
    periods::closing,
};

/// How often a line tells how far the import is, where there is no terminal to draw on.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How often the bar on a terminal is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// What to import, and where to.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// CSV or NDJSON file; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "abandon")]
    file: Option<PathBuf>,
    /// The board
    #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
    board: BoardSlug,
    /// How the file is written; by the end of its name unless given (.csv, .ndjson, .jsonl)
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Where to write the lines that cannot be taken, with the reason; FILE.rejects.csv unless given
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Give players who exist already the last name that the file has for them
    #[arg(long)]
    update_names: bool,
    /// Events that are written in one transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=5_000))]
    batch_size: u16,
    /// Give up the board's imports that were cut short and will not be run again. Its periods are then closed with what is in
    /// them, those that the import never reached without a player; later lines for them are refused
    #[arg(long, conflicts_with_all = ["file", "format", "rejects", "update_names"])]
    abandon: bool,
    #[command(flatten)]
    by: By,
}

/// Imports the file and prints what became of its lines; fails when some of them could not be taken.
pub(super) async fn run(config: &Config, import: Import) -> Result<()> {
    let by = import.by.actor()?;
    if import.abandon {
        return abandon(config, &import.board, &by).await;
    }
    let settings = Settings { write_connections: import::WRITE_CONNECTIONS, ..config.for_command()? };
    with_settings(&settings, async |instance| {
        let board = boards::find(&instance.boards, &import.board).await?;
        let progress = Arc::new(Progress::default());
        let (input, length) = open(import.file())?;
        let source = Source::open(input, import.format()?, &progress)?;
        let path = import.rejects_path();
        let rejects = Rejects::new(make_rejects(import.file(), &path)?)?;
        let options = Options { by, update_names: import.update_names, batch_size: import.batch_size.into() };
        let (begin, name) = (Instant::now(), import.source_name());
        let result = tokio::select! {
            result = import::run(&instance.store, &board, &name, source, options, rejects, &progress) => result,
            never = show(&progress, length) => match never {},
        };
        let counts = progress.counts();
        tidy_up(&path, &counts);
        output::print(summary(&counts, begin.elapsed()))?;
        result.map_err(|error| stopped(error, &counts))?;
        match counts.rejected {
            0 => Ok(()),
            rejected => Err(Error::Conflict(format!(
                "{} of {} lines could not be taken; their reasons are in {}",
                thousands(rejected),
                thousands(counts.lines()),
                path.display()
            ))),
        }
    })
    .await
}

impl Import {
    /// The file; clap lets it be left out only where it is not asked for.
    fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new("-"))
    }

    fn format(&self) -> Result<Format> {
        let unknown =
            || Error::invalid("format", "is needed where the file's name does not end in .csv, .ndjson or .jsonl");
        self.format.or_else(|| Format::of(self.file())).ok_or_else(unknown)
    }

    /// What the import is known by: the same file again goes on with an import that was cut short.
    fn source_name(&self) -> String {
        if is_stdin(self.file()) {
            return "stdin".to_owned();
        }
        // Whole: files of the same name in two folders are two imports.
        let path = fs::canonicalize(self.file()).unwrap_or_else(|_| self.file().to_owned());
        path.to_string_lossy().into_owned()
    }

    fn rejects_path(&self) -> PathBuf {
        self.rejects.clone().unwrap_or_else(|| {
            let file = if is_stdin(self.file()) { Path::new("stdin") } else { self.file() };
            let mut name = file.as_os_str().to_owned();
            name.push(".rejects.csv");
            name.into()
        })
    }
}

async fn abandon(config: &Config, board: &BoardSlug, by: &Actor) -> Result<()> {
    let abandoned = with_instance(config, async |instance| {
        let board = boards::find(&instance.boards, board).await?;
        closing::abandon_imports(&instance.store, &board, by).await
    })
    .await?;
    output::print(match abandoned {
        0 => format!("no import of board {board} was cut short"),
        1 => format!("1 import of board {board} given up; what it has written stays"),
        some => format!("{some} imports of board {board} given up; what they have written stays"),
    })
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// The file, and its length where it has one.
fn open(path: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>)> {
    if is_stdin(path) {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error| Error::invalid("file", format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

/// The file of rejects, emptied.
fn make_rejects(file: &Path, path: &Path) -> Result<Box<dyn Write + Send>> {
    let same = fs::canonicalize(path).is_ok_and(|path| fs::canonicalize(file).is_ok_and(|file| file == path));
    if same {
        return Err(Error::invalid("rejects", "is the file to import itself"));
    }
    let made = File::create(path).map_err(|error| {
        Error::invalid("rejects", format!("cannot write {}: {error}; give another file", path.display()))
    });
    Ok(Box::new(io::BufWriter::new(made?)))
}

/// A file of rejects without any is not kept: that it is there says that there were some.
fn tidy_up(path: &Path, counts: &Counts) {
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
        ("time", format!("{:.1} s ({per_second} a second)", time.as_secs_f64())),
    ])
}

fn rate(counts: &Counts, time: Duration) -> String {
    thousands(u128::from(counts.lines()) * 1_000 / time.as_millis().max(1))
}

/// The same error, with what a second run would do.
fn stopped(error: Error, counts: &Counts) -> Error {
    let advice = format!(
        "; {} events are in and stay. Run the import again: lines with an id count once, others would count again",
        thousands(counts.accepted)
    );
    match error {
        Error::Unavailable { message, retry_after } => Error::Unavailable { message: message + &advice, retry_after },
        Error::Internal(message) => Error::Internal(message + &advice),
        Error::Invalid { field, message } => Error::Invalid { field, message: message + &advice },
        other => other,
    }
}

/// Shows how far the import is, on standard error: a bar on a terminal, else a line every few seconds.
async fn show(progress: &Progress, length: Option<u64>) -> Infallible {
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
            bar.set_message(told(&counts, begin.elapsed()));
            tokio::time::sleep(DRAW_EVERY).await;
        }
    }
    loop {
        tokio::time::sleep(LINE_EVERY).await;
        let counts = progress.counts();
        let share = length.filter(|&length| length > 0).map(|length| counts.bytes * 100 / length);
        let share = share.map(|percent| format!(", {percent} % of the file read")).unwrap_or_default();
        output::note(format!("{}{share}", told(&counts, begin.elapsed())));
    }
}

fn told(counts: &Counts, time: Duration) -> String {
    let rejected = match counts.rejected {
        0 => String::new(),
        rejected => format!(", {} rejected", thousands(rejected)),
    };
    format!("{} lines, {} a second{rejected}", thousands(counts.lines()), rate(counts, time))
}
