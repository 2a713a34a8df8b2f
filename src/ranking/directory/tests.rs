//! Compares the directory with hash maps that forget nothing.
#![allow(clippy::unwrap_used, reason = "a failed test stops right there")]

use std::collections::HashMap;

use hashbrown::HashTable;
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

use crate::ranking::directory::*;

/// A profile with owned texts.
#[derive(Clone, Debug)]
struct User {
    external_id: String,
    name: String,
    avatar: Option<String>,
    /// Order of puts; larger is newer.
    put: u64,
}

impl User {
    fn profile(&self, user_id: u32) -> ProfileRef<'_> {
        ProfileRef { user_id, external_id: &self.external_id, name: &self.name, avatar: self.avatar.as_deref() }
    }
}

/// The directory under test, and the last profile of every user.
struct Model {
    directory: Directory,
    users: HashMap<u32, User>,
    holders: HashMap<String, u32>,
    puts: u64,
    /// Newest put that the directory dropped to free memory. Every older put is dropped too.
    dropped: u64,
    /// Number of checks that found newly dropped users.
    drops: u32,
}

impl Model {
    fn new(max_bytes: usize, first: u32) -> Self {
        let mut directory = Directory::new(max_bytes);
        directory.arena.first = first;
        Self { directory, users: HashMap::new(), holders: HashMap::new(), puts: 0, dropped: 0, drops: 0 }
    }

    fn put(&mut self, user_id: u32, mut user: User) {
        let unchanged = self.directory.profile(user_id) == Some(user.profile(user_id));
        self.directory.put(user.profile(user_id));
        self.puts += u64::from(!unchanged);
        user.put = if unchanged { self.users[&user_id].put } else { self.puts };
        self.forget(user_id);
        if let Some(&holder) = self.holders.get(&user.external_id) {
            self.forget(holder);
        }
        let valid = |text: &str| (1..=128).contains(&text.len());
        if valid(&user.external_id)
            && valid(&user.name)
            && user.avatar.as_ref().is_none_or(|avatar| avatar.len() <= 1024)
        {
            self.holders.insert(user.external_id.clone(), user_id);
            self.users.insert(user_id, user);
        }
    }

    fn remove(&mut self, user_id: u32) {
        self.directory.remove(user_id);
        self.forget(user_id);
    }

    fn clear(&mut self) {
        self.directory.clear();
        self.users.clear();
        self.holders.clear();
    }

    fn forget(&mut self, user_id: u32) {
        if let Some(user) = self.users.remove(&user_id) {
            self.holders.remove(&user.external_id);
        }
    }

    /// Checks every answer. `may_drop`: whether the last operation may have needed memory.
    fn check(&mut self, user_ids: u32, external_ids: &[String], may_drop: bool, context: &str) {
        let mut held = 0;
        let mut dropped = self.dropped;
        let mut oldest = u64::MAX;
        for user_id in 0..user_ids {
            let answer = self.directory.profile(user_id);
            let user = self.users.get(&user_id);
            if answer.is_some() {
                assert_eq!(answer, user.map(|user| user.profile(user_id)), "profile {user_id}, {context}");
                held += 1;
                oldest = oldest.min(user.map_or(0, |user| user.put));
            } else if let Some(user) = user {
                dropped = dropped.max(user.put);
            }
        }
        assert!(dropped < oldest, "put {dropped} is dropped, the older put {oldest} is not, {context}");
        assert_eq!(self.directory.len(), held, "{context}");
        assert_eq!(self.directory.is_empty(), held == 0, "{context}");
        for external_id in external_ids {
            let holder = self.holders.get(external_id).copied();
            let expected = holder.filter(|&user_id| self.directory.profile(user_id).is_some());
            assert_eq!(self.directory.user_id(external_id), expected, "external id {external_id}, {context}");
        }
        let directory = &self.directory;
        let tables = [&directory.by_id, &directory.by_external_id];
        let shards = || tables.iter().flat_map(|table| table.shards.iter()).map(HashTable::allocation_size);
        let chunks = directory.arena.chunks.iter().map(Vec::capacity).sum::<usize>();
        let bytes = chunks + shards().sum::<usize>();
        assert_eq!(directory.bytes(), bytes, "{context}");
        assert!(bytes <= directory.max_bytes(), "{bytes} of {} bytes, {context}", directory.max_bytes());
        if dropped > self.dropped {
            // The last step may free one chunk or shard too much. The memory was for a chunk and
            // two larger shards.
            let slack = 2 * CHUNK_BYTES + 3 * shards().max().unwrap_or(0) + 72;
            assert!(may_drop, "dropped for no reason, {context}");
            assert!(bytes + slack > directory.max_bytes(), "dropped at {bytes} bytes, {context}");
            self.dropped = dropped;
            self.drops += 1;
        }
    }
}

