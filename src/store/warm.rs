//! Connections that are handed out last used first, for the statements that touch bucket tables.
//!
//! A connection makes a plan of its own for each of the 100 bucket tables. sqlx's pool hands its connections out in turn: over sixteen of them
//! a rank took twice as long as over two, long after the start. Here the one used last is used next, as long as it is free.

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Pool, PoolError, QueueMode, RecycleError, RecycleResult},
};
use sqlx::{
    Connection as _, IntoArguments, PgConnection, Postgres,
    postgres::{PgConnectOptions, PgRow},
    query::Map,
};

use super::{PATIENCE, greet};
use crate::{Error, Result};

/// How long a statement that its caller left may go on until the connection is closed.
const DRAIN: Duration = Duration::from_millis(250);
/// Ages at which a connection is replaced, as sqlx's pool does it: since it was made, and since it was last used.
const LIFETIME: Duration = Duration::from_mins(30);
const IDLE: Duration = Duration::from_mins(10);

/// A pool of such connections.
#[derive(Debug, Clone)]
pub(super) struct WarmPool(Pool<Connector>);

/// Makes connections, and looks at them before they are used again.
#[derive(Debug)]
struct Connector(PgConnectOptions);

/// A connection, and whether its last statement was answered.
#[derive(Debug)]
struct Warm {
    connection: PgConnection,
    is_at_rest: bool,
}

impl Manager for Connector {
    type Type = Warm;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<Warm> {
        let mut connection = PgConnection::connect_with(&self.0).await?;
        greet(&mut connection).await?;
        Ok(Warm { connection, is_at_rest: true })
    }

    async fn recycle(&self, warm: &mut Warm, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.age() > LIFETIME || metrics.last_used() > IDLE {
            return Err(RecycleError::message("old"));
        }
        // After an error, or when a caller went away in the middle: reads what is left of the answer.
        if !warm.is_at_rest {
            warm.connection.ping().await?;
        }
        Ok(())
    }
}

impl WarmPool {
    /// Up to so many connections; the first is made when one is asked for.
    pub(super) fn new(connections: u32, options: PgConnectOptions) -> Result<Self> {
        let pool = Pool::builder(Connector(options))
            .max_size(usize::try_from(connections).unwrap_or(usize::MAX))
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .recycle_timeout(Some(DRAIN))
            .build();
        pool.map(Self).map_err(|error| Error::Internal(error.to_string()))
    }

    /// All rows that a query gives.
    pub(super) async fn fetch_all<'q, F, O, A>(&self, query: Map<'q, Postgres, F, A>) -> sqlx::Result<Vec<O>>
    where
        F: FnMut(PgRow) -> sqlx::Result<O> + Send,
        O: Send + Unpin,
        A: IntoArguments<Postgres> + Send + 'q,
    {
        let mut warm = self.0.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Closed => sqlx::Error::PoolClosed,
            _ => sqlx::Error::PoolTimedOut,
        })?;
        warm.is_at_rest = false;
        let rows = query.fetch_all(&mut warm.connection).await?;
        warm.is_at_rest = true;
        Ok(rows)
    }

    /// Says goodbye on the connections that are free, and hands out no more.
    pub(super) async fn close(&self) {
        for free in self.0.retain(|_, _| false).removed {
            // The server notices by itself, should it not be told.
            let _ = free.connection.close().await;
        }
        self.0.close();
    }
}
