//! Export of a whole period: all players, best first, from one snapshot, in constant memory.

use std::mem;

use csv::{Terminator, WriterBuilder};

use crate::{
    Error, Result,
    model::{board::Board, export::ExportedRow, file_format::FileFormat, period::PeriodSelector, rank::Header},
    ranking::{Rankings, read},
    store::export::Snapshot,
};

/// Columns. The header line is present even if the period has no scores.
const COLUMNS: [&str; 6] = ["position", "rank", "user_id", "name", "score", "reached_at"];

/// An export in progress. It holds a snapshot and its own database connection until it is dropped.
#[derive(Debug)]
pub struct Export {
    /// Period, version, players.
    pub header: Header,
    format: FileFormat,
    /// `None` for a period without scores.
    snapshot: Option<Snapshot>,
    is_begun: bool,
    /// Players written so far.
    players: u64,
}

/// Starts an export of the period that `selector` means.
///
/// [`Error::NotFound`] if the period does not exist.
pub async fn begin(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    format: FileFormat,
) -> Result<Export> {
    let (header, snapshot) = read::snapshot(rankings, board, selector).await?;
    Ok(Export { header, format, snapshot, is_begun: false, players: 0 })
}

impl Export {
    /// Returns the next bytes of the file; `None` at its end.
    ///
    /// After an error the file is incomplete.
    pub async fn read_on(&mut self) -> Result<Option<Vec<u8>>> {
        let lines = match &mut self.snapshot {
            Some(snapshot) => snapshot.read_on().await?,
            None => Vec::new(),
        };
        self.players += lines.len() as u64;
        if lines.is_empty() && self.players != self.header.players {
            let wanted = self.header.players;
            return Err(Error::Internal(format!("the export found {} of {wanted} players", self.players)));
        }
        let is_first = !mem::replace(&mut self.is_begun, true);
        let text = match self.format {
            FileFormat::Csv => csv(&lines, is_first)?,
            FileFormat::Ndjson => ndjson(&lines)?,
        };
        Ok((!text.is_empty()).then_some(text))
    }
}

fn csv(lines: &[ExportedRow], with_columns: bool) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::Internal(format!("cannot write a line as CSV: {error}"));
    let mut writer = WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(Vec::new());
    if with_columns {
        writer.write_record(COLUMNS).map_err(failed)?;
    }
    for line in lines {
        writer.serialize(line).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| failed(error.into_error().into()))
}

fn ndjson(lines: &[ExportedRow]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)
            .map_err(|error| Error::Internal(format!("cannot write a line as JSON: {error}")))?;
        text.push(b'\n');
    }
    Ok(text)
}
