//! Connections to PostgreSQL, each statement with a limit on its time.
//!
//! A server that has gone silent, frozen or cut off without a word, lets a connection wait for
//! ever: TCP notices nothing, and sqlx has no limit of its own. So each statement has one here, and
//! so has the test that a connection passes before it goes back.
//!
//! Where it pays, a few connections are used before all others. A connection makes a plan of its
//! own for each of the 100 bucket tables, and sqlx's pool hands its connections out in turn: over
//! many of them batches took twice as long as over two, long after the start.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    AssertSqlSafe, Describe, Either, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr,
    pool::PoolConnection,
    postgres::{PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::time::timeout;

use crate::store::{
    error::has_other_columns,
    pooler::{Nameless, Opening},
};

/// How long to wait for one of the few that has to be made, or for one that may be lost to show that it is well.
const CONNECTED: Duration = Duration::from_millis(250);

/// How long a connection that comes back may take to show that it is well; one whose statement was
/// given up waits for that to end.
const SHOWN_WELL: Duration = Duration::from_secs(2);

/// Some connections.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    few: Option<Few>,
    others: PgPool,
    /// How long a statement may take, with its way there and back.
    limit: Duration,
    /// Beginning of every statement's transaction, where sessions are shared; elsewhere a statement
    /// is sent alone.
    opening: Option<Opening>,
    last_loss: LastLoss,
}

/// Connections that are used before all others.
#[derive(Debug, Clone)]
struct Few {
    pool: PgPool,
    /// How long to wait for one of them: even one that is free comes back a moment after its
    /// statement, when it has answered a ping.
    soon: Duration,
}

/// When a connection was last found lost. A server that has restarted leaves all connections from before
/// behind; each of them would fail one statement.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLoss(Arc<Mutex<Option<Instant>>>);

impl LastLoss {
    /// Records an error if it says that a connection is lost.
    fn note(&self, error: &sqlx::Error) {
        let is_lost = match error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(error) => {
                error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
            }
            _ => false,
        };
        if is_lost {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// Whether a connection was lost within the last `idle_for`: since this one was last used.
    fn is_within(&self, idle_for: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= idle_for)
    }
}

/// Pings each connection before it returns to the pool, and before it is used if another one was lost
/// while it was idle.
pub(super) fn tested(options: PgPoolOptions, last_loss: &LastLoss) -> PgPoolOptions {
    let last_loss = last_loss.clone();
    let options = options.before_acquire(move |connection, metadata| {
        let is_suspect = last_loss.is_within(metadata.idle_for);
        Box::pin(async move {
            let is_well =
                !is_suspect || matches!(timeout(CONNECTED, sqlx::Connection::ping(connection)).await, Ok(Ok(())));
            Ok(is_well)
        })
    });
    options.after_release(|connection, _| {
        Box::pin(async move {
            match timeout(SHOWN_WELL, sqlx::Connection::ping(connection)).await {
                Ok(answer) => answer.map(|()| true),
                Err(_) => Err(silent("a connection that came back did not answer")),
            }
        })
    })
}

fn silent(what: &'static str) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, what))
}

impl Pool {
    /// All that `others` has, one after the other. With an `opening` they lead to a pooler that
    /// shares sessions.
    pub(super) fn new(others: PgPool, limit: Duration, opening: Option<Opening>, last_loss: LastLoss) -> Self {
        Self { few: None, others, limit, opening, last_loss }
    }

    /// Makes a connection and closes it.
    pub(super) async fn try_connect(&self) -> sqlx::Result<()> {
        let options = self.others.connect_options();
        let connecting = async {
            let connection = <PgConnection as sqlx::Connection>::connect_with(&options).await?;
            sqlx::Connection::close(connection).await
        };
        timeout(SHOWN_WELL, connecting).await.unwrap_or_else(|_| Err(silent("a new connection was not accepted")))
    }

    /// These, after the connections of `few`, where none of those is free within `soon`.
    pub(super) fn after(&self, few: Self, soon: Duration) -> Self {
        Self { few: Some(Few { pool: few.others, soon }), ..self.clone() }
    }

    async fn acquire(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        if let Some(Few { pool, soon }) = &self.few {
            // A connection that is to be made takes longer.
            let is_whole = pool.size() == pool.options().get_max_connections();
            // Where PostgreSQL has no place for one more, the others may still have one that is
            // idle.
            if let Ok(Ok(connection)) = timeout(if is_whole { *soon } else { CONNECTED }, pool.acquire()).await {
                return Ok(connection);
            }
        }
        self.others.acquire().await
    }

