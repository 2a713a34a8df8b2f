//! State of the database on which a batch is decided.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::{
    model::{
        board::{GainMax, Mode, OnViolation, Order, PeriodKind, TiebreakSum, Ties},
        id::RankingId,
        metadata::Metadata,
    },
    rules::{entry::Entry, refusal::Violation},
};

/// Everything needed to decide the events of one lane: the state before the batch.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) rules: Rules,
    /// The database's clock. Imported events may not be later.
    pub(crate) now: DateTime<Utc>,
    /// The time of live events: the clock, but not before the lane's last event.
    pub(crate) at: DateTime<Utc>,
    /// The periods that hold the events.
    pub(crate) periods: Vec<Period>,
    /// The players of the batch, each once. Events refer to them by index.
    pub(crate) players: Vec<Player>,
    /// Earlier events of the lane, by index of the player and the caller's id.
    pub(crate) earlier_events: HashMap<(usize, String), EarlierEvent>,
}

/// The rules of a board that decide an event.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// How scores follow from events.
    pub(crate) mode: Mode,
    pub(crate) order: Order,
    pub(crate) ties: Ties,
    /// Which second numbers are better; set with ties `second` alone.
    pub(crate) tiebreak_order: Option<Order>,
    /// How second numbers combine on a `sum` board.
    pub(crate) tiebreak_sum: Option<TiebreakSum>,
    /// Kinds of period of the board, not counting seasons. Each event lies in one period of each
    /// kind.
    pub(crate) periods: Vec<PeriodKind>,
    pub(crate) points_min: i64,
    pub(crate) points_max: i64,
    /// Maximum events of a player in any 60 seconds.
    pub(crate) events_per_minute: Option<u32>,
    /// Maximum gain of a player in a period, by kind.
    pub(crate) gain_max: GainMax,
    /// Treatment of events that break a rule against cheating.
    pub(crate) on_violation: OnViolation,
}

impl Rules {
    /// Returns whether live events need the players' [`History`].
    pub(crate) fn need_history(&self) -> bool {
        self.events_per_minute.is_some() || !self.gain_max.is_empty() || self.on_violation == OnViolation::Quarantine
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Period {
    pub(crate) id: i64,
    pub(crate) kind: PeriodKind,
    /// Name, such as `week:2024-01-15`.
    pub(crate) name: String,
    /// First instant of the period.
    pub(crate) starts_at: DateTime<Utc>,
    /// First instant after the period.
    pub(crate) ends_at: DateTime<Utc>,
    /// Current ranking; `None` if the period no longer accepts events.
    pub(crate) ranking_id: Option<RankingId>,
    /// Whether results of events name the period. False for the next rolling window.
    pub(crate) is_shown: bool,
    /// The user id up to which players have their standings in a rolling window that is being filled.
    /// Maintenance computes later players, including these events. `None` for other periods.
    pub(crate) filled_to: Option<i64>,
    /// Rankings of the segments to which players of the batch belong; `None` if the segment no longer
    /// accepts events. A segment that is absent must be opened first.
    pub(crate) segments: HashMap<String, Option<RankingId>>,
}

impl Period {
    pub(crate) fn holds(&self, at: DateTime<Utc>) -> bool {
        self.starts_at <= at && at < self.ends_at
    }
}

/// A player of the batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Player {
    /// The board: that of the batch or, in a batch of a template, one of its boards.
    pub(crate) board_id: i32,
    /// Whether the board, one of a template, was deleted after the request had found it.
    pub(crate) is_gone: bool,
    /// Internal id; `None` if the user does not exist yet.
    pub(crate) id: Option<i64>,
    /// Whether the player is banned, everywhere or on this board.
    pub(crate) is_banned: bool,
    /// The player's entries in whole periods that are not closed or have an open segment, by the id of
    /// the period.
    pub(crate) entries: BTreeMap<i64, Entry>,
    /// Times of the events that decide these entries, by the id of the period. Only for imports to boards
    /// with ties `second`, whose tie keys hold no times; live events are never earlier.
    pub(crate) decided_at: BTreeMap<i64, DateTime<Utc>>,
    /// Times of the player's resets on this board. Live events are always later.
    pub(crate) resets: Vec<DateTime<Utc>>,
    pub(crate) segments: Segments,
    /// Input of the rules against cheating; empty if [`Rules::need_history`] is false.
    pub(crate) history: History,
}

/// Time of a change, and whether the player belongs to the segment from then on. `None` is the time of
/// a change that applies to all time.
pub(crate) type SegmentChange = (Option<DateTime<Utc>>, bool);

/// The segments to which a player belongs, with their history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments {
    /// The player's changes of each segment, oldest first.
    pub(crate) changes: BTreeMap<String, Vec<SegmentChange>>,
    /// Segments to record with the player's first event on the board, and an empty text that marks the
    /// player as known.
    pub(crate) new: Vec<String>,
}

