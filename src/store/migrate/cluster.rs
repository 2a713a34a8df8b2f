//! Clusters: boards whose lanes are on several servers. Citus creates and moves the shards.
//!
//! All servers have the same schema and almost the same functions. `sql/cluster/` has the tables of
//! a cluster and the functions that differ.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{
    Error, Result,
    store::{
        cluster,
        hosts::Hosts,
        migrate::{
            Edition, Files, LOCK_WAIT, Report, apply_migrations, check, failed, files::ServerKind, fill, lock,
            lock_retry::LockRetry, objects, unavailable,
        },
    },
};

const DISTRIBUTE: &str = include_str!("../../../sql/cluster/distribute.sql");
const EVERY_SERVER: &str = include_str!("../../../sql/cluster/every_server.sql");
const COORDINATOR: &str = include_str!("../../../sql/cluster/coordinator.sql");
const WORKER: &str = include_str!("../../../sql/cluster/worker.sql");

/// The step that finds the workers, in errors.
const WORKERS: &str = "read the servers of the cluster";

/// Whether a database with Citus is the coordinator of workers.
const HAS_WORKERS: &str = "
    SELECT EXISTS (SELECT FROM pg_dist_local_group WHERE groupid = 0)
       AND EXISTS (SELECT FROM pg_dist_node WHERE groupid > 0 AND noderole = 'primary' AND isactive)";

/// Whether a database with Centile's tables has boards or players.
const HAS_ROWS: &str = "SELECT EXISTS (SELECT FROM centile_store.boards) OR EXISTS (SELECT FROM centile_store.users)";

/// Makes a cluster of an empty database at `database_url`, the coordinator, and of the databases of
/// the same name on all workers that it knows. Each board gets `lanes` lanes, which are divided into
/// `groups`. With `from`, also copies the database of a single server at this URL into the cluster.
/// After adding a worker, call it again without `from`.
///
/// Each step is a transaction. A repeated call skips completed steps, and ignores its numbers if the
/// lanes exist. Returns [`Error::Conflict`] without Citus or workers, and for a database with boards
/// or players. Also returns it if the database at `from` is in use or cannot be copied.
pub async fn init_cluster(database_url: &str, lanes: u16, groups: u16, from: Option<&str>) -> Result<()> {
    if groups > lanes {
        return Err(Error::invalid("groups", "must not be above the number of lanes"));
    }
    // Creating hundreds of tables is one statement, which would be logged as slow.
    let options = Hosts::parse(database_url)?.primary().disable_statement_logging();
    let (files, mut retry) = (Files::embedded(), LockRetry::new(LOCK_WAIT));
    let mut coordinator = PgConnection::connect_with(&options).await.map_err(unavailable)?;
    lock(&mut coordinator).await?;
    // Check the database to copy, or that an earlier copy is complete.
    let is_cluster = ServerKind::detect(&mut coordinator).await? != ServerKind::Single;
    let source = if let Some(from) = from {
        let lanes = if is_cluster { number_of_lanes(&mut coordinator).await? } else { lanes.into() };
        Some(fill::source::check(from, lanes).await?)
    } else {
        fill::check_filled(&mut coordinator).await?;
        None
    };
    // Create the tables on the coordinator, and distribute those with lanes.
    if !is_cluster {
        check_empty(&mut coordinator).await?;
        apply_migrations(&mut coordinator, &files, &mut retry).await?;
        configure(&mut coordinator, "centile.lanes", &lanes.to_string()).await?;
        configure(&mut coordinator, "centile.groups", &groups.to_string()).await?;
        // Citus creates the tables on the workers.
        run_step(&mut coordinator, &["SET LOCAL citus.enable_ddl_propagation = on", DISTRIBUTE]).await?;
    }
    // A worker that was added since then has no reference tables yet.
    sqlx::raw_sql("SELECT centile_lanes.copy_reference_tables()")
        .execute(&mut coordinator)
        .await
        .map_err(failed("copy tables to new workers"))?;
    // A repeated call may name another number.
    let lanes = number_of_lanes(&mut coordinator).await?;
    configure(&mut coordinator, "centile.lanes", &lanes.to_string()).await?;
    // Set up the workers that are new, and update the functions of all.
    for worker in cluster::workers(&mut coordinator, &options).await.map_err(failed(WORKERS))? {
        let mut worker = PgConnection::connect_with(&worker).await.map_err(unavailable)?;
        lock(&mut worker).await?;
        if ServerKind::detect(&mut worker).await? == ServerKind::Single {
            configure(&mut worker, "centile.lanes", &lanes.to_string()).await?;
            apply_migrations(&mut worker, &files, &mut retry).await?;
            run_step(&mut worker, &[EVERY_SERVER, WORKER]).await?;
        }
        objects::apply(&mut worker, &files, ServerKind::Worker, &mut retry).await?;
        worker.close().await.ok();
    }
    // Set up the coordinator, and attach the lanes to the workers.
    let is_attached: bool = sqlx::query_scalar("SELECT to_regclass('centile_lanes.ids') IS NOT NULL")
        .fetch_one(&mut coordinator)
        .await
        .map_err(failed("look for the tables of the cluster"))?;
    if !is_attached {
        objects::drop_all(&mut coordinator, &files).await?;
        run_step(&mut coordinator, &[EVERY_SERVER, COORDINATOR]).await?;
    }
    objects::apply(&mut coordinator, &files, ServerKind::Coordinator, &mut retry).await?;
    sqlx::query("CALL centile_lanes.follow_moves()")
        .execute(&mut coordinator)
        .await
        .map_err(failed("attach the lanes to their servers"))?;
    if let Some(source) = source {
        fill::fill(&mut coordinator, &options, source, lanes).await?;
    }
    coordinator.close().await.ok();
    Ok(())
}

