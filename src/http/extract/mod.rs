//! What handlers take from a request: caller, body, path, query.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod first_layout;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod signature;
