//! In-memory order-statistic index over all rank keys of one ranking.
//!
//! The keys lie in blocks of up to 256 keys, sorted best first. [`BlockOrder`] lists the blocks in
//! rank order with their lengths. [`UserMap`] maps a user to a block, where a scan of the user ids
//! finds the key. A player takes about 39 to 43 bytes: 24 to 28 in the block and 15 in the map.
//!
//! With 10 million players the order has about 52,000 entries. Inserting or removing a block shifts
//! them, which takes about 30 microseconds. It happens once in hundreds of changes.

mod block;
pub(crate) mod key;
mod order;
#[cfg(test)]
mod tests;
mod user_map;

use std::{fmt, mem::size_of};

use crate::ranking::rank_index::{block::BlockStore, key::RankKey, order::BlockOrder, user_map::UserMap};

/// Standing of one player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPosition {
    pub key: RankKey,
    /// Position in the total order, from 1.
    pub position: u64,
    /// Number of players with a larger `rank_key`.
    pub better: u64,
    /// Number of players with the same or a larger `rank_key`, this player included.
    pub no_worse: u64,
}

/// Reasons why [`Builder::push`] rejects a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfOrder {
    /// The key is not below the key pushed before it.
    Key(RankKey),
    /// The user of this key has been pushed before.
    User(RankKey),
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "Key not below the previous one: user {}", key.user_id),
            Self::User(key) => write!(f, "Duplicate user: {}", key.user_id),
        }
    }
}

impl std::error::Error for OutOfOrder {}

/// Order-statistic index over the rank keys of one ranking, one key per user.
///
/// `BLOCK` is the capacity of a block, from 4 to 32,768. Tests use small blocks; everything else
/// uses the default.
#[derive(Debug)]
pub struct RankIndex<const BLOCK: usize = 256> {
    store: BlockStore<BLOCK>,
    order: BlockOrder,
    users: UserMap,
}

impl RankIndex {
    #[cfg(test)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a bulk load. `expected_players` sizes the user map in advance; it need not be exact.
    #[must_use]
    pub fn builder(expected_players: usize) -> Builder {
        Builder::new(expected_players)
    }

    /// Like [`Self::builder`], for an index that stays small: it is made and dropped faster.
    #[must_use]
    pub(crate) fn small_builder(players: usize) -> Builder {
        Builder { index: Self { users: UserMap::small(players), ..Self::default() }, last: None }
    }
}

impl<const BLOCK: usize> Default for RankIndex<BLOCK> {
    fn default() -> Self {
        const { assert!(BLOCK >= 4 && BLOCK <= 32_768) };
        Self { store: BlockStore::default(), order: BlockOrder::default(), users: UserMap::new(0) }
    }
}

impl<const BLOCK: usize> RankIndex<BLOCK> {
    /// A neighbour with at least this many free slots takes keys from a full block.
    const SHARE_FREE: usize = if BLOCK < 16 { 2 } else { BLOCK / 8 };
    /// A block that shrinks below this length looks for a neighbour to merge with.
    const MERGE_BELOW: usize = BLOCK / 2;
    /// Largest length of a merged block, and length of the blocks of a bulk load.
    const TARGET_FILL: usize = BLOCK * 3 / 4;

