//! Copies the database of a single server into an empty cluster.
//!
//! One transaction reads the source, and locks its tables against changes. Each step copies one
//! table to one worker, in its own transaction. After an interruption, the next run skips completed
//! steps, unless the source has changed or a server of the cluster has failed over. The last step
//! fills the coordinator, and only its commit makes boards visible.

pub(super) mod source;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, postgres::PgConnectOptions};

use self::source::SourceDatabase;
use crate::{
    Code, Error, Result,
    store::{
        cluster,
        migrate::{failed, unavailable},
    },
};

/// Prepares a session that may be idle while others copy, and whose commits are durable.
const PATIENT: &str = "
    SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;
    SET synchronous_commit = on";

/// Disables foreign keys and triggers for the transaction, so that rows are copied unchanged.
const AS_THEY_ARE: &str = "SET LOCAL session_replication_role = replica";

/// Fills the copies of tables that workers read.
const FILL_COPIES: &str = "
    SET LOCAL session_replication_role = origin;
    DO $$
    DECLARE
        v_table text;
    BEGIN
        FOREACH v_table IN ARRAY '{boards,periods,rankings,profile_revision}'::text[] LOOP
            EXECUTE format('DELETE FROM centile_lanes.%I', v_table);
            EXECUTE (SELECT format('INSERT INTO centile_lanes.%1$I (%2$s) SELECT %2$s FROM centile_store.%1$I', v_table,
                         string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum))
                     FROM pg_attribute a
                     WHERE a.attrelid = format('centile_store.%I', v_table)::regclass AND a.attnum > 0 AND NOT a.attisdropped
                       AND a.atttypid <> 'bytea'::regtype);
        END LOOP;
    END
    $$";

/// The statements that create each archive.
const ARCHIVES: &str = "
    SELECT array_remove(ARRAY[format('CREATE %s %s AS %s', k.kind, c.oid::regclass,
                                     CASE c.relkind WHEN 'm' THEN pg_get_viewdef(c.oid) ELSE centile_store.archive_query(p.id) END),
                 format('COMMENT ON %s %s IS %L', k.kind, c.oid::regclass, obj_description(c.oid, 'pg_class')),
                 format('GRANT SELECT ON %s TO centile_reader, centile_service', c.oid::regclass)], NULL)
           || ARRAY(SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid ORDER BY i.indexrelid)
           || format('ANALYZE %s', c.oid::regclass)
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id AND b.mode <> 'combined'
    JOIN pg_class c ON c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p.archive_name
    CROSS JOIN LATERAL (SELECT CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END AS kind) k
    ORDER BY p.id";

/// Computes the rankings of combined boards from the copied sources, as the service does.
const COMBINE: &str = "
    UPDATE centile_store.periods p SET archive_name = NULL
    FROM centile_store.boards b WHERE b.id = p.board_id AND b.mode = 'combined';
    DO $$
    DECLARE
        v_board_id integer;
    BEGIN
        FOR v_board_id IN SELECT c.board_id FROM centile_store.combined_boards() c WHERE c.as_of IS NOT NULL LOOP
            PERFORM centile_store.build_combination(v_board_id);
            PERFORM centile_store.finish_combination(v_board_id, NULL, 0);
        END LOOP;
    END
    $$";

/// A worker of the cluster, with the lanes that it has.
struct Worker {
    connection: PgConnection,
    lanes: Vec<i16>,
}

/// Copies the database that `source` is connected to into the cluster of `coordinator`.
///
/// Returns [`Error::Conflict`] if the cluster has boards or players, or the source is in use.
pub(super) async fn fill(
    coordinator: &mut PgConnection,
    options: &PgConnectOptions,
    mut source: PgConnection,
    lanes: i64,
) -> Result<()> {
    run(coordinator, PATIENT).await?;
    begin_filling(coordinator).await?;
    let mut source = SourceDatabase::lock(&mut source, lanes).await?;
    let mut workers = workers(coordinator, options, lanes).await?;
    check_epoch(&mut workers).await?;
    let state = state(coordinator, &mut source).await?;
    for worker in &mut workers {
        copy_lanes(coordinator, &mut source, worker, &state).await?;
    }
    let mut coordinator = coordinator.begin().await.map_err(failed("begin"))?;
    copy_rest(&mut coordinator, &mut source).await?;
    advance_sequences(&mut coordinator, &mut source, &mut workers).await?;
    create_archives(&mut coordinator, &mut source).await?;
    run(&mut coordinator, "DROP TABLE centile_lanes.filling").await?;
    // These fail if a worker has failed over, or the source is no longer locked.
    check_epoch(&mut workers).await?;
    run(&mut source.transaction, "SELECT").await?;
    coordinator.commit().await.map_err(failed("commit the copied boards"))
}

