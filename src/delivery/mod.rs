//! Outgoing events: outbox, webhooks, streams.

pub(crate) mod live;
pub(crate) mod outbox;
pub(crate) mod webhook;
