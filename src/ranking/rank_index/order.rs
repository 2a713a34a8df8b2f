//! Order of the blocks of a rank index.

use std::mem::size_of;

use crate::ranking::rank_index::key::RankKey;

/// Blocks in rank order, with their first keys and lengths.
#[derive(Debug, Default)]
pub(super) struct BlockOrder {
    /// Block number by ordinal (index in rank order).
    pub(super) numbers: Vec<u32>,
    /// First and best key of each block.
    pub(super) heads: Vec<RankKey>,
    /// Number of keys of each block.
    pub(super) lens: Vec<u16>,
    /// Number of keys before each group of `GROUP` ordinals.
    group_before: Vec<usize>,
    /// Ordinal by block number, the inverse of `numbers`.
    pub(super) ordinals: Vec<usize>,
}

impl BlockOrder {
    /// Balances the cost of a count, which sums half a group on average, against that of a change,
    /// which updates half of all groups.
    const GROUP: usize = 128;

    pub(super) fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<u32>()
            + self.heads.capacity() * size_of::<RankKey>()
            + self.lens.capacity() * size_of::<u16>()
            + (self.group_before.capacity() + self.ordinals.capacity()) * size_of::<usize>()
    }

    pub(super) fn len_of(&self, ordinal: usize) -> usize {
        usize::from(self.lens[ordinal])
    }

    /// Returns the number of keys in the blocks before this one.
    pub(super) fn before(&self, ordinal: usize) -> usize {
        let group = ordinal / Self::GROUP;
        self.group_before[group] + sum(&self.lens[group * Self::GROUP..ordinal])
    }

    /// Finds the block that holds the key, or would hold it.
    pub(super) fn find(&self, key: &RankKey) -> usize {
        self.heads.partition_point(|head| head >= key).saturating_sub(1)
    }

    /// Returns whether the key belongs in this block, judged by the heads alone.
    pub(super) fn owns(&self, ordinal: usize, key: &RankKey) -> bool {
        (ordinal == 0 || self.heads[ordinal] >= *key) && self.heads.get(ordinal + 1).is_none_or(|next| next < key)
    }

    /// Finds the block and the slot of the key with this index (from 0), which must exist.
    pub(super) fn find_index(&self, index: usize) -> (usize, usize) {
        let group = self.group_before.partition_point(|before| *before <= index) - 1;
        let (mut ordinal, mut slot) = (group * Self::GROUP, index - self.group_before[group]);
        while slot >= self.len_of(ordinal) {
            slot -= self.len_of(ordinal);
            ordinal += 1;
        }
        (ordinal, slot)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a block has at most 32,768 keys")]
    pub(super) fn change_len(&mut self, ordinal: usize, change: isize) {
        self.lens[ordinal] = self.len_of(ordinal).wrapping_add_signed(change) as u16;
        for before in &mut self.group_before[ordinal / Self::GROUP + 1..] {
            *before = before.wrapping_add_signed(change);
        }
    }

    pub(super) fn insert(&mut self, ordinal: usize, number: u32, head: RankKey) {
        self.numbers.insert(ordinal, number);
        self.heads.insert(ordinal, head);
        self.lens.insert(ordinal, 0);
        if number as usize == self.ordinals.len() {
            self.ordinals.push(ordinal);
        }
        self.renumber(ordinal);
    }

    /// Removes an empty block and returns its number.
    pub(super) fn remove(&mut self, ordinal: usize) -> u32 {
        let number = self.numbers.remove(ordinal);
        self.heads.remove(ordinal);
        self.lens.remove(ordinal);
        self.renumber(ordinal);
        number
    }

    /// Restores `ordinals` and `group_before` after a shift that began at an ordinal.
    fn renumber(&mut self, start: usize) {
        for (ordinal, number) in self.numbers.iter().enumerate().skip(start) {
            self.ordinals[*number as usize] = ordinal;
        }
        let first = start / Self::GROUP;
        let mut before = if first == 0 { 0 } else { self.before(first * Self::GROUP - 1) };
        if first > 0 {
            before += self.len_of(first * Self::GROUP - 1);
        }
        self.group_before.truncate(first);
        for group in self.lens[first * Self::GROUP..].chunks(Self::GROUP) {
            self.group_before.push(before);
            before += sum(group);
        }
    }
}

fn sum(lens: &[u16]) -> usize {
    lens.iter().map(|len| u32::from(*len)).sum::<u32>() as usize
}