/// A text of up to `max_bytes` bytes, often with characters of several bytes.
fn text(rng: &mut SmallRng, max_bytes: usize) -> String {
    let mut text = String::new();
    for _ in 0..rng.random_range(1..=max_bytes) {
        let next = *['a', 'Z', '7', 'é', '字', '🏆'].choose(rng).unwrap();
        if text.len() + next.len_utf8() <= max_bytes {
            text.push(next);
        }
    }
    text
}

fn random_user(rng: &mut SmallRng, external_ids: &[String]) -> User {
    let name_bytes = if rng.random_bool(0.1) { 128 } else { 20 };
    let mut user = User {
        external_id: external_ids.choose(rng).unwrap().clone(),
        name: text(rng, name_bytes),
        avatar: match rng.random_range(0..20) {
            0 => Some(String::new()),
            1 => Some(text(rng, 1024)),
            2 => Some("x".repeat(1024)),
            3..7 => Some(text(rng, 40)),
            _ => None,
        },
        put: 0,
    };
    match rng.random_range(0..100) {
        0 => user.external_id = String::new(),
        1 => user.external_id = "e".repeat(129),
        2 => user.name = String::new(),
        3 => user.name = "n".repeat(129),
        4 => user.avatar = Some("a".repeat(1025)),
        _ => {}
    }
    user
}

fn random_bound(rng: &mut SmallRng) -> usize {
    match rng.random_range(0..10) {
        0 => 0,
        1 => rng.random_range(0..CHUNK_BYTES * 2),
        2..4 => usize::MAX,
        _ => rng.random_range(CHUNK_BYTES..CHUNK_BYTES * 40),
    }
}

/// Runs random operations. Returns how many of them dropped users to free memory.
fn run(seed: u64, operations: u32) -> u32 {
    let rng = &mut SmallRng::seed_from_u64(seed);
    let user_ids = *[3, 30, 300].choose(rng).unwrap();
    let mut external_ids: Vec<String> = (0..user_ids * 4 / 3).map(|n| format!("{n}-{}", text(rng, 20))).collect();
    external_ids.push("x".repeat(128));
    // Half of the runs start where addresses soon wrap around.
    let first = if rng.random_bool(0.5) { 0 } else { 0_u32.wrapping_sub(units(rng.random_range(1..9) * CHUNK_BYTES)) };
    let mut model = Model::new(random_bound(rng), first);
    for operation in 0..operations {
        let user_id = rng.random_range(0..user_ids);
        let mut may_drop = false;
        let name = match rng.random_range(0..1000) {
            0..50 if model.users.contains_key(&user_id) => {
                may_drop = true;
                model.put(user_id, model.users[&user_id].clone());
                "put unchanged"
            }
            50..130 => {
                model.remove(user_id);
                "remove"
            }
            130..145 => {
                may_drop = true;
                model.directory.set_max_bytes(random_bound(rng));
                "set_max_bytes"
            }
            145..148 => {
                model.clear();
                "clear"
            }
            148..155 => {
                reserve(&mut model.directory, rng.random_range(0..1000));
                "reserve"
            }
            _ => {
                may_drop = true;
                model.put(user_id, random_user(rng, &external_ids));
                "put"
            }
        };
        let context = format!("seed {seed}, operation {operation}: {name} {user_id}");
        model.check(user_ids, &external_ids, may_drop, &context);
    }
    model.drops
}

