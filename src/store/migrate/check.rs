//! Checks whether a database has this program's schema, without changing anything.

use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

use refinery_core::Migration;
use sqlx::{Connection as _, FromRow, PgConnection, PgExecutor};

use crate::{
    Error, Result,
    store::migrate::{Files, connect, files::ServerKind, internal, objects},
};

/// Timeout of connecting. Without it, a server that drops packets would take minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";

/// Fails unless the database has the schema that this program was built for.
///
/// Returns [`Error::Conflict`], with what to do, when the schema is missing or another edition.
/// Returns [`Error::Outage`] without a connection, [`Error::Invalid`] for a malformed URL.
pub async fn check_url(database_url: &str) -> Result<()> {
    let mut connection = tokio::time::timeout(CONNECT_TIMEOUT, connect(database_url)).await.unwrap_or_else(|_| {
        let seconds = CONNECT_TIMEOUT.as_secs();
        Err(Error::Outage(format!("cannot connect to PostgreSQL: no answer within {seconds} s")))
    })?;
    let result = check(&mut connection).await;
    connection.close().await.ok();
    result
}

/// How a database's schema compares with this program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edition {
    Missing,
    /// Migrations are missing, or had another text when they were applied.
    Older,
    /// The schema is this program's.
    Same,
    /// All migrations are applied; functions and views are of another edition.
    Other,
    /// Migrations are applied that this program does not know.
    Newer,
}

/// The schema that a database records.
#[derive(Debug, FromRow)]
struct Applied {
    /// Version and checksum of each migration.
    migrations: Vec<String>,
    hash: Option<String>,
}

/// The schema of this program, cached: hashing the files takes longer than a query.
#[derive(Debug)]
struct Ours {
    /// Version and checksum of each migration.
    migrations: BTreeSet<String>,
    hash: String,
}

static OURS: LazyLock<Result<Ours>> = LazyLock::new(|| {
    let files = Files::embedded();
    let migrations = files.migrations.iter().map(|(path, text)| {
        let name = path.trim_start_matches("migrations/").trim_end_matches(".sql");
        Migration::unapplied(name, text)
            .map(|migration| format!("{} {}", migration.version(), migration.checksum()))
            .map_err(|error| internal(path, &error))
    });
    Ok(Ours { migrations: migrations.collect::<Result<_>>()?, hash: objects::hash_of(&files) })
});

/// Compares the schema of the connected database with this program's.
pub(crate) async fn edition(executor: impl PgExecutor<'_>) -> Result<Edition> {
    let ours = OURS.as_ref().map_err(Clone::clone)?;
    let applied = sqlx::query_as::<_, Applied>(
        "SELECT ARRAY(SELECT version || ' ' || checksum FROM centile_store.schema_history) AS migrations,
                (SELECT hash FROM centile_store.applied_sql) AS hash",
    )
    .fetch_one(executor)
    .await;
    let applied = match applied {
        Ok(applied) => applied,
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == UNDEFINED_TABLE) => {
            return Ok(Edition::Missing);
        }
        Err(error) => return Err(error.into()),
    };
    let migrations: BTreeSet<String> = applied.migrations.into_iter().collect();
    Ok(if !ours.migrations.is_subset(&migrations) {
        Edition::Older
    } else if ours.migrations != migrations {
        Edition::Newer
    } else if applied.hash.as_ref() == Some(&ours.hash) {
        Edition::Same
    } else {
        Edition::Other
    })
}

async fn check(connection: &mut PgConnection) -> Result<()> {
    if ServerKind::detect(connection).await? == ServerKind::Worker {
        return Err(Error::other_conflict("the database is a worker of a cluster: use its coordinator's URL"));
    }
    let refusal = match edition(connection).await? {
        Edition::Same => return Ok(()),
        Edition::Missing => "the database has no schema: run `centile migrate`",
        Edition::Newer => "the database was migrated by a newer version of Centile",
        Edition::Older | Edition::Other => "the database has another edition of the schema: run `centile migrate`",
    };
    Err(Error::other_conflict(refusal.to_owned()))
}
