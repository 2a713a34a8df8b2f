//! Reads a file, in a thread of its own, and makes events of its lines.

use std::{io::Read, path::Path, sync::Arc};

use tokio::sync::mpsc;

use crate::{
    Error, Result,
    import::{
        Line, Progress,
        event::{self, Column},
        progress::CountedReader,
        text::{Lines, Text},
    },
    model::board::Board,
};

/// Lines that are handed on together, at most.
const CHUNK_LINES: usize = 4_000;

/// Bytes of lines that are handed on together, about.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks that may wait.
const CHUNKS_AHEAD: usize = 2;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values (RFC 4180) in UTF-8, with a header.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

impl Format {
    /// The format that a file's name ends with.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// A file to import, of which the header has been read.
pub struct Source {
    lines: Lines<CountedReader<Box<dyn Read + Send>>>,
    /// Of a CSV file.
    columns: Option<Vec<Column>>,
}

/// Lines that were read.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) lines: Vec<Line>,
    pub(crate) rejects: Vec<Reject>,
}

/// A line that is no event.
#[derive(Debug)]
pub(crate) struct Reject {
    pub(crate) number: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) reason: Error,
}

impl Source {
    /// Reads the header of a CSV file. [`Error::Invalid`] for `file` when it cannot be read, or when its header lacks
    /// `user_id` or `points` or names what is not known.
    pub fn open(input: Box<dyn Read + Send>, format: Format, progress: &Arc<Progress>) -> Result<Self> {
        let mut lines = Lines::new(CountedReader { input, progress: Arc::clone(progress) });
        let columns = match format {
            Format::Ndjson => None,
            Format::Csv => {
                let first = lines.record().map_err(|error| unreadable(&error))?;
                let first = first.ok_or_else(|| Error::invalid("file", "is empty: there is not even a header"))?;
                if let Some(fault) = first.fault {
                    return Err(Error::invalid("file", format!("its first line, the header: {fault}")));
                }
                Some(event::header(&first.bytes)?)
            }
        };
        Ok(Self { lines, columns })
    }

    /// Reads on in a thread, until the end or until nobody takes the lines any more. The thread is not waited for: it may
    /// be reading from a terminal.
    pub(super) fn read(mut self, board: Arc<Board>) -> mpsc::Receiver<Result<Chunk>> {
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        std::thread::spawn(move || {
            loop {
                let chunk = self.chunk(&board);
                let over = !matches!(&chunk, Ok(chunk) if !chunk.is_empty());
                if matches!(&chunk, Ok(chunk) if chunk.is_empty()) || sender.blocking_send(chunk).is_err() || over {
                    return;
                }
            }
        });
        receiver
    }

    /// The next lines; none at the end.
    pub(crate) fn chunk(&mut self, board: &Board) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        while bytes < CHUNK_BYTES && chunk.lines.len() + chunk.rejects.len() < CHUNK_LINES {
            let text = if self.columns.is_some() { self.lines.record() } else { self.lines.line() };
            let Some(text) = text.map_err(|error| unreadable(&error))? else { break };
            bytes += text.bytes.len();
            match self.event(board, &text) {
                Ok(event) => {
                    chunk.lines.push(Line { number: text.number, raw: text.bytes.into_boxed_slice(), event });
                }
                Err(reason) => chunk.rejects.push(Reject { number: text.number, raw: text.bytes, reason }),
            }
        }
        Ok(chunk)
    }

    fn event(&self, board: &Board, text: &Text) -> Result<event::Event> {
        match (text.fault, &self.columns) {
            (Some(fault), _) => Err(Error::Malformed(fault.to_owned())),
            (None, Some(columns)) => event::from_csv(board, columns, &text.bytes),
            (None, None) => event::from_json(board, &text.bytes),
        }
    }
}

impl Chunk {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.rejects.is_empty()
    }
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::invalid("file", format!("cannot be read: {error}"))
}
