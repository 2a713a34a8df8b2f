//! What `tests/fuzz` feeds with whatever can be made up, and callers of this library have no use for: readers of what comes from
//! outside, which are private otherwise.

use std::{io::Cursor, sync::Arc};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    Result,
    access::key_cache,
    import::{Format, Line, Progress, Source},
    model::{
        board::Board,
        signing::{Signature, SigningSecret},
    },
};

/// Id and secret in the text of a key, if it has the form of one.
#[must_use]
pub fn key(text: &str) -> Option<(&str, &str)> {
    key_cache::parse(text)
}

/// Checks a signature over `body` as it is done for each request: first over what is known before the body has come. `now` is in seconds
/// since 1970. [`crate::Error::Unauthorized`] when it is not right.
pub fn check_signature(
    secret: [u8; 32],
    header: Option<&str>,
    [method, target]: [&str; 2],
    body: &[u8],
    now: i64,
) -> Result<()> {
    Signature::read(&SigningSecret::from(secret), header, method, target, now)?.over(body).map(drop)
}

/// An event that was read from a file; as JSON, a line of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Whose score.
    pub user_id: String,
    /// The player's name.
    pub user_name: Option<String>,
    /// Points.
    pub points: i64,
    /// When.
    pub occurred_at: Option<DateTime<Utc>>,
    /// Why.
    pub reason: Option<String>,
    /// The file's own id of the event.
    pub id: Option<String>,
    /// Breaks ties.
    pub tiebreak: Option<i16>,
}

/// What was read of a file.
#[derive(Debug)]
pub struct File {
    /// The events, with the numbers of their lines.
    pub events: Vec<(u64, Imported)>,
    /// Numbers of the lines that are none.
    pub rejected: Vec<u64>,
}

/// Reads a file to its end. [`crate::Error::Invalid`] when its header cannot be taken.
pub fn import(board: &Board, file: &[u8], format: Format) -> Result<File> {
    let mut source = Source::open(Box::new(Cursor::new(file.to_vec())), format, &Arc::new(Progress::default()))?;
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

fn imported(line: Line) -> Imported {
    let event = line.event;
    Imported {
        user_id: event.user_id.as_str().to_owned(),
        user_name: event.user_name,
        points: event.points,
        occurred_at: event.occurred_at,
        reason: event.reason,
        id: event.id,
        tiebreak: event.tiebreak,
    }
}
