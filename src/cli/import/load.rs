//! What `centile import --fast` shows: its parts, one after the other, since a set-wise step cannot tell how far it is.

use std::{
    convert::Infallible,
    io::{self, IsTerminal as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{DRAW_EVERY, LINE_EVERY};
use crate::{
    Error,
    cli::output::{self, fields, thousands},
    import::{Phase, Progress},
};

/// Shows on standard error what is being done: the part under way on a terminal, and a line for each that is over; without a
/// terminal also a line every few seconds.
pub(super) async fn show(progress: &Progress) -> Infallible {
    let terminal = io::stderr().is_terminal();
    let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    let (mut told, mut silent) = (0, Duration::ZERO);
    loop {
        tokio::time::sleep(DRAW_EVERY).await;
        silent += DRAW_EVERY;
        let phases = progress.phases();
        for phase in phases.iter().skip(told).filter(|phase| phase.is_over()) {
            bar.suspend(|| output::note(line(phase)));
            (told, silent) = (told + 1, Duration::ZERO);
        }
        let Some(last) = phases.last().filter(|phase| !phase.is_over()) else { continue };
        bar.set_message(line(last));
        bar.tick();
        if !terminal && silent >= LINE_EVERY {
            output::note(line(last));
            silent = Duration::ZERO;
        }
    }
}

/// The time of each part, to go below the summary; nothing where there were no parts.
pub(super) fn times(progress: &Progress) -> String {
    let phases = progress.phases();
    if phases.is_empty() {
        return String::new();
    }
    let seconds = |phase: &Phase| format!("{:.1} s", phase.time().as_secs_f64());
    let lines: Vec<(&str, String)> = phases.iter().map(|phase| (phase.name.as_str(), seconds(phase))).collect();
    format!("\n\n{}", fields(&lines))
}

/// The same error, with what became of the load.
pub(super) fn stopped(error: Error) -> Error {
    let advice = "; nothing was written but players' names: run it again";
    match error {
        Error::Unavailable { message, retry_after } => Error::Unavailable { message: message + advice, retry_after },
        Error::Internal(message) => Error::Internal(message + advice),
        Error::Invalid { field, message } => Error::Invalid { field, message: message + advice },
        other => other,
    }
}

fn line(phase: &Phase) -> String {
    let done = if phase.done > 0 { format!("{} ", thousands(phase.done)) } else { String::new() };
    format!("{done}{}, {:.1} s", phase.name, phase.time().as_secs_f64())
}
