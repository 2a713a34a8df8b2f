//! Copies the database of a single server into an empty cluster.
//!
//! One transaction reads the source, and locks its tables against changes. Each server of the
//! cluster is filled in one transaction. The coordinator commits last, and only its commit makes
//! boards visible. After an interruption, the next run deletes the rows that workers committed.

use std::{collections::BTreeMap, time::Duration};

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction, postgres::PgConnectOptions};
use tokio::time::{Instant, sleep};

use crate::{
    Code, Error, Result,
    store::{
        cluster,
        migrate::{Edition, check, connect, failed, files::Server, unavailable},
    },
};

/// Tables whose rows belong to a player's lane, and the expression of the player's id in a row `t`.
const PLAYER_TABLES: [(&str, &str); 8] = [
    ("users", "t.id"),
    ("board_players", "t.user_id"),
    ("leaderboard", "t.user_id"),
    ("leaderboard_bucket", "-t.user_key"),
    ("quarantine", "t.user_id"),
    ("score_transactions", "t.user_id"),
    ("segment_members", "t.user_id"),
    ("transaction_ids", "t.user_id"),
];

/// Rows of `board_lanes` for the lanes `$lanes`, in a cluster of `$count` lanes. `$count` is a
/// multiple of each board's number of lanes. So all players of a new lane come from one old lane,
/// and the new lane continues its batch numbers.
const BOARD_LANES: &str = "
    SELECT l.board_id, n, l.batch, l.last_at
    FROM centile_store.board_lanes l
    JOIN centile_store.boards b ON b.id = l.board_id
    CROSS JOIN generate_series(0, CASE b.mode WHEN 'combined' THEN 0 ELSE $count - 1 END) n
    WHERE l.lane = n % b.lanes AND n = ANY ('$lanes')";

/// Rows of `bucket_counts` for the lanes `$lanes`, in a cluster of `$count` lanes.
const BUCKET_COUNTS: &str = "
    SELECT r.id, n.lane, 1, array_agg(coalesce(c.players, 0) ORDER BY b.bucket)
    FROM centile_store.rankings r
    CROSS JOIN unnest('$lanes'::integer[]) AS n (lane)
    CROSS JOIN generate_series(0, 99) AS b (bucket)
    LEFT JOIN (SELECT t.ranking_id, u.lane_hash % $count AS lane, t.bucket, count(*) AS players
               FROM centile_store.leaderboard_bucket t JOIN centile_store.users u ON u.id = -t.user_key
               WHERE u.lane_hash % $count = ANY ('$lanes')
               GROUP BY t.ranking_id, u.lane_hash % $count, t.bucket) c
      ON (c.ranking_id, c.lane, c.bucket) = (r.id, n.lane, b.bucket)
    GROUP BY r.id, n.lane";

/// Columns that differ in a cluster of `$count` lanes: table, column, expression for a row `t`.
const CHANGED: [(&str, &str, &str); 9] = [
    ("boards", "lanes", "CASE t.mode WHEN 'combined' THEN 1 ELSE $count END"),
    ("rankings", "lanes", "$count"),
    (
        "cut_offs",
        "batches",
        "ARRAY(SELECT t.batches[n % cardinality(t.batches) + 1] FROM generate_series(0, $count - 1) n)",
    ),
    ("combinations", "next_view", "NULL"),
    ("combinations", "next_as_of", "NULL"),
    ("combinations", "next_sources", "NULL"),
    ("combinations", "next_batches", "NULL"),
    ("combinations", "next_end", "NULL"),
    ("combinations", "old_views", "'{}'"),
];

/// Tables that are not copied: those about the schema and the database itself, and a feed for rank
/// indexes, which load anew.
const SKIPPED: [&str; 4] = ["applied_sql", "batch_changes", "epochs", "schema_history"];

/// Prepares a session that may be idle while others copy, and whose commit is durable.
const PATIENT: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET synchronous_commit = on";

