//! A few connections that are used before all others.
//!
//! A connection makes a plan of its own for each of the 100 bucket tables. sqlx's pool hands its connections out in turn: over sixteen of them
//! a rank took twice as long as over two, long after the start.

use std::time::Duration;

use sqlx::{IntoArguments, PgPool, Postgres, pool::PoolConnection, postgres::PgRow, query::Map};
use tokio::time::timeout;

use super::error::has_other_columns;

/// How long to wait for one of the few that has to be made.
const CONNECTED: Duration = Duration::from_millis(250);

/// The few, and the pool that stands in for them.
#[derive(Debug, Clone)]
pub(super) struct WarmPool {
    pub(super) few: PgPool,
    pub(super) others: PgPool,
    /// How long to wait for one of the few: even one that is free comes back a moment after its statement, when it has answered a ping.
    pub(super) soon: Duration,
}

impl WarmPool {
    /// All rows that a query gives.
    pub(super) async fn fetch_all<'q, F, O, A>(&self, query: Map<'q, Postgres, F, A>) -> sqlx::Result<Vec<O>>
    where
        F: FnMut(PgRow) -> sqlx::Result<O> + Send,
        O: Send + Unpin,
        A: IntoArguments<Postgres> + Send + 'q,
    {
        let mut connection = self.acquire().await?;
        let rows = query.fetch_all(&mut *connection).await;
        if let Err(sqlx::Error::Database(error)) = &rows
            && has_other_columns(error.as_ref())
        {
            // A migration has changed what the statement gives. It is prepared anew on a connection that does not know it.
            connection.close_on_drop();
        }
        rows
    }

    async fn acquire(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        // A connection that is to be made takes longer.
        let is_whole = self.few.size() == self.few.options().get_max_connections();
        match timeout(if is_whole { self.soon } else { CONNECTED }, self.few.acquire()).await {
            Ok(Ok(connection)) => Ok(connection),
            // Where PostgreSQL has no place for one more, the others may still have one that is idle.
            _ => self.others.acquire().await,
        }
    }
}
