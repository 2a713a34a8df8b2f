//! Upgrades a database to this program's schema. It runs the migrations, each once and in order.
//! Then it replaces the functions and views under `sql/` if they differ from the database's, and
//! creates the index of names.
//!
//! Safe to run repeatedly, concurrently, and to kill at any point: a session-level advisory lock
//! admits one process, and every step is a transaction or can be repeated. No step waits long for a
//! lock ([`lock_retry`]). A pooler that shares sessions is refused: the lock would stay with a
//! session that others use next.

mod check;
mod cluster;
mod files;
mod fill;
mod lock_retry;
mod objects;
mod search_index;

pub(super) use check::Edition;
pub use check::check_url;
pub use cluster::init_cluster;
pub use files::Files;

pub(super) use check::edition;

use std::{fmt, time::Duration};

use refinery_core::{
    AsyncMigrate, Migration, Runner,
    error::Kind,
    traits::r#async::{AsyncQuery, AsyncTransaction},
};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, Row as _, postgres::PgConnectOptions};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::timeout;

use crate::{
    Error, Result,
    store::{
        hosts::Hosts,
        migrate::{
            files::ServerKind,
            lock_retry::{LOCK_TIMEOUT, LockRetry, is_locked},
        },
    },
};

/// Key of the advisory lock: "centile" in ASCII.
const LOCK: i64 = 0x0063_656e_7469_6c65;

/// Version of the migration that creates the first release's schema. Development versions had
/// others.
const BASELINE: i32 = 1;

/// The table in which refinery records applied migrations.
const HISTORY: &str = "centile_store.schema_history";

/// Creates that table, with the columns that refinery expects.
const CREATE_HISTORY: &str = "
    DO $$
    BEGIN
        IF to_regclass('centile_store.schema_history') IS NULL THEN
            CREATE TABLE centile_store.schema_history (
                version    integer NOT NULL,
                name       text    NOT NULL,
                applied_on text    NOT NULL,
                checksum   text    NOT NULL,
                CONSTRAINT schema_history_pkey PRIMARY KEY (version)
            );

            COMMENT ON TABLE centile_store.schema_history IS 'Which migrations were applied, when (RFC 3339), and a checksum of their text.';
        END IF;
    END
    $$";

/// Default time to keep trying to get locks.
pub const LOCK_WAIT: Duration = Duration::from_mins(5);

/// Pause before another look at whether another run has ended.
const OTHER_RUN_PAUSE: Duration = Duration::from_millis(100);

/// Timeout of the test for a pooler in transaction mode. In session mode the second connection may
/// have to wait for a session.
const POOLER_TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads in that test that must come from the same session.
const POOLER_TEST_READS: u32 = 5;

/// Result of a run of the migrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Names of the migrations that were applied, in order.
    pub migrations: Vec<String>,
    /// Number of files of functions and views applied; 0 when the database had this edition.
    pub objects: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.migrations.is_empty() && self.objects == 0 {
            return f.write_str("nothing to do: the schema is current");
        }
        let migrations = if self.migrations.is_empty() { "none".to_owned() } else { self.migrations.join(", ") };
        write!(f, "migrations applied: {migrations}; functions and views replaced: {} files", self.objects)
    }
}

/// Migrates the database that `pool` connects to, on a connection that is closed afterwards.
///
/// Returns [`Error::Outage`] without a connection, [`Error::Retry`] when other sessions held a lock for
/// [`LOCK_WAIT`]. Returns [`Error::Conflict`] when the database has the schema of a development
/// version before the baseline. Returns [`Error::Internal`], with PostgreSQL's message, when a step
/// fails or a newer program has migrated the database.
pub async fn migrate(pool: &PgPool) -> Result<Report> {
    let connection = pool.acquire().await.map_err(unavailable)?.detach();
    migrate_and_close(connection, &pool.connect_options(), &Files::embedded(), LOCK_WAIT).await
}

/// Migrates the database at `database_url`, like [`migrate`].
pub async fn migrate_url(database_url: &str) -> Result<Report> {
    migrate_within(database_url, LOCK_WAIT).await
}

/// Migrates like [`migrate`], and fails when other sessions hold a needed lock for `lock_wait`.
pub async fn migrate_within(database_url: &str, lock_wait: Duration) -> Result<Report> {
    migrate_to(database_url, &Files::embedded(), lock_wait).await
}