/// Sessions of Centile in the same database.
const OTHER_SESSIONS: &str = "
    SELECT count(*) FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name = 'centile' AND a.pid <> pg_backend_pid()";

/// How long to wait for the end of other sessions.
const SESSIONS_WAIT: Duration = Duration::from_secs(5);

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
    SELECT array_remove(ARRAY[format('CREATE MATERIALIZED VIEW %s AS %s', c.oid::regclass, pg_get_viewdef(c.oid)),
                 'COMMENT ON MATERIALIZED VIEW ' || c.oid::regclass || ' IS ' || quote_literal(obj_description(c.oid, 'pg_class')),
                 format('GRANT SELECT ON %s TO centile_reader, centile_service', c.oid::regclass)], NULL)
           || ARRAY(SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid ORDER BY i.indexrelid)
           || format('ANALYZE %s', c.oid::regclass)
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id AND b.mode <> 'combined'
    JOIN pg_class c ON c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p.archive_name
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

/// The database to copy, locked against changes.
struct Source<'a> {
    transaction: Transaction<'a, Postgres>,
    /// Columns of each table.
    columns: BTreeMap<String, Vec<String>>,
    /// Lanes of each board in the cluster.
    lanes: i64,
}

/// Checks that the database at `source_url` can be copied into a cluster of `lanes` lanes.
///
/// Returns the connection. Returns [`Error::Conflict`] if the database is a cluster or has no tables
/// of Centile, if its schema is of another release, if `lanes` is not a multiple of each board's
/// number of lanes, or if a combined board cannot be computed again.
pub(super) async fn check_source(source_url: &str, lanes: i64) -> Result<PgConnection> {
    let mut source = connect(source_url).await?;
    let refused = |message: String| Err(Error::conflict(Code::Conflict, message));
    if Server::of(&mut source).await? != Server::Single {
        return refused("the database to copy is a cluster itself".to_owned());
    }
    match check::edition(&mut source).await? {
        Edition::Same | Edition::Other => {}
        Edition::Missing => return refused("the database to copy has no tables of Centile".to_owned()),
        Edition::Older => {
            return refused("the database to copy is of an older release: run `centile migrate` on it".to_owned());
        }
        Edition::Newer => return refused("the database to copy is of a newer release".to_owned()),
    }
    let board: Option<(String, i16)> = sqlx::query_as(
        "SELECT slug, lanes FROM centile_store.boards WHERE mode <> 'combined' AND $1 % lanes <> 0 ORDER BY slug LIMIT 1",
    )
    .bind(lanes)
    .fetch_optional(&mut source)
    .await
    .map_err(failed("read the boards to copy"))?;
    if let Some((slug, own)) = board {
        return refused(format!("the cluster's {lanes} lanes are not a multiple of the {own} lanes of board {slug}"));
    }
    let problem: Option<(String, String)> = sqlx::query_as(
        "SELECT c.board, r.problem FROM centile_store.combined_boards() c CROSS JOIN LATERAL centile_store.resolve_sources(c.board_id) r
         WHERE c.as_of IS NOT NULL AND r.problem IS NOT NULL LIMIT 1",
    )
    .fetch_optional(&mut source)
    .await
    .map_err(failed("read the sources of combined boards"))?;
    if let Some((slug, problem)) = problem {
        return refused(format!("the combined board {slug} cannot be computed again: {problem}"));
    }
    Ok(source)
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
    begin_filling(coordinator).await?;
    let mut source = Source::lock(&mut source, lanes).await?;
    let mut workers = workers(coordinator, options, lanes).await?;
    for worker in &mut workers {
        source.copy_lanes(worker).await?;
    }
    run(coordinator, "SET synchronous_commit = on").await?;
    let mut coordinator = coordinator.begin().await.map_err(failed("begin"))?;
    source.copy_rest(&mut coordinator).await?;
    source.advance_sequences(&mut coordinator, &mut workers).await?;
    for worker in &mut workers {
        run(&mut worker.connection, "COMMIT").await?;
    }
    // The views read the workers in transactions of their own.
    source.create_archives(&mut coordinator).await?;
    run(&mut coordinator, "DROP TABLE centile_lanes.filling").await?;
    // Fails if the source is no longer locked.
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
        return Err(Error::conflict(
            Code::Conflict,
            "a copy into the cluster was interrupted: run it again with --from",
        ));
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
        return Err(Error::conflict(
            Code::Conflict,
            "the cluster has boards or players; if an interrupted copy created them, the copy is complete",
        ));
    }
    run(coordinator, "CREATE TABLE IF NOT EXISTS centile_lanes.filling ()").await
}

