//! The index of names, for `centile_store.users_named`. A migration would block writers of a large
//! table while it creates an index.

use sqlx::PgConnection;

use crate::{
    Result,
    store::migrate::{
        failed,
        lock_retry::{LockRetry, is_locked},
    },
};

/// Whether the index is complete; no row if it does not exist.
const IS_VALID: &str =
    "SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('centile_store.users_search_idx')";

/// NFKD separates letters from their accents, which do not count. A player without a name of their
/// own has the id as the name, and ids have an index.
const CREATE: &str = r#"
    CREATE INDEX CONCURRENTLY users_search_idx ON centile_store.users
        ((lower(regexp_replace(normalize(name, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu") COLLATE "C"))
        WHERE name <> external_id"#;

const DROP: &str = "DROP INDEX CONCURRENTLY centile_store.users_search_idx";

/// Creates the index unless it exists. An interrupted run leaves an incomplete one, which is
/// replaced.
pub(super) async fn create(connection: &mut PgConnection, retry: &mut LockRetry) -> Result<()> {
    loop {
        let is_valid: Option<bool> = sqlx::query_scalar(IS_VALID)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed("look for the index of names"))?;
        let statement = match is_valid {
            Some(true) => return Ok(()),
            Some(false) => DROP,
            None => CREATE,
        };
        match sqlx::raw_sql(statement).execute(&mut *connection).await {
            Err(error) if is_locked(&error) => retry.wait(connection).await?,
            done => done.map(drop).map_err(failed("create the index of names"))?,
        }
    }
}
