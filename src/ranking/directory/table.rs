//! The hash tables of the directory.

use hashbrown::HashTable;

/// Shards of each table, a power of two. Growth rehashes one shard at a time: at most 14,336
/// addresses at 15 M users.
pub(super) const SHARDS: usize = if cfg!(test) { 4 } else { 1024 };

/// A hash table of record addresses, in shards that grow one by one.
#[derive(Debug)]
pub(super) struct AddressTable {
    pub(super) shards: Box<[HashTable<u32>]>,
    pub(super) bytes: usize,
}

impl AddressTable {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| HashTable::new()).collect(), bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(HashTable::len).sum()
    }

    pub(super) fn find(&self, hash: u64, is_match: impl Fn(u32) -> bool) -> Option<u32> {
        self.shards[shard(hash)].find(hash, |&address| is_match(address)).copied()
    }

    /// Returns the bytes by which one more address with this hash makes the table grow.
    pub(super) fn growth(&self, hash: u64) -> usize {
        let shard = &self.shards[shard(hash)];
        capacity_for_one_more(shard).map_or(0, |capacity| growth_to(shard, capacity))
    }

    /// Adds an address that the table does not hold.
    pub(super) fn insert(&mut self, hash: u64, address: u32, hash_of: impl Fn(u32) -> u64) {
        let index = shard(hash);
        if let Some(capacity) = capacity_for_one_more(&self.shards[index]) {
            self.resize(index, capacity, &hash_of);
        }
        self.shards[index].insert_unique(hash, address, |&address| hash_of(address));
    }

    pub(super) fn remove(&mut self, hash: u64, address: u32) {
        if let Ok(entry) = self.shards[shard(hash)].find_entry(hash, |&other| other == address) {
            entry.remove();
        }
    }

    /// Shrinks one shard that is less than a quarter full. Returns whether it found one.
    pub(super) fn shrink(&mut self, hash_of: impl Fn(u32) -> u64) -> bool {
        let before = self.bytes;
        let sparse = |shard: &HashTable<u32>| shard.allocation_size() > 0 && shard.len() * 4 < shard.num_buckets();
        for index in 0..SHARDS {
            if sparse(&self.shards[index]) {
                self.resize(index, self.shards[index].len() * 3 / 2, &hash_of);
                if self.bytes < before {
                    return true;
                }
            }
        }
        false
    }

    /// Grows one shard for its part of this many addresses, unless that takes more than `free`
    /// bytes.
    pub(super) fn reserve_shard(
        &mut self,
        index: usize,
        addresses: usize,
        free: &mut usize,
        hash_of: impl Fn(u32) -> u64,
    ) {
        // Shards differ in size by chance. At 15 M users 1/16 is seven standard deviations.
        let capacity = addresses.div_ceil(SHARDS) * 17 / 16;
        let shard = &self.shards[index];
        let growth = growth_to(shard, capacity);
        if shard.capacity() < capacity && growth <= *free {
            *free -= growth;
            self.resize(index, capacity, &hash_of);
        }
    }

    fn resize(&mut self, index: usize, capacity: usize, hash_of: impl Fn(u32) -> u64) {
        // A separate pass over the records lets the CPU overlap their cache misses.
        let hashes: Vec<u64> = self.shards[index].iter().map(|&address| hash_of(address)).collect();
        let mut shard = HashTable::with_capacity(capacity);
        for (&address, hash) in self.shards[index].iter().zip(hashes) {
            shard.insert_unique(hash, address, |&address| hash_of(address));
        }
        self.bytes = self.bytes - self.shards[index].allocation_size() + shard.allocation_size();
        self.shards[index] = shard;
    }
}

/// Chooses a shard by bits that hashbrown uses neither for the bucket nor for the tag.
fn shard(hash: u64) -> usize {
    let [.., low, high, _] = hash.to_le_bytes();
    usize::from(u16::from_le_bytes([low, high])) % SHARDS
}

/// Returns the capacity that a shard without a free slot needs for one more address.
///
/// Removed addresses leave tombstones that occupy slots. A shard with many of them is rebuilt at
/// its size, because hashbrown would double it.
fn capacity_for_one_more(shard: &HashTable<u32>) -> Option<usize> {
    if shard.capacity() > shard.len() {
        return None;
    }
    let usable = usable_buckets(shard.num_buckets());
    let tombstones = usable.saturating_sub(shard.len());
    Some(if tombstones > usable / 8 { usable } else { usable_buckets(shard.num_buckets() * 2) })
}

/// Returns how many of a shard's buckets hashbrown fills: all but one of up to 8, otherwise 7 of 8.
fn usable_buckets(buckets: usize) -> usize {
    if buckets <= 8 { buckets - 1 } else { buckets / 8 * 7 }
}

/// Returns the bytes by which a shard grows to this capacity: 5 bytes per bucket, and 16 bytes in
/// all.
fn growth_to(shard: &HashTable<u32>, capacity: usize) -> usize {
    let mut buckets = 4;
    while usable_buckets(buckets) < capacity {
        buckets *= 2;
    }
    (buckets * 5 + 16).saturating_sub(shard.allocation_size())
}
