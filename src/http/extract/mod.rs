//! Parts of a request that handlers read: caller, path, query, body.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod first_layout;
pub(crate) mod idempotency;
pub(crate) mod path;
pub(crate) mod query;