    /// What a statement gives on one of the connections, all of it at once.
    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        self.hold().await?.steps(query).await
    }

    /// One of the connections, for several statements in turn: it is tested once, when it goes
    /// back.
    pub(super) async fn hold(&self) -> sqlx::Result<Session> {
        let connection = self.acquire().await?;
        Ok(Session {
            connection,
            limit: self.limit,
            opening: self.opening.clone(),
            last_loss: self.last_loss.clone(),
            is_in_transaction: false,
        })
    }

    /// How many connections there are, and how many of them are idle.
    pub(super) fn connections(&self) -> (u32, u32) {
        let pools = self.few.iter().map(|few| &few.pool).chain([&self.others]);
        let count = |pool: &PgPool| (pool.size(), u32::try_from(pool.num_idle()).unwrap_or(u32::MAX));
        pools.map(count).fold((0, 0), |(all, idle), (size, free)| (all + size, idle + free))
    }

    /// Waits until the connections in use are given back, and closes all.
    pub(super) async fn close(&self) {
        if let Some(few) = &self.few {
            few.pool.close().await;
        }
        self.others.close().await;
    }
}

/// A connection of a [`Pool`] until it is dropped. After an error it must be.
#[derive(Debug)]
pub(super) struct Session {
    connection: PoolConnection<Postgres>,
    limit: Duration,
    opening: Option<Opening>,
    last_loss: LastLoss,
    is_in_transaction: bool,
}

impl Drop for Session {
    /// A transaction that has not ended ends with its session.
    fn drop(&mut self) {
        if self.is_in_transaction {
            self.connection.close_on_drop();
        }
    }
}

impl Session {
    /// Begins a transaction with `first`, a statement without parameters, in one round trip. The
    /// statements that follow belong to it, until [`Self::commit`] or [`Self::roll_back`].
    pub(super) async fn begin(&mut self, first: &str) -> sqlx::Result<()> {
        let opening = self.opening.as_ref().map_or("BEGIN", Opening::text);
        let statements = format!("{opening}; {first}");
        self.is_in_transaction = true;
        self.run(statements).await
    }

    /// Commits the transaction.
    pub(super) async fn commit(&mut self) -> sqlx::Result<()> {
        self.end("COMMIT").await
    }

    /// Rolls the transaction back.
    pub(super) async fn roll_back(&mut self) -> sqlx::Result<()> {
        self.end("ROLLBACK").await
    }

    async fn end(&mut self, how: &str) -> sqlx::Result<()> {
        self.run(how.to_owned()).await?;
        self.is_in_transaction = false;
        Ok(())
    }

    /// Runs statements of this program, without parameters, in one round trip.
    async fn run(&mut self, statements: String) -> sqlx::Result<()> {
        let running = self.connection.execute(sqlx::raw_sql(AssertSqlSafe(statements)));
        let ran = timeout(self.limit, running).await.map(|ran| ran.inspect_err(|error| self.last_loss.note(error)));
        ran.unwrap_or_else(|_| Err(silent("a statement was not answered"))).map(drop)
    }

    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &mut self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        let Self { connection, limit, opening, last_loss, is_in_transaction } = self;
        let steps = timeout(*limit, async {
            match opening {
                Some(_) if *is_in_transaction => connection.fetch_many(Nameless(query)).try_collect().await,
                Some(opening) => opening.steps(connection, query, is_in_transaction).await,
                None => connection.fetch_many(query).try_collect().await,
            }
        })
        .await;
        if let Ok(Err(sqlx::Error::Database(error))) = &steps
            && has_other_columns(error.as_ref())
        {
            // A migration has changed what the statement gives. It is prepared anew on a connection
            // that does not know it.
            connection.close_on_drop();
        }
        if opening.is_some() && matches!(steps, Err(_) | Ok(Err(sqlx::Error::PoolTimedOut))) {
            // Its transaction may still begin, and would keep a session of the pooler's while the
            // connection waits here to be used again.
            connection.close_on_drop();
        }
        if let Ok(Err(error)) = &steps {
            last_loss.note(error);
        }
        steps.unwrap_or_else(|_| Err(silent("a statement was not answered")))
    }
}

impl<'p> Executor<'p> for &'p mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let steps = async move { self.steps(query).await.map(|steps| stream::iter(steps.into_iter().map(Ok))) };
        stream::once(steps).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { Ok(self.steps(query).await?.into_iter().find_map(Either::right)) })
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'p: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'p: 'e,
    {
        self.connection.describe(sql)
    }
}

impl<'p> Executor<'p> for &'p Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let steps = async move { self.steps(query).await.map(|steps| stream::iter(steps.into_iter().map(Ok))) };
        stream::once(steps).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { Ok(self.steps(query).await?.into_iter().find_map(Either::right)) })
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.acquire().await?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.acquire().await?.describe(sql).await })
    }
}
