//! Functions and views: replaced together when their files have changed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{
    Error, Result,
    store::migrate::{
        failed,
        files::{File, Files},
        internal,
        lock_retry::{LockRetry, is_locked},
    },
};

/// Drops all functions and views of schema `centile`, all functions of `centile_store`, and the
/// triggers that call them.
///
/// This covers objects of earlier editions under names that are no longer used. It never drops a
/// table and never uses CASCADE: an object with dependents is retried after them.
///
/// An outside object that depends on one of these stops the whole step, and nothing changes.
/// Archives (materialized views) therefore refer to tables only. A user's own view over `centile`
/// must be dropped by its owner before an upgrade that changes `sql/`, and created again after it;
/// the error names it.
const DROP: &str = "
    DO $$
    DECLARE
        v_command text;

        v_detail  text;
        v_left    integer;
        v_before  integer := -1;
    BEGIN
        LOOP
            v_left := 0;
            FOR v_command IN
                SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
                FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
                    AND NOT t.tgisinternal AND t.tgparentid = 0
                UNION ALL
                SELECT format('DROP VIEW %s', c.oid::regclass)
                FROM pg_class c
                WHERE c.relnamespace = 'centile'::regnamespace AND c.relkind = 'v'
                UNION ALL
                SELECT format('DROP ROUTINE %s', p.oid::regprocedure)
                FROM pg_proc p
                WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
                    AND NOT EXISTS (
                        SELECT FROM pg_depend d
                        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                    )
            LOOP
                BEGIN
                    EXECUTE v_command;
                EXCEPTION WHEN dependent_objects_still_exist THEN
                    v_left := v_left + 1;
                    GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
                END;
            END LOOP;
            EXIT WHEN v_left = 0;
            IF v_left = v_before THEN
                RAISE EXCEPTION 'functions or views cannot be replaced, because objects that Centile did not make depend on them: %', v_detail
                    USING ERRCODE = 'dependent_objects_still_exist';
            END IF;
            v_before := v_left;
        END LOOP;
    END
    $$";

/// SQLSTATEs of a reference to a missing function, table or object.
const UNDEFINED_OBJECT: [&str; 3] = ["42883", "42P01", "42704"];

/// Replaces functions and views in one transaction if they are of another edition; returns the
/// number of files.
///
/// Retries while other sessions hold locks that it needs.
pub(super) async fn apply(connection: &mut PgConnection, files: &Files, retry: &mut LockRetry) -> Result<usize> {
    let hash = hash_of(files);
    loop {
        match replace(connection, files, &hash).await {
            Err(Failure::Locked) => retry.wait(connection).await?,
            Err(Failure::Other(error)) => return Err(error),
            Ok(objects) => return Ok(objects),
        }
    }
}

/// Why functions and views were not replaced.
enum Failure {
    /// Another session held a lock.
    Locked,
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Classifies a failed statement. `describe` builds the error unless a lock was held.
fn failure(error: &sqlx::Error, describe: impl FnOnce(&sqlx::Error) -> Error) -> Failure {
    if is_locked(error) { Failure::Locked } else { Failure::Other(describe(error)) }
}

async fn replace(connection: &mut PgConnection, files: &Files, hash: &str) -> Result<usize, Failure> {
    let mut transaction = connection.begin().await.map_err(failed("begin"))?;
    let applied: Option<String> = sqlx::query_scalar("SELECT hash FROM centile_store.applied_sql")
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed("read centile_store.applied_sql"))?;
    if applied.as_deref() == Some(hash) {
        return Ok(0);
    }
    // An empty search path makes every file in sql/ qualify its names.
    sqlx::raw_sql("SET LOCAL search_path = ''").execute(&mut *transaction).await.map_err(failed("set search_path"))?;
    sqlx::raw_sql(DROP).execute(&mut *transaction).await.map_err(|error| {
        failure(&error, |error| Error::Internal(format!("cannot drop the previous functions and views: {error}")))
    })?;
    create(&mut transaction, files).await?;
    let (path, text) = &files.grants;
    sqlx::raw_sql(AssertSqlSafe(text.clone()))
        .execute(&mut *transaction)
        .await
        .map_err(|error| failure(&error, |error| internal(path, error)))?;
    sqlx::raw_sql("DELETE FROM centile_store.applied_sql")
        .execute(&mut *transaction)
        .await
        .map_err(failed("forget the previous edition"))?;
    sqlx::query("INSERT INTO centile_store.applied_sql (hash, applied_at) VALUES ($1, now())")
        .bind(hash)
        .execute(&mut *transaction)
        .await
        .map_err(failed("write centile_store.applied_sql"))?;
    transaction.commit().await.map_err(failed("commit the functions and views"))?;
    Ok(files.objects.len())
}

/// Runs every file. A file that needs an object of a later file is retried after that.
async fn create(connection: &mut PgConnection, files: &Files) -> Result<(), Failure> {
    let mut left: Vec<&File> = files.objects.iter().collect();
    loop {
        let before = left.len();
        let mut later = Vec::new();
        let mut first_error = None;
        for object @ (path, text) in left {
            let mut savepoint = connection.begin().await.map_err(failed("set a savepoint"))?;
            match sqlx::raw_sql(AssertSqlSafe(text.clone())).execute(&mut *savepoint).await {
                Ok(_) => savepoint.commit().await.map_err(failed("release a savepoint"))?,
                Err(error) => {
                    savepoint.rollback().await.map_err(failed("roll back to a savepoint"))?;
                    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default();
                    if !UNDEFINED_OBJECT.contains(&code.as_ref()) {
                        return Err(failure(&error, |error| internal(path, error)));
                    }
                    first_error.get_or_insert_with(|| internal(path, &error));
                    later.push(object);
                }
            }
        }
        match first_error {
            None => return Ok(()),
            Some(error) if later.len() == before => return Err(Failure::Other(error)),
            Some(_) => left = later,
        }
    }
}

/// Returns the edition of functions, views and grants: a SHA-256 over the names and texts of all
/// files.
pub(super) fn hash_of(files: &Files) -> String {
    let mut hasher = Sha256::new();
    for (path, text) in files.objects.iter().chain([&files.grants]) {
        hasher.update(path.as_bytes());
        hasher.update([0]);
        hasher.update(text.as_bytes());
        hasher.update([0]);
    }
    URL_SAFE_NO_PAD.encode(hasher.finalize())
}
