//! Outgoing messages: outbox, webhooks and streams.

pub(crate) mod live;
pub(crate) mod outbox;
pub(crate) mod webhook;
