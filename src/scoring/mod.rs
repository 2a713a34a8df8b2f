//! Decisions on score events. [`decide`] is pure: it knows the rules and folds events into
//! entries, without I/O and without a clock. [`write`] brings it together with the database.

mod decide;
mod entry;
mod facts;
mod refusal;
mod rules;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use decide::{Decided, Decisions, Pending, Source};
pub(crate) use entry::{Entry, reached_at};
pub(crate) use facts::{
    Accepted, Content, Facts, Gain, History, KnownAnswer, KnownEvent, Period, Player, Rules, Standing,
};
pub(crate) use refusal::{Refusal, Rule, Violation};
pub(crate) use rules::limited_periods;
pub use write::Submitted;
pub(crate) use write::{Answer, Lane};