/// Fails if a copy into the cluster was interrupted.
pub(super) async fn check_filled(coordinator: &mut PgConnection) -> Result<()> {
    let is_partial: bool = sqlx::query_scalar("SELECT to_regclass('centile_lanes.filling') IS NOT NULL")
        .fetch_one(coordinator)
        .await
        .map_err(failed("look for an interrupted copy"))?;
    if is_partial {
        return Err(Error::other_conflict("a copy into the cluster was interrupted: run it again with --from"));
    }
    Ok(())
}

/// Marks the cluster as being filled. Fails if it has boards, or players that no interrupted copy has
/// left.
async fn begin_filling(coordinator: &mut PgConnection) -> Result<()> {
    let is_used: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM centile_store.boards)
             OR to_regclass('centile_lanes.filling') IS NULL AND EXISTS (SELECT FROM centile_store.users)",
    )
    .fetch_one(&mut *coordinator)
    .await
    .map_err(failed("look for boards"))?;
    if is_used {
        return Err(Error::other_conflict(
            "the cluster has boards or players; if an interrupted copy created them, the copy is complete",
        ));
    }
    // A row is a completed step. A later run skips the step only if it finds the same state.
    run(coordinator, "CREATE TABLE IF NOT EXISTS centile_lanes.filling (step text NOT NULL, state text NOT NULL)").await
}

/// Forgets the steps of other states. Returns the state: a string that changes when the source
/// changes, and when a server of the cluster fails over, because a worker may then have lost commits.
async fn state(coordinator: &mut PgConnection, source: &mut SourceDatabase<'_>) -> Result<String> {
    let epoch: String = sqlx::query_scalar("SELECT centile.epoch()")
        .fetch_one(&mut *coordinator)
        .await
        .map_err(failed("read the epoch of the cluster"))?;
    let state = format!("{epoch} {}", source.state().await?);
    // Another state may be of another source, whose rows then replaced those of earlier steps.
    sqlx::query("DELETE FROM centile_lanes.filling f WHERE f.state <> $1")
        .bind(&state)
        .execute(coordinator)
        .await
        .map_err(failed("forget outdated steps"))?;
    Ok(state)
}

/// Fails if a worker has failed over and not all servers have the new epoch.
async fn check_epoch(workers: &mut [Worker]) -> Result<()> {
    for worker in workers {
        run(&mut worker.connection, "SELECT centile_lanes.check_epoch()").await?;
    }
    Ok(())
}

async fn workers(coordinator: &mut PgConnection, options: &PgConnectOptions, count: i64) -> Result<Vec<Worker>> {
    let servers: Vec<(String, i32, Vec<i16>)> = sqlx::query_as(
        "SELECT n.nodename, n.nodeport, array_remove(array_agg(l.lane ORDER BY l.lane), NULL)
         FROM pg_dist_node n
         LEFT JOIN centile_lanes.groups g ON g.node = n.groupid
         LEFT JOIN LATERAL unnest(g.lanes) AS l (lane) ON true
         WHERE n.groupid > 0 AND n.noderole = 'primary' AND n.isactive
         GROUP BY n.nodename, n.nodeport",
    )
    .fetch_all(coordinator)
    .await
    .map_err(failed("read the servers of the lanes"))?;
    if i64::try_from(servers.iter().map(|(.., lanes)| lanes.len()).sum::<usize>()) != Ok(count) {
        return Err(Error::retry(Code::ConcurrentChange, "lanes are being moved: run the command again"));
    }
    let mut workers = Vec::with_capacity(servers.len());
    for (host, port, lanes) in servers {
        let options = cluster::options_for(options, &host, port);
        let mut connection = PgConnection::connect_with(&options).await.map_err(unavailable)?;
        run(&mut connection, PATIENT).await?;
        workers.push(Worker { connection, lanes });
    }
    Ok(workers)
}

