//! Export of a whole period: all players, best first, from one snapshot, in constant memory.

use std::mem;

use csv::{Terminator, WriterBuilder};
use serde::Serialize;

use crate::{
    Error, Result,
    model::{
        board::{Board, Order},
        export::ExportedRow,
        file_format::FileFormat,
        metadata::Metadata,
        period::PeriodSelector,
        rank::Header,
        tier::{Tier, Tiers},
    },
    ranking::{rankings::Rankings, read},
    store::{export::ExportSnapshot, score::ShownEntry},
};

/// First columns of all files. The header line is present even if the period has no scores.
const COLUMNS: [&str; 5] = ["position", "rank", "user_id", "name", "score"];

/// An export in progress. It holds a snapshot and its own database connection until it is dropped.
#[derive(Debug)]
pub struct Export {
    pub header: Header,
    format: FileFormat,
    board_id: i32,
    has_metadata: bool,
    tiers: Tiers,
    order: Order,
    has_tiebreaks: bool,
    /// `None` for a period without scores.
    snapshot: Option<ExportSnapshot>,
    is_begun: bool,
    /// Players written so far.
    players: u64,
}

/// Starts an export of the period that `selector` means, with metadata if `has_metadata`.
///
/// [`Error::NotFound`] if the period does not exist.
pub async fn begin(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    format: FileFormat,
    has_metadata: bool,
) -> Result<Export> {
    let (header, snapshot) = read::export_snapshot(rankings, board, selector).await?;
    let tiers = header.tiers.clone().unwrap_or_else(|| board.tiers.clone());
    Ok(Export {
        header,
        format,
        board_id: board.id,
        has_metadata,
        tiers,
        order: board.order,
        has_tiebreaks: board.tiebreak_order.is_some(),
        snapshot,
        is_begun: false,
        players: 0,
    })
}

impl Export {
    /// Returns the next bytes of the file; `None` at its end.
    ///
    /// After an error the file is incomplete.
    pub async fn next_rows(&mut self) -> Result<Option<Vec<u8>>> {
        let lines = match &mut self.snapshot {
            Some(snapshot) => snapshot.next_rows().await?,
            None => Vec::new(),
        };
        self.players += lines.len() as u64;
        if lines.is_empty() && self.players != self.header.players {
            let wanted = self.header.players;
            return Err(Error::Internal(format!("the export found {} of {wanted} players", self.players)));
        }
        let metadata = self.metadata(&lines).await?;
        let is_first = !mem::replace(&mut self.is_begun, true);
        let tier = |line: &ExportedRow| {
            let tier = self.tiers.of(self.order, line.score, line.rank, self.header.players);
            (!self.tiers.is_empty()).then(|| tier.map(Tier::name))
        };
        let row = |(row, metadata)| FileRow { row, tier: tier(row), metadata };
        let rows: Vec<_> = lines.iter().zip(metadata).map(row).collect();
        let text = match self.format {
            FileFormat::Csv => csv(&rows, is_first.then(|| self.columns()))?,
            FileFormat::Ndjson => ndjson(&rows)?,
        };
        Ok((!text.is_empty()).then_some(text))
    }

    /// Reads the metadata of each line in the same snapshot, if the file has them.
    async fn metadata(&mut self, lines: &[ExportedRow]) -> Result<Vec<Option<Option<Metadata>>>> {
        let Some(snapshot) = self.snapshot.as_mut().filter(|_| self.has_metadata) else {
            return Ok(vec![None; lines.len()]);
        };
        let period = &self.header.period;
        let entries = lines.iter().map(|line| ShownEntry {
            board_id: self.board_id,
            period,
            user_id: &line.user_id,
            score: line.score,
            reached_at: line.reached_at,
            tiebreak: line.tiebreak,
        });
        let entries: Vec<ShownEntry<'_>> = entries.collect();
        Ok(snapshot.metadata(&entries).await?.into_iter().map(Some).collect())
    }

    fn columns(&self) -> Vec<&'static str> {
        let mut columns = COLUMNS.to_vec();
        columns.push(if self.has_tiebreaks { "tiebreak" } else { "reached_at" });
        columns.extend((!self.tiers.is_empty()).then_some("tier"));
        columns.extend(self.has_metadata.then_some("metadata"));
        columns
    }
}

/// A player's line, with the tier on boards that have tiers, and with metadata on request.
#[derive(Debug, Serialize)]
struct FileRow<'a> {
    #[serde(flatten)]
    row: &'a ExportedRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Option<Metadata>>,
}

fn csv(rows: &[FileRow<'_>], columns: Option<Vec<&str>>) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::Internal(format!("cannot write a line as CSV: {error}"));
    let mut writer = WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(Vec::new());
    if let Some(columns) = columns {
        writer.write_record(columns).map_err(failed)?;
    }
    for FileRow { row, tier, metadata } in rows {
        let metadata = metadata.as_ref().map(|metadata| metadata.as_ref().map(Metadata::as_str));
        let others: Vec<Option<&str>> = tier.iter().copied().chain(metadata).collect();
        writer.serialize((row, others)).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| failed(error.into_error().into()))
}

fn ndjson(rows: &[FileRow<'_>]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut text, row)
            .map_err(|error| Error::Internal(format!("cannot write a line as JSON: {error}")))?;
        text.push(b'\n');
    }
    Ok(text)
}
