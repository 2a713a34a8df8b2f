//! The way to Redis: one connection that all callers share, or a pool.

use deadpool_redis::{
    Pool, Runtime,
    redis::{AsyncConnectionConfig, Client, FromRedisValue, Pipeline, aio::MultiplexedConnection},
};

use super::Answer;

/// How callers reach Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisClient {
    /// One connection: what several callers send goes together
    Multiplexed,
    /// deadpool-redis, as many connections as there are to PostgreSQL for reading; it sends UNWATCH and PING before each use
    Pool,
}

pub enum Redis {
    Multiplexed(MultiplexedConnection),
    Pool(Pool),
}

/// What a request has of it.
pub enum Connection {
    Multiplexed(MultiplexedConnection),
    Pooled(deadpool_redis::Connection),
}

impl Redis {
    pub async fn connect(url: &str, client: RedisClient) -> Answer<Self> {
        Ok(match client {
            RedisClient::Multiplexed => {
                // Under load an answer may take longer than the half second that is the default.
                let config = AsyncConnectionConfig::new().set_response_timeout(None);
                Self::Multiplexed(Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?)
            }
            RedisClient::Pool => Self::Pool(
                deadpool_redis::Config::from_url(url)
                    .builder()?
                    .max_size(super::READ_CONNECTIONS as usize)
                    .runtime(Runtime::Tokio1)
                    .build()?,
            ),
        })
    }

    /// A connection for all that a request sends.
    pub async fn connection(&self) -> Answer<Connection> {
        Ok(match self {
            // A clone is the same connection.
            Self::Multiplexed(connection) => Connection::Multiplexed(connection.clone()),
            Self::Pool(pool) => Connection::Pooled(pool.get().await?),
        })
    }
}

impl Connection {
    /// Sends commands together, and gives what they answer.
    pub async fn run<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> Answer<T> {
        Ok(match self {
            Self::Multiplexed(connection) => pipeline.query_async(connection).await?,
            Self::Pooled(connection) => pipeline.query_async(connection).await?,
        })
    }
}
