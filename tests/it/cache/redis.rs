//! The cache in front of a real Redis that is emptied, filled with garbage, frozen and killed.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use centile::{
    cache::{Cache, CacheCounts, CacheKey, CacheKind},
    dev::local::LocalRedis,
    tested::Background,
};
use deadpool_redis::redis::{self, aio::MultiplexedConnection};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

use crate::{
    http::tls::TestAuthority,
    support::{
        amount,
        proxy::{Proxy, Way},
        redis_connection,
        wait::{until, within},
    },
};

const PREFIX: &str = "test";

/// A value of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    text: String,
}

fn stored(text: &(impl ToString + ?Sized)) -> Stored {
    Stored { text: text.to_string() }
}

/// Returns any value of the key.
async fn get(cache: &Cache, key: &CacheKey) -> Option<Stored> {
    cache.get(key, |_: &Stored| true).await
}

/// A private Redis, a cache in it, and direct access to that Redis.
struct Fixture {
    redis: LocalRedis,
    cache: Cache,
}

impl Fixture {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("centile-cache-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir: PathBuf = std::env::temp_dir().join(name);
        let redis = LocalRedis::start(&dir).expect("a private Redis");
        let cache = Cache::redis(&redis.url(), None, PREFIX, &Background::default()).expect("a cache");
        Self { redis, cache }
    }

    async fn direct(&self) -> MultiplexedConnection {
        redis_connection(&self.redis.url()).await
    }

    /// Puts and gets until a get returns the value.
    async fn wait_until_it_works(&self) {
        until("the cache works", async || {
            self.cache.put(&counts_of("probe"), &stored("alive")).await;
            get(&self.cache, &counts_of("probe")).await.is_some()
        })
        .await;
    }

    /// Gets a key that must be a miss, even if Redis does not answer.
    async fn expect_miss(&self, key: &CacheKey) {
        let found = within("a get returns", get(&self.cache, key)).await;
        assert_eq!(found, None, "{key}");
    }

    /// Gets a key, always a miss, until the cache stops calling Redis. Returns the number of failed
    /// calls.
    async fn until_bypassed(&self) -> u64 {
        let before = self.cache.counts().skipped;
        until("the cache bypasses Redis", async || {
            self.expect_miss(&counts_of("ann")).await;
            self.cache.counts().skipped > before
        })
        .await;
        let counts = self.cache.counts();
        counts.timeouts + counts.connection_failures
    }
}

fn counts_of(board: &str) -> CacheKey {
    CacheKind::Counts.of(board, "week:2024-01-15")
}

fn closed(number: u32) -> CacheKey {
    CacheKind::ClosedTop.of(&format!("board-{number}"), "all_time")
}

fn full(key: &CacheKey) -> String {
    format!("{PREFIX}:{key}")
}

#[tokio::test]
async fn values_are_kept_until_they_expire_or_a_flush() {
    let fixture = Fixture::new();
    let cache = &fixture.cache;
    let top = CacheKind::Top { size: 100 }.of("main", "day:2024-01-15");
    until("Redis is reachable", async || cache.answers().await == Some(true)).await;
    let mut direct = fixture.direct().await;
    let (mut begun, mut gets) = (Instant::now(), 0);
    let in_segment = CacheKind::Counts.of("main", "week:2024-01-15@clan:a b*?\"é");
    for (key, lifetime) in [(&counts_of("main"), 60), (&top, 60), (&in_segment, 60), (&closed(4), -1)] {
        let values = ["", "value", "\0\r\n\"}é", &"x".repeat(1 << 20)].map(stored);
        for (turn, value) in values.iter().enumerate() {
            until("a get returns the value", async || {
                begun = Instant::now();
                cache.put(key, value).await;
                let found = get(cache, key).await;
                gets += 1;
                if found.as_ref() == Some(value) {
                    return true;
                }
                // A call that times out on a busy machine is a miss, or leaves the earlier value.
                assert!(found.is_none_or(|found| values[..turn].contains(&found)), "{key}");
                assert!(cache.counts().timeouts > 0, "{key}: {:?}", cache.counts());
                false
            })
            .await;
        }
        let seconds: i64 = redis::cmd("TTL").arg(full(key)).query_async(&mut direct).await.expect("TTL");
        let passed = i64::try_from(begun.elapsed().as_secs()).expect("a small number") + 1;
        let earliest = if lifetime < 0 { lifetime } else { lifetime - passed };
        assert!((earliest..=lifetime).contains(&seconds), "{key}: {seconds} s");
    }
    // A value that the caller refuses is a miss, and stays.
    assert_eq!(cache.get(&closed(4), |found: &Stored| found.text.is_empty()).await, None);
    let () = redis::cmd("FLUSHALL").query_async(&mut direct).await.expect("FLUSHALL");
    fixture.expect_miss(&top).await;
    let counts = cache.counts();
    assert_eq!(counts.hits + counts.misses, gets + 2, "{counts:?}");
    let undisturbed = CacheCounts { hits: 16, misses: 2, puts: 16, ..CacheCounts::default() };
    assert!(counts.timeouts > 0 || counts == undisturbed, "{counts:?}");
    cache.put(&top, &stored(&"x".repeat(4 << 20))).await;
    assert_eq!(cache.counts().too_long, 1);
}

