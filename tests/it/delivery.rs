//! Webhooks, live updates and event streams.

pub mod copying;
#[cfg(feature = "kafka")]
mod kafka;
pub mod live;
pub mod outbox;
pub mod transactions;