    /// Returns the number of players.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of blocks, user map and order, computed from their capacities.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.store.bytes() + self.order.bytes() + self.users.bytes()
    }

    /// Returns the key of a user, or `None` if the user is not in the ranking.
    #[must_use]
    pub fn key(&self, user_id: u32) -> Option<RankKey> {
        let block = self.store.get(self.users.get(user_id)?);
        Some(block.key(block.slot_of(user_id)?))
    }

    /// Inserts a player, or moves the player to this key. Does nothing if the key is the same.
    pub fn set(&mut self, key: RankKey) {
        let Some((ordinal, slot)) = self.locate(key.user_id) else {
            return self.insert(key);
        };
        let len = self.order.len_of(ordinal);
        let block = self.store.get_mut(self.order.numbers[ordinal]);
        if block.key(slot) == key {
            return;
        }
        if self.order.owns(ordinal, &key) {
            block.replace(len, slot, key);
            self.order.heads[ordinal] = block.key(0);
        } else {
            self.remove_at(ordinal, slot);
            self.insert(key);
        }
    }

    /// Removes a player. Returns `false` if the user is not in the ranking.
    pub fn remove(&mut self, user_id: u32) -> bool {
        let Some((ordinal, slot)) = self.locate(user_id) else {
            return false;
        };
        self.remove_at(ordinal, slot);
        self.users.remove(user_id);
        true
    }

    /// Returns the standing of a player, or `None` if the user is not in the ranking.
    #[must_use]
    pub fn position(&self, user_id: u32) -> Option<KeyPosition> {
        let (ordinal, slot) = self.locate(user_id)?;
        let block = self.store.get(self.order.numbers[ordinal]);
        let key = block.key(slot);
        let before = self.order.before(ordinal);
        let len = self.order.len_of(ordinal);

        // Only if a run of equal rank keys reaches the block's edge must other blocks be searched.
        let run = block.equal_run(len, slot);
        let better =
            if run.start > 0 || ordinal == 0 { (before + run.start) as u64 } else { self.count_better(key.rank_key) };
        let next = self.order.heads.get(ordinal + 1);
        let no_worse = if run.end == len && next.is_some_and(|next| next.rank_key == key.rank_key) {
            self.count_at_least(key.rank_key)
        } else {
            (before + run.end) as u64
        };
        Some(KeyPosition { key, position: (before + slot) as u64 + 1, better, no_worse })
    }

    /// Returns the number of players with a larger `rank_key`.
    #[must_use]
    pub fn count_better(&self, rank_key: i64) -> u64 {
        self.count(|other| other.rank_key > rank_key)
    }

    /// Returns the number of players with this `rank_key` or a larger one.
    #[must_use]
    pub fn count_at_least(&self, rank_key: i64) -> u64 {
        self.count(|other| other.rank_key >= rank_key)
    }

    /// Returns the number of larger keys. The key itself need not be in the ranking.
    #[must_use]
    pub fn count_above(&self, key: &RankKey) -> u64 {
        self.count(|other| other > key)
    }

    /// Returns the key at a position (from 1), or `None` if there are fewer players.
    #[must_use]
    pub fn key_at(&self, position: u64) -> Option<RankKey> {
        let (ordinal, slot) = self.locate_position(position)?;
        Some(self.store.get(self.order.numbers[ordinal]).key(slot))
    }

    /// Iterates over the keys from a position (from 1) on, best first.
    ///
    /// Position 0 means 1. The iterator is empty if there are fewer players.
    pub fn range(&self, from_position: u64) -> impl Iterator<Item = RankKey> + '_ {
        let (start, mut skip) = (self.locate_position(from_position.max(1))).unwrap_or((self.order.numbers.len(), 0));
        (start..self.order.numbers.len()).flat_map(move |ordinal| {
            let first = std::mem::take(&mut skip);
            let block = self.store.get(self.order.numbers[ordinal]);
            block.keys(first..self.order.len_of(ordinal))
        })
    }

    /// Counts the keys for which the predicate holds. It must hold exactly for the keys above some
    /// bound.
    fn count(&self, is_above: impl Fn(&RankKey) -> bool) -> u64 {
        let Some(ordinal) = self.order.heads.partition_point(&is_above).checked_sub(1) else {
            return 0;
        };
        let block = self.store.get(self.order.numbers[ordinal]);
        let slots = block.partition_point(self.order.len_of(ordinal), is_above);
        (self.order.before(ordinal) + slots) as u64
    }

    /// Finds the ordinal of a user's block, and the slot in it.
    fn locate(&self, user_id: u32) -> Option<(usize, usize)> {
        let number = self.users.get(user_id)?;
        let slot = self.store.get(number).slot_of(user_id)?;
        Some((self.order.ordinals[number as usize], slot))
    }

    /// Finds the ordinal of the block with a position (from 1), and the slot in it.
    fn locate_position(&self, position: u64) -> Option<(usize, usize)> {
        let index = usize::try_from(position.checked_sub(1)?).ok()?;
        if index < self.len() { Some(self.order.find_index(index)) } else { None }
    }

    /// Inserts a key that no block holds and maps its user to the block.
    fn insert(&mut self, key: RankKey) {
        if self.order.numbers.is_empty() {
            self.new_block(0, key);
        }
        let mut ordinal = self.order.find(&key);
        let len = self.order.len_of(ordinal);
        let block = self.store.get(self.order.numbers[ordinal]);
        let mut slot = block.partition_point(len, |other| *other > key);
        if len == BLOCK {
            (ordinal, slot) = self.free_slot(ordinal, slot, key);
        }
        self.insert_at(ordinal, slot, key);
    }

    /// Inserts a key into a block with a free slot, and maps its user to the block.
    fn insert_at(&mut self, ordinal: usize, slot: usize, key: RankKey) {
        let number = self.order.numbers[ordinal];
        self.store.get_mut(number).insert(self.order.len_of(ordinal), slot, &[key]);
        self.order.change_len(ordinal, 1);
        if slot == 0 {
            self.order.heads[ordinal] = key;
        }
        self.users.set(key.user_id, number);
    }

    /// Frees a slot in a full block. Returns the ordinal and slot for the key afterwards.
    fn free_slot(&mut self, ordinal: usize, slot: usize, key: RankKey) -> (usize, usize) {
        let free = |ordinal: Option<usize>| {
            ordinal.and_then(|ordinal| self.order.lens.get(ordinal)).map_or(0, |len| BLOCK - usize::from(*len))
        };
        let (left, right) = (free(ordinal.checked_sub(1)), free(Some(ordinal + 1)));

        // Keys that arrive in order fill blocks completely and move no other key.
        if slot == BLOCK {
            if right == 0 {
                self.new_block(ordinal + 1, key);
            }
            return (ordinal + 1, 0);
        }
        if slot == 0 {
            // Only the first block can receive a key above its head.
            self.new_block(ordinal, key);
            return (ordinal, 0);
        }

        if left.max(right) < Self::SHARE_FREE {
            self.new_block(ordinal + 1, key);
            self.move_keys(ordinal, ordinal + 1, BLOCK / 2);
        } else if right >= left {
            self.move_keys(ordinal, ordinal + 1, right / 2);
        } else {
            let moved = left / 2;
            self.move_keys(ordinal, ordinal - 1, moved);
            return match slot.checked_sub(moved) {
                Some(slot) => (ordinal, slot),
                None => (ordinal - 1, BLOCK - left + slot),
            };
        }
        match slot.checked_sub(self.order.len_of(ordinal)) {
            Some(slot) => (ordinal + 1, slot),
            None => (ordinal, slot),
        }
    }

    /// Removes the key at a slot. The caller updates the user map for this key.
    fn remove_at(&mut self, ordinal: usize, slot: usize) {
        let len = self.order.len_of(ordinal) - 1;
        let block = self.store.get_mut(self.order.numbers[ordinal]);
        block.remove(len + 1, slot..slot + 1);
        self.order.change_len(ordinal, -1);
        self.order.heads[ordinal] = block.key(0);
        if len == 0 {
            self.drop_block(ordinal);
        } else if len < Self::MERGE_BELOW {
            self.merge(ordinal, len);
        }
    }

    /// Merges a block with its shorter neighbour, if the result is not too full.
    fn merge(&mut self, ordinal: usize, len: usize) {
        let neighbour = [ordinal.checked_sub(1), Some(ordinal + 1)]
            .into_iter()
            .flatten()
            .filter_map(|ordinal| Some((*self.order.lens.get(ordinal)?, ordinal)))
            .min();
        let Some((neighbour_len, neighbour)) = neighbour else {
            return;
        };
        let neighbour_len = usize::from(neighbour_len);
        if len + neighbour_len > Self::TARGET_FILL {
            return;
        }
        if len < neighbour_len {
            self.move_keys(ordinal, neighbour, len);
            self.drop_block(ordinal);
        } else {
            self.move_keys(neighbour, ordinal, neighbour_len);
            self.drop_block(neighbour);
        }
    }

    /// Moves `count` keys of one block into an adjacent block, namely those nearest to it.
    fn move_keys(&mut self, from: usize, to: usize, count: usize) {
        let (from_len, to_len) = (self.order.len_of(from), self.order.len_of(to));
        let (slots, target) = if from < to { (from_len - count..from_len, 0) } else { (0..count, to_len) };
        let source = self.store.get_mut(self.order.numbers[from]);
        let keys: Vec<RankKey> = source.keys(slots.clone()).collect();
        source.remove(from_len, slots);
        self.order.heads[from] = source.key(0);

        let number = self.order.numbers[to];
        let block = self.store.get_mut(number);
        block.insert(to_len, target, &keys);
        self.order.heads[to] = block.key(0);
        self.order.change_len(from, -count.cast_signed());
        self.order.change_len(to, count.cast_signed());
        for key in keys {
            self.users.set(key.user_id, number);
        }
    }

    /// Adds an empty block to the order. The caller fills it before any search.
    fn new_block(&mut self, ordinal: usize, head: RankKey) {
        let number = self.store.allocate();
        self.order.insert(ordinal, number, head);
    }

    /// Takes an empty block out of the order and frees it.
    fn drop_block(&mut self, ordinal: usize) {
        let number = self.order.remove(ordinal);
        self.store.free.push(number);
    }
}

