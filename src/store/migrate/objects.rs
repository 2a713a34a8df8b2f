//! Functions and views, replaced in one transaction when their files have changed.
//!
//! If the signature and result of an object are unchanged, it is replaced in place, with the rights
//! that users granted. So the users' own views on it survive. Other objects are dropped and
//! created, never with CASCADE. If a user's object depends on one of these, nothing changes, and
//! the error names the user's object. Objects of users and extensions in our schemas stay:
//! `centile_store.applied_objects` lists ours.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{
    Code, Error, Result,
    store::migrate::{
        failed,
        files::{File, Files, ServerKind},
        internal,
        lock_retry::{LockRetry, is_locked},
    },
};

/// All functions and views of our schemas. Under an empty search path, a label is always the same.
const OBJECTS: &str = "
    SELECT 'pg_proc'::regclass AS class, p.oid, p.proname::text AS name, format('ROUTINE %s', p.oid::regprocedure) AS label,
           obj_description(p.oid, 'pg_proc') AS comment
    FROM pg_proc p WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
    UNION ALL
    SELECT 'pg_class'::regclass, c.oid, c.relname::text, format('VIEW %s', c.oid::regclass), obj_description(c.oid, 'pg_class')
    FROM pg_class c WHERE c.relnamespace = 'centile'::regnamespace AND c.relkind = 'v'";

/// Of [`OBJECTS`] as `o`, those that Centile created, in this run or earlier.
const IS_OURS: &str = "o.label <> ALL (current_setting('centile.foreign')::text[])";

/// Records the objects of editions that recorded none: theirs have an example in the comment, or a
/// name of this edition.
const ADOPT: &str = "
    INSERT INTO centile_store.applied_objects (name)
    SELECT o.label FROM ({OBJECTS}) o
    WHERE NOT EXISTS (SELECT FROM centile_store.applied_objects) AND (o.comment LIKE '% Example: %;' OR o.name = ANY ($1))";

/// Notes the objects that Centile did not create, and returns those with a name of this edition.
const FIND_FOREIGN: &str = "
    WITH foreigner AS (
        SELECT o.label, o.name FROM ({OBJECTS}) o WHERE o.label NOT IN (SELECT a.name FROM centile_store.applied_objects a)
    ), noted AS MATERIALIZED (
        SELECT set_config('centile.foreign', coalesce(array_agg(f.label), '{}')::text, true) FROM foreigner f
    )
    SELECT string_agg(f.label, ', ') FROM noted LEFT JOIN foreigner f ON f.name = ANY ($1)";

/// Removes the comments of our functions and views, and the rights that an earlier edition granted.
/// Each file comments on its object and grants rights on it again. An object that still lacks a
/// comment when all files have run belongs to an earlier edition.
///
/// Drops the function that generates others while the files run: its earlier edition must not
/// generate any.
const PREPARE: &str = "
    DO $$
    DECLARE
        v_object record;
    BEGIN
        FOR v_object IN SELECT o.name, o.label FROM ({OBJECTS}) o WHERE {IS_OURS} LOOP
            IF v_object.name = 'create_bucket_function' THEN
                EXECUTE 'DROP ' || v_object.label;
            ELSE
                EXECUTE format('COMMENT ON %s IS NULL', v_object.label);
                EXECUTE format('REVOKE ALL ON %s FROM centile_reader, centile_service, centile_operator, centile_writer', regexp_replace(v_object.label, '^VIEW ', 'TABLE '));
            END IF;
        END LOOP;
    END
    $$";

/// Drops our functions and views of these names with everything of ours that depends on them.
/// Without names, drops those that lack a comment. Never uses CASCADE: dependent objects are dropped
/// first.
const DROP: &str = "
    DO $$
    DECLARE
        v_names   text[] := nullif(current_setting('centile.names'), '')::text[];
        v_command text;
        v_detail  text;
        v_left    integer;
        v_before  integer := -1;
    BEGIN
        LOOP
            v_left := 0;
            FOR v_command IN
                WITH RECURSIVE ours AS (
                    SELECT o.* FROM ({OBJECTS}) o WHERE {IS_OURS}
                ), gone AS (
                    SELECT o.class, o.oid FROM ours o
                    WHERE CASE WHEN v_names IS NULL THEN o.comment IS NULL ELSE o.name = ANY (v_names) END
                    UNION
                    SELECT o.class, o.oid
                    FROM gone g
                    JOIN pg_depend d ON d.refclassid = g.class AND d.refobjid = g.oid
                    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                    JOIN ours o ON (o.class, o.oid) = (d.classid, d.objid) OR (o.class, o.oid) = ('pg_class'::regclass, r.ev_class)
                    WHERE v_names IS NOT NULL
                )
                SELECT 'DROP ' || o.label FROM gone g JOIN ours o USING (class, oid)
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
                RAISE EXCEPTION 'objects that Centile did not create depend on functions or views that this edition changes: %', v_detail
                    USING ERRCODE = 'dependent_objects_still_exist';
            END IF;
            v_before := v_left;
        END LOOP;
    END
    $$";

