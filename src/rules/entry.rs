//! One player's entry in one ranking, and the effect of an event on it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    model::board::{Mode, Order, TiebreakSum},
    rules::facts::Rules,
};

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
    /// Tiebreak and time; see [`tie_key`]. With ties `second`, the second number, negated where smaller
    /// numbers are better.
    pub(crate) tie_key: i64,
    /// Whether all counted events have 0 points. Such an entry keeps its first time. With another score,
    /// it means that the sum lies beyond 64 bits and stopped at its limit: see
    /// `centile_store.entries_of`. With ties `second`, it means only that a sum lies beyond 64 bits.
    pub(crate) only_zeros: bool,
}

/// The score of an event and what breaks its ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScoredEvent {
    /// Points earned (`sum`), or the score itself (`best`, `latest`).
    pub(crate) points: i64,
    pub(crate) tiebreak: Option<i64>,
    pub(crate) at: DateTime<Utc>,
    /// Whether the event is no earlier than the event that decides so far. Only boards with ties `second`
    /// need it.
    pub(crate) is_latest: bool,
}

impl Entry {
    /// Returns the entry after an event.
    ///
    /// An entry is a function of the set of its events, not of their order. One exception: of two
    /// `latest` events with the same time, the one that arrives later wins. `None` if the sum would
    /// exceed 64 bits.
    pub(crate) fn after(before: Option<Self>, rules: &Rules, event: ScoredEvent) -> Option<Self> {
        // An event without a tiebreak counts as one with 0.
        let tiebreak = event.tiebreak.unwrap_or(0);
        let alone = Self {
            rank_key: rank_key(event.points, rules.order)?,
            tie_key: match rules.tiebreak_order {
                Some(order) => rank_key(tiebreak, order)?,
                None => tie_key(event.at, tiebreak),
            },
            only_zeros: event.points == 0 && rules.tiebreak_order.is_none(),
        };
        let Some(before) = before else { return Some(alone) };
        let only_zeros = before.only_zeros && alone.only_zeros;
        let wins = match rules.mode {
            Mode::Sum if rules.tiebreak_order.is_some() => {
                let latest = if event.tiebreak.is_some() && event.is_latest { alone } else { before };
                let is_replaced = rules.tiebreak_sum == Some(TiebreakSum::Replaced);
                return before.plus_second(alone, is_replaced.then_some(latest.tie_key));
            }
            Mode::Sum => return before.plus(alone),
            Mode::Best => (alone.rank_key, alone.tie_key) > (before.rank_key, before.tie_key),
            // A combined board has no events.
            Mode::Latest | Mode::Combined if rules.tiebreak_order.is_some() => event.is_latest,
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
        let rank_key = sum(self.rank_key, event.rank_key)?;
        let tie_key = match (self.only_zeros, event.only_zeros) {
            (true, true) => self.tie_key.max(event.tie_key),
            (true, false) => event.tie_key,
            (false, true) => self.tie_key,
            (false, false) => self.tie_key.min(event.tie_key),
        };
        Some(Self { rank_key, tie_key, only_zeros: self.only_zeros && event.only_zeros })
    }

    /// Returns the sum of two entries of a `sum` board with ties `second`: also of the tie keys, unless
    /// `tie_key` replaces it. `None` if a sum would exceed 64 bits, or already does.
    fn plus_second(self, event: Self, tie_key: Option<i64>) -> Option<Self> {
        let rank_key = sum(self.rank_key, event.rank_key).filter(|_| !self.only_zeros)?;
        Some(Self { rank_key, tie_key: tie_key.or_else(|| sum(self.tie_key, event.tie_key))?, only_zeros: false })
    }

    pub(crate) fn score(self, order: Order) -> i64 {
        // No key is `i64::MIN`, the only number that cannot be negated.
        rank_key(self.rank_key, order).unwrap_or(i64::MAX)
    }
}

/// Returns the sum of two keys; `None` if it would exceed 64 bits.
fn sum(a: i64, b: i64) -> Option<i64> {
    a.checked_add(b).filter(|key| *key != i64::MIN)
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
pub(crate) fn tie_key(at: DateTime<Utc>, tiebreak: i64) -> i64 {
    (tiebreak << TIME_BITS) + MAX_TIME - (at.timestamp_micros() - EPOCH_MICROS)
}

/// Returns the time in a tie key, or with ties `second` the second number.
pub(crate) fn shown_tie(tie_key: i64, tiebreak_order: Option<Order>) -> (Option<DateTime<Utc>>, Option<i64>) {
    match tiebreak_order {
        Some(order) => (None, rank_key(tie_key, order)),
        None => (Some(reached_at(tie_key)), None),
    }
}

/// Returns the time in a tie key.
pub(super) fn reached_at(tie_key: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(EPOCH_MICROS + time_of(tie_key))
}

/// Returns the time in a tie key, in microseconds since 2000.
fn time_of(tie_key: i64) -> i64 {
    MAX_TIME - (tie_key & MAX_TIME)
}
