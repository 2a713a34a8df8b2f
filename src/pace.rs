//! How quickly a lane writes: how many events a batch may have, and how long those would wait that come now.
//!
//! A queue that is bounded in events only is a long wait where events take long, and a batch of a fixed size is one for
//! everybody behind it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Most events of a batch: beyond it they get no cheaper.
const BATCH_EVENTS: usize = 500;
/// Fewest events of a batch, where that many wait: below it most of its time is not theirs.
const BATCH_EVENTS_LEAST: usize = 20;
/// How long a batch is to take at most.
const BATCH_TIME: Duration = Duration::from_millis(150);
/// A batch of so many events tells what an event takes; a smaller one, only that it takes no longer.
const TELLING: usize = 50;

/// What an event of a lane has taken lately.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Nanoseconds; 0 as long as nobody knows.
    event: AtomicU64,
}

impl Pace {
    /// Takes note of a batch. For the one writer of the lane.
    pub(crate) fn note(&self, events: usize, took: Duration) {
        let now = u64::try_from(took.as_nanos() / events.max(1) as u128).unwrap_or(u64::MAX);
        let before = self.event.load(Ordering::Relaxed);
        let event = match before {
            0 if events >= TELLING => now,
            _ if events >= TELLING => before / 2 + now / 2,
            _ => before.min(now),
        };
        self.event.store(event, Ordering::Relaxed);
    }

    /// After how many events a batch takes no more.
    pub(crate) fn batch_events(&self) -> usize {
        let event = self.event.load(Ordering::Relaxed).max(1);
        let fit = usize::try_from(BATCH_TIME.as_nanos() / u128::from(event)).unwrap_or(usize::MAX);
        fit.clamp(BATCH_EVENTS_LEAST, BATCH_EVENTS)
    }

    /// How long an event waits behind so many others. What goes with the next batch does not wait.
    pub(crate) fn wait(&self, waiting: usize) -> Duration {
        if waiting < BATCH_EVENTS_LEAST {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.event.load(Ordering::Relaxed).saturating_mul(waiting as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(batches: &[(usize, u64)]) -> Pace {
        let pace = Pace::default();
        for (events, milliseconds) in batches {
            pace.note(*events, Duration::from_millis(*milliseconds));
        }
        pace
    }

    #[test]
    fn nobody_waits_while_nothing_is_known() {
        let pace = after(&[]);
        assert_eq!((pace.batch_events(), pace.wait(10_000)), (BATCH_EVENTS, Duration::ZERO));
        // What a lone event takes is not its own: a burst after it is welcome.
        let pace = after(&[(1, 5), (1, 5)]);
        assert_eq!((pace.batch_events(), pace.wait(10_000)), (BATCH_EVENTS, Duration::ZERO));
    }

    #[test]
    fn batches_get_smaller_and_waits_longer_where_events_take_long() {
        let pace = after(&[(500, 100)]);
        assert_eq!((pace.batch_events(), pace.wait(2_000)), (BATCH_EVENTS, Duration::from_millis(400)));
        let pace = after(&[(500, 1_000)]);
        assert_eq!((pace.batch_events(), pace.wait(200)), (75, Duration::from_millis(400)));
        assert_eq!(pace.wait(BATCH_EVENTS_LEAST - 1), Duration::ZERO);
    }

    #[test]
    fn what_stood_still_once_is_soon_forgotten() {
        let pace = after(&[(500, 12_000)]);
        assert_eq!(pace.batch_events(), BATCH_EVENTS_LEAST);
        pace.note(BATCH_EVENTS_LEAST, Duration::from_millis(6));
        assert_eq!((pace.batch_events(), pace.wait(1_000)), (BATCH_EVENTS, Duration::from_millis(300)));
    }
}
