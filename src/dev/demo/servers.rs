//! The private servers under the demo.

use std::path::Path;

use tokio::task::spawn_blocking;

use crate::{
    Error, Result,
    dev::local::{LocalPostgres, LocalRedis, PostgresOptions},
};

/// A PostgreSQL and a Redis of our own. They stop when this value is dropped, or when this process ends in whatever way.
#[derive(Debug)]
pub struct Servers {
    /// The one whose data count.
    pub postgres: LocalPostgres,
    /// The one that only makes things faster.
    pub redis: LocalRedis,
}

impl Servers {
    /// Starts both, with their files in `postgres` and `redis` below `dir`.
    ///
    /// [`Error::Conflict`] when another process has its servers there; [`Error::Internal`] when one is not installed or
    /// does not start.
    pub async fn start(dir: &Path, options: PostgresOptions) -> Result<Self> {
        let (postgres, redis) = (dir.join("postgres"), dir.join("redis"));
        blocking(move || {
            // PostgreSQL first: it tells when the folder is taken.
            Ok(Self { postgres: LocalPostgres::start(&postgres, options)?, redis: LocalRedis::start(&redis)? })
        })
        .await
    }

    /// Address of the database, with the password.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.postgres.url("postgres")
    }

    /// Address of Redis.
    #[must_use]
    pub fn redis_url(&self) -> String {
        self.redis.url()
    }

    /// Stops both; the database's data stay unless it is ephemeral.
    pub async fn stop(mut self) -> Result<()> {
        blocking(move || {
            let stopped = self.redis.stop();
            self.postgres.stop().and(stopped)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(job: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(job).await.map_err(|error| Error::Internal(format!("the private servers: {error}")))?
}