/// Migrates the database at `database_url` to the schema of `files`, like [`migrate_within`].
///
/// For tools that work on the files.
pub async fn migrate_to(database_url: &str, files: &Files, lock_wait: Duration) -> Result<Report> {
    let options = Hosts::parse(database_url)?.primary();
    migrate_and_close(connect(database_url).await?, &options, files, lock_wait).await
}

/// Connects to the database at `url`.
///
/// Returns [`Error::Invalid`] for a malformed URL, [`Error::Outage`] without a connection, and
/// [`Error::Conflict`] when a pooler in transaction mode answers.
async fn connect(url: &str) -> Result<PgConnection> {
    let hosts = Hosts::parse(url)?;
    if hosts.are_several() {
        let mut probe = hosts.probe();
        probe.new_primary().await;
        probe.close().await;
    }
    let options = hosts.primary();
    let mut connection = PgConnection::connect_with(&options).await.map_err(unavailable)?;
    match timeout(POOLER_TEST_TIMEOUT, shares_sessions(&options, &mut connection)).await {
        Ok(Ok(true)) => Err(Error::other_conflict(
            "DATABASE_URL leads to a pooler in transaction mode: set pool_mode = session, or give the address of PostgreSQL",
        )),
        Ok(Err(error)) => Err(unavailable(error)),
        Ok(Ok(false)) => Ok(connection),
        Err(_) => {
            tracing::warn!(
                "cannot tell whether DATABASE_URL leads to a pooler in transaction mode: PostgreSQL is slow"
            );
            Ok(connection)
        }
    }
}

/// Returns whether a pooler lends a session of the server for one transaction only.
///
/// A busy pooler, or one that lends its sessions in turn (`server_round_robin`), soon lends another
/// session. An idle one lends the same session to two connections. A test by chance, so it may miss
/// a pooler.
async fn shares_sessions(options: &PgConnectOptions, connection: &mut PgConnection) -> sqlx::Result<bool> {
    let first = backend(connection).await?;
    for _ in 0..POOLER_TEST_READS {
        if first != backend(connection).await? {
            return Ok(true);
        }
    }
    // A server without room for a second connection may still serve the first.
    let Ok(mut other) = PgConnection::connect_with(options).await else { return Ok(false) };
    let mut held = other.begin().await?;
    let second = backend(&mut held).await?;
    let is_shared = first == second || first != backend(connection).await?;
    held.rollback().await?;
    other.close().await.ok();
    Ok(is_shared)
}

/// Process id of the server's session. A prepared statement might already come to another one.
async fn backend(connection: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}

async fn migrate_and_close(
    mut connection: PgConnection,
    options: &PgConnectOptions,
    files: &Files,
    lock_wait: Duration,
) -> Result<Report> {
    let report = run(&mut connection, options, files, lock_wait).await;
    // Closing releases the lock, also after an error. If it fails, the server notices the lost
    // connection.
    connection.close().await.ok();
    report
}

async fn run(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
    files: &Files,
    lock_wait: Duration,
) -> Result<Report> {
    lock(connection).await?;
    let mut retry = LockRetry::new(lock_wait);
    let server = ServerKind::detect(connection).await?;
    if server != ServerKind::Single {
        return cluster::replace_functions(connection, options, files, server, &mut retry).await;
    }
    let migrations = apply_migrations(connection, files, &mut retry).await?;
    let objects = objects::apply(connection, files, server, &mut retry).await?;
    search_index::create(connection, lock_wait).await?;
    Ok(Report { migrations, objects })
}

/// Prepares a session for a run, and waits for the end of other runs.
async fn lock(connection: &mut PgConnection) -> Result<()> {
    // Waiting for another `migrate`, and building an index, may exceed the timeouts of a service.
    // Citus must not copy definitions to other servers: each server of a cluster is migrated.
    sqlx::raw_sql(
        "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
         SET citus.enable_ddl_propagation = off",
    )
    .execute(&mut *connection)
    .await
    .map_err(failed("prepare the session"))?;
    // A waiting statement would have a snapshot, for whose end CREATE INDEX CONCURRENTLY waits.
    loop {
        let query = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK);
        if query.fetch_one(&mut *connection).await.map_err(failed("lock the database against other migrations"))? {
            break;
        }
        tokio::time::sleep(OTHER_RUN_PAUSE).await;
    }
    sqlx::raw_sql(LOCK_TIMEOUT).execute(connection).await.map(drop).map_err(failed("limit waiting for locks"))
}