/// Replaces functions and views on all servers of a cluster.
///
/// Returns [`Error::Conflict`] if migrations are missing.
pub(super) async fn replace_functions(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
    files: &Files,
    server: ServerKind,
    retry: &mut LockRetry,
) -> Result<Report> {
    if server == ServerKind::Worker {
        return Err(Error::other_conflict(
            "the database is a worker of a cluster: run `centile migrate` with the URL of its coordinator",
        ));
    }
    if check::edition(&mut *connection).await? == Edition::Older {
        return Err(Error::other_conflict(
            "cannot change the tables of a cluster: import its scores into a new one, see docs/cluster.md#upgrade",
        ));
    }
    for worker in cluster::workers(connection, options).await.map_err(failed(WORKERS))? {
        let mut worker = PgConnection::connect_with(&worker).await.map_err(unavailable)?;
        lock(&mut worker).await?;
        objects::apply(&mut worker, files, ServerKind::Worker, retry).await?;
        worker.close().await.ok();
    }
    let objects = objects::apply(connection, files, server, retry).await?;
    Ok(Report { migrations: Vec::new(), objects })
}

/// Fails unless the database is a coordinator with workers, without boards or players.
async fn check_empty(connection: &mut PgConnection) -> Result<()> {
    let has_citus: bool = sqlx::query_scalar("SELECT to_regclass('pg_dist_node') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed(WORKERS))?;
    if !has_citus {
        let message = "the database has no extension citus: see docs/cluster.md";
        return Err(Error::other_conflict(message));
    }
    if !sqlx::query_scalar(HAS_WORKERS).fetch_one(&mut *connection).await.map_err(failed(WORKERS))? {
        return Err(Error::other_conflict(
            "the database is not the coordinator of a Citus cluster with workers: see docs/cluster.md",
        ));
    }
    let has_tables: bool = sqlx::query_scalar("SELECT to_regclass('centile_store.boards') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed("look for tables"))?;
    if has_tables && sqlx::query_scalar(HAS_ROWS).fetch_one(connection).await.map_err(failed("look for boards"))? {
        return Err(Error::other_conflict(
            "the database has boards or players: copy it into an empty cluster with --from",
        ));
    }
    Ok(())
}

/// Returns the number of lanes of a cluster.
async fn number_of_lanes(coordinator: &mut PgConnection) -> Result<i64> {
    sqlx::query_scalar("SELECT sum(cardinality(lanes)) FROM centile_lanes.groups")
        .fetch_one(coordinator)
        .await
        .map_err(failed("read the groups of lanes"))
}

/// Sets a setting of the session, which the scripts read.
async fn configure(connection: &mut PgConnection, name: &str, value: &str) -> Result<()> {
    sqlx::query("SELECT set_config($1, $2, false)")
        .bind(name)
        .bind(value)
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("prepare the session"))
}

/// Runs scripts in one transaction.
async fn run_step(connection: &mut PgConnection, scripts: &[&'static str]) -> Result<()> {
    let mut transaction = connection.begin().await.map_err(failed("begin"))?;
    for script in scripts {
        sqlx::raw_sql(AssertSqlSafe(*script)).execute(&mut *transaction).await.map_err(failed("create the cluster"))?;
    }
    transaction.commit().await.map_err(failed("commit the cluster"))
}
