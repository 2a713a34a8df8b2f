//! Estimates how long scores wait for their lane, from its recent batches and the one in progress.
//!
//! A queue bounded only in events means a long wait when events are slow. So the service refuses
//! new events early: while their lane is stalled, or has more events queued than it can write in
//! time.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Smallest batch whose time per event is reliable. In a smaller batch, fixed costs dominate.
const RELIABLE_BATCH_EVENTS: usize = 50;

/// Estimated wait of one lane.
#[derive(Debug, Default)]
pub(crate) struct WaitEstimate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Recent time per event. It survives idle periods, so that a new burst is refused from its
    /// start rather than after thousands of events are queued. If it is out of date, the next
    /// batches correct it.
    per_event: Option<Duration>,
    /// Start and number of events of the batch in progress.
    batch: Option<(Instant, usize)>,
}

impl WaitEstimate {
    /// Records the start of a batch of `events`.
    pub(crate) fn begin(&self, events: usize) {
        self.with(|state| state.batch = Some((Instant::now(), events)));
    }

    /// Records the end of the batch in progress.
    pub(crate) fn end(&self) {
        self.with(|state| {
            if let Some((began, events)) = state.batch.take() {
                state.record(events, began.elapsed());
            }
        });
    }

    /// Returns the estimated wait of an event behind `before` others, including those of the batch
    /// in progress.
    pub(crate) fn wait(&self, before: usize) -> Duration {
        self.with(|state| state.wait(before))
    }

    /// Returns whether the batch in progress is stuck, for example behind a lock.
    ///
    /// It has then taken longer than `wait` and longer than twice its estimated time.
    pub(crate) fn is_stalled(&self, wait: Duration) -> bool {
        self.with(|state| state.batch.is_some_and(|(began, events)| began.elapsed() > wait.max(state.wait(2 * events))))
    }

    fn with<T>(&self, job: impl FnOnce(&mut State) -> T) -> T {
        job(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn wait(&self, before: usize) -> Duration {
        self.per_event.unwrap_or_default() * u32::try_from(before).unwrap_or(u32::MAX)
    }

    fn record(&mut self, events: usize, took: Duration) {
        let measured = took / u32::try_from(events.max(1)).unwrap_or(u32::MAX);
        self.per_event = match self.per_event {
            None if events < RELIABLE_BATCH_EVENTS => None,
            None => Some(measured),
            // The time of a small batch is at least an upper bound.
            Some(known) if events < RELIABLE_BATCH_EVENTS => Some(known.min(measured)),
            Some(known) => Some((known + measured) / 2),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimated wait behind 1,000 events, after batches given as (events,
    /// milliseconds).
    fn wait(batches: &[(usize, u64)]) -> Duration {
        let estimate = WaitEstimate::default();
        for (events, milliseconds) in batches {
            estimate.with(|state| state.record(*events, Duration::from_millis(*milliseconds)));
        }
        estimate.wait(1_000)
    }

    #[test]
    fn the_estimate_is_zero_before_a_reliable_batch() {
        assert_eq!(wait(&[]), Duration::ZERO);
        // Fixed costs dominate a small batch; a burst after it must not be refused.
        assert_eq!(wait(&[(1, 5), (RELIABLE_BATCH_EVENTS - 1, 100)]), Duration::ZERO);
    }

    #[test]
    fn the_estimate_follows_the_time_per_event() {
        assert_eq!(wait(&[(500, 100)]), Duration::from_millis(200));
        assert_eq!(wait(&[(500, 100), (500, 300)]), Duration::from_millis(400));
        // A slow small batch proves nothing; a fast one does.
        assert_eq!(wait(&[(500, 100), (1, 100)]), Duration::from_millis(200));
        assert_eq!(wait(&[(500, 1_000), (20, 2)]), Duration::from_millis(100));
    }

    #[test]
    fn a_batch_that_does_not_end_is_stalled() {
        let (estimate, wait) = (WaitEstimate::default(), Duration::from_millis(20));
        assert!(!estimate.is_stalled(Duration::ZERO), "nothing is being written");
        estimate.begin(500);
        assert!(!estimate.is_stalled(Duration::from_hours(1)));
        while !estimate.is_stalled(wait) {}
        estimate.end();
        assert!(!estimate.is_stalled(Duration::ZERO));
        let took = estimate.wait(500);
        assert!(took >= wait, "{took:?}");
        // A batch is stalled only after twice the time of the last one.
        let begin = Instant::now();
        estimate.begin(500);
        while !estimate.is_stalled(Duration::ZERO) {}
        assert!(begin.elapsed() >= 2 * took, "{:?}", begin.elapsed());
    }
}
