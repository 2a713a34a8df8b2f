//! Periods: seasons, and closing.

pub(crate) mod closing;
pub(crate) mod season;
