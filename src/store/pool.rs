//! Connections to PostgreSQL, with a timeout for each statement.
//!
//! If the server froze or the network lost it, a connection would wait forever: TCP does not notice
//! this, and sqlx has no such timeout. So statements have a timeout here, and so has the ping of a
//! connection that returns to its pool.

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
    postgres::{PgConnectOptions, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::context::TokioContext;

use crate::{Code, Error, single_flight::SingleFlightCache, store::error::has_other_columns};

/// Timeout of the ping of a connection that may be lost.
const CONNECTED: Duration = Duration::from_millis(250);

/// Timeout of the ping of a connection that returns to its pool. If its statement timed out, the
/// ping waits for the end of that statement.
const PONG_WITHIN: Duration = Duration::from_secs(2);

/// How long a successful attempt to connect proves that PostgreSQL is reachable.
const REACHABLE_FOR: Duration = Duration::from_secs(1);

/// Maximum wait for other callers' attempts to connect: the one in progress, and the next one.
const ATTEMPTS_WAIT: Duration = Duration::from_secs(6);

/// Message of a statement that took too long.
const NO_ANSWER: &str = "a statement was not answered";

/// A pool of connections.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: PgPool,
    /// The runtime that new connections belong to; `None` for that of their first user.
    runtime: Option<Handle>,
    /// Timeout of a statement, with its round trip.
    limit: Duration,
    last_loss: LastLoss,
    /// Attempts to connect.
    attempts: Arc<SingleFlightCache<(), ()>>,
}

/// The time at which a lost connection was last found. After a restart of the server all older
/// connections are lost, and each of them would fail one statement.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLoss(Arc<Mutex<Option<Instant>>>);

impl LastLoss {
    /// Records the time if an error means that a connection is lost.
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

    /// Whether a connection was lost within the last `idle_for`, that is since this one was last
    /// used.
    fn is_within(&self, idle_for: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= idle_for)
    }
}

/// The time at which another server became the primary. Older connections are closed: the former
/// primary may still answer.
#[derive(Debug, Clone, Default)]
pub(super) struct LastSwitch(Arc<Mutex<Option<Instant>>>);

impl LastSwitch {
    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a connection of this age leads to the former primary.
    pub(super) fn is_within(&self, age: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= age)
    }
}

/// Pings each connection before it returns to the pool, and before it is used if another one was
/// lost while it was idle. Closes connections to a former primary.
pub(super) fn tested(options: PgPoolOptions, last_loss: &LastLoss, last_switch: &LastSwitch) -> PgPoolOptions {
    let (last_loss, switch, switch_at_release) = (last_loss.clone(), last_switch.clone(), last_switch.clone());
    let options = options.before_acquire(move |connection, metadata| {
        let is_suspect = last_loss.is_within(metadata.idle_for);
        let is_former = switch.is_within(metadata.age);
        Box::pin(async move {
            if is_former {
                return Ok(false);
            }
            let is_well =
                !is_suspect || matches!(timeout(CONNECTED, sqlx::Connection::ping(connection)).await, Ok(Ok(())));
            Ok(is_well)
        })
    });
    options.after_release(move |connection, metadata| {
        let is_former = switch_at_release.is_within(metadata.age);
        Box::pin(async move {
            if is_former {
                return Ok(false);
            }
            match timeout(PONG_WITHIN, sqlx::Connection::ping(connection)).await {
                Ok(answer) => answer.map(|()| true),
                Err(_) => Err(silent("a returned connection did not answer")),
            }
        })
    })
}

fn silent(what: &'static str) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, what))
}

impl Pool {
    /// Creates a pool of `connections`, whose statements time out after `limit`. They belong to the
    /// current runtime, which must outlive the pool.
    pub(super) fn new(connections: PgPool, limit: Duration, last_loss: LastLoss) -> Self {
        let attempts = Arc::new(SingleFlightCache::new(ATTEMPTS_WAIT, REACHABLE_FOR));
        Self { connections, runtime: Some(Handle::current()), limit, last_loss, attempts }
    }

    /// Opens a connection and closes it. A server whose connection slots are all taken is up, and the
    /// pools keep theirs.
    pub(super) async fn try_connect(&self) -> sqlx::Result<()> {
        let options = self.connections.connect_options();
        let connecting = async {
            let connection = <PgConnection as sqlx::Connection>::connect_with(&options).await?;
            sqlx::Connection::close(connection).await
        };
        let connected = timeout(PONG_WITHIN, connecting).await;
        match connected.unwrap_or_else(|_| Err(silent("a new connection was not accepted"))) {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("53300") => Ok(()),
            connected => connected,
        }
    }

    /// Returns whether PostgreSQL accepts connections. Callers share an attempt.
    pub(super) async fn is_reachable(&self) -> bool {
        let attempt = async || self.try_connect().await.map_err(Error::from);
        match self.attempts.read((), attempt).await {
            // The wait for another caller's attempt has ended.
            Err(error) => error.code() == Code::Overloaded,
            Ok(()) => true,
        }
    }

