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
        period::PeriodSelector,
        rank::Header,
        tier::{Tier, Tiers},
    },
    ranking::{Rankings, read},
    store::export::Snapshot,
};

/// Columns; the last one on boards with tiers. The header line is present even if the period has no
/// scores.
const COLUMNS: [&str; 7] = ["position", "rank", "user_id", "name", "score", "reached_at", "tier"];

/// An export in progress. It holds a snapshot and its own database connection until it is dropped.
#[derive(Debug)]
pub struct Export {
    /// Period, version, players.
    pub header: Header,
    format: FileFormat,
    tiers: Tiers,
    order: Order,
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
    let tiers = header.tiers.clone().unwrap_or_else(|| board.tiers.clone());
    Ok(Export { header, format, tiers, order: board.order, snapshot, is_begun: false, players: 0 })
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
        let tier = |line: &ExportedRow| {
            let tier = self.tiers.of(self.order, line.score, line.rank, self.header.players);
            (!self.tiers.is_empty()).then(|| tier.map(Tier::name))
        };
        let rows: Vec<_> = lines.iter().map(|row| FileRow { row, tier: tier(row) }).collect();
        let text = match self.format {
            FileFormat::Csv => {
                csv(&rows, is_first.then_some(&COLUMNS[..COLUMNS.len() - usize::from(self.tiers.is_empty())]))?
            }
            FileFormat::Ndjson => ndjson(&rows)?,
        };
        Ok((!text.is_empty()).then_some(text))
    }
}

/// A player's line, with the tier on boards that have tiers.
#[derive(Debug, Serialize)]
struct FileRow<'a> {
    #[serde(flatten)]
    row: &'a ExportedRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    tier: Option<Option<&'a str>>,
}

fn csv(rows: &[FileRow<'_>], columns: Option<&[&str]>) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::Internal(format!("cannot write a line as CSV: {error}"));
    let mut writer = WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(Vec::new());
    if let Some(columns) = columns {
        writer.write_record(columns).map_err(failed)?;
    }
    for FileRow { row, tier } in rows {
        match tier {
            Some(tier) => writer.serialize((row, tier)).map_err(failed)?,
            None => writer.serialize(row).map_err(failed)?,
        }
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
