//! Compares the rank index with a sorted list, and checks its fill under typical loads.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::ranking::rank_index::{Builder, OutOfOrder, RankIndex, key::RankKey};

impl<const BLOCK: usize> RankIndex<BLOCK> {
    /// Panics unless blocks, order and user map agree.
    fn check(&self) {
        let order = &self.order;
        let blocks = order.numbers.len();
        assert_eq!((order.heads.len(), order.lens.len()), (blocks, blocks));
        assert_eq!(order.ordinals.len(), blocks + self.store.free.len());
        assert_eq!(order.ordinals.len(), self.store.allocated as usize);
        assert_eq!(self.users.len, self.users.shards.iter().map(hashbrown::HashMap::len).sum::<usize>());

        let (mut before, mut last) = (0, None);
        for (ordinal, number) in order.numbers.iter().enumerate() {
            let len = order.len_of(ordinal);
            assert!((1..=BLOCK).contains(&len), "block of {len} keys");
            assert_eq!(order.ordinals[*number as usize], ordinal);
            assert_eq!(order.before(ordinal), before, "keys before block {ordinal}");
            assert_eq!(order.heads[ordinal], self.store.get(*number).key(0));
            for key in self.store.get(*number).keys(0..len) {
                assert!(last.is_none_or(|last| last > key), "{key:?} after {last:?}");
                assert_eq!(self.users.get(key.user_id), Some(*number), "block of {key:?}");
                last = Some(key);
            }
            before += len;
        }
        assert_eq!(before, self.len());
    }

    /// Panics unless every read agrees with the list, which is sorted best first.
    fn check_reads(&self, list: &[RankKey]) {
        assert!(self.range(0).eq(list.iter().copied()));
        assert_eq!((self.len(), self.is_empty()), (list.len(), list.is_empty()));
        assert_eq!((self.key_at(0), self.key_at(list.len() as u64 + 1)), (None, None));
        let count = |is_above: &dyn Fn(&RankKey) -> bool| list.iter().filter(|key| is_above(key)).count() as u64;
        for (position, key) in (1..).zip(list) {
            assert_eq!(self.key_at(position), Some(*key));
            assert_eq!(self.key(key.user_id), Some(*key));
            let place = self.position(key.user_id).unwrap();
            assert_eq!((place.key, place.position), (*key, position));
            assert_eq!(place.better, count(&|other| other.rank_key > key.rank_key), "{place:?}");
            assert_eq!(place.no_worse, count(&|other| other.rank_key >= key.rank_key), "{place:?}");
            assert_eq!(self.count_above(key), position - 1);
            let absent = RankKey { tie_key: key.tie_key - 1, ..*key };
            assert_eq!(self.count_above(&absent), count(&|other| *other > absent));
        }
        for rank_key in -2..12 {
            assert_eq!(self.count_better(rank_key), count(&|other| other.rank_key > rank_key));
            assert_eq!(self.count_at_least(rank_key), count(&|other| other.rank_key >= rank_key));
        }
        for from in [1, 2, list.len() / 2 + 1, list.len() + 1] {
            assert!(self.range(from as u64).eq(list[from.saturating_sub(1).min(list.len())..].iter().copied()));
        }
    }
}

