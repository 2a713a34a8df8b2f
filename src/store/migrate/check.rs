//! Whether a database has this program's schema, without changing anything.

use std::{collections::BTreeSet, time::Duration};

use refinery_core::Migration;
use sqlx::{Connection as _, PgConnection};

use super::{Files, failed, internal, objects, unavailable};
use crate::{Error, Result};

/// How long a server may take to let us in. One that drops packets would otherwise take minutes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Refuses a database whose schema is not the one that this program was built for, and says what to do about it.
///
/// [`Error::Conflict`] when there is no schema, or another edition of it; [`Error::Unavailable`] when there is no
/// connection; [`Error::Invalid`] when the address cannot be read.
pub async fn check_url(database_url: &str) -> Result<()> {
    let mut connection = match tokio::time::timeout(PATIENCE, PgConnection::connect(database_url)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(sqlx::Error::Configuration(error))) => {
            return Err(Error::invalid("database_url", format!("cannot be read: {error}")));
        }
        Ok(Err(error)) => return Err(unavailable(error)),
        Err(_) => {
            return Err(Error::unavailable(format!(
                "cannot connect to PostgreSQL: no answer within {} s",
                PATIENCE.as_secs()
            )));
        }
    };
    let result = check(&mut connection, &Files::embedded()).await;
    connection.close().await.ok();
    result
}

async fn check(connection: &mut PgConnection, files: &Files) -> Result<()> {
    let there: bool = sqlx::query_scalar(
        "SELECT to_regclass('centile_store.schema_history') IS NOT NULL
            AND to_regclass('centile_store.applied_sql') IS NOT NULL",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(failed("look for the schema"))?;
    if !there {
        return Err(Error::Conflict("the database has no schema yet: run `centile migrate`".to_owned()));
    }
    let known = files.migrations.iter().map(|(path, text)| {
        let name = path.trim_start_matches("migrations/").trim_end_matches(".sql");
        Migration::unapplied(name, text).map(|migration| migration.version()).map_err(|error| internal(path, &error))
    });
    let known: BTreeSet<i32> = known.collect::<Result<_>>()?;
    let applied: Vec<i32> = sqlx::query_scalar("SELECT version FROM centile_store.schema_history")
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("read centile_store.schema_history"))?;
    let applied = applied.into_iter().collect();
    if !known.is_superset(&applied) {
        return Err(Error::Conflict("the database was migrated by a newer Centile than this one".to_owned()));
    }
    let hash: Option<String> = sqlx::query_scalar("SELECT hash FROM centile_store.applied_sql")
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed("read centile_store.applied_sql"))?;
    if known != applied || hash != Some(objects::hash_of(files)) {
        return Err(Error::Conflict(
            "the database has another edition of the schema: run `centile migrate`".to_owned(),
        ));
    }
    Ok(())
}
