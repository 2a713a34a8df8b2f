//! Bytes per player on disk and in memory.

use std::{fs, io::ErrorKind, path::Path};

use deadpool_redis::redis::{Client, cmd};
use serde::Serialize;

use crate::{
    common::{Bench, BenchResult},
    system::{Site, System},
};

/// Bytes per player of a store after loading.
#[derive(Debug, Serialize)]
pub struct Size {
    pub system: System,
    pub postgres: f64,
    /// Bytes in PostgreSQL's shared buffers; absent without `pg_buffercache`.
    pub buffers: Option<f64>,
    pub redis_disk: f64,
    pub redis_memory: f64,
}

impl Size {
    /// Measures the current size of a store.
    pub async fn of(bench: &Bench, site: &Site) -> BenchResult<Self> {
        let sql = format!("SELECT pg_database_size('{}')", site.database);
        let postgres: f64 = bench.psql(&sql)?.parse()?;
        let buffers = buffered_bytes(bench, &site.database)?;
        let (mut redis_disk, mut redis_memory) = (0.0, 0.0);
        if let Some(redis) = &site.redis {
            redis_disk = append_only_bytes(redis.dir())? as f64;
            redis_memory = redis_says(&redis.url(), "memory", "used_memory").await?.parse()?;
        }
        let [postgres, redis_disk, redis_memory] =
            [postgres, redis_disk, redis_memory].map(|bytes| bytes / site.players as f64);
        let buffers = buffers.map(|bytes| bytes / site.players as f64);
        Ok(Self { system: site.system, postgres, buffers, redis_disk, redis_memory })
    }
}

/// Returns the bytes of a database in shared buffers.
fn buffered_bytes(bench: &Bench, database: &str) -> BenchResult<Option<f64>> {
    if bench.psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'")? == "0" {
        return Ok(None);
    }
    let sql = format!(
        "SELECT count(*) * current_setting('block_size')::bigint FROM pg_buffercache b
         JOIN pg_database d ON d.oid = b.reldatabase WHERE d.datname = '{database}'"
    );
    bench.psql("CREATE EXTENSION IF NOT EXISTS pg_buffercache")?;
    Ok(Some(bench.psql(&sql)?.parse()?))
}

/// Returns a line of Redis's INFO.
pub async fn redis_says(url: &str, section: &str, name: &str) -> BenchResult<String> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    let said: String = cmd("INFO").arg(section).query_async(&mut connection).await?;
    let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(found.ok_or_else(|| format!("Redis does not report {name}"))?.trim().to_owned())
}

/// Returns the size of the append-only file, since Redis 7 a folder of files that Redis may remove
/// meanwhile.
fn append_only_bytes(dir: &Path) -> BenchResult<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with("appendonly") {
            continue;
        }
        match entry.metadata() {
            Ok(found) if found.is_dir() => bytes += append_only_bytes(&entry.path())?,
            Ok(found) => bytes += found.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}
