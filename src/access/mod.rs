//! API keys and their cache.

pub(crate) mod key;
pub(crate) mod key_cache;

use std::time::Duration;

use crate::{access::key_cache::KeyCache, store::Reader};

#[derive(Debug)]
pub struct ApiKeys {
    reader: Reader,
    cache: KeyCache,
}

impl ApiKeys {
    /// Creates an empty cache. A shared look-up fails after `timeout`.
    pub(crate) fn new(reader: Reader, timeout: Duration) -> Self {
        Self { reader, cache: KeyCache::new(timeout) }
    }
}
