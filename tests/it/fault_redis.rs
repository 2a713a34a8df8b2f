//! Redis emptied, frozen, killed and filled with garbage in the middle of a load: no answer is wrong and none fails.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use centile::local::LocalRedis;
use deadpool_redis::redis::{Client, aio::MultiplexedConnection, cmd};
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use tokio_util::sync::CancellationToken;

use crate::support::{
    TestDb, audit,
    load::{Load, key, stop_after},
    own_redis, spawn_serve, verdict,
};

/// Each state of Redis lasts so long: longer than its failures take to be noticed, and to be got over.
const PHASE: Duration = Duration::from_millis(1_500);

/// Lets time pass while the load goes on.
async fn pass() {
    tokio::time::sleep(PHASE).await;
}

async fn connect(redis: &LocalRedis) -> MultiplexedConnection {
    let client = Client::open(redis.url()).expect("a client");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

/// One who overwrites what Centile keeps there.
struct Spoiler {
    redis: MultiplexedConnection,
    prefix: String,
    rng: StdRng,
    /// Values met before, with their keys.
    old: Vec<(String, Vec<u8>)>,
    spoiled: usize,
}

impl Spoiler {
    async fn new(redis: &LocalRedis, prefix: String) -> Self {
        let rng = StdRng::seed_from_u64(rand::random());
        Self { redis: connect(redis).await, prefix, rng, old: Vec::new(), spoiled: 0 }
    }

    /// Overwrites everything again and again for a while.
    async fn go_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.spoil(true).await;
        }
    }

    /// Overwrites everything once: with what other keys held, and if wanted also with bytes of no meaning, other types and
    /// what the same key held long ago.
    async fn spoil(&mut self, in_every_way: bool) {
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
                // Fails where the service was quicker.
                cmd("RPUSH").arg(&key).arg("a list").exec_async(&mut self.redis).await.ok();
            } else if let Some(value) = self.value(&key, way) {
                cmd("SET").arg(&key).arg(value).exec_async(&mut self.redis).await.expect("garbage in its place");
            }
            self.spoiled += 1;
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
            // Whole but for one bit.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_redis_does_no_answer_is_wrong() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint);
         SELECT centile.create_board('first', p_mode => 'best', p_ties => 'first', p_periods => '{all_time,week}',
             p_lanes => 1::smallint, p_layout_bounds => '{0,2,4}')",
    )
    .await;
    let mut redis = own_redis();
    let url = redis.url();
    let instances = [spawn_serve(&db, Some(&url), &[]).await, spawn_serve(&db, Some(&url), &[]).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });

    pass().await;
    cmd("FLUSHALL").exec_async(&mut connect(&redis).await).await.expect("an empty Redis");
    let mut spoiler = Spoiler::new(&redis, db.redis_prefix()).await;
    spoiler.go_on(2 * PHASE).await;
    redis.pause().expect("a frozen Redis");
    pass().await;
    redis.resume().expect("Redis goes on");
    pass().await;
    redis.kill_hard().expect("a dead Redis");
    pass().await;
    redis.start_again().expect("Redis is back");
    let mut again = Spoiler::new(&redis, db.redis_prefix()).await;
    again.go_on(2 * PHASE).await;

    stop.cancel();
    record.join(running.await.expect("the load"));
    // Instances that know nothing yet take what they find there, and nothing is written that would make it old.
    for number in 2..6 {
        let fresh = spawn_serve(&db, Some(&url), &[]).await;
        again.spoil(number % 2 == 0).await;
        let mut readers = Load::new(vec![fresh.url.clone()], &["shared", "first"], load.key.clone());
        readers.read_only = true;
        record.join(Arc::new(readers).run(&stop_after(PHASE / 2)).await.renumber(number));
    }
    let pool = db.pool().await;
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("Redis fails");
    let (first, second) = (spoiler.spoiled, again.spoiled);
    assert!(first > 50 && second > 50, "only {first} and {second} values were spoiled");
    for instance in instances {
        assert!(instance.output().contains("Redis answers again"), "an instance did not notice");
    }
    assert_eq!(audit::rankings_are_sound(&pool).await, 4);
}
