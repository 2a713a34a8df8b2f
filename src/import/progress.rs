//! Progress of an import.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Progress of an import, updated while it runs.
#[derive(Debug, Default)]
pub struct ImportProgress {
    bytes: AtomicU64,
    accepted: AtomicU64,
    repeated: AtomicU64,
    rejected: AtomicU64,
}

/// Counts of an import, so far or final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Bytes of the file read.
    pub bytes: u64,
    /// Events that this import added to the ledger.
    pub accepted: u64,
    /// Events whose id was already in the ledger.
    pub repeated: u64,
    pub rejected: u64,
}

impl ImportProgress {
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
    /// Returns the number of processed lines: accepted, repeated or rejected.
    pub fn lines(&self) -> u64 {
        self.accepted + self.repeated + self.rejected
    }
}

/// Counts the bytes read through it.
pub(super) struct CountedReader<R> {
    pub(super) input: R,
    pub(super) progress: Arc<ImportProgress>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.progress.bytes.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}