impl Segments {
    /// Adds a change of a segment. An empty segment marks a player who is new to the board. A new change
    /// is recorded with the player's first event.
    pub(crate) fn add(&mut self, segment: String, change: SegmentChange, is_new: bool) {
        if is_new {
            self.new.push(segment.clone());
        }
        if !segment.is_empty() {
            self.changes.entry(segment).or_default().push(change);
        }
    }

    /// Returns the segments to which the player belongs at the end of a period.
    pub(crate) fn until(&self, end: DateTime<Utc>) -> impl Iterator<Item = &str> {
        self.changes.iter().filter_map(move |(segment, changes)| {
            let last = changes.iter().rfind(|(at, _)| at.is_none_or(|at| at < end));
            last.is_some_and(|(_, is_in)| *is_in).then_some(segment.as_str())
        })
    }
}

/// A player's past events, as far as the rules against cheating need them.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Events in the 60 seconds before the batch, voided ones included.
    pub(crate) recent: u32,
    pub(crate) waiting: u32,
    /// Earlier gains in the periods whose kind has a limit.
    pub(crate) gains: Vec<Gain>,
}

/// Starting point of a player's gain in one period whose kind has a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gain {
    /// Index of the period in [`Facts::periods`].
    pub(crate) period: usize,
    /// Maximum gain in the period.
    pub(crate) limit: i64,
    /// `sum`: points won in the period so far, not reduced by losses.
    pub(crate) won: i128,
    /// `best`, `latest`: the player's rank key at the start of the period, or that of the first
    /// event in it. On `best` boards it may be any key high enough for all events of the batch.
    pub(crate) base: Option<i64>,
}

/// An event that was answered before under the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierEvent {
    /// Content, which distinguishes a repetition from a conflict.
    pub(crate) content: Content,
    pub(crate) answer: EarlierOutcome,
}

/// Content that two events with the same id must share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) points: i64,
    pub(crate) tiebreak: Option<i64>,
    pub(crate) reason: Option<String>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) metadata: Option<Metadata>,
}

/// Stored answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EarlierOutcome {
    /// The event is in the ledger.
    Accepted(AcceptedEvent),
    /// The event is in quarantine.
    Quarantined { quarantine_id: i64, violation: Violation },
}

/// An event that is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptedEvent {
    pub(crate) transaction_id: i64,
    pub(crate) at: DateTime<Utc>,
    /// The player's standings after the event; empty for an imported event.
    pub(crate) standings: Vec<EventStanding>,
}

/// A player's standing in one period right after an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct EventStanding {
    /// Internal id of the player.
    pub(crate) user_id: i64,
    /// Internal id of the period.
    pub(crate) period_id: i64,
    pub(crate) period: String,
    /// Score after the event.
    pub(crate) score: i64,
    /// Rank key and tie key before the event.
    pub(crate) was: Option<(i64, i64)>,
}
