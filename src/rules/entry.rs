//! One player's entry in one ranking, and the effect of an event on it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::board::{Mode, Order};

/// Bits of a tie key that hold the time. The tiebreak is above them.
const TIME_BITS: u32 = 51;

/// Latest time that a tie key holds, in microseconds since 2000: 2⁵¹ − 1.
const MAX_TIME: i64 = (1 << TIME_BITS) - 1;

/// 2000-01-01 00:00 UTC, in microseconds since 1970.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// One player's standing in one whole period, and so in the ranking of the period and those of the
/// player's segments. The score is the rank key, negated on boards where smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The score, negated where smaller scores are better.
    pub(crate) rank_key: i64,
    /// Tiebreak and time; see [`tie_key`].
    pub(crate) tie_key: i64,
    /// Whether all counted events have 0 points. Such an entry keeps its first time. With another score,
    /// it means that the sum lies beyond 64 bits and stopped at its limit: see
    /// `centile_store.entries_of`.
    pub(crate) only_zeros: bool,
}

/// The score of an event and what breaks its ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScoredEvent {
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub(crate) points: i64,
    /// Tiebreak, −2048 to 2047.
    pub(crate) tiebreak: i16,
    pub(crate) at: DateTime<Utc>,
}

impl Entry {
    /// Returns the entry after an event.
    ///
    /// An entry is a function of the set of its events, not of their order. One exception: of two
    /// `latest` events with the same time, the one that arrives later wins. `None` if the sum would
    /// exceed 64 bits.
    pub(crate) fn after(before: Option<Self>, mode: Mode, order: Order, event: ScoredEvent) -> Option<Self> {
        let alone = Self {
            rank_key: rank_key(event.points, order)?,
            tie_key: tie_key(event.at, event.tiebreak),
            only_zeros: event.points == 0,
        };
        let Some(before) = before else { return Some(alone) };
        let only_zeros = before.only_zeros && alone.only_zeros;
        let wins = match mode {
            Mode::Sum => return before.plus(alone),
            Mode::Best => (alone.rank_key, alone.tie_key) > (before.rank_key, before.tie_key),
            // A combined board has no events.
            Mode::Latest | Mode::Combined => time_of(alone.tie_key) >= time_of(before.tie_key),
        };
        Some(Self { only_zeros, ..if wins { alone } else { before } })
    }

    /// Returns the sum of two entries of a `sum` board.
    ///
    /// Its time is that of the latest event with points other than 0, or of the first event if
    /// there is none. A later time is a smaller tie key. `None` if the sum would exceed 64 bits, or
    /// already does.
    fn plus(self, event: Self) -> Option<Self> {
        if self.only_zeros && self.rank_key != 0 {
            return None;
        }
        let rank_key = self.rank_key.checked_add(event.rank_key).filter(|key| *key != i64::MIN)?;
        let tie_key = match (self.only_zeros, event.only_zeros) {
            (true, true) => self.tie_key.max(event.tie_key),
            (true, false) => event.tie_key,
            (false, true) => self.tie_key,
            (false, false) => self.tie_key.min(event.tie_key),
        };
        Some(Self { rank_key, tie_key, only_zeros: self.only_zeros && event.only_zeros })
    }

    pub(crate) fn score(self, order: Order) -> i64 {
        // No key is `i64::MIN`, the only number that cannot be negated.
        rank_key(self.rank_key, order).unwrap_or(i64::MAX)
    }
}

/// Converts a score to a rank key, or back. `None` for `i64::MIN`, which no board accepts.
pub(crate) fn rank_key(score: i64, order: Order) -> Option<i64> {
    match order {
        Order::Desc => (score != i64::MIN).then_some(score),
        Order::Asc => score.checked_neg(),
    }
}

/// Returns the tie key, the same number as `centile.tie_key`.
///
/// It packs the tiebreak above 51 bits of (2⁵¹ − 1 − microseconds since 2000). So a larger tiebreak
/// gives a larger key, and among equal tiebreaks an earlier time does. The time must be between
/// 2000 and 2071.
pub(crate) fn tie_key(at: DateTime<Utc>, tiebreak: i16) -> i64 {
    (i64::from(tiebreak) << TIME_BITS) + MAX_TIME - (at.timestamp_micros() - EPOCH_MICROS)
}

/// Returns the time in a tie key.
pub(crate) fn reached_at(tie_key: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(EPOCH_MICROS + time_of(tie_key))
}

/// Returns the time in a tie key, in microseconds since 2000.
fn time_of(tie_key: i64) -> i64 {
    MAX_TIME - (tie_key & MAX_TIME)
}
