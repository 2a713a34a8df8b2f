//! Periods: seasons, closing, corrections, retention.

pub(crate) mod closing;
pub(crate) mod combining;
pub(crate) mod season;
