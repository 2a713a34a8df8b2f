//! The bounded user directory of one instance: external id to internal id, and internal id to
//! profile.
//!
//! Records lie in an arena of fixed-size chunks, in the order of their puts. Two hash tables, by
//! internal and by external id, hold 32-bit record addresses and no keys. A look-up compares with
//! the record itself. A user with an external id and a name of 12 bytes takes 44 to 55 bytes.
//!
//! At the memory bound the directory drops its oldest chunk. So it may forget a user, and the
//! caller then asks PostgreSQL. It never returns a profile that another `put` replaced.

pub(super) mod arena;
mod table;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};

use crate::ranking::directory::{
    arena::{ADDRESSABLE_BYTES, Arena, CHUNK_BYTES, ProfileRef, Record, header, units},
    table::AddressTable,
};

/// Memory of a user with short texts. A reservation covers no more users than fit at this size.
const EXPECTED_USER_BYTES: usize = 40;

/// A bounded map between external ids, internal ids and profiles.
#[derive(Debug)]
pub struct Directory {
    arena: Arena,
    by_id: AddressTable,
    by_external_id: AddressTable,
    /// Hash key for external ids. Callers choose these ids, so the hash is `SipHash` with a random
    /// key, which resists crafted collisions. `foldhash`, the default of hashbrown, does not claim
    /// to.
    key: RandomState,
    max_bytes: usize,
}

impl Directory {
    pub const SHARDS: usize = table::SHARDS;

