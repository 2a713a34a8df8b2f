//! Leaves Redis alone for a moment after it failed several times in a row, so that nobody waits for it in vain.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// This many failures in a row open the breaker.
pub(super) const FAILURES: u32 = 5;

/// This long nothing is tried; then one request is, and the others wait for what becomes of it.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Closed (everything may go), open (nothing), or half open (one trial each [`PAUSE`]).
///
/// A trial that is given up, because its caller went away, needs no rule: the next one comes a pause later.
#[derive(Debug)]
pub(super) struct Breaker {
    began: Instant,
    failures: AtomicU32,
    /// Microseconds after `began` at which the next trial is due; 0 while the breaker is closed.
    trial_at: AtomicU64,
}

impl Breaker {
    /// A closed breaker.
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, failures: AtomicU32::new(0), trial_at: AtomicU64::new(0) }
    }

    /// Whether a request may go to Redis. When it goes as a trial, the next one is a pause away.
    pub(super) fn allows(&self, now: Instant) -> bool {
        let trial_at = self.trial_at.load(Ordering::Relaxed);
        trial_at == 0
            || (self.at(now) >= trial_at
                && self
                    .trial_at
                    .compare_exchange(trial_at, self.at(now + PAUSE), Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok())
    }

    /// Takes note of an answer; tells whether that closed the breaker.
    pub(super) fn succeeded(&self) -> bool {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        self.trial_at.load(Ordering::Relaxed) != 0 && self.trial_at.swap(0, Ordering::Relaxed) != 0
    }

    /// Takes note of a failure; tells whether that opened the breaker.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        failures >= FAILURES
            && self.trial_at.compare_exchange(0, self.at(now + PAUSE), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether requests are being kept away.
    pub(super) fn is_open(&self) -> bool {
        self.trial_at.load(Ordering::Relaxed) != 0
    }

    fn at(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.began);
        u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(now: Instant) -> Breaker {
        let breaker = Breaker::new(now);
        for failure in 1..=FAILURES {
            assert!(breaker.allows(now));
            assert_eq!(breaker.failed(now), failure == FAILURES);
        }
        breaker
    }

    #[test]
    fn failures_open_it_only_in_a_row() {
        let now = Instant::now();
        let breaker = Breaker::new(now);
        for _ in 0..10 {
            for _ in 1..FAILURES {
                assert!(!breaker.failed(now));
            }
            assert!(!breaker.succeeded());
        }
        assert!(breaker.allows(now) && !breaker.is_open());
    }

    #[test]
    fn an_open_one_lets_one_trial_through_each_pause() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(!breaker.allows(now));
        assert!(!breaker.allows(now + PAUSE.saturating_sub(Duration::from_millis(1))));
        let later = now + PAUSE;
        assert!(breaker.allows(later), "the trial");
        assert!(!breaker.allows(later), "only one");
        assert!(!breaker.failed(later), "open already");
        assert!(!breaker.allows(later + PAUSE / 2));
        assert!(breaker.allows(later + PAUSE), "the next trial, also when the first was given up");
    }

    #[test]
    fn an_answer_closes_it() {
        let now = Instant::now();
        let breaker = open(now);
        assert!(breaker.is_open());
        assert!(breaker.allows(now + PAUSE));
        assert!(breaker.succeeded(), "closed by this");
        assert!(!breaker.succeeded(), "told once");
        assert!(breaker.allows(now + PAUSE) && breaker.allows(now + PAUSE));
        for failure in 1..=FAILURES {
            assert_eq!(breaker.failed(now), failure == FAILURES, "counted from nothing again");
        }
    }
}
