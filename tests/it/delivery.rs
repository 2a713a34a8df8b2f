//! Webhooks and live updates.

pub mod live;
pub mod outbox;