    async fn acquire(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        let acquiring = self.connections.acquire();
        // Each HTTP worker has a runtime of its own. A connection that belonged to it would be lost
        // when the worker stops, even if a request of another worker is using it.
        let acquired = match &self.runtime {
            Some(runtime) => TokioContext::new(acquiring, runtime.clone()).await,
            None => acquiring.await,
        };
        match acquired {
            Err(sqlx::Error::PoolTimedOut) => Err(self.timed_out("no connection was free").await),
            acquired => acquired,
        }
    }

    /// The same pool, but new connections belong to the runtime of their first user.
    pub(super) fn of_any_runtime(self) -> Self {
        Self { runtime: None, ..self }
    }

    /// Returns the error of a timeout: PostgreSQL is unreachable, or busy.
    async fn timed_out(&self, what: &'static str) -> sqlx::Error {
        // Boxed to keep the futures of statements small.
        let is_reachable = Box::pin(self.is_reachable()).await;
        let kind = if is_reachable { io::ErrorKind::ResourceBusy } else { io::ErrorKind::TimedOut };
        sqlx::Error::Io(io::Error::new(kind, what))
    }

    /// Runs a statement on one of the connections, and collects all its results.
    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        self.hold().await?.steps(query).await
    }

    /// Takes one of the connections, for several statements in sequence. It is pinged only once,
    /// when it returns.
    pub(super) async fn hold(&self) -> sqlx::Result<Session> {
        let connection = self.acquire().await?;
        Ok(Session { connection, pool: self.clone(), is_in_transaction: false })
    }

    /// Opens further connections with these options.
    pub(super) fn connect_to(&self, options: &PgConnectOptions) {
        self.connections.set_connect_options(options.clone());
    }

    /// Number of open connections, and of idle ones among them.
    pub(super) fn connections(&self) -> (u32, u32) {
        (self.connections.size(), u32::try_from(self.connections.num_idle()).unwrap_or(u32::MAX))
    }

    /// Waits until the connections in use are returned, and closes all connections.
    pub(super) async fn close(&self) {
        self.connections.close().await;
    }
}

/// A connection of a [`Pool`]. Dropping it returns the connection; drop it after an error.
#[derive(Debug)]
pub(super) struct Session {
    connection: PoolConnection<Postgres>,
    pool: Pool,
    is_in_transaction: bool,
}

impl Drop for Session {
    /// An open transaction ends with its session.
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
        self.is_in_transaction = true;
        self.run(format!("BEGIN; {first}")).await
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

    /// Runs statements without parameters in one round trip.
    async fn run(&mut self, statements: String) -> sqlx::Result<()> {
        let running = self.connection.execute(sqlx::raw_sql(AssertSqlSafe(statements)));
        match timeout(self.pool.limit, running).await {
            Ok(ran) => ran.inspect_err(|error| self.pool.last_loss.note(error)).map(drop),
            Err(_) => Err(self.pool.timed_out(NO_ANSWER).await),
        }
    }

    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &mut self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        let Self { connection, pool, .. } = self;
        let Ok(steps) = timeout(pool.limit, connection.fetch_many(query).try_collect()).await else {
            return Err(pool.timed_out(NO_ANSWER).await);
        };
        if let Err(sqlx::Error::Database(error)) = &steps
            && has_other_columns(error.as_ref())
        {
            // A migration has changed the result columns. Another connection prepares the statement
            // again.
            connection.close_on_drop();
        }
        steps.inspect_err(|error| pool.last_loss.note(error))
    }
}

/// Implements the part of [`Executor`] that runs statements by the type's `steps`.
macro_rules! run_by_steps {
    () => {
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
    };
}

impl<'p> Executor<'p> for &'p mut Session {
    run_by_steps!();

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
    run_by_steps!();

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

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use sqlx::postgres::PgSslMode;
    use tokio::{io::AsyncWriteExt as _, net::TcpListener};

    use super::*;

    /// PostgreSQL's answer to a connection for which it has no slot.
    const FULL: &[u8] = b"E\0\0\0\x20SFATAL\0VFATAL\0C53300\0Mfull\0\0";

    /// The first attempt to connect gets no answer, and the second one a late one.
    #[tokio::test]
    async fn callers_wait_for_the_attempt_after_the_one_in_progress() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(listener.local_addr()?.port());
        let options = options.username("nobody").ssl_mode(PgSslMode::Disable);
        let connections = PgPoolOptions::new().connect_lazy_with(options);
        let pool = Pool::new(connections, Duration::from_secs(1), LastLoss::default());
        let server = async {
            let _silent = listener.accept().await?;
            let (mut late, _) = listener.accept().await?;
            late.write_all(FULL).await?;
            Ok::<_, io::Error>(late)
        };
        let callers = join_all((0..3).map(|_| pool.is_reachable()));
        let (callers, _late) = tokio::join!(callers, server);
        assert_eq!(callers, [false, true, true]);
        Ok(())
    }
}