/// Connects to the workers, and begins a transaction on each.
async fn workers(coordinator: &mut PgConnection, options: &PgConnectOptions, count: i64) -> Result<Vec<Worker>> {
    let servers: Vec<(String, i32, Vec<i16>)> = sqlx::query_as(
        "SELECT n.nodename, n.nodeport, array_remove(array_agg(l.lane), NULL)
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
        return Err(Error::unavailable(Code::ConcurrentChange, "lanes are being moved: run the command again"));
    }
    let mut workers = Vec::with_capacity(servers.len());
    for (host, port, lanes) in servers {
        let options = cluster::at(options, &host, port);
        let mut connection = PgConnection::connect_with(&options).await.map_err(unavailable)?;
        run(&mut connection, PATIENT).await?;
        run(&mut connection, "BEGIN").await?;
        run(&mut connection, AS_THEY_ARE).await?;
        sqlx::query("SELECT centile_lanes.hold(l) FROM unnest($1) AS l")
            .bind(&lanes)
            .execute(&mut connection)
            .await
            .map_err(failed("hold the lanes"))?;
        workers.push(Worker { connection, lanes });
    }
    Ok(workers)
}

impl<'a> Source<'a> {
    /// Locks all tables against changes. Fails if instances or commands are connected.
    async fn lock(connection: &'a mut PgConnection, lanes: i64) -> Result<Self> {
        run(connection, PATIENT).await?;
        let columns: Vec<(String, Vec<String>)> = sqlx::query_as(
            "SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attnum)
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             WHERE c.relnamespace = 'centile_store'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
             GROUP BY c.relname",
        )
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("read the tables to copy"))?;
        let columns: BTreeMap<_, _> = columns.into_iter().collect();
        let mut transaction =
            connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.map_err(failed("begin"))?;
        run(&mut transaction, "SET LOCAL lock_timeout = '10s'; SET LOCAL search_path = pg_catalog").await?;
        let tables: Vec<String> = columns.keys().map(|table| format!("centile_store.{table}")).collect();
        let lock = format!("LOCK TABLE {} IN SHARE MODE", tables.join(", "));
        sqlx::raw_sql(AssertSqlSafe(lock))
            .execute(&mut *transaction)
            .await
            .map_err(|error| Error::conflict(Code::Conflict, format!("cannot lock the database to copy: {error}")))?;
        let begun = Instant::now();
        loop {
            // Each look at the activity needs its own copy of the statistics.
            run(&mut transaction, "SELECT pg_stat_clear_snapshot()").await?;
            let sessions: i64 = sqlx::query_scalar(OTHER_SESSIONS)
                .fetch_one(&mut *transaction)
                .await
                .map_err(failed("look for other sessions"))?;
            if sessions == 0 {
                break;
            } else if begun.elapsed() > SESSIONS_WAIT {
                let message =
                    format!("the database to copy has {sessions} other sessions of Centile: stop all instances");
                return Err(Error::conflict(Code::Conflict, message));
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(Self { transaction, columns, lanes })
    }

    /// Copies the rows of a worker's lanes.
    async fn copy_lanes(&mut self, worker: &mut Worker) -> Result<()> {
        let list = format!("{{{}}}", worker.lanes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        for (table, user) in PLAYER_TABLES {
            let (names, values) = self.columns_of(table);
            let query = format!(
                "SELECT {values} FROM centile_store.{table} t JOIN centile_store.users u ON u.id = {user} \
                 WHERE u.lane_hash % {} = ANY ('{list}')",
                self.lanes
            );
            self.copy(&query, &mut worker.connection, table, &names).await?;
        }
        for (table, query) in [("board_lanes", BOARD_LANES), ("bucket_counts", BUCKET_COUNTS)] {
            let query = query.replace("$lanes", &list).replace("$count", &self.lanes.to_string());
            let names = self.columns[table].join(", ");
            self.copy(&query, &mut worker.connection, table, &names).await?;
        }
        Ok(())
    }

    /// Copies all tables of the coordinator.
    async fn copy_rest(&mut self, coordinator: &mut PgConnection) -> Result<()> {
        run(coordinator, AS_THEY_ARE).await?;
        let of_lanes = PLAYER_TABLES.map(|(table, _)| table);
        let tables: Vec<String> = self.columns.keys().cloned().collect();
        for table in tables {
            let name = table.as_str();
            if of_lanes.contains(&name) || ["board_lanes", "bucket_counts"].contains(&name) || SKIPPED.contains(&name) {
                continue;
            }
            let (names, values) = self.columns_of(name);
            self.copy(&format!("SELECT {values} FROM centile_store.{name} t"), coordinator, name, &names).await?;
        }
        run(coordinator, FILL_COPIES).await
    }

    /// Returns the columns of a table, and their values in the cluster.
    fn columns_of(&self, table: &str) -> (String, String) {
        let is_of_player = PLAYER_TABLES.iter().any(|(name, _)| *name == table);
        let value = |column: &String| {
            let changed = CHANGED.iter().find(|(of, name, _)| (*of, *name) == (table, column.as_str()));
            match changed {
                Some((.., expression)) => expression.replace("$count", &self.lanes.to_string()),
                None if is_of_player && column == "lane" => format!("u.lane_hash % {}", self.lanes),
                None => format!("t.{column}"),
            }
        };
        let columns = &self.columns[table];
        (columns.join(", "), columns.iter().map(value).collect::<Vec<_>>().join(", "))
    }

    /// Replaces the rows of a table by the result of a query.
    async fn copy(&mut self, query: &str, target: &mut PgConnection, table: &str, columns: &str) -> Result<()> {
        let wrong = |error: sqlx::Error| failed(&format!("copy {table}"))(error);
        run(target, &format!("DELETE FROM centile_store.{table}")).await?;
        let mut rows = self.transaction.copy_out_raw(&format!("COPY ({query}) TO STDOUT")).await.map_err(wrong)?;
        let into = format!("COPY centile_store.{table} ({columns}) FROM STDIN");
        let mut sink = target.copy_in_raw(&into).await.map_err(wrong)?;
        while let Some(data) = rows.try_next().await.map_err(wrong)? {
            sink.send(data).await.map_err(wrong)?;
        }
        let count = sink.finish().await.map_err(wrong)?;
        tracing::info!(table, rows = count, "copied");
        run(target, &format!("ANALYZE centile_store.{table}")).await
    }

    /// Advances the sequences of all servers beyond the ids of the source.
    async fn advance_sequences(&mut self, coordinator: &mut PgConnection, workers: &mut [Worker]) -> Result<()> {
        let (user, transaction): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT coalesce(max(id), 0) FROM centile_store.users),
                    greatest((SELECT max(id) FROM centile_store.score_transactions), (SELECT max(id) FROM centile_store.quarantine), 0)",
        )
        .fetch_one(&mut *self.transaction)
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
        .fetch_all(&mut *self.transaction)
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
    async fn create_archives(&mut self, coordinator: &mut PgConnection) -> Result<()> {
        let archives: Vec<Vec<String>> = sqlx::query_scalar(ARCHIVES)
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(failed("read the archives"))?;
        for statements in archives {
            run(coordinator, &statements.join(";\n")).await?;
        }
        run(coordinator, COMBINE).await
    }
}

/// Runs statements.
async fn run(connection: &mut PgConnection, statements: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("copy the database into the cluster"))
}
