//! Connections to Redis: one shared connection, or a pool.

use deadpool_redis::{
    Pool, Runtime,
    redis::{AsyncConnectionConfig, Client, FromRedisValue, Pipeline, aio::MultiplexedConnection},
};

use super::PeerResult;

/// How callers reach Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisClient {
    /// One shared connection, which combines the commands of several callers
    Multiplexed,
    /// deadpool-redis with as many connections as PostgreSQL has for reads; sends UNWATCH and PING
    /// before each use
    Pool,
}

pub enum Redis {
    Multiplexed(MultiplexedConnection),
    Pool(Pool),
}

/// The connection of a request.
pub enum Connection {
    Multiplexed(MultiplexedConnection),
    Pooled(deadpool_redis::Connection),
}

impl Redis {
    pub async fn connect(url: &str, client: RedisClient) -> PeerResult<Self> {
        Ok(match client {
            RedisClient::Multiplexed => {
                // Under load a response may take longer than the default timeout of half a second.
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

    /// Returns a connection for all commands of a request.
    pub async fn connection(&self) -> PeerResult<Connection> {
        Ok(match self {
            // Clones share the connection.
            Self::Multiplexed(connection) => Connection::Multiplexed(connection.clone()),
            Self::Pool(pool) => Connection::Pooled(pool.get().await?),
        })
    }
}

impl Connection {
    /// Sends a pipeline and returns its replies.
    pub async fn run<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> PeerResult<T> {
        Ok(match self {
            Self::Multiplexed(connection) => pipeline.query_async(connection).await?,
            Self::Pooled(connection) => pipeline.query_async(connection).await?,
        })
    }
}
