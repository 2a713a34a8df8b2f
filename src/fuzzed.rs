//! For `tests/fuzz` only: parsers of external input, otherwise private.

use std::{io::Cursor, sync::Arc};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    Result,
    access::key_cache,
    http::api::{
        body,
        event::{parse_batch, parse_event},
        user::PutUser,
    },
    import::{EventFile, ImportProgress, ImportedEvent, ImportedLine},
};

pub use crate::model::{
    board::{Board, Limits, Mode, PeriodKind, Ties},
    file_format::FileFormat,
    metadata::Metadata,
    period::{Period, PeriodSelector, PeriodState},
};

/// Parses id and secret from the text of a key.
#[must_use]
pub fn key(text: &str) -> Option<(&str, &str)> {
    key_cache::parse(text)
}

/// Reads a text as the body of one event, and returns the event's metadata.
pub fn event(text: &str) -> Result<Option<Metadata>> {
    Ok(parse_event(text)?.metadata)
}

/// Reads a text as each kind of body that has metadata.
pub fn bodies(text: &str) {
    event(text).ok();
    parse_batch(text).ok();
    body::object::<PutUser>(text).ok();
}

/// An imported event, serialized as one NDJSON line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The caller's own id of the player.
    pub user_id: String,
    /// The player's name.
    pub name: Option<String>,
    /// Points of the event.
    pub points: i64,
    /// Time of the event.
    pub occurred_at: Option<DateTime<Utc>>,
    /// Reason of the event.
    pub reason: Option<String>,
    /// Id of the event in the file.
    pub id: Option<String>,
    /// Tiebreak of the event; `None` if it has none.
    pub tiebreak: Option<i64>,
    /// Metadata of the game.
    pub metadata: Option<Metadata>,
}

/// Events read from a file.
#[derive(Debug)]
pub struct File {
    /// Events, with their line numbers.
    pub events: Vec<(u64, Imported)>,
    /// Line numbers of the rejected lines.
    pub rejected: Vec<u64>,
}

/// Reads a file to its end. Returns [`crate::Error::Invalid`] for an invalid header.
pub fn import(board: &Board, file: &[u8], format: FileFormat) -> Result<File> {
    let mut source =
        EventFile::open(Box::new(Cursor::new(file.to_vec())), format, &Arc::new(ImportProgress::default()))?;
    let mut read = File { events: Vec::new(), rejected: Vec::new() };
    loop {
        let chunk = source.chunk(board)?;
        if chunk.is_empty() {
            return Ok(read);
        }
        read.rejected.extend(chunk.rejects.iter().map(|reject| reject.number));
        read.events.extend(chunk.lines.into_iter().map(|line| (line.number, imported(line))));
    }
}

fn imported(line: ImportedLine) -> Imported {
    let ImportedEvent { name, event } = line.record;
    Imported {
        user_id: event.user_id.as_str().to_owned(),
        name,
        points: event.points,
        occurred_at: event.occurred_at,
        reason: event.reason,
        id: event.id,
        tiebreak: event.tiebreak,
        metadata: event.metadata,
    }
}
