//! API keys and their cache.

pub(crate) mod key;
pub(crate) mod key_cache;

use std::{sync::Arc, time::Duration};

use crate::{access::key_cache::KeyCache, model::encryption::MasterKeys, store::Store};

/// The API keys of an instance.
#[derive(Debug)]
pub struct ApiKeys {
    store: Store,
    cache: KeyCache,
    /// Encrypt the signing secrets of keys. Without them no key can sign.
    master_keys: Option<Arc<MasterKeys>>,
}

impl ApiKeys {
    /// Creates an empty cache. A shared look-up fails after `timeout`.
    pub(crate) fn new(store: Store, master_keys: Option<Arc<MasterKeys>>, timeout: Duration) -> Self {
        Self { store, cache: KeyCache::new(timeout), master_keys }
    }
}
