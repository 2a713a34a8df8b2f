//! API keys and their cache.

pub(crate) mod key;
pub(crate) mod key_cache;

use std::{sync::Arc, time::Duration};

use crate::{access::key_cache::KeyCache, model::seal::MasterKeys, store::Store};

/// The API keys of an instance.
#[derive(Debug)]
pub struct ApiKeys {
    store: Store,
    cache: KeyCache,
    /// Encrypt the secrets that keys sign with; without them no key can sign.
    master_keys: Option<Arc<MasterKeys>>,
}

impl ApiKeys {
    /// No key is cached yet. A lookup that others share waits for it up to `patience`.
    pub(crate) fn new(store: Store, master_keys: Option<Arc<MasterKeys>>, patience: Duration) -> Self {
        Self { store, cache: KeyCache::new(patience), master_keys }
    }
}
