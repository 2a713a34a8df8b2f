//! The caller of a request: the key and the rate limit.

pub(crate) mod caller;
pub(crate) mod rate;
