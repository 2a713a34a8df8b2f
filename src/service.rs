//! What every request shares.

/// Pools, caches and writers of one instance.
#[derive(Debug)]
pub struct Service {}
