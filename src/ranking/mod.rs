//! Reads of rankings: open periods from rank indexes or by SQL, closed periods from archives.

pub(crate) mod acknowledged;
mod batcher;
mod caches;
pub(crate) mod cohort;
pub(crate) mod counts;
pub(crate) mod cursor;
mod directory;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod frozen;
pub(crate) mod index_registry;
pub(crate) mod local;
pub(crate) mod memory_limit;
pub(crate) mod metadata;
pub(crate) mod overview;
pub(crate) mod period;
pub(crate) mod rank_change;
pub(crate) mod rank_index;
pub(crate) mod rankings;
pub(crate) mod read;
pub(crate) mod read_router;
pub(crate) mod search;
pub(crate) mod source;
mod sql;
pub(crate) mod top;
mod user_lookup;
