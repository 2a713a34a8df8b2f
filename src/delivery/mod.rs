//! Outgoing messages: outbox, webhooks and streams.

pub(crate) mod copying;
pub(crate) mod live;
pub(crate) mod outbox;
pub(crate) mod transactions;
pub(crate) mod webhook;