    /// Creates an empty directory that uses at most `max_bytes` of memory, and at most 16 GiB.
    ///
    /// A bound of 0 keeps nothing.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            arena: Arena::default(),
            by_id: AddressTable::new(),
            by_external_id: AddressTable::new(),
            key: RandomState::new(),
            max_bytes: max_bytes.min(ADDRESSABLE_BYTES),
        }
    }

    /// Changes the memory bound. A lower bound drops the oldest users at once.
    ///
    /// Dropping takes about 1 µs per user. Lower a large bound in steps, and release the lock
    /// between them.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes.min(ADDRESSABLE_BYTES);
        while self.bytes() > self.max_bytes && self.free_memory() {}
    }

    /// Returns the internal id of the user with this external id.
    #[must_use]
    pub fn user_id(&self, external_id: &str) -> Option<u32> {
        self.find_external_id(external_id).map(|address| self.arena.record(address).user_id())
    }

    #[cfg(test)]
    #[must_use]
    pub fn profile(&self, user_id: u32) -> Option<ProfileRef<'_>> {
        self.find_id(user_id).and_then(|address| self.arena.record(address).profile())
    }

    /// Returns the profiles of users, in their order.
    pub fn profiles(&self, user_ids: &[u32]) -> impl Iterator<Item = Option<ProfileRef<'_>>> {
        // A separate pass over the tables lets the CPU overlap their cache misses.
        let addresses: Vec<Option<u32>> = user_ids.iter().map(|&user_id| self.find_id(user_id)).collect();
        addresses.into_iter().map(|address| self.arena.record(address?).profile())
    }

    /// Adds or replaces a user, who then counts as the newest.
    ///
    /// An unchanged profile keeps its age. If another user has the same external id, the directory
    /// forgets that user. The directory keeps no profile of this user if a text is empty or too
    /// long, or if the memory bound is too small.
    pub fn put(&mut self, profile: ProfileRef<'_>) {
        if let Some(address) = self.find_id(profile.user_id) {
            if self.arena.record(address).profile() == Some(profile) {
                return;
            }
            self.unlink(address);
        }
        if let Some(address) = self.find_external_id(profile.external_id) {
            self.unlink(address);
        }
        let Some(header) = header(&profile) else { return };
        let size = Record(&header).size();
        let id_hash = hash_id(profile.user_id);
        let external_id_hash = self.key.hash_one(profile.external_id.as_bytes());
        loop {
            let growth =
                self.arena.growth(size) + self.by_id.growth(id_hash) + self.by_external_id.growth(external_id_hash);
            if self.bytes() + growth <= self.max_bytes {
                break;
            }
            if !self.free_memory() {
                return;
            }
        }
        let address = self.arena.append(header, &profile);
        let arena = &self.arena;
        self.by_id.insert(id_hash, address, |address| hash_id(arena.record(address).user_id()));
        self.by_external_id
            .insert(external_id_hash, address, |address| self.key.hash_one(arena.record(address).external_id()));
    }

    #[cfg(test)]
    pub fn remove(&mut self, user_id: u32) {
        if let Some(address) = self.find_id(user_id) {
            self.unlink(address);
        }
    }

    /// Forgets all users and frees all memory.
    pub fn clear(&mut self) {
        *self = Self::new(self.max_bytes);
    }

    /// Returns the number of users after this many more, as far as the bound allows.
    #[must_use]
    pub fn capacity_for(&self, more: usize) -> usize {
        self.len().saturating_add(more).min(self.max_bytes / EXPECTED_USER_BYTES)
    }

    /// Grows one of the [`Self::SHARDS`] shards of each table for this total number of users, as
    /// far as the bound allows.
    ///
    /// A bulk load then needs no rehash.
    pub fn reserve_shard(&mut self, shard: usize, users: usize) {
        let mut free = self.max_bytes.saturating_sub(self.bytes());
        let arena = &self.arena;
        self.by_id.reserve_shard(shard, users, &mut free, |address| hash_id(arena.record(address).user_id()));
        let hash_of = |address| self.key.hash_one(arena.record(address).external_id());
        self.by_external_id.reserve_shard(shard, users, &mut free, hash_of);
    }

    /// Returns whether the next new user may need memory that the bound does not allow.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes() + CHUNK_BYTES > self.max_bytes
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of chunks and tables, in bytes. It never exceeds the bound.
    ///
    /// The sum leaves out 64 KiB of fixed size, and one old shard while a table copies it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.chunks.len() * CHUNK_BYTES + self.by_id.bytes + self.by_external_id.bytes
    }

    #[cfg(test)]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    fn find_id(&self, user_id: u32) -> Option<u32> {
        self.by_id.find(hash_id(user_id), |address| self.arena.record(address).user_id() == user_id)
    }

    fn find_external_id(&self, external_id: &str) -> Option<u32> {
        let external_id = external_id.as_bytes();
        let hash = self.key.hash_one(external_id);
        self.by_external_id.find(hash, |address| self.arena.record(address).external_id() == external_id)
    }

    /// Removes a record from both tables. Its bytes stay until its chunk is dropped.
    fn unlink(&mut self, address: u32) {
        let record = self.arena.record(address);
        self.by_id.remove(hash_id(record.user_id()), address);
        self.by_external_id.remove(self.key.hash_one(record.external_id()), address);
    }

    /// Shrinks a sparse shard; otherwise drops the oldest chunk. Returns `false` if nothing is
    /// left.
    fn free_memory(&mut self) -> bool {
        let arena = &self.arena;
        if self.by_id.shrink(|address| hash_id(arena.record(address).user_id()))
            || self.by_external_id.shrink(|address| self.key.hash_one(arena.record(address).external_id()))
        {
            return true;
        }
        let Some((mut address, chunk)) = self.arena.pop() else { return false };
        let mut rest = chunk.as_slice();
        while !rest.is_empty() {
            let record = Record(rest);
            // A replaced or removed record is in neither table, so these calls ignore it.
            self.by_id.remove(hash_id(record.user_id()), address);
            self.by_external_id.remove(self.key.hash_one(record.external_id()), address);
            address = address.wrapping_add(units(record.size()));
            rest = &rest[record.size()..];
        }
        true
    }
}

/// Hashes an internal id with the finalizer of `SplitMix64`.
///
/// PostgreSQL assigns internal ids, so their hash needs no key.
fn hash_id(user_id: u32) -> u64 {
    let hash = u64::from(user_id).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
