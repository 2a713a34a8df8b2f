//! How far an import is.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// How far an import is; counts up while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    accepted: AtomicU64,
    repeated: AtomicU64,
    rejected: AtomicU64,
}

/// How many there were, so far or in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// Events that are in the ledger because of this import.
    pub accepted: u64,
    /// Events that were there already, by their id.
    pub repeated: u64,
    /// Lines that could not be taken.
    pub rejected: u64,
}

impl Progress {
    /// The counts now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            bytes: self.bytes.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
        }
    }

    pub(super) fn add_written(&self, accepted: u64, repeated: u64) {
        self.accepted.fetch_add(accepted, Relaxed);
        self.repeated.fetch_add(repeated, Relaxed);
    }

    pub(super) fn add_rejected(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }
}

impl Counts {
    /// Lines that became of something: accepted, repeated or rejected.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.accepted + self.repeated + self.rejected
    }
}

/// Counts the bytes that are read through it.
pub(super) struct CountedReader<R> {
    pub(super) input: R,
    pub(super) progress: Arc<Progress>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.progress.bytes.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}
