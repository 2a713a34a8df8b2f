//! Parts of a request that handlers take: caller, body, path, query.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod first_layout;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod signature;
