//! Outgoing messages: outbox, webhooks and streams.

pub(crate) mod copying;
pub(crate) mod followed_leagues;
pub(crate) mod ledger_stream;
pub(crate) mod outbox;
pub(crate) mod subscriptions;
pub(crate) mod webhook;