/// Bulk load of a [`RankIndex`] from keys in rank order. Blocks are filled to 75 %.
#[derive(Debug)]
pub struct Builder<const BLOCK: usize = 256> {
    index: RankIndex<BLOCK>,
    last: Option<RankKey>,
}

impl<const BLOCK: usize> Builder<BLOCK> {
    /// Starts a bulk load, as [`RankIndex::builder`].
    #[must_use]
    pub fn new(expected_players: usize) -> Self {
        let users = UserMap::new(expected_players);
        Self { index: RankIndex { users, ..RankIndex::default() }, last: None }
    }

    /// Appends the next key, best first.
    ///
    /// # Errors
    ///
    /// Rejects a key that is not below the previous one, and a user that was pushed before. The
    /// builder then stays as it was.
    pub fn push(&mut self, key: RankKey) -> Result<(), OutOfOrder> {
        if self.last.is_some_and(|last| last <= key) {
            return Err(OutOfOrder::Key(key));
        }
        if self.index.users.get(key.user_id).is_some() {
            return Err(OutOfOrder::User(key));
        }
        self.last = Some(key);
        let blocks = self.index.order.numbers.len();
        match blocks.checked_sub(1).map(|last| (last, self.index.order.len_of(last))) {
            Some((last, len)) if len < RankIndex::<BLOCK>::TARGET_FILL => {
                self.index.insert_at(last, len, key);
            }
            _ => {
                self.index.new_block(blocks, key);
                self.index.insert_at(blocks, 0, key);
            }
        }
        Ok(())
    }

    /// Returns the index. Releases memory that a too large `expected_players` has reserved.
    #[must_use]
    pub fn finish(mut self) -> RankIndex<BLOCK> {
        self.index.users.shrink_to_fit();
        self.index
    }
}
