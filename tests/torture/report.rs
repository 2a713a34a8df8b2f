//! The report: for each trial a row with the requirement, the measurements and the verdict.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// A trial. Its row is written when it ends, however it ends.
#[derive(Debug)]
pub struct Trial {
    /// The name of its row, by which rows are sorted.
    place: &'static str,
    name: String,
    asked: &'static str,
    measured: Vec<String>,
    missed: Vec<String>,
    verdict: Option<String>,
}

impl Trial {
    /// Begins a trial; `place` is the name of its file.
    pub fn begin(place: &'static str, name: impl Into<String>, asked: &'static str) -> Self {
        let (measured, missed) = (Vec::new(), Vec::new());
        Self { place, name: name.into(), asked, measured, missed, verdict: None }
    }

    /// Records a measurement without a limit.
    pub fn saw(&mut self, what: impl Into<String>) {
        let what = what.into();
        println!("{}: {what}", self.name);
        self.measured.push(what);
    }

    /// Records a measurement with a limit. If it fails, the trial continues and fails at its end.
    pub fn expect(&mut self, holds: bool, what: impl Into<String>) {
        let what = what.into();
        if holds {
            self.saw(what);
        } else {
            self.saw(format!("**{what}**"));
            self.missed.push(what);
        }
    }

    /// Ends a trial that cannot run here.
    pub fn skip(mut self, why: &str) {
        println!("{}: not run: {why}", self.name);
        self.verdict = Some(format!("not run: {why}"));
    }

    /// Ends the trial. Fails if any limit was missed.
    pub fn end(mut self) {
        let missed = self.missed.join("; ");
        self.verdict = Some(if missed.is_empty() { "passed" } else { "FAILED" }.to_owned());
        drop(self);
        assert!(missed.is_empty(), "{missed}");
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let verdict = self.verdict.take().unwrap_or_else(|| {
            if thread::panicking() { "FAILED: stopped by a fault, see its output" } else { "did not end" }.to_owned()
        });
        let row = format!("| {} | {} | {} | {verdict} |\n", self.name, self.asked, self.measured.join("; "));
        // An error here cannot be handled, and the figures were printed.
        let _ = write(self.place, &row);
    }
}

/// Writes a row, and the report from all rows, including earlier ones of trials that did not run
/// this time.
fn write(place: &str, row: &str) -> std::io::Result<()> {
    let folder = folder();
    let rows = folder.join("rows");
    fs::create_dir_all(&rows)?;
    fs::write(rows.join(place), row)?;
    let mut files: Vec<PathBuf> =
        fs::read_dir(&rows)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let mut report = "| trial | what was asked | what was measured | verdict |\n| --- | --- | --- | --- |\n".to_owned();
    for file in files {
        let _ = write!(report, "{}", fs::read_to_string(file)?);
    }
    fs::write(folder.join("report.md"), report)
}

/// Returns `target/torture`.
fn folder() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().unwrap_or(tmp).join("torture")
}

/// Formats a duration for the report.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
