//! A circuit breaker for Redis: after several failures in a row, calls fail at once instead of
//! waiting.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Failures in a row that open the breaker.
pub(super) const MAX_FAILURES: u32 = 5;

/// Interval between trials while the breaker is open.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The state is closed (all calls pass), open (none passes) or half open (one trial per [`PAUSE`]).
///
/// If the caller of a trial is dropped, the next trial follows after a pause.
#[derive(Debug)]
pub(super) struct Breaker {
    created_at: Instant,
    failures: AtomicU32,
    /// Time of the next trial, in microseconds after `created_at`; 0 while the breaker is closed.
    trial_at: AtomicU64,
}

impl Breaker {
    /// Creates a closed breaker.
    pub(super) fn new(now: Instant) -> Self {
        Self { created_at: now, failures: AtomicU32::new(0), trial_at: AtomicU64::new(0) }
    }

    /// Returns whether a call may go to Redis. If the call is a trial, the next one is due after a
    /// pause.
    pub(super) fn allows(&self, now: Instant) -> bool {
        let trial_at = self.trial_at.load(Ordering::Relaxed);
        trial_at == 0
            || (self.at(now) >= trial_at
                && self
                    .trial_at
                    .compare_exchange(trial_at, self.at(now + PAUSE), Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok())
    }

    /// Records a success. Returns whether it closed the breaker.
    pub(super) fn succeeded(&self) -> bool {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        self.trial_at.load(Ordering::Relaxed) != 0 && self.trial_at.swap(0, Ordering::Relaxed) != 0
    }

    /// Records a failure. Returns whether it opened the breaker.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        failures >= MAX_FAILURES
            && self.trial_at.compare_exchange(0, self.at(now + PAUSE), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the breaker is open.
    pub(super) fn is_open(&self) -> bool {
        self.trial_at.load(Ordering::Relaxed) != 0
    }

    fn at(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.created_at);
        u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(now: Instant) -> Breaker {
        let breaker = Breaker::new(now);
        for failure in 1..=MAX_FAILURES {
            assert!(breaker.allows(now));
            assert_eq!(breaker.failed(now), failure == MAX_FAILURES);
        }
        breaker
    }

    #[test]
    fn only_failures_in_a_row_open_the_breaker() {
        let now = Instant::now();
        let breaker = Breaker::new(now);
        for _ in 0..10 {
            for _ in 1..MAX_FAILURES {
                assert!(!breaker.failed(now));
            }
            assert!(!breaker.succeeded());
        }
        assert!(breaker.allows(now) && !breaker.is_open());
    }

    #[test]
    fn an_open_breaker_passes_one_trial_per_pause() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(!breaker.allows(now));
        assert!(!breaker.allows(now + PAUSE.saturating_sub(Duration::from_millis(1))));
        let later = now + PAUSE;
        assert!(breaker.allows(later), "the trial");
        assert!(!breaker.allows(later), "only one");
        assert!(!breaker.failed(later), "open already");
        assert!(!breaker.allows(later + PAUSE / 2));
        assert!(breaker.allows(later + PAUSE), "the next trial, even if the first never ended");
    }

    #[test]
    fn a_success_closes_the_breaker() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(breaker.is_open());
        assert!(breaker.allows(now + PAUSE));
        assert!(breaker.succeeded(), "closed by this");
        assert!(!breaker.succeeded(), "reported once");
        assert!(breaker.allows(now + PAUSE) && breaker.allows(now + PAUSE));
        for failure in 1..=MAX_FAILURES {
            assert_eq!(breaker.failed(now), failure == MAX_FAILURES, "counted from 0 again");
        }
    }
}