#[tokio::test]
async fn garbage_is_a_miss_and_is_overwritten() {
    let fixture = Fixture::new();
    let cache = &fixture.cache;
    let mut direct = fixture.direct().await;
    fixture.wait_until_it_works().await;
    let other: Vec<u8> = redis::cmd("GET").arg(full(&counts_of("probe"))).query_async(&mut direct).await.expect("GET");
    let name = full(&counts_of("ann"));
    let mut garbage = [
        redis::cmd("SET").arg(&name).arg("garbage").clone(),
        redis::cmd("SET").arg(&name).arg(&other).clone(),
        redis::cmd("SET").arg(&name).arg(&other[..other.len() - 1]).clone(),
        redis::cmd("RPUSH").arg(&name).arg("a list").clone(),
        redis::cmd("HSET").arg(&name).arg("a").arg("hash").clone(),
        redis::cmd("ZADD").arg(&name).arg(1).arg("a set").clone(),
        redis::cmd("SETRANGE").arg(&name).arg(100_000_000).arg("a giant").clone(),
    ];
    for (number, command) in garbage.iter_mut().enumerate() {
        let () = redis::cmd("DEL").arg(&name).query_async(&mut direct).await.expect("DEL");
        let () = command.query_async(&mut direct).await.expect("garbage");
        let before = cache.counts().mismatches;
        // A call that times out on a busy machine reads nothing.
        until(&format!("the cache reads garbage of kind {number}"), async || {
            fixture.expect_miss(&counts_of("ann")).await;
            cache.counts().mismatches > before
        })
        .await;
        until("a put overwrites the garbage", async || {
            cache.put(&counts_of("ann"), &stored("ann")).await;
            let found = get(cache, &counts_of("ann")).await;
            assert!(found.is_some() || cache.counts().timeouts > 0, "{:?}", cache.counts());
            found.inspect(|found| assert_eq!(*found, stored("ann"))).is_some()
        })
        .await;
    }
    let counts = cache.counts();
    // A put that times out leaves the garbage for another read.
    assert!(counts.timeouts > 0 || counts.mismatches == garbage.len() as u64, "{counts:?}");
    assert!(counts.timeouts > 0 || !cache.is_down(), "garbage is an answer");
}

#[tokio::test]
async fn one_call_waits_for_a_frozen_redis_and_no_later_one() {
    let mut fixture = Fixture::new();
    fixture.wait_until_it_works().await;
    fixture.redis.pause().expect("SIGSTOP");
    let before = fixture.cache.counts();
    for _ in 0..1_000 {
        fixture.expect_miss(&counts_of("ann")).await;
    }
    let counts = fixture.cache.counts();
    assert_eq!((counts.timeouts, counts.skipped), (before.timeouts + 1, before.skipped + 999), "{counts:?}");
    assert!(fixture.cache.answers().await != Some(true));
    until("Redis is skipped", async || fixture.cache.is_down()).await;
    fixture.redis.resume().expect("SIGCONT");
    fixture.wait_until_it_works().await;
    assert!(!fixture.cache.is_down());
}