/// Sets and removes random players with few distinct keys; grows, shrinks and grows again.
fn compare_with_sorted_list<const BLOCK: usize>(players: u32, steps: u32) {
    let seed: u64 = rand::random();
    println!("block {BLOCK}, seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut index = RankIndex::<BLOCK>::default();
    let mut list: Vec<RankKey> = Vec::new();
    for step in 0..steps {
        let user_id = rng.random_range(0..players);
        let removals = if step / 1_000 % 2 == 0 { 0.2 } else { 0.7 };
        let old = list.iter().position(|key| key.user_id == user_id).map(|slot| list.remove(slot));
        if rng.random_bool(removals) {
            assert_eq!(index.remove(user_id), old.is_some());
            assert_eq!((index.key(user_id), index.position(user_id)), (None, None));
        } else {
            let rank_key = if step % 3 == 0 { 5 } else { rng.random_range(0..10) };
            let key = RankKey { rank_key, tie_key: rng.random_range(0..3), user_id };
            index.set(key);
            list.insert(list.partition_point(|other| *other > key), key);
        }
        index.check();
        if step % 50 == 0 {
            index.check_reads(&list);
        }
    }
    for key in list {
        assert!(index.remove(key.user_id));
        index.check();
    }
    assert!(index.is_empty());
    assert_eq!(index.range(1).next(), None);
}

#[test]
fn small_blocks_agree_with_a_sorted_list() {
    compare_with_sorted_list::<4>(300, 2_000);
    compare_with_sorted_list::<8>(400, 2_000);
    compare_with_sorted_list::<16>(400, 2_000);
    compare_with_sorted_list::<40>(400, 2_000);
}

#[test]
fn many_groups_of_blocks_agree_with_a_sorted_list() {
    compare_with_sorted_list::<4>(2_500, 2_000);
}

#[test]
fn order_is_rank_key_then_tie_key_then_lower_user() {
    let key = |rank_key, tie_key, user_id| RankKey { rank_key, tie_key, user_id };
    let best_first = [key(2, 0, 9), key(1, 5, 3), key(1, 5, 4), key(1, 4, 1), key(-1, 9, 0)];
    assert!(best_first.is_sorted_by(|better, worse| better > worse));
}

#[test]
fn builder_loads_in_order_and_rejects_the_rest() {
    let keys: Vec<RankKey> =
        (0..5_000).map(|user_id| RankKey { rank_key: i64::from(user_id) / -700, tie_key: 0, user_id }).collect();
    let mut builder = RankIndex::builder(10);
    for key in &keys {
        builder.push(*key).unwrap();
        assert_eq!(builder.push(*key), Err(OutOfOrder::Key(*key)));
    }
    let again = RankKey { rank_key: -100, ..keys[17] };
    assert_eq!(builder.push(again), Err(OutOfOrder::User(again)));
    let index = builder.finish();
    index.check();
    assert!(index.range(1).eq(keys.iter().copied()));
    assert_eq!(index.order.numbers.len(), 5_000_usize.div_ceil(192));
    assert_eq!(index.position(699).unwrap().no_worse, 700);

    let mut builder = Builder::<8>::new(5_000);
    keys.iter().take(200).for_each(|key| builder.push(*key).unwrap());
    let index = builder.finish();
    index.check();
    index.check_reads(&keys[..200]);
    assert_eq!(RankIndex::builder(1_000_000).finish().bytes(), RankIndex::new().bytes());
}

fn fill(index: &RankIndex) -> f64 {
    index.check();
    index.len() as f64 / (index.order.numbers.len() * 256) as f64
}

fn random_index(players: u32, rng: &mut StdRng) -> RankIndex {
    let mut index = RankIndex::new();
    let mut user_ids: Vec<u32> = (0..players).collect();
    user_ids.shuffle(rng);
    for user_id in user_ids {
        index.set(RankKey { rank_key: rng.random_range(0..1_000_000), tie_key: 0, user_id });
    }
    index
}

#[test]
fn blocks_stay_full_under_typical_loads() {
    let mut rng = StdRng::seed_from_u64(7);
    let mut index = random_index(100_000, &mut rng);
    println!("random inserts: {:.3}", fill(&index));
    assert!(fill(&index) > 0.75);
    assert!(index.bytes() < 100_000 * 50);

    for _ in 0..100_000 {
        let user_id = rng.random_range(0..100_000);
        index.set(RankKey { rank_key: rng.random_range(0..1_000_000), tie_key: 0, user_id });
    }
    println!("random moves: {:.3}", fill(&index));
    assert!(fill(&index) > 0.66);

    for _ in 0..100_000 {
        let mut key = index.key(rng.random_range(0..100_000)).unwrap();
        key.rank_key += rng.random_range(1..50_000);
        index.set(key);
    }
    println!("ascending moves: {:.3}", fill(&index));
    assert!(fill(&index) > 0.66);

    let newcomers = |score: i64| {
        let mut index = random_index(20_000, &mut StdRng::seed_from_u64(8));
        for user_id in 20_000..120_000 {
            index.set(RankKey { rank_key: score, tie_key: -i64::from(user_id), user_id });
        }
        fill(&index)
    };
    for score in [-1, 500_000, 1_000_000] {
        let fill = newcomers(score);
        println!("newcomers with score {score}: {fill:.3}");
        assert!(fill > 0.9);
    }
}

#[test]
fn keys_in_order_fill_blocks_and_removals_free_them() {
    let mut index = RankIndex::new();
    for user_id in 0..51_200 {
        index.set(RankKey { rank_key: -i64::from(user_id), tie_key: 0, user_id });
    }
    assert_eq!(index.order.numbers.len(), 200);

    let mut user_ids: Vec<u32> = (0..51_200).collect();
    user_ids.shuffle(&mut StdRng::seed_from_u64(9));
    for user_id in &user_ids[1_024..] {
        index.remove(*user_id);
    }
    assert!(fill(&index) > 0.4);
    assert!(index.store.free.len() > 180);
}
