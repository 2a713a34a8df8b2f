//! Webhooks, live updates and event streams.

pub mod copying;
pub mod live;
pub mod outbox;
mod transactions;
