//! Rules and fold of score events.
//!
//! [`decide`] applies the rules and folds events into entries. Everything here is pure: no I/O, and
//! no clock.

mod decide;
mod entry;
mod facts;
mod limits;
mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use decide::{Decisions, EventDecision, EventSource, MissingPeriods, Pending, decide};
pub(crate) use entry::{Entry, rank_key, shown_tie};
pub(crate) use facts::{
    AcceptedEvent, Content, EarlierEvent, EarlierOutcome, EventStanding, Facts, Gain, History, Period, Player, Rules,
    SegmentChange,
};
pub(crate) use limits::limited_periods;
pub(crate) use refusal::{Refusal, Violation, check_tiebreak};
