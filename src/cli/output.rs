//! Output of commands: results on standard output, notes on standard error.

use std::{
    fmt::Display,
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    sync::mpsc,
    thread,
    time::Duration,
};

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::{Error, Result};

/// Timeout for writing the last message of an instance.
const LAST_NOTE_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints a result. A closed pipe (`centile key list | head -1`) is not an error.
pub(super) fn print(text: impl Display) -> Result<()> {
    let mut stdout = io::stdout();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Internal(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a note or an error to standard error, ignoring write errors.
pub(super) fn note(text: impl Display) {
    writeln!(io::stderr(), "{text}").ok();
}

/// Like [`note`], but gives up after [`LAST_NOTE_TIMEOUT`]: a blocked reader must not delay the
/// exit of an instance.
pub(super) fn last_note(text: impl Display + Send + 'static) {
    let (sender, written) = mpsc::channel();
    thread::spawn(move || {
        note(text);
        sender.send(()).ok();
    });
    written.recv_timeout(LAST_NOTE_TIMEOUT).ok();
}

/// Returns a spinner for a long job, hidden without a terminal.
pub(super) fn spinner(job: &'static str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{spinner} {msg}, {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let spinner = ProgressBar::new_spinner().with_style(style).with_message(job);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

pub(super) fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value);
    print(text.map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?)
}

/// Formats rows under a header, in aligned columns.
pub(super) fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let lines: Vec<[String; N]> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    let widths: Vec<usize> =
        (0..N).map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)).collect();
    let lines = lines.iter().map(|line| {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats named values, one per line.
pub(super) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = fields.iter().map(|(name, value)| format!("{name:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Joins items with commas; returns `none` for an empty list.
pub(super) fn list<T: Display>(items: &[T], none: &str) -> String {
    if items.is_empty() {
        return none.to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Formats a time to the minute; `never` for `None`.
pub(super) fn time(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.format("%Y-%m-%d %H:%MZ").to_string())
}

/// Formats a number with thousands separators.
pub(super) fn thousands(number: impl Display) -> String {
    let digits = number.to_string();
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell() {
        let rows = vec![["Zoë".to_owned(), "1".to_owned()], ["Anna-Lena".to_owned(), "22".to_owned()]];
        assert_eq!(table(["NAME", "N"], rows), "NAME       N\nZoë        1\nAnna-Lena  22");
        assert_eq!(fields(&[("a", "1".to_owned()), ("long", "2".to_owned())]), "a     1\nlong  2");
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567"), (-100, "-100")] {
            assert_eq!(thousands(number), text);
        }
    }
}
