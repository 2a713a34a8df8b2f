//! Periods: calendar, closing, archives.

pub mod boundary;
pub mod buckets;
pub mod calendar;
pub mod close;
pub mod closed;
pub mod combined;
pub mod killed_close;
pub mod kinds;
pub mod leagues;
pub mod rolling;
pub mod rollover;
pub mod segments;
pub mod settings;
pub mod snapshots;
