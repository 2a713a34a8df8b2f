//! What a player takes on disk and in memory.

use std::{fs, path::Path};

use deadpool_redis::redis::{Client, cmd};
use serde::Serialize;

use crate::{
    common::{Bench, Outcome},
    system::{Site, System},
};

/// Bytes per player.
#[derive(Debug, Serialize)]
pub struct Size {
    pub system: System,
    /// Whether before all else, or after it.
    pub when: &'static str,
    pub postgres: f64,
    pub redis_disk: f64,
    pub redis_memory: f64,
}

impl Size {
    /// What a store takes now.
    pub async fn of(bench: &Bench, site: &Site, when: &'static str) -> Outcome<Self> {
        let sql = format!("SELECT pg_database_size('{}') - pg_database_size('template0')", site.database);
        let postgres: f64 = bench.psql(&sql)?.parse()?;
        let (mut redis_disk, mut redis_memory) = (0.0, 0.0);
        if let Some(redis) = &site.redis {
            redis_disk = bytes_below(&redis.dir().join("appendonlydir"))? as f64;
            redis_memory = redis_says(&redis.url(), "memory", "used_memory").await?.parse()?;
        }
        let [postgres, redis_disk, redis_memory] =
            [postgres, redis_disk, redis_memory].map(|bytes| bytes / site.players as f64);
        Ok(Self { system: site.system, when, postgres, redis_disk, redis_memory })
    }
}

/// A line of what Redis tells about itself.
pub async fn redis_says(url: &str, section: &str, name: &str) -> Outcome<String> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    let said: String = cmd("INFO").arg(section).query_async(&mut connection).await?;
    let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(found.ok_or_else(|| format!("Redis does not say {name}"))?.trim().to_owned())
}

fn bytes_below(dir: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
