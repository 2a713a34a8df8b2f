//! Rejected lines, with the reasons.

use std::{
    fmt::Display,
    io::Write,
    sync::{Mutex, PoisonError},
};

use crate::{Error, Result, import::ImportProgress};

/// Output for refused lines: CSV with the columns `line`, `reason` and `raw`, nearly in file order.
///
/// `raw` is the line as written in the file, with bytes that are not UTF-8 replaced.
pub struct Rejects(Mutex<csv::Writer<Box<dyn Write + Send>>>);

impl Rejects {
    /// Creates an output, and writes the header to it.
    pub fn new(output: Box<dyn Write + Send>) -> Result<Self> {
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(["line", "reason", "raw"]).map_err(|error| failed(&error))?;
        let rejects = Self(Mutex::new(writer));
        rejects.flush()?;
        Ok(rejects)
    }

    pub(super) fn add(&self, number: u64, raw: &[u8], reason: &dyn Display, progress: &ImportProgress) -> Result<()> {
        let raw = String::from_utf8_lossy(raw);
        let record = [number.to_string(), reason.to_string(), raw.into_owned()];
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_record(record).map_err(|error| failed(&error))?;
        progress.add_rejected();
        Ok(())
    }

    pub(super) fn flush(&self) -> Result<()> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.flush().map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn Display) -> Error {
    Error::invalid("rejects", format!("cannot be written: {error}"))
}