#[tokio::test]
async fn concurrent_calls_use_a_distant_redis_over_tls() {
    let authority = TestAuthority::new();
    let (_redis, port) = authority.redis();
    let proxy = Proxy::to(port).await;
    proxy.set(Way::Distant);
    let url = proxy.redis_url().replace("redis://", "rediss://");
    let cache =
        Cache::redis(&url, Some(authority.file("ca.pem").as_ref()), PREFIX, &Background::default()).expect("a cache");
    // A busy machine may miss the timeout of a call.
    until("all calls succeed", async || {
        join_all((0..64).map(async |number| cache.put(&closed(number), &stored(&number)).await)).await;
        let found = join_all((0..64).map(async |number| (number, get(&cache, &closed(number)).await))).await;
        found.iter().all(|(number, value)| *value == Some(stored(&number)))
    })
    .await;
    let counts = cache.counts();
    assert!(counts.skipped > 0, "no call waits for the connection: {counts:?}");
}

#[tokio::test]
async fn no_call_waits_for_a_server_that_answers_garbage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let babble = async {
        loop {
            let (mut caller, _) = listener.accept().await.expect("a caller");
            tokio::spawn(async move { caller.write_all(b"+OK\r\n$-1\r\n?!*").await });
        }
    };
    let cache = Cache::redis(&url, None, PREFIX, &Background::default()).expect("a cache");
    let calls = async {
        until("Redis is skipped", async || {
            assert_eq!(get(&cache, &counts_of("ann")).await, None);
            cache.is_down()
        })
        .await;
        let counts = cache.counts();
        assert_eq!((counts.timeouts, counts.connection_failures, counts.hits), (0, 0, 0), "{counts:?}");
    };
    tokio::select! { () = babble => {}, () = calls => {} }
}

#[tokio::test]
async fn a_late_answer_is_never_used_for_another_key() {
    let mut fixture = Fixture::new();
    fixture.wait_until_it_works().await;
    for number in 0..64 {
        fixture.cache.put(&closed(number), &stored(&number)).await;
    }
    for _ in 0..amount(2, 3) {
        fixture.redis.pause().expect("SIGSTOP");
        let late = (0..64).map(|number| {
            let cache = fixture.cache.clone();
            async move { get(&cache, &closed(number)).await }
        });
        assert!(join_all(late).await.iter().all(Option::is_none));
        fixture.redis.resume().expect("SIGCONT");
        fixture.wait_until_it_works().await;
        for number in 0..64 {
            // A busy machine may cause a miss, but never another key's value.
            let found = get(&fixture.cache, &closed(number)).await;
            assert!(found.is_none_or(|value| value == stored(&number)), "{number}");
        }
    }
    assert_eq!(fixture.cache.counts().mismatches, 0, "a value of another key arrived");
}

#[tokio::test]
async fn a_killed_redis_is_a_miss_and_is_used_again_after_its_restart() {
    let mut fixture = Fixture::new();
    fixture.wait_until_it_works().await;
    fixture.cache.put(&counts_of("ann"), &stored("ann")).await;
    fixture.redis.kill_hard().expect("SIGKILL");
    let failures = fixture.until_bypassed().await;
    assert!(failures >= 1, "{:?}", fixture.cache.counts());
    let skipped = fixture.cache.counts().skipped;
    until("the cache bypasses Redis after puts", async || {
        fixture.cache.put(&counts_of("ann"), &stored("ann")).await;
        fixture.cache.counts().skipped > skipped
    })
    .await;
    assert!(fixture.cache.counts().connection_failures > 0, "{:?}", fixture.cache.counts());
    fixture.redis.start_again().expect("a new start");
    fixture.wait_until_it_works().await;
    fixture.expect_miss(&counts_of("ann")).await;
}

#[tokio::test]
async fn an_unreachable_redis_is_a_miss() {
    // Nothing listens on port 1 of loopback.
    let cache = Cache::redis("redis://127.0.0.1:1", None, PREFIX, &Background::default()).expect("a lazy cache");
    assert!(cache.answers().await != Some(true));
    assert_eq!(get(&cache, &counts_of("ann")).await, None);
}
