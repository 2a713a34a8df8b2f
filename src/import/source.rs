//! Reads a file in its own thread, and parses its records.

use std::{io::Read, sync::Arc};

use tokio::sync::mpsc;

use crate::{
    Error, Result,
    import::{
        ImportProgress, ImportedLine,
        edge::Edge,
        event::ImportedEvent,
        progress::CountedReader,
        record::{self, Record},
        text::{Lines, Text},
    },
    model::file_format::FileFormat,
};

/// Maximum lines of a chunk.
const CHUNK_LINES: usize = 4_000;

/// Approximate maximum bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;

const QUEUED_CHUNKS: usize = 2;

pub(crate) type EventFile = RecordFile<ImportedEvent>;

/// A file of players and their friends.
pub(crate) type EdgeFile = RecordFile<Edge>;

/// A file to import, with its header already read.
pub(crate) struct RecordFile<R: Record> {
    lines: Lines<CountedReader<Box<dyn Read + Send>>>,
    /// Columns of a CSV file.
    columns: Option<Vec<R::Column>>,
}

/// Lines that were read together.
#[derive(Debug)]
pub(crate) struct Chunk<R> {
    pub(crate) lines: Vec<ImportedLine<R>>,
    pub(crate) rejects: Vec<Reject>,
}

/// A line that is not a valid record.
#[derive(Debug)]
pub(crate) struct Reject {
    pub(crate) number: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) reason: Error,
}

impl<R: Record> RecordFile<R> {
    /// Opens a source, and reads the header of a CSV file.
    ///
    /// Returns [`Error::Invalid`] for `file` when the header cannot be read, lacks a required column,
    /// or has an unknown one.
    pub(crate) fn open(
        input: Box<dyn Read + Send>,
        format: FileFormat,
        progress: &Arc<ImportProgress>,
    ) -> Result<Self> {
        let mut lines = Lines::new(CountedReader { input, progress: Arc::clone(progress) });
        let columns = match format {
            FileFormat::Ndjson => None,
            FileFormat::Csv => {
                let first = lines.record().map_err(|error| unreadable(&error))?;
                let first = first.ok_or_else(|| Error::invalid("file", "is empty: a CSV file needs a header"))?;
                if let Some(fault) = first.fault {
                    return Err(Error::invalid("file", format!("the header: {fault}")));
                }
                Some(record::header::<R>(&first.bytes)?)
            }
        };
        Ok(Self { lines, columns })
    }

    /// Reads in a thread until the end, or until the receiver is dropped.
    ///
    /// The thread is not joined: it may be blocked on reading from a terminal.
    pub(super) fn read_chunks(mut self, rules: Arc<R::Rules>) -> mpsc::Receiver<Result<Chunk<R>>> {
        let (sender, receiver) = mpsc::channel(QUEUED_CHUNKS);
        std::thread::spawn(move || {
            loop {
                let chunk = self.chunk(&rules);
                let (is_end, is_error) = (chunk.as_ref().is_ok_and(Chunk::is_empty), chunk.is_err());
                if is_end || sender.blocking_send(chunk).is_err() || is_error {
                    return;
                }
            }
        });
        receiver
    }

    /// Reads the next lines; empty at the end.
    pub(crate) fn chunk(&mut self, rules: &R::Rules) -> Result<Chunk<R>> {
        let mut chunk = Chunk { lines: Vec::new(), rejects: Vec::new() };
        let mut bytes = 0;
        while bytes < CHUNK_BYTES && chunk.lines.len() + chunk.rejects.len() < CHUNK_LINES {
            let text = if self.columns.is_some() { self.lines.record() } else { self.lines.line() };
            let Some(text) = text.map_err(|error| unreadable(&error))? else { break };
            bytes += text.bytes.len();
            match self.record(rules, &text) {
                Ok(record) => {
                    chunk.lines.push(ImportedLine { number: text.number, raw: text.bytes.into_boxed_slice(), record });
                }
                Err(reason) => chunk.rejects.push(Reject { number: text.number, raw: text.bytes, reason }),
            }
        }
        Ok(chunk)
    }

    fn record(&self, rules: &R::Rules, text: &Text) -> Result<R> {
        match (text.fault, &self.columns) {
            (Some(fault), _) => Err(Error::Malformed(fault.to_owned())),
            (None, Some(columns)) => R::from_csv(rules, columns, &text.bytes),
            (None, None) => R::from_json(rules, &text.bytes),
        }
    }
}

impl<R> Chunk<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.rejects.is_empty()
    }
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::invalid("file", format!("cannot be read: {error}"))
}