/// Applies the migrations that the database lacks; returns their names.
async fn apply_migrations(connection: &mut PgConnection, files: &Files, retry: &mut LockRetry) -> Result<Vec<String>> {
    let mut migrations = Vec::new();
    for (path, text) in &files.migrations {
        let name = path.trim_start_matches("migrations/").trim_end_matches(".sql");
        migrations.push(Migration::unapplied(name, text).map_err(|error| internal(path, &error))?);
    }
    let mut runner = Runner::new(&migrations);
    runner.set_migration_table_name(HISTORY);
    let mut session = Session { connection, retry, gave_up: None };
    let report = runner.run_async(&mut session).await;
    if let Some(error) = session.gave_up {
        return Err(error);
    }
    let report = report.map_err(|error| match error.kind() {
        Kind::DivergentVersion(applied, baseline) if baseline.version() == BASELINE => Error::other_conflict(format!(
            "this database has the schema of a development version before the baseline ({applied}), which cannot be \
             upgraded: create a new database, run `centile migrate` on it, export the scores with the program that made \
             this one, and import them there"
        )),
        _ => {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            Error::Internal(format!("cannot migrate: {error}{cause}"))
        }
    })?;
    Ok(report.applied_migrations().iter().map(ToString::to_string).collect())
}

/// A connection, adapted to refinery's traits.
struct Session<'a> {
    connection: &'a mut PgConnection,
    retry: &'a mut LockRetry,
    /// The error after the last retry. Refinery passes on errors of sqlx only.
    gave_up: Option<Error>,
}

impl AsyncTransaction for Session<'_> {
    type Error = sqlx::Error;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send + 'a>(&mut self, queries: T) -> Result<usize, sqlx::Error> {
        let queries: Vec<&str> = queries.collect();
        loop {
            match apply_migration(self.connection, &queries).await {
                Err(error) if is_locked(&error) => {
                    if let Err(reason) = self.retry.wait(self.connection).await {
                        self.gave_up = Some(reason);
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }
}

/// Runs a migration and records it in one transaction; returns the number of statements.
async fn apply_migration(connection: &mut PgConnection, queries: &[&str]) -> Result<usize, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    for (place, query) in queries.iter().enumerate() {
        // The first migration creates the schema of the history table, so the table is created
        // between that migration and the statement that records it.
        if place > 0 {
            sqlx::raw_sql(CREATE_HISTORY).execute(&mut *transaction).await?;
        }
        // Only migrations of this repository and refinery's own statements, no external input.
        sqlx::raw_sql(AssertSqlSafe((*query).to_owned())).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(queries.len())
}

impl AsyncQuery<Vec<Migration>> for Session<'_> {
    async fn query(&mut self, query: &str) -> Result<Vec<Migration>, sqlx::Error> {
        let there: bool = sqlx::query_scalar("SELECT to_regclass('centile_store.schema_history') IS NOT NULL")
            .fetch_one(&mut *self.connection)
            .await?;
        if !there {
            return Ok(Vec::new());
        }
        let rows = sqlx::query(AssertSqlSafe(query.to_owned())).fetch_all(&mut *self.connection).await?;
        rows.iter()
            .map(|row| {
                let applied_on: String = row.try_get("applied_on")?;
                let applied_on = OffsetDateTime::parse(&applied_on, &Rfc3339).map_err(undecodable)?;
                let checksum: String = row.try_get("checksum")?;
                let checksum = checksum.parse().map_err(undecodable)?;
                Ok(Migration::applied(row.try_get("version")?, row.try_get("name")?, applied_on, checksum))
            })
            .collect()
    }
}

impl AsyncMigrate for Session<'_> {
    fn assert_migrations_table_query(_: &str) -> String {
        String::new() // `apply_migration` creates the table
    }
}

fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

/// Returns an error that names the failed step before PostgreSQL's message.
fn failed(what: &str) -> impl FnOnce(sqlx::Error) -> Error {
    move |error| Error::Internal(format!("cannot {what}: {error}"))
}

fn internal(path: &str, error: &dyn std::error::Error) -> Error {
    Error::Internal(format!("{path}: {error}"))
}

fn unavailable(error: sqlx::Error) -> Error {
    match error {
        // The cause may repeat part of the URL, including the password.
        sqlx::Error::Configuration(_) => Error::invalid(
            "database_url",
            "cannot be read: it must look like postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        ),
        error => Error::Outage(format!("cannot connect to PostgreSQL: {error}")),
    }
}
