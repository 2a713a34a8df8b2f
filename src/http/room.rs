//! Room for what callers send: bodies take memory before anybody knows what is in them, and as long as their callers like.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, Result, telemetry};

/// Memory that bodies may take together, over all connections.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    taken: AtomicUsize,
}

/// What one body has of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    room: &'a Room,
    bytes: usize,
}

impl Room {
    /// So many bytes, none of them taken.
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes, taken: AtomicUsize::new(0) }
    }

    /// Nothing of it yet.
    pub(super) fn hold(&self) -> Held<'_> {
        Held { room: self, bytes: 0 }
    }
}

impl Held<'_> {
    /// Takes as much as makes it so many bytes. [`Error::Unavailable`] when there is not so much left.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        let taken = self.room.taken.fetch_add(more, Ordering::Relaxed);
        if taken.saturating_add(more) > self.room.bytes {
            // What was added is given back with the value.
            telemetry::count_refused("bodies");
            return Err(Error::unavailable("too many bodies are being received already"));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let room = Room::new(100);
        let (mut one, mut other) = (room.hold(), room.hold());
        assert!(one.grow_to(60).is_ok() && one.grow_to(40).is_ok() && other.grow_to(40).is_ok());
        assert!(other.grow_to(41).is_err(), "one byte too many");
        drop(other);
        assert!(one.grow_to(100).is_ok());
        drop(one);
        assert_eq!(room.taken.into_inner(), 0);
    }
}
