//! API keys and their cache.

pub(crate) mod key;
pub(crate) mod key_cache;

use std::time::Duration;

use crate::{access::key_cache::KeyCache, store::Store};

#[derive(Debug)]
pub struct ApiKeys {
    store: Store,
    cache: KeyCache,
}

impl ApiKeys {
    /// Creates an empty cache. A shared look-up fails after `timeout`.
    pub(crate) fn new(store: Store, timeout: Duration) -> Self {
        Self { store, cache: KeyCache::new(timeout) }
    }
}
