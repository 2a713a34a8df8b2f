//! Webhooks and live events.

pub mod live;
pub mod outbox;
