//! Blocks of a rank index and their memory.

use std::{iter, mem::size_of, ops::Range};

use crate::ranking::rank_index::key::RankKey;

/// Keys sorted best first, one array per field. `BlockOrder` holds the length.
#[derive(Debug, Clone)]
pub(super) struct Block<const BLOCK: usize> {
    pub(super) rank_keys: [i64; BLOCK],
    tie_keys: [i64; BLOCK],
    user_ids: [u32; BLOCK],
}

impl<const BLOCK: usize> Block<BLOCK> {
    const EMPTY: Self = Self { rank_keys: [0; BLOCK], tie_keys: [0; BLOCK], user_ids: [0; BLOCK] };

    pub(super) fn key(&self, slot: usize) -> RankKey {
        RankKey { rank_key: self.rank_keys[slot], tie_key: self.tie_keys[slot], user_id: self.user_ids[slot] }
    }

    pub(super) fn keys(&self, slots: Range<usize>) -> impl Iterator<Item = RankKey> + '_ {
        let rank_keys = self.rank_keys[slots.clone()].iter();
        let tie_keys = self.tie_keys[slots.clone()].iter();
        iter::zip(iter::zip(rank_keys, tie_keys), &self.user_ids[slots]).map(|((rank_key, tie_key), user_id)| RankKey {
            rank_key: *rank_key,
            tie_key: *tie_key,
            user_id: *user_id,
        })
    }

    /// Finds the slot of a user that the block is known to hold.
    ///
    /// The scan may run past the block's length. Stale ids there come after the valid one.
    pub(super) fn slot_of(&self, user_id: u32) -> Option<usize> {
        let (chunks, rest) = self.user_ids.as_chunks::<32>();
        for (start, chunk) in iter::zip((0..).step_by(32), chunks) {
            // Without an early exit the compiler vectorizes the loop.
            if chunk.iter().filter(|other| **other == user_id).count() > 0 {
                return Some(start + chunk.iter().position(|other| *other == user_id)?);
            }
        }
        let slot = rest.iter().position(|other| *other == user_id)?;
        Some(BLOCK - rest.len() + slot)
    }

    /// Returns the number of keys among the first `len` for which the predicate holds.
    pub(super) fn partition_point(&self, len: usize, is_above: impl Fn(&RankKey) -> bool) -> usize {
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low.midpoint(high);
            if is_above(&self.key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Finds the slots with the same rank key as a slot. Searches outwards, because most runs are
    /// short.
    pub(super) fn equal_run(&self, len: usize, slot: usize) -> Range<usize> {
        let rank_keys = &self.rank_keys[..len];
        let rank_key = rank_keys[slot];
        let (mut below, mut above) = (1, 1);
        while below <= slot && rank_keys[slot - below] == rank_key {
            below *= 2;
        }
        while slot + above < len && rank_keys[slot + above] == rank_key {
            above *= 2;
        }
        let (low, high) = (slot.saturating_sub(below), len.min(slot + above));
        let start = low + rank_keys[low..slot].partition_point(|other| *other > rank_key);
        start..slot + rank_keys[slot..high].partition_point(|other| *other == rank_key)
    }

    fn put(&mut self, slot: usize, key: RankKey) {
        self.rank_keys[slot] = key.rank_key;
        self.tie_keys[slot] = key.tie_key;
        self.user_ids[slot] = key.user_id;
    }

    fn shift(&mut self, slots: Range<usize>, to: usize) {
        self.rank_keys.copy_within(slots.clone(), to);
        self.tie_keys.copy_within(slots.clone(), to);
        self.user_ids.copy_within(slots, to);
    }

    pub(super) fn insert(&mut self, len: usize, slot: usize, keys: &[RankKey]) {
        self.shift(slot..len, slot + keys.len());
        for (slot, key) in iter::zip(slot.., keys) {
            self.put(slot, *key);
        }
    }

    pub(super) fn remove(&mut self, len: usize, slots: Range<usize>) {
        self.shift(slots.end..len, slots.start);
    }

    /// Replaces the key at a slot and moves it to its place in the order.
    pub(super) fn replace(&mut self, len: usize, slot: usize, key: RankKey) {
        let target = self.partition_point(len, |other| *other > key);
        if target <= slot {
            self.shift(target..slot, target + 1);
            self.put(target, key);
        } else {
            self.shift(slot + 1..target, slot);
            self.put(target - 1, key);
        }
    }
}

/// Owner of all blocks. A block keeps its number and address until it is freed.
#[derive(Debug, Default)]
pub(super) struct BlockStore<const BLOCK: usize> {
    /// All slabs but the last hold `SLAB` blocks.
    slabs: Vec<Vec<Block<BLOCK>>>,
    pub(super) free: Vec<u32>,
    /// Number of blocks in the slabs.
    pub(super) allocated: u32,
}

impl<const BLOCK: usize> BlockStore<BLOCK> {
    /// Blocks per slab. Large slabs return to the operating system when an index is dropped.
    const SLAB: usize = 64;

    pub(super) fn bytes(&self) -> usize {
        self.slabs.iter().map(|slab| slab.capacity() * size_of::<Block<BLOCK>>()).sum::<usize>()
            + self.slabs.capacity() * size_of::<Vec<Block<BLOCK>>>()
            + self.free.capacity() * size_of::<u32>()
    }

    pub(super) fn get(&self, number: u32) -> &Block<BLOCK> {
        &self.slabs[number as usize / Self::SLAB][number as usize % Self::SLAB]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Block<BLOCK> {
        &mut self.slabs[number as usize / Self::SLAB][number as usize % Self::SLAB]
    }

    /// Returns the number of an unused block with arbitrary contents.
    pub(super) fn allocate(&mut self) -> u32 {
        if let Some(number) = self.free.pop() {
            return number;
        }
        let number = self.allocated;
        self.allocated += 1;
        let slab = number as usize / Self::SLAB;
        if slab == self.slabs.len() {
            // The first slab grows with its blocks, so that a small ranking stays small.
            self.slabs.push(Vec::with_capacity(if slab == 0 { 1 } else { Self::SLAB }));
        }
        self.slabs[slab].push(Block::EMPTY);
        number
    }
}
