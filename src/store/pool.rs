//! Connections to PostgreSQL, with a timeout for each statement.
//!
//! If the server froze or the network lost it, a connection would wait forever: TCP does not notice
//! this, and sqlx has no such timeout. So statements have a timeout here.

use std::{
    fmt,
    io::{self, ErrorKind},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use deadpool::managed::{Manager, Metrics, Object, PoolError, QueueMode, RecycleResult};
use futures::{
    StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    AssertSqlSafe, Connection as _, Describe, Either, Execute, Executor, PgConnection, Postgres, SqlStr,
    postgres::{PgConnectOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use tokio_util::context::TokioContext;

use crate::{Code, Error, Result, single_flight::SingleFlightCache, store::error};

/// Timeout of the ping of a connection that may be lost.
const PING_TIMEOUT: Duration = Duration::from_millis(250);

/// Timeout of a connection that is opened to see whether PostgreSQL accepts any.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Pauses between attempts to connect: the first one, doubled after each attempt, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(400));

/// SQLSTATEs of a server that will accept a connection soon: all its slots are taken, or it starts.
const TRANSIENT: [&str; 2] = [TOO_MANY_CONNECTIONS, "57P03"];

const TOO_MANY_CONNECTIONS: &str = "53300";

/// Age at which a connection is replaced, and its plans with it.
const AGE_MAX: Duration = Duration::from_mins(30);

/// Time without use after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_mins(10);

/// How long a successful attempt to connect proves that PostgreSQL is reachable.
const REACHABLE_FOR: Duration = Duration::from_secs(1);

/// Maximum wait for other callers' attempts to connect: the one in progress, and the next one.
const ATTEMPTS_WAIT: Duration = Duration::from_secs(6);

/// Makes the settings of a new session.
pub(super) type Prepare = Box<dyn Fn(&mut PgConnection) -> BoxFuture<'_, sqlx::Result<()>> + Send + Sync>;

#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: deadpool::managed::Pool<Connector>,
    /// Maximum wait for a connection.
    wait: Duration,
    /// Timeout of a statement, with its round trip.
    limit: Duration,
    attempts: Arc<SingleFlightCache<(), ()>>,
}

/// Opens the connections of a pool, and decides which of them are used again.
pub(super) struct Connector {
    pub(super) options: Mutex<PgConnectOptions>,
    pub(super) prepare: Prepare,
    /// When a lost connection was last found. After a restart of the server all older connections
    /// are lost, and each of them would fail one statement.
    pub(super) last_loss: LastTime,
    /// When another server last became the primary. Older connections are closed: the former
    /// primary may still answer.
    pub(super) last_switch: LastTime,
    /// The runtime that new connections belong to; `None` for that of their first user.
    pub(super) runtime: Option<Handle>,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` once it is closed. The pool replaces it.
    open: Option<PgConnection>,
    /// Start of the attempt to connect.
    since: Instant,
    /// Whether its last statement failed. The error may have ended the session.
    has_failed: bool,
}

/// The time of the last event of a kind; none at first. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct LastTime(Arc<Mutex<Option<Instant>>>);

impl LastTime {
    /// Records that the event occurred now.
    pub(super) fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether the event occurred within the last `time`.
    pub(super) fn is_within(&self, time: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= time)
    }
}

impl fmt::Debug for Connector {
    /// Omits the connection options, which hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    fn options(&self) -> PgConnectOptions {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects. Attempts repeat, until the pool's timeout, while the server starts or is not the
    /// primary.
    async fn connect(&self) -> sqlx::Result<PgConnection> {
        let (mut pause, longest) = PAUSES;
        loop {
            match PgConnection::connect_with(&self.options()).await {
                Ok(mut connection) => match (self.prepare)(&mut connection).await {
                    Ok(()) => return Ok(connection),
                    // The server is not the primary.
                    Err(sqlx::Error::Protocol(_)) => {}
                    Err(error) => tracing::warn!(%error, "a new connection to PostgreSQL cannot be used"),
                },
                Err(sqlx::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(sqlx::Error::Database(error))
                    if error.code().is_some_and(|code| TRANSIENT.contains(&code.as_ref())) => {}
                Err(error) => return Err(error),
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

impl Manager for Connector {
    type Type = Connection;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<Connection> {
        let since = Instant::now();
        // Each HTTP worker has a runtime of its own. A connection that belonged to it would be lost
        // when the worker stops, even if a request of another worker is using it.
        let open = match &self.runtime {
            Some(runtime) => TokioContext::new(self.connect(), runtime.clone()).await?,
            None => self.connect().await?,
        };
        Ok(Connection { open: Some(open), since, has_failed: false })
    }

    /// Refuses closed and old connections, and those to a former primary. Pings a connection if its
    /// last statement failed, or if another one was lost since it was last used.
    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        let age = connection.since.elapsed();
        if age > AGE_MAX || self.last_switch.is_within(age) {
            return Err(sqlx::Error::PoolClosed.into());
        }
        let is_suspect = connection.has_failed || self.last_loss.is_within(metrics.last_used());
        let open = connection.open()?;
        if is_suspect {
            timeout(PING_TIMEOUT, open.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
            connection.has_failed = false;
        }
        Ok(())
    }
}

impl Connection {
    fn open(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.open.as_mut().ok_or(sqlx::Error::PoolClosed)
    }
}

fn io_error(kind: ErrorKind, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(kind, cause))
}

impl Pool {
    /// Creates a pool of up to `size` connections. Callers wait up to `wait` for one of them, and up
    /// to `limit` for a statement.
    pub(super) fn new(connector: Connector, size: usize, wait: Duration, limit: Duration) -> Result<Self> {
        // The connection used last comes first: it has most of the plans.
        let builder = deadpool::managed::Pool::builder(connector).max_size(size).queue_mode(QueueMode::Lifo);
        let connections = builder.build().map_err(|error| Error::Internal(error.to_string()))?;
        let attempts = Arc::new(SingleFlightCache::new(ATTEMPTS_WAIT, REACHABLE_FOR));
        Ok(Self { connections, wait, limit, attempts })
    }

    /// Opens a connection and closes it. A server whose connection slots are all taken is up, and the
    /// pools keep theirs.
    pub(super) async fn try_connect(&self) -> sqlx::Result<()> {
        let options = self.connections.manager().options();
        let connecting = async { PgConnection::connect_with(&options).await?.close().await };
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        match connected.unwrap_or_else(|_| Err(io_error(ErrorKind::TimedOut, "a new connection was not accepted"))) {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(TOO_MANY_CONNECTIONS) => Ok(()),
            connected => connected,
        }
    }

    /// Returns whether PostgreSQL accepts connections. Callers share an attempt.
    pub(super) async fn is_reachable(&self) -> bool {
        let attempt = async || self.try_connect().await.map_err(Error::from);
        match self.attempts.read((), attempt).await {
            // The wait for another caller's attempt has ended.
            Err(error) => matches!(error, Error::Overload { code: Code::Overloaded, .. }),
            Ok(()) => true,
        }
    }

    /// Runs a statement on one of the connections, and collects all its results.
    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        self.check_out().await?.steps(query).await
    }

    /// Takes one of the connections, for several statements in sequence.
    pub(super) async fn check_out(&self) -> sqlx::Result<Session> {
        let connection = match timeout(self.wait, self.connections.get()).await {
            Ok(Ok(connection)) => connection,
            // `NotConnected` tells that no statement was sent.
            Ok(Err(PoolError::Backend(sqlx::Error::Io(error)))) => {
                return Err(io_error(ErrorKind::NotConnected, error));
            }
            Ok(Err(PoolError::Backend(error @ (sqlx::Error::Tls(_) | sqlx::Error::Protocol(_))))) => {
                return Err(io_error(ErrorKind::NotConnected, error));
            }
            Ok(Err(PoolError::Backend(error))) => return Err(error),
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed),
            Err(_) if Box::pin(self.is_reachable()).await => return Err(sqlx::Error::PoolTimedOut),
            Err(_) => return Err(io_error(ErrorKind::NotConnected, "no connection was free")),
        };
        Ok(Session { connection, pool: self.clone(), is_in_transaction: false, awaits_result: false })
    }

    /// Opens further connections with these options.
    pub(super) fn connect_to(&self, options: &PgConnectOptions) {
        options.clone_into(&mut self.connections.manager().options.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Number of open connections, and of idle ones among them.
    pub(super) fn connections(&self) -> (u32, u32) {
        let status = self.connections.status();
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        (count(status.size), count(status.available))
    }

    /// Closes connections that were not used for a while.
    pub(super) fn close_idle(&self) {
        self.connections.retain(|_, metrics| metrics.last_used() < IDLE_MAX);
    }

    /// Closes the idle connections, and each of the others once it is returned.
    pub(super) fn close(&self) {
        self.connections.close();
    }
}

/// A connection of a [`Pool`]. Dropping it returns the connection; drop it after an error.
#[derive(Debug)]
pub(super) struct Session {
    connection: Object<Connector>,
    pool: Pool,
    is_in_transaction: bool,
    /// Whether a statement was sent and its result has not been read.
    awaits_result: bool,
}

impl Drop for Session {
    /// Ends the session if it is in a transaction, or if its last statement was interrupted. The
    /// server then ends that statement, too.
    fn drop(&mut self) {
        if self.is_in_transaction || self.awaits_result {
            self.connection.open = None;
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

    pub(super) async fn commit(&mut self) -> sqlx::Result<()> {
        self.end("COMMIT").await
    }

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
        self.steps(sqlx::raw_sql(AssertSqlSafe(statements))).await.map(drop)
    }

    /// Runs a statement, and collects all its results.
    async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &mut self,
        query: E,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        let Self { connection, pool, awaits_result, .. } = self;
        *awaits_result = true;
        let Ok(steps) = timeout(pool.limit, connection.open()?.fetch_many(query).try_collect()).await else {
            // Boxed to keep the futures of statements small.
            let is_reachable = Box::pin(pool.is_reachable()).await;
            let kind = if is_reachable { ErrorKind::ResourceBusy } else { ErrorKind::TimedOut };
            return Err(io_error(kind, "a statement was not answered"));
        };
        *awaits_result = false;
        connection.has_failed = steps.is_err();
        if let Err(sqlx::Error::Database(error)) = &steps
            && error::has_other_columns(error.as_ref())
        {
            // A migration has changed the result columns. Another connection prepares the statement
            // again.
            connection.open = None;
        }
        if steps.as_ref().is_err_and(error::is_lost) {
            pool.connections.manager().last_loss.record();
        }
        steps
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
        Box::pin(async move { self.connection.open()?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.connection.open()?.describe(sql).await })
    }
}

impl<'p> Executor<'p> for &'p Pool {
    run_by_steps!();

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.check_out().await?.connection.open()?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'p: 'e,
    {
        Box::pin(async move { self.check_out().await?.connection.open()?.describe(sql).await })
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
    async fn callers_wait_for_the_attempt_after_the_one_in_progress() -> Result<(), Box<dyn std::error::Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(listener.local_addr()?.port());
        let options = options.username("nobody").ssl_mode(PgSslMode::Disable);
        let connector = Connector {
            options: Mutex::new(options),
            prepare: Box::new(|_| Box::pin(async { Ok(()) })),
            last_loss: LastTime::default(),
            last_switch: LastTime::default(),
            runtime: None,
        };
        let pool = Pool::new(connector, 1, Duration::from_secs(1), Duration::from_secs(1))?;
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
