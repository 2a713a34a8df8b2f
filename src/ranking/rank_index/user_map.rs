//! User map of a rank index.

use std::{
    hash::{BuildHasherDefault, Hasher},
    iter,
    mem::size_of_val,
};

use hashbrown::HashMap;

/// Map from user id to block number.
///
/// It consists of shards, so that growth rehashes one small shard at a time and never stalls a
/// change for long.
#[derive(Debug)]
pub(super) struct UserMap {
    pub(super) shards: Vec<HashMap<u32, u32, BuildHasherDefault<IdHasher>>>,
    pub(super) len: usize,
}

impl UserMap {
    const SHARDS: u16 = 256;

    /// Creates a map with memory for the expected number of users.
    pub(super) fn new(expected: usize) -> Self {
        let mut shards: Vec<HashMap<_, _, _>> = (0..Self::SHARDS).map(|_| HashMap::default()).collect();
        if expected > 0 {
            let mut share_of = [0; Self::SHARDS as usize];
            (0..=u16::MAX).for_each(|hash| share_of[Self::shard(hash)] += 1);
            for (shard, share) in iter::zip(&mut shards, share_of) {
                shard.reserve(expected.saturating_mul(share) >> u16::BITS);
            }
        }
        Self { shards, len: 0 }
    }

    /// Creates a map of one shard, for at most some thousand users.
    pub(super) fn small(users: usize) -> Self {
        Self { shards: vec![HashMap::with_capacity_and_hasher(users, BuildHasherDefault::default())], len: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(HashMap::allocation_size).sum::<usize>() + size_of_val(&*self.shards)
    }

    /// Returns the shard for a hash.
    ///
    /// The shards' shares of all users range from 2/3 to 4/3 of the mean. So they grow at different
    /// times, and memory does not double at once.
    fn shard(hash: u16) -> usize {
        let (hash, one) = (u64::from(hash), 1 << u16::BITS);
        // With h from 0 to 1, the cumulative share is h (4 - h) / 3.
        ((hash * (4 * one - hash) * u64::from(Self::SHARDS) / 3) >> (2 * u16::BITS)) as usize
    }

    /// Returns the shard of a user, from a hash that differs from the one inside the shards.
    fn shard_of(&self, user_id: u32) -> usize {
        if self.shards.len() == 1 {
            return 0;
        }
        Self::shard((user_id.wrapping_mul(0x85EB_CA6B) >> u16::BITS) as u16)
    }

    pub(super) fn get(&self, user_id: u32) -> Option<u32> {
        self.shards[self.shard_of(user_id)].get(&user_id).copied()
    }

    pub(super) fn set(&mut self, user_id: u32, number: u32) {
        let shard = self.shard_of(user_id);
        if self.shards[shard].insert(user_id, number).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, user_id: u32) {
        let shard = self.shard_of(user_id);
        if self.shards[shard].remove(&user_id).is_some() {
            self.len -= 1;
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.shards.iter_mut().for_each(HashMap::shrink_to_fit);
    }
}

/// Multiplicative hasher for user ids. The service assigns them, so they need no defence against
/// collisions.
#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        let product = (self.0 ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The table uses the low bits, which the product alone mixes too little.
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