/// Set `DIRECTORY_SEED` to the printed seed to repeat a failure.
#[test]
fn random_operations_agree_with_hash_maps() {
    let seed: u64 = std::env::var("DIRECTORY_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    eprintln!("DIRECTORY_SEED={seed}");
    let drops: u32 = (0..24).map(|run_number| run(seed ^ run_number, 1500)).sum();
    assert!(drops > 100, "only {drops} drops: the test covers too little");
}

/// Puts a user with texts of 12 bytes.
fn put_numbered(directory: &mut Directory, user_id: u32) {
    let (external_id, name) = (format!("u{user_id:011}"), format!("n{user_id:011}"));
    directory.put(ProfileRef { user_id, external_id: &external_id, name: &name, avatar: None });
}

#[test]
fn a_user_with_short_texts_takes_at_most_60_bytes() {
    let mut directory = Directory::new(usize::MAX);
    for user_id in 0..200_000 {
        put_numbered(&mut directory, user_id);
        let users = directory.len();
        assert!(users < 20_000 || directory.bytes() <= users * 60, "{} bytes, {users} users", directory.bytes());
    }
    assert_eq!(directory.len(), 200_000);
}

#[test]
fn texts_at_their_limits_are_kept_and_longer_ones_forget_the_user() {
    let (text, avatar) = ("é".repeat(64), "x".repeat(1024));
    let longest = ProfileRef { user_id: u32::MAX, external_id: &text, name: &text, avatar: Some(&avatar) };
    let (long_text, long_avatar) = ("x".repeat(129), "x".repeat(1025));
    for too_long in [
        ProfileRef { external_id: &long_text, ..longest },
        ProfileRef { external_id: "", ..longest },
        ProfileRef { name: &long_text, ..longest },
        ProfileRef { name: "", ..longest },
        ProfileRef { avatar: Some(&long_avatar), ..longest },
    ] {
        let mut directory = Directory::new(usize::MAX);
        directory.put(longest);
        assert_eq!(directory.profile(u32::MAX), Some(longest));
        assert_eq!(directory.user_id(&text), Some(u32::MAX));
        directory.put(too_long);
        assert_eq!(directory.profile(u32::MAX), None);
        assert_eq!(directory.user_id(&text), None);
    }
}

#[test]
fn an_empty_avatar_differs_from_none() {
    let mut directory = Directory::new(usize::MAX);
    for avatar in [None, Some(""), None] {
        let profile = ProfileRef { user_id: 1, external_id: "e", name: "n", avatar };
        directory.put(profile);
        assert_eq!(directory.profile(1), Some(profile));
    }
}

#[test]
fn a_bound_of_zero_keeps_nothing_and_frees_everything() {
    let mut directory = Directory::new(usize::MAX);
    reserve(&mut directory, 1000);
    for user_id in 0..1000 {
        put_numbered(&mut directory, user_id);
    }
    directory.set_max_bytes(0);
    put_numbered(&mut directory, 1);
    assert_eq!((directory.len(), directory.bytes(), directory.max_bytes()), (0, 0, 0));
}

#[test]
fn a_steady_flow_of_new_users_keeps_the_directory_full() {
    let mut directory = Directory::new(1 << 20);
    let mut user_id = 0;
    while directory.len() == user_id as usize {
        put_numbered(&mut directory, user_id);
        user_id += 1;
    }
    let users = directory.len();
    for user_id in user_id..user_id * 20 {
        put_numbered(&mut directory, user_id);
        // Tombstones must not double the tables: these would displace a third of the users.
        assert!(directory.len() > users * 9 / 10, "{} of {users} users after user {user_id}", directory.len());
    }
}

#[test]
fn reserved_tables_do_not_grow_during_a_load() {
    let mut directory = Directory::new(usize::MAX);
    reserve(&mut directory, 50_000);
    let reserved = directory.bytes();
    for user_id in 0..50_000 {
        put_numbered(&mut directory, user_id);
    }
    assert_eq!(directory.bytes(), reserved + directory.arena.chunks.len() * CHUNK_BYTES);
    assert_eq!(directory.len(), 50_000);
}

#[test]
fn a_reservation_stays_within_the_bound_and_drops_nothing() {
    let mut directory = Directory::new(100_000);
    for user_id in 0..1000 {
        put_numbered(&mut directory, user_id);
    }
    reserve(&mut directory, usize::MAX);
    assert_eq!(directory.len(), 1000);
    assert!(directory.bytes() <= 100_000);
}

#[test]
fn addresses_wrap_around() {
    let mut directory = Directory::new(CHUNK_BYTES * 8);
    directory.arena.first = 0_u32.wrapping_sub(units(CHUNK_BYTES * 3));
    for user_id in 0..5000 {
        put_numbered(&mut directory, user_id);
        assert!(directory.profile(user_id).is_some_and(|profile| profile.user_id == user_id));
    }
    assert!(directory.arena.first < units(CHUNK_BYTES * 5000));
}

/// Reserves memory for this many more users.
fn reserve(directory: &mut Directory, more: usize) {
    let users = directory.capacity_for(more);
    (0..Directory::SHARDS).for_each(|shard| directory.reserve_shard(shard, users));
}
