//! The index of names, for `centile_store.users_named`. A migration would block writers of a large
//! table while it creates an index.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection};

use crate::{
    Code, Error, Result,
    store::migrate::{failed, lock_retry::is_locked},
};

/// Whether the index is complete; no row if it does not exist.
const IS_VALID: &str =
    "SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('centile_store.users_search_idx')";

/// NFKD separates letters from their accents, which do not count, and the final sigma is a sigma. A
/// player without a name of their own has the id as the name, and ids have an index.
const CREATE: &str = r#"
    CREATE INDEX CONCURRENTLY users_search_idx ON centile_store.users
        ((translate(lower(regexp_replace(normalize(name, NFKD), '[\u0300-\u036f]', '', 'g') COLLATE "und-x-icu"), 'ς', 'σ') COLLATE "C"))
        WHERE name <> external_id"#;

const DROP: &str = "DROP INDEX CONCURRENTLY centile_store.users_search_idx";

/// Creates the index unless it exists. An interrupted run leaves an incomplete one, which is
/// replaced. Waits up to `wait` for the end of earlier transactions: nothing queues behind this
/// wait, and another attempt would start from scratch.
pub(super) async fn create(connection: &mut PgConnection, wait: Duration) -> Result<()> {
    let query = sqlx::query_scalar(IS_VALID).fetch_optional(&mut *connection);
    let statements: &[&str] = match query.await.map_err(failed("look for the index of names"))? {
        Some(true) => return Ok(()),
        Some(false) => &[DROP, CREATE],
        None => &[CREATE],
    };
    tracing::info!("creating the index of names");
    let limit = format!("SET lock_timeout = '{}ms'", wait.as_millis());
    sqlx::raw_sql(AssertSqlSafe(limit)).execute(&mut *connection).await.map_err(failed("limit waiting for locks"))?;
    for statement in statements {
        match sqlx::raw_sql(*statement).execute(&mut *connection).await {
            Err(error) if is_locked(&error) => {
                let message = format!(
                    "the index of names is incomplete: transactions that began before it have not ended for {} s; end them and migrate again",
                    wait.as_secs()
                );
                return Err(Error::retry(Code::Unavailable, message));
            }
            done => done.map(drop).map_err(failed("create the index of names"))?,
        }
    }
    Ok(())
}