/// Records our objects, for the next edition.
const RECORD: &str = "
    DELETE FROM centile_store.applied_objects;
    INSERT INTO centile_store.applied_objects (name) SELECT o.label FROM ({OBJECTS}) o WHERE {IS_OURS}";

/// SQLSTATEs of an object that cannot be replaced in place: another result, other names of
/// parameters or columns, another kind.
const NOT_REPLACEABLE: [&str; 3] = ["42P13", "42P16", "42809"];

/// Class of the SQLSTATEs of an object that refers to one that does not exist yet, or that still is
/// of the earlier edition: without a new column, of another type, or beside its replacement.
const NOT_THERE_YET: &str = "42";

/// Names of functions that exist with an earlier list of arguments, too. A call may mean either, so
/// both are dropped, and the files run again.
const DOUBLED: &str = "
    SELECT DISTINCT earlier.proname::text
    FROM pg_proc earlier
    JOIN pg_proc current ON (current.pronamespace, current.proname) = (earlier.pronamespace, earlier.proname)
    WHERE earlier.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
      AND obj_description(earlier.oid, 'pg_proc') IS NULL AND obj_description(current.oid, 'pg_proc') IS NOT NULL";

/// Replaces functions and views in one transaction if they are of another edition; returns the
/// number of files.
///
/// Retries while other sessions hold locks that it needs.
pub(super) async fn apply(
    connection: &mut PgConnection,
    files: &Files,
    server: ServerKind,
    retry: &mut LockRetry,
) -> Result<usize> {
    let hash = hash_of(files);
    loop {
        match replace(connection, files, server, &hash).await {
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

async fn replace(
    connection: &mut PgConnection,
    files: &Files,
    server: ServerKind,
    hash: &str,
) -> Result<usize, Failure> {
    let mut transaction = connection.begin().await.map_err(failed("begin"))?;
    // Another process may have applied this edition in the meantime.
    let applied: Option<String> = sqlx::query_scalar("SELECT hash FROM centile_store.applied_sql")
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed("read centile_store.applied_sql"))?;
    if applied.as_deref() == Some(hash) {
        return Ok(0);
    }
    prepare(&mut transaction, files).await?;
    let objects = files.objects_of(server);
    // Run all files. Drop the objects that cannot be replaced in place, and run the files again.
    let mut dropped: Vec<String> = Vec::new();
    loop {
        let (names, error) = create(&mut transaction, &objects).await?;
        if let Some(error) = error
            && (names.is_empty() || names.iter().any(|name| dropped.contains(name)))
        {
            return Err(Failure::Other(error));
        }
        if names.is_empty() {
            break;
        }
        drop_objects(&mut transaction, &names).await?;
        dropped.extend(names);
    }
    // Drop the objects of earlier editions, which have no file any more.
    drop_objects(&mut transaction, &[]).await?;
    // Record the objects and the edition, and grant the privileges.
    sqlx::raw_sql(statement(RECORD))
        .execute(&mut *transaction)
        .await
        .map_err(failed("record the functions and views"))?;
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
    Ok(objects.len())
}

/// Completes the text of a statement.
fn statement(text: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(text.replace("{IS_OURS}", IS_OURS).replace("{OBJECTS}", OBJECTS))
}

/// Finds out which objects are ours, and makes them ready for their replacement.
///
/// Fails if others have names of this edition.
async fn prepare(transaction: &mut PgConnection, files: &Files) -> Result<(), Failure> {
    // An empty search path makes every file in sql/ qualify its names.
    sqlx::raw_sql("SET LOCAL search_path = ''").execute(&mut *transaction).await.map_err(failed("set search_path"))?;
    let names: Vec<&str> = files.objects.iter().map(|(path, _)| object_name(path)).collect();
    sqlx::query(statement(ADOPT))
        .bind(&names)
        .execute(&mut *transaction)
        .await
        .map_err(failed("record the functions and views of the earlier edition"))?;
    let foreign: Option<String> = sqlx::query_scalar(statement(FIND_FOREIGN))
        .bind(&names)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed("find functions and views of others"))?;
    if let Some(foreign) = foreign {
        return Err(Failure::Other(Error::other_conflict(format!(
            "{foreign} has the name of an object of Centile, but another user created it: rename or drop it, then run `centile migrate` again"
        ))));
    }
    sqlx::raw_sql(statement(PREPARE)).execute(&mut *transaction).await.map_err(|error| {
        failure(&error, |error| Error::Internal(format!("cannot prepare the functions and views: {error}")))
    })?;
    Ok(())
}

/// Drops all of our functions and views.
pub(super) async fn drop_all(connection: &mut PgConnection, files: &Files) -> Result<()> {
    let mut transaction = connection.begin().await.map_err(failed("begin"))?;
    let dropped = async {
        prepare(&mut transaction, files).await?;
        drop_objects(&mut transaction, &[]).await
    };
    match dropped.await {
        Err(Failure::Locked) => Err(Error::retry(
            Code::Unavailable,
            "other sessions use the functions or views: end them, and run `centile cluster init` again",
        )),
        Err(Failure::Other(error)) => Err(error),
        Ok(()) => transaction.commit().await.map_err(failed("commit the removal of functions and views")),
    }
}

/// Drops the functions and views of these names, or, without names, those that lack a comment.
async fn drop_objects(transaction: &mut PgConnection, names: &[String]) -> Result<(), Failure> {
    let list = if names.is_empty() { String::new() } else { format!("{{{}}}", names.join(",")) };
    sqlx::query("SELECT set_config('centile.names', $1, true)")
        .bind(list)
        .execute(&mut *transaction)
        .await
        .map_err(failed("name functions and views"))?;
    sqlx::raw_sql(statement(DROP)).execute(&mut *transaction).await.map_err(|error| {
        failure(&error, |error| Error::other_conflict(format!("cannot replace the functions and views: {error}")))
    })?;
    Ok(())
}

/// Runs every file. A file that needs an object of a later file runs again after that file.
///
/// Returns the names of the objects that have to be dropped before all files can run, and the first
/// error. Without names and error all files have run.
async fn create(connection: &mut PgConnection, files: &[&File]) -> Result<(Vec<String>, Option<Error>), Failure> {
    let mut left: Vec<&File> = files.to_vec();
    let mut names: Vec<String> = Vec::new();
    let mut refused = None;
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
                    if NOT_REPLACEABLE.contains(&code.as_ref()) {
                        refused.get_or_insert_with(|| internal(path, &error));
                        names.push(object_name(path).to_owned());
                    } else if code.starts_with(NOT_THERE_YET) {
                        first_error.get_or_insert_with(|| internal(path, &error));
                        later.push(object);
                    } else {
                        return Err(failure(&error, |error| internal(path, error)));
                    }
                }
            }
        }
        if later.is_empty() || later.len() == before {
            let doubled: Vec<String> = sqlx::query_scalar(DOUBLED)
                .fetch_all(&mut *connection)
                .await
                .map_err(failed("find the functions of the earlier edition"))?;
            names.extend(doubled);
            return Ok((names, refused.or(first_error)));
        }
        left = later;
    }
}

/// Returns the name of a file's object, which is the name of the file.
fn object_name(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.trim_end_matches(".sql")
}

/// Returns the edition of functions, views and grants: a SHA-256 over the names and texts of all
/// files.
pub(super) fn hash_of(files: &Files) -> String {
    let mut hasher = Sha256::new();
    for (path, text) in files.objects.iter().chain(&files.overrides).chain([&files.grants]) {
        hasher.update(path.as_bytes());
        hasher.update([0]);
        hasher.update(text.as_bytes());
        hasher.update([0]);
    }
    URL_SAFE_NO_PAD.encode(hasher.finalize())
}