/// Copies the rows of a worker's lanes, a table at a time. Skips the tables that are copied already.
async fn copy_lanes(
    coordinator: &mut PgConnection,
    source: &mut SourceDatabase<'_>,
    worker: &mut Worker,
    state: &str,
) -> Result<()> {
    let list = format!("{{{}}}", worker.lanes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    for table in source.tables_of_lanes(&list) {
        let step = format!("{} of lanes {list}", table.name);
        let is_copied: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM centile_lanes.filling f WHERE f.step = $1 AND f.state = $2)",
        )
        .bind(&step)
        .bind(state)
        .fetch_one(&mut *coordinator)
        .await
        .map_err(failed("look for a completed step"))?;
        if is_copied {
            continue;
        }
        let mut transaction = worker.connection.begin().await.map_err(failed("begin"))?;
        run(&mut transaction, AS_THEY_ARE).await?;
        sqlx::query("SELECT centile_lanes.hold(l) FROM unnest($1) AS l")
            .bind(&worker.lanes)
            .execute(&mut *transaction)
            .await
            .map_err(failed("hold the lanes"))?;
        source.copy(&table, &mut transaction).await?;
        transaction.commit().await.map_err(failed("commit the copied rows"))?;
        sqlx::query("INSERT INTO centile_lanes.filling (step, state) VALUES ($1, $2)")
            .bind(&step)
            .bind(state)
            .execute(&mut *coordinator)
            .await
            .map_err(failed("record a completed step"))?;
    }
    Ok(())
}

/// Copies all other tables to the coordinator.
async fn copy_rest(coordinator: &mut PgConnection, source: &mut SourceDatabase<'_>) -> Result<()> {
    run(coordinator, AS_THEY_ARE).await?;
    for table in source.other_tables() {
        source.copy(&table, coordinator).await?;
    }
    run(coordinator, FILL_COPIES).await
}

/// Advances the sequences of all servers beyond the ids of the source.
async fn advance_sequences(
    coordinator: &mut PgConnection,
    source: &mut SourceDatabase<'_>,
    workers: &mut [Worker],
) -> Result<()> {
    let (user, transaction): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT coalesce(max(id), 0) FROM centile_store.users),
                greatest((SELECT max(id) FROM centile_store.score_transactions), (SELECT max(id) FROM centile_store.quarantine), 0)",
    )
    .fetch_one(&mut *source.transaction)
    .await
    .map_err(failed("read the highest ids"))?;
    let next = format!(
        "SELECT setval(s, greatest(nextval(s), (v / 64 + 1) * 64 + groupid), false)
         FROM pg_dist_local_group
         CROSS JOIN (VALUES ('centile_lanes.user_ids'::regclass, {user}::bigint), ('centile_lanes.ids', {transaction})) AS t (s, v)"
    );
    for worker in workers {
        run(&mut worker.connection, &next).await?;
    }
    run(coordinator, &next).await?;
    run(coordinator, &format!("UPDATE centile_lanes.last_id SET id = {transaction}, user_id = {user}")).await?;
    let others: Vec<(String, i64)> = sqlx::query_as(
        "SELECT format('%I.%I', schemaname, sequencename), last_value FROM pg_sequences WHERE schemaname = 'centile_store' AND last_value IS NOT NULL",
    )
    .fetch_all(&mut *source.transaction)
    .await
    .map_err(failed("read the sequences"))?;
    for (name, value) in others {
        sqlx::query("SELECT setval(to_regclass($1), $2) WHERE to_regclass($1) IS NOT NULL")
            .bind(&name)
            .bind(value)
            .execute(&mut *coordinator)
            .await
            .map_err(failed("set a sequence"))?;
    }
    Ok(())
}

/// Creates the archives from the copied ledger.
async fn create_archives(coordinator: &mut PgConnection, source: &mut SourceDatabase<'_>) -> Result<()> {
    let archives: Vec<Vec<String>> =
        sqlx::query_scalar(ARCHIVES).fetch_all(&mut *source.transaction).await.map_err(failed("read the archives"))?;
    for statements in archives {
        run(coordinator, &statements.join(";\n")).await?;
    }
    run(coordinator, COMBINE).await
}

async fn run(connection: &mut PgConnection, statements: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("copy the database into the cluster"))
}
