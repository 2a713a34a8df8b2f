//! Counters of this process, minute by minute over the last hour, for the charts of `/ops/`.
//! Metrics cannot be read back from their recorder without parsing text.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};

use super::TIMES;

pub(crate) const EVERY: Duration = Duration::from_mins(1);
const SHORTEST: TimeDelta = TimeDelta::seconds(30);
const MINUTES_MAX: usize = 60;

/// Share of the requests that are answered within [`Minute::slow`].
const SLOW: f64 = 0.99;

/// Requests by duration: those within each bound of [`TIMES`], and longer ones.
pub(super) static REQUESTS: [AtomicU64; TIMES.len() + 1] = [const { AtomicU64::new(0) }; TIMES.len() + 1];

pub(super) static SCORES: AtomicU64 = AtomicU64::new(0);

/// Bits of a double; 0 before the first check.
static SKEW: AtomicU64 = AtomicU64::new(0);

static RECENT: Mutex<Recent> = Mutex::new(Recent { since: None, minutes: VecDeque::new() });

struct Recent {
    /// Beginning of the current minute.
    since: Option<DateTime<Utc>>,
    minutes: VecDeque<Minute>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Minute {
    pub(crate) ended_at: DateTime<Utc>,
    pub(crate) requests: u64,
    /// The least bound of the duration histogram within which 99 % of the requests were answered; the
    /// greatest bound, 10 s, also if more than 1 % took longer. `None` without requests.
    pub(crate) slow: Option<Duration>,
    pub(crate) scores: u64,
    /// Bytes of the rank indexes and the user directory at its end.
    pub(crate) index_bytes: u64,
    /// Skew of the most uneven ranking at the last check by this process; `None` before the first.
    pub(crate) skew: Option<f64>,
}

pub(super) fn set_skew(skew: f64) {
    SKEW.store(skew.to_bits(), Relaxed);
}

/// Ends a minute. `index_bytes` is the memory of the rank indexes and the user directory. The first
/// call only begins one.
pub(crate) fn end_minute(index_bytes: u64) {
    let now = Utc::now();
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    // Each instance in this process calls this function.
    if recent.since.is_some_and(|since| now - since < SHORTEST) {
        return;
    }
    let requests = REQUESTS.each_ref().map(|count| count.swap(0, Relaxed));
    let minute = Minute {
        ended_at: now,
        requests: requests.iter().sum(),
        slow: bound_of(&requests, SLOW),
        scores: SCORES.swap(0, Relaxed),
        index_bytes,
        skew: Some(f64::from_bits(SKEW.load(Relaxed))).filter(|skew| *skew > 0.0),
    };
    if recent.since.replace(now).is_some() {
        recent.minutes.push_back(minute);
    }
    if recent.minutes.len() > MINUTES_MAX {
        recent.minutes.pop_front();
    }
}

/// Returns the last minutes, oldest first.
pub(crate) fn minutes() -> Vec<Minute> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner).minutes.iter().cloned().collect()
}

/// Returns the least bound within which this share of the counted requests lies, or the greatest one.
fn bound_of(counts: &[u64], share: f64) -> Option<Duration> {
    let all = counts.iter().sum::<u64>();
    let within = |count: u64| count as f64 >= share * all as f64;
    let sums = counts.iter().scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    });
    let found = sums.zip(TIMES).find(|(sum, _)| within(*sum)).map(|(_, bound)| bound);
    let bound = found.or(TIMES.last().copied()).filter(|_| all > 0)?;
    Some(Duration::from_secs_f64(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_covers_the_share() {
        let mut counts = [0; TIMES.len() + 1];
        assert_eq!(bound_of(&counts, 0.99), None);
        (counts[2], counts[5]) = (99, 1);
        assert_eq!(bound_of(&counts, 0.99), Some(Duration::from_millis(1)));
        counts[5] = 2;
        assert_eq!(bound_of(&counts, 0.99), Some(Duration::from_millis(10)));
        counts[TIMES.len()] = 2;
        assert_eq!(bound_of(&counts, 0.99), Some(Duration::from_secs(10)));
    }
}
