//! The private servers under the demo.

use std::path::Path;

use tokio::task::spawn_blocking;

use crate::{
    Error, Result,
    dev::local::{LocalPostgres, LocalRedis, PostgresOptions},
};

/// A private PostgreSQL and Redis. They stop when this value is dropped or this process ends,
/// even by SIGKILL.
#[derive(Debug)]
pub struct Servers {
    /// The database.
    pub postgres: LocalPostgres,
    /// The cache.
    pub redis: LocalRedis,
}

impl Servers {
    /// Starts both, with their files in `dir/postgres` and `dir/redis`.
    ///
    /// [`Error::Conflict`] if another process runs its servers there; [`Error::Internal`] if a
    /// server is not installed or does not start.
    pub async fn start(dir: &Path, options: PostgresOptions) -> Result<Self> {
        let (postgres, redis) = (dir.join("postgres"), dir.join("redis"));
        blocking(move || {
            // PostgreSQL first, because it detects that the folder is in use.
            Ok(Self { postgres: LocalPostgres::start(&postgres, options)?, redis: LocalRedis::start(&redis)? })
        })
        .await
    }

    /// Returns the URL of the database, with the password.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.postgres.url("postgres")
    }

    /// Returns the URL of Redis.
    #[must_use]
    pub fn redis_url(&self) -> String {
        self.redis.url()
    }

    /// Stops both. The database's data stay unless it is ephemeral.
    pub async fn stop(mut self) -> Result<()> {
        blocking(move || {
            let stopped = self.redis.stop();
            self.postgres.stop().and(stopped)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(job: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(job).await.map_err(|error| Error::Internal(format!("private servers: {error}")))?
}
