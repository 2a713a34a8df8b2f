//! State of the database that a batch is decided on.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::{
    model::board::{GainMax, Mode, OnViolation, Order, PeriodKind, Ties},
    rules::{entry::Entry, refusal::Violation},
};

/// Everything that scoring needs to decide the events of one lane: the state that a batch begins
/// with.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The rules of the board.
    pub(crate) rules: Rules,
    /// The database's clock. Imported events may not be later.
    pub(crate) now: DateTime<Utc>,
    /// The time of all events without a time of their own: the clock, but not before the lane's
    /// last event.
    pub(crate) at: DateTime<Utc>,
    /// The periods that hold the events.
    pub(crate) periods: Vec<Period>,
    /// The players of the batch, each once. Events name them by their place here.
    pub(crate) players: Vec<Player>,
    /// The players' entries in the rankings of `periods`, by ranking id and place of the player.
    pub(crate) entries: HashMap<(i64, usize), Entry>,
    /// The events that the lane has seen before, by place of the player and the caller's id.
    pub(crate) known: HashMap<(usize, String), KnownEvent>,
}

/// The rules of a board that decide an event.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// How a score follows from events.
    pub(crate) mode: Mode,
    /// Which scores are better.
    pub(crate) order: Order,
    /// How equal scores are ranked.
    pub(crate) ties: Ties,
    /// The kinds of period that hold every event. Seasons come besides.
    pub(crate) periods: Vec<PeriodKind>,
    /// Least points of an event.
    pub(crate) points_min: i64,
    /// Most points of an event.
    pub(crate) points_max: i64,
    /// Most events of a player in any 60 seconds.
    pub(crate) events_per_minute: Option<u32>,
    /// The most that a player may gain in a period, by its kind.
    pub(crate) gain_max: GainMax,
    /// How events that break a rule are treated.
    pub(crate) on_violation: OnViolation,
}

impl Rules {
    /// Whether live events need the players' [`History`].
    pub(crate) fn need_history(&self) -> bool {
        self.events_per_minute.is_some() || !self.gain_max.is_empty() || self.on_violation == OnViolation::Quarantine
    }
}

/// A period that exists.
#[derive(Debug, Clone)]
pub(crate) struct Period {
    /// Internal id.
    pub(crate) id: i64,
    /// Its kind.
    pub(crate) kind: PeriodKind,
    /// Its name, such as `week:2024-01-15`.
    pub(crate) name: String,
    /// The first instant that it holds.
    pub(crate) starts_at: DateTime<Utc>,
    /// The first instant after it.
    pub(crate) ends_at: DateTime<Utc>,
    /// Its current ranking; `None` if it accepts no events any more.
    pub(crate) ranking_id: Option<i64>,
}

impl Period {
    pub(crate) fn holds(&self, at: DateTime<Utc>) -> bool {
        self.starts_at <= at && at < self.ends_at
    }
}

/// A player of the batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Player {
    /// Internal id; `None` if no such user exists yet.
    pub(crate) id: Option<i64>,
    /// Whether the player is banned, everywhere or on this board.
    pub(crate) is_banned: bool,
    /// The times at which the player was reset on this board. Live events are always later.
    pub(crate) resets: Vec<DateTime<Utc>>,
    /// Input of the rules against cheating; empty if [`Rules::need_history`] is false.
    pub(crate) history: History,
}

/// A player's past, as far as rules against cheating look at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Events in the 60 seconds before the batch, voided ones included.
    pub(crate) recent: u32,
    /// Events that wait in quarantine.
    pub(crate) waiting: u32,
    /// The player's past in the periods whose kind has a limit, in the order of [`Facts::periods`].
    pub(crate) gains: Vec<Gain>,
}

/// Base for a player's gain in one period.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gain {
    /// `sum`: what the player has won in the period so far, without what was lost in between.
    pub(crate) won: i128,
    /// `best`, `latest`: the rank key that the player came into the period with, or of the first
    /// event in it. On `best` boards it may be any key that is high enough for all events of the
    /// batch.
    pub(crate) base: Option<i64>,
}

/// An event that was answered before under the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownEvent {
    /// Its content, by which a repetition is told from a conflict.
    pub(crate) content: Content,
    /// Its answer.
    pub(crate) answer: KnownAnswer,
}

/// Content that two events with the same id must share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    /// Points.
    pub(crate) points: i64,
    /// Tiebreak.
    pub(crate) tiebreak: Option<i16>,
    /// Reason.
    pub(crate) reason: Option<String>,
    /// The time it counts for.
    pub(crate) at: DateTime<Utc>,
}

/// Stored answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownAnswer {
    /// It is in the ledger.
    Accepted(Accepted),
    /// It is in quarantine.
    Quarantined {
        /// Its id there.
        quarantine_id: i64,
        /// The rule that it broke.
        violation: Violation,
    },
}

/// An event that is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Its id there.
    pub(crate) transaction_id: i64,
    /// The time it counts for.
    pub(crate) at: DateTime<Utc>,
    /// The player's standings after it; none for an imported event.
    pub(crate) standings: Vec<Standing>,
}

/// A player's standing in one period right after an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Standing {
    /// Internal id of the player.
    pub(crate) user_id: i64,
    /// Internal id of the period.
    pub(crate) period_id: i64,
    /// Name of the period.
    pub(crate) period: String,
    /// Score after the event.
    pub(crate) score: i64,
    /// Rank key and tie key before it.
    pub(crate) was: Option<(i64, i64)>,
}
