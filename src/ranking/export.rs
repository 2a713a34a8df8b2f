//! A whole period as a file: every player, best first, in one state, in the memory of a page.

use std::mem;

use csv::{Terminator, WriterBuilder};

use crate::{
    Error, Result,
    model::{board::Board, export::Line, period::PeriodSelector, rank::Header},
    ranking::{Rankings, read},
    store::export::Snapshot,
};

/// How the file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values as RFC 4180 has them, with a header.
    Csv,
    /// A JSON object a line.
    Ndjson,
}

/// The columns, which stand in the file also where nobody has scored.
const COLUMNS: [&str; 6] = ["position", "rank", "user_id", "user_name", "score", "reached_at"];

/// A file that is being read. It holds a snapshot of the database, and a connection of its own, until it is dropped.
#[derive(Debug)]
pub struct Export {
    /// Period, version, players.
    pub header: Header,
    format: Format,
    /// `None` for a period in which nobody has scored.
    snapshot: Option<Snapshot>,
    is_begun: bool,
    /// Players so far.
    players: u64,
}

/// Begins the file of what `selector` means. [`Error::NotFound`] when there is no such period.
pub async fn begin(rankings: &Rankings, board: &Board, selector: &PeriodSelector, format: Format) -> Result<Export> {
    let (header, snapshot) = read::snapshot(rankings, board, selector).await?;
    Ok(Export { header, format, snapshot, is_begun: false, players: 0 })
}

impl Export {
    /// The next bytes of the file; `None` at its end. An error when the rest cannot be read: what has been given is not the whole.
    pub async fn read_on(&mut self) -> Result<Option<Vec<u8>>> {
        let lines = match &mut self.snapshot {
            Some(snapshot) => snapshot.read_on().await?,
            None => Vec::new(),
        };
        self.players += lines.len() as u64;
        if lines.is_empty() && self.players != self.header.players {
            let wanted = self.header.players;
            return Err(Error::Internal(format!("{} players were found of {wanted}", self.players)));
        }
        let is_first = !mem::replace(&mut self.is_begun, true);
        let text = match self.format {
            Format::Csv => csv(&lines, is_first)?,
            Format::Ndjson => ndjson(&lines)?,
        };
        Ok((!text.is_empty()).then_some(text))
    }
}

fn csv(lines: &[Line], with_columns: bool) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::Internal(format!("a line cannot be written as CSV: {error}"));
    let mut writer = WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(Vec::new());
    if with_columns {
        writer.write_record(COLUMNS).map_err(failed)?;
    }
    for line in lines {
        writer.serialize(line).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| failed(error.into_error().into()))
}

fn ndjson(lines: &[Line]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)
            .map_err(|error| Error::Internal(format!("a line cannot be written as JSON: {error}")))?;
        text.push(b'\n');
    }
    Ok(text)
}
