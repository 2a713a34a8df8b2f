//! How far an import is.

use std::{
    io::{self, Read},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How far an import is; counts up while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    accepted: AtomicU64,
    repeated: AtomicU64,
    rejected: AtomicU64,
    phases: Mutex<Vec<Phase>>,
}

/// A part of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// What is done.
    pub name: String,
    /// How much of it has been done.
    pub done: u64,
    begun: Instant,
    took: Option<Duration>,
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

    /// The parts of a load up to now: the last one is under way, unless all is done.
    #[must_use]
    pub fn phases(&self) -> Vec<Phase> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the part of a load that is under way, and begins the next.
    pub(super) fn begin_phase(&self, name: impl Into<String>) {
        self.end_phase();
        let phase = Phase { name: name.into(), done: 0, begun: Instant::now(), took: None };
        self.phases.lock().unwrap_or_else(PoisonError::into_inner).push(phase);
    }

    /// How much of the part under way has been done.
    pub(super) fn set_done(&self, done: u64) {
        if let Some(last) = self.phases.lock().unwrap_or_else(PoisonError::into_inner).last_mut() {
            last.done = done;
        }
    }

    /// Ends the part of a load that is under way.
    pub(super) fn end_phase(&self) {
        if let Some(last) = self.phases.lock().unwrap_or_else(PoisonError::into_inner).last_mut() {
            last.took.get_or_insert(last.begun.elapsed());
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

impl Phase {
    /// How long it took, or has taken so far.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.took.unwrap_or_else(|| self.begun.elapsed())
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.took.is_some()
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
