//! How long scores wait for their lane: by what its batches have taken lately, and by the one that is being written.
//!
//! A queue that is bounded in events only is a long wait where events take long. So those that come are told beforehand: while their lane
//! stands still, or has more before it than it writes in time.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A batch of so many events tells what an event takes; of a smaller one, most of its time is not theirs.
const TELLING: usize = 50;

/// What one lane's writer is at.
#[derive(Debug, Default)]
pub(crate) struct WaitEstimate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What an event has taken lately. It is kept while nobody comes: whoever begins to send too much is told so from the start, and not
    /// after the first thousands are waiting. Should it be too slow by then, the next batches tell.
    event: Option<Duration>,
    /// When the batch that is being written was begun, and how many events it has.
    batch: Option<(Instant, usize)>,
}

impl WaitEstimate {
    /// A batch of so many events begins.
    pub(crate) fn begin(&self, events: usize) {
        self.with(|state| state.batch = Some((Instant::now(), events)));
    }

    /// It has been written.
    pub(crate) fn end(&self) {
        self.with(|state| {
            if let Some((began, events)) = state.batch.take() {
                state.note(events, began.elapsed());
            }
        });
    }

    /// How long an event waits that comes after so many others, those of the batch that is being written among them.
    pub(crate) fn wait(&self, before: usize) -> Duration {
        self.with(|state| state.wait(before))
    }

    /// Whether the batch that is being written has taken longer than `wait`, and than twice what its events take: somebody holds the lane.
    pub(crate) fn stands_still(&self, wait: Duration) -> bool {
        self.with(|state| state.batch.is_some_and(|(began, events)| began.elapsed() > wait.max(state.wait(2 * events))))
    }

    fn with<T>(&self, job: impl FnOnce(&mut State) -> T) -> T {
        job(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn wait(&self, before: usize) -> Duration {
        self.event.unwrap_or_default() * u32::try_from(before).unwrap_or(u32::MAX)
    }

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
        let estimate = WaitEstimate::default();
        for (events, milliseconds) in batches {
            estimate.with(|state| state.note(*events, Duration::from_millis(*milliseconds)));
        }
        estimate.wait(1_000)
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
    fn a_batch_that_does_not_end_stands_still() {
        let (estimate, wait) = (WaitEstimate::default(), Duration::from_millis(20));
        assert!(!estimate.stands_still(Duration::ZERO), "nothing is being written");
        estimate.begin(500);
        assert!(!estimate.stands_still(Duration::from_hours(1)));
        while !estimate.stands_still(wait) {}
        estimate.end();
        assert!(!estimate.stands_still(Duration::ZERO));
        let took = estimate.wait(500);
        assert!(took >= wait, "{took:?}");
        // As long as it took before, and once more, is no wonder.
        let begin = Instant::now();
        estimate.begin(500);
        while !estimate.stands_still(Duration::ZERO) {}
        assert!(begin.elapsed() >= 2 * took, "{:?}", begin.elapsed());
    }
}
