//! Overwrites Centile's values in Redis.

use std::time::{Duration, Instant};

use centile::dev::local::LocalRedis;
use deadpool_redis::redis::{aio::MultiplexedConnection, cmd};
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{redis_connection, wait::until};

/// Overwrites the values that Centile stores.
pub struct Corrupter {
    redis: MultiplexedConnection,
    prefix: String,
    rng: StdRng,
    /// Earlier values, with their keys.
    old: Vec<(String, Vec<u8>)>,
    /// Number of overwritten values so far.
    pub corrupted: usize,
}

impl Corrupter {
    /// Creates a corrupter of the keys that begin with `prefix`.
    pub async fn new(redis: &LocalRedis, prefix: String) -> Self {
        let rng = StdRng::seed_from_u64(rand::random());
        Self { redis: redis_connection(&redis.url()).await, prefix, rng, old: Vec::new(), corrupted: 0 }
    }

    /// Overwrites everything again and again for a while.
    pub async fn corrupt_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.corrupt(true).await;
        }
    }

    /// Overwrites everything again and again, until this many more values are overwritten.
    pub async fn corrupt_more(&mut self, values: usize) {
        let wanted = self.corrupted + values;
        until("enough values are overwritten", async || {
            self.corrupt(true).await;
            self.corrupted >= wanted
        })
        .await;
    }

    /// Overwrites every value once with another key's value. With `in_every_way`, also uses
    /// garbage, other types and the key's own earlier values.
    pub async fn corrupt(&mut self, in_every_way: bool) {
        let pattern = format!("{}*", self.prefix);
        let keys: Vec<String> = cmd("KEYS").arg(pattern).query_async(&mut self.redis).await.expect("the keys");
        for key in &keys {
            let value = cmd("GET").arg(key).query_async::<Vec<u8>>(&mut self.redis).await.unwrap_or_default();
            self.old.push((key.clone(), value));
        }
        for key in keys {
            let way = if in_every_way { self.rng.random_range(0..5) } else { 0 };
            if way == 1 {
                cmd("DEL").arg(&key).exec_async(&mut self.redis).await.expect("a deletion");
                // Fails if the service has stored a value again.
                cmd("RPUSH").arg(&key).arg("a list").exec_async(&mut self.redis).await.ok();
            } else if let Some(value) = self.value(&key, way) {
                cmd("SET").arg(&key).arg(value).exec_async(&mut self.redis).await.expect("garbage in its place");
            }
            self.corrupted += 1;
        }
        self.old.retain(|(_, value)| !value.is_empty());
        let surplus = self.old.len().saturating_sub(200);
        self.old.drain(..surplus);
    }

    fn value(&mut self, key: &str, way: u32) -> Option<Vec<u8>> {
        let held: Vec<&Vec<u8>> = self.old.iter().filter(|(of, _)| of == key).map(|(_, value)| value).collect();
        match way {
            2 => {
                let mut garbage = vec![0; self.rng.random_range(1..300)];
                self.rng.fill_bytes(&mut garbage);
                Some(garbage)
            }
            // One bit is changed.
            3 => held.last().filter(|value| !value.is_empty()).map(|&value| {
                let mut value = value.clone();
                let place = self.rng.random_range(0..value.len());
                value[place] ^= 1 << self.rng.random_range(0..8);
                value
            }),
            4 => held.first().map(|&value| value.clone()),
            _ => {
                let others: Vec<_> = self.old.iter().filter(|(of, _)| of != key).collect();
                others.choose(&mut self.rng).map(|(_, value)| value.clone())
            }
        }
    }
}
