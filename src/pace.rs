//! How long scores wait for their lane: by what its batches have taken lately, and by the one that is being written.
//!
//! A queue that is bounded in events only is a long wait where events take long. So those that come are told beforehand: while a lane
//! stands still, or has more before it than it writes in time.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A batch of so many events tells what an event takes; of a smaller one, most of its time is not theirs.
const TELLING: usize = 50;

/// What one lane's writer is at.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What an event has taken lately. It is kept while nobody comes: whoever begins to send too much is told so from the start, and not
    /// after the first thousands are waiting. Should it be too slow by then, the next batches tell.
    event: Option<Duration>,
    /// When the batch that is being written was begun.
    began: Option<Instant>,
}

impl Pace {
    /// A batch begins.
    pub(crate) fn begin(&self) {
        self.with(|state| state.began = Some(Instant::now()));
    }

    /// It has been written, with so many events.
    pub(crate) fn end(&self, events: usize) {
        self.with(|state| {
            if let Some(began) = state.began.take() {
                state.note(events, began.elapsed());
            }
        });
    }

    /// How long an event waits that comes after so many others, those of the batch that is being written among them.
    pub(crate) fn wait(&self, before: usize) -> Duration {
        self.with(|state| state.event.unwrap_or_default() * u32::try_from(before).unwrap_or(u32::MAX))
    }

    /// How long the batch has taken that is being written.
    pub(crate) fn writing_for(&self) -> Duration {
        self.with(|state| state.began.map_or(Duration::ZERO, |began| began.elapsed()))
    }

    fn with<T>(&self, job: impl FnOnce(&mut State) -> T) -> T {
        job(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn note(&mut self, events: usize, took: Duration) {
        let one = took / u32::try_from(events.max(1)).unwrap_or(u32::MAX);
        self.event = match self.event {
            None if events < TELLING => None,
            None => Some(one),
            // It took no longer, at any rate.
            Some(before) if events < TELLING => Some(before.min(one)),
            Some(before) => Some((before + one) / 2),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an event waits behind a thousand others, after batches of so many events and milliseconds.
    fn wait(batches: &[(usize, u64)]) -> Duration {
        let pace = Pace::default();
        for (events, milliseconds) in batches {
            pace.with(|state| state.note(*events, Duration::from_millis(*milliseconds)));
        }
        pace.wait(1_000)
    }

    #[test]
    fn nobody_waits_while_nothing_is_known() {
        assert_eq!(wait(&[]), Duration::ZERO);
        // What a lone event takes is not its own: a burst after it is welcome.
        assert_eq!(wait(&[(1, 5), (TELLING - 1, 100)]), Duration::ZERO);
    }

    #[test]
    fn waits_grow_with_what_events_take() {
        assert_eq!(wait(&[(500, 100)]), Duration::from_millis(200));
        assert_eq!(wait(&[(500, 100), (500, 300)]), Duration::from_millis(400));
        // A small batch that is dear tells nothing, one that is cheap does.
        assert_eq!(wait(&[(500, 100), (1, 100)]), Duration::from_millis(200));
        assert_eq!(wait(&[(500, 1_000), (20, 2)]), Duration::from_millis(100));
    }

    #[test]
    fn it_is_told_for_how_long_a_batch_has_been_written() {
        let pace = Pace::default();
        assert_eq!(pace.writing_for(), Duration::ZERO);
        pace.begin();
        while pace.writing_for() < Duration::from_millis(20) {}
        pace.end(500);
        assert_eq!(pace.writing_for(), Duration::ZERO);
        let wait = pace.wait(1_000);
        assert!(wait >= Duration::from_millis(40), "{wait:?}");
    }
}
