//! Whether a database has this program's schema, without changing anything.

use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

use refinery_core::Migration;
use sqlx::{Connection as _, FromRow, PgConnection, PgExecutor};

use crate::{
    Error, Result,
    store::migrate::{Files, connect, internal, objects},
};

/// How long a server may take to let us in. One that drops packets would otherwise take minutes.
const PATIENCE: Duration = Duration::from_secs(10);

/// SQLSTATE of a table that is not there.
const UNDEFINED_TABLE: &str = "42P01";

/// Refuses a database whose schema is not the one that this program was built for, and says what to do about it.
///
/// [`Error::Conflict`] when there is no schema, or another edition of it; [`Error::Unavailable`] when there is no
/// connection; [`Error::Invalid`] when the address cannot be read.
pub async fn check_url(database_url: &str) -> Result<()> {
    let mut connection = tokio::time::timeout(PATIENCE, connect(database_url)).await.unwrap_or_else(|_| {
        Err(Error::unavailable(format!("cannot connect to PostgreSQL: no answer within {} s", PATIENCE.as_secs())))
    })?;
    let result = check(&mut connection).await;
    connection.close().await.ok();
    result
}

/// How a database's schema compares with the one that this program was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edition {
    /// There is none.
    Missing,
    /// Migrations have not been applied that this program needs, or had another text.
    Older,
    /// It is the one.
    Same,
    /// All its migrations are there; functions and views are of another edition.
    Other,
    /// Migrations were applied that this program does not know.
    Newer,
}

/// What a database says of its schema.
#[derive(Debug, FromRow)]
struct Applied {
    /// Versions and checksums.
    migrations: Vec<String>,
    hash: Option<String>,
}

/// What the files of this program come to. Hashing them takes longer than asking a database.
#[derive(Debug)]
struct Ours {
    /// Versions and checksums.
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

/// The edition of the schema that `executor` is connected to, beside that of this program.
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
    let refusal = match edition(connection).await? {
        Edition::Same => return Ok(()),
        Edition::Missing => "the database has no schema yet: run `centile migrate`",
        Edition::Newer => "the database was migrated by a newer Centile than this one",
        Edition::Older | Edition::Other => "the database has another edition of the schema: run `centile migrate`",
    };
    Err(Error::Conflict(refusal.to_owned()))
}
