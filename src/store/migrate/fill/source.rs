//! The database that is copied into a cluster.

use std::{collections::BTreeMap, time::Duration};

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction};
use tokio::time::{Instant, sleep};

use crate::{
    Error, Result,
    store::migrate::{
        Edition, check, connect, failed,
        files::ServerKind,
        fill::{PATIENT, run},
    },
};

/// Tables whose rows belong to a player's lane, and the expression of the player's id in a row `t`.
const PLAYER_TABLES: [(&str, &str); 7] = [
    ("users", "t.id"),
    ("players", "t.user_id"),
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

/// Tables with rows of lanes that belong to no player, and the query of these rows.
const LANE_TABLES: [(&str, &str); 2] = [("board_lanes", BOARD_LANES), ("bucket_counts", BUCKET_COUNTS)];

/// Columns that differ in a cluster of `$count` lanes: table, column, expression for a row `t`.
const CHANGED: [(&str, &str, &str); 12] = [
    ("boards", "lanes", "CASE t.mode WHEN 'combined' THEN 1 ELSE $count END"),
    ("rankings", "lanes", "$count"),
    (
        "cut_offs",
        "batches",
        "ARRAY(SELECT t.batches[n % cardinality(t.batches) + 1] FROM generate_series(0, $count - 1) n)",
    ),
    ("cut_offs", "ledger_end", "NULL"),
    ("cut_offs", "last_at", "NULL"),
    ("cut_offs", "verified_revision", "NULL"),
    ("combinations", "next_view", "NULL"),
    ("combinations", "next_as_of", "NULL"),
    ("combinations", "next_sources", "NULL"),
    ("combinations", "next_batches", "NULL"),
    ("combinations", "next_end", "NULL"),
    ("combinations", "old_views", "'{}'"),
];

/// Tables that are not copied: those about the schema and the database itself; the log of batches,
/// because rank indexes load again; the applied batches, because a cluster applies each batch in its
/// own transaction; the progress of rankings that are being built; and the state of verifications,
/// which begin again.
const SKIPPED: [&str; 8] = [
    "applied",
    "applied_objects",
    "applied_sql",
    "batch_log",
    "epochs",
    "fillings",
    "schema_history",
    "verified_rankings",
];

/// Sessions of Centile in the same database.
const OTHER_SESSIONS: &str = "
    SELECT count(*) FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name = 'centile' AND a.pid <> pg_backend_pid()";

/// How long to wait for the end of other sessions.
const SESSIONS_WAIT: Duration = Duration::from_secs(5);

/// A table, and how to copy it into the cluster.
pub(super) struct Table {
    pub(super) name: String,
    columns: String,
    /// The query of the rows.
    query: String,
    /// The condition of the rows to replace.
    replaced: String,
}

/// The database to copy, locked against changes.
pub(super) struct SourceDatabase<'a> {
    pub(super) transaction: Transaction<'a, Postgres>,
    columns: BTreeMap<String, Vec<String>>,
    /// Lanes of each board in the cluster.
    lanes: i64,
}

/// Checks that the database at `source_url` can be copied into a cluster of `lanes` lanes.
///
/// Returns the connection. Returns [`Error::Conflict`] if the database is a cluster or has no tables
/// of Centile, if its schema is of another release, if `lanes` is not a multiple of each board's
/// number of lanes, if a ranking has no bucket rows, or if a combined board cannot be computed again.
pub(crate) async fn check(source_url: &str, lanes: i64) -> Result<PgConnection> {
    let mut source = connect(source_url).await?;
    let refused = |message: String| Err(Error::other_conflict(message));
    if ServerKind::detect(&mut source).await? != ServerKind::Single {
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
    let board: Option<String> = sqlx::query_scalar(
        "SELECT b.slug FROM centile_store.boards b
         WHERE b.buckets <> 'all' OR EXISTS (SELECT FROM centile_store.rankings g WHERE g.board_id = b.id AND NOT g.has_bucket_rows AND g.released_at IS NULL)
         ORDER BY b.slug LIMIT 1",
    )
    .fetch_optional(&mut source)
    .await
    .map_err(failed("read the rankings to copy"))?;
    if let Some(slug) = board {
        return refused(format!(
            "rankings of board {slug} have no bucket rows: run `centile board change {slug} --buckets all` and \
             `centile rebuild --board {slug} --all`"
        ));
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

/// Returns the boards that have batches to apply.
async fn boards_behind(connection: &mut PgConnection) -> Result<Vec<String>> {
    sqlx::query_scalar(
        "SELECT b.slug FROM centile_store.boards_behind() AS l (id) JOIN centile_store.boards b USING (id) ORDER BY b.slug",
    )
    .fetch_all(connection)
    .await
    .map_err(failed("look for batches that are not applied"))
}

impl<'a> SourceDatabase<'a> {
    /// Applies all batches, and locks all tables against changes.
    ///
    /// Fails if instances or commands are connected.
    pub(super) async fn lock(connection: &'a mut PgConnection, lanes: i64) -> Result<Self> {
        run(connection, PATIENT).await?;
        // The cluster will take the copied bucket rows for current.
        for slug in boards_behind(connection).await? {
            sqlx::query("CALL centile.apply($1)")
                .bind(slug)
                .execute(&mut *connection)
                .await
                .map_err(failed("apply the batches to copy"))?;
        }
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
        // Lock all tables in the transaction that will read them.
        let mut transaction =
            connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.map_err(failed("begin"))?;
        run(&mut transaction, "SET LOCAL lock_timeout = '10s'; SET LOCAL search_path = pg_catalog").await?;
        let tables: Vec<String> = columns.keys().map(|table| format!("centile_store.{table}")).collect();
        let lock = format!("LOCK TABLE {} IN SHARE MODE", tables.join(", "));
        sqlx::raw_sql(AssertSqlSafe(lock))
            .execute(&mut *transaction)
            .await
            .map_err(|error| Error::other_conflict(format!("cannot lock the database to copy: {error}")))?;
        // Wait until the other sessions of Centile have ended.
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
                return Err(Error::other_conflict(message));
            }
            sleep(Duration::from_millis(100)).await;
        }
        // A write before the lock may have left a batch to apply.
        if let [slug, ..] = boards_behind(&mut transaction).await?.as_slice() {
            let message = format!("board {slug} was written to meanwhile: run the command again");
            return Err(Error::other_conflict(message));
        }
        Ok(Self { transaction, columns, lanes })
    }

    /// Returns a string that changes with each write to a table: the epoch, and for each table the
    /// number of rows and the sum of their `xmin`. A later write has a higher `xmin`.
    pub(super) async fn state(&mut self) -> Result<String> {
        let row = |table: &String| {
            format!(
                "SELECT '{table}' AS name, count(*) AS rows, sum(t.xmin::text::bigint) AS writers FROM centile_store.{table} t"
            )
        };
        let rows = self.columns.keys().map(row).collect::<Vec<_>>().join(" UNION ALL ");
        let state =
            format!("SELECT concat_ws(' ', centile.epoch(), string_agg(r::text, ' ' ORDER BY r.name)) FROM ({rows}) r");
        sqlx::query_scalar(AssertSqlSafe(state))
            .fetch_one(&mut *self.transaction)
            .await
            .map_err(failed("read the state of the database to copy"))
    }

    /// Returns the tables whose rows belong to lanes, with the rows of the lanes in `list`.
    pub(super) fn tables_of_lanes(&self, list: &str) -> Vec<Table> {
        let of_player = PLAYER_TABLES.map(|(name, user)| {
            let (columns, values) = self.columns_of(name);
            let query = format!(
                "SELECT {values} FROM centile_store.{name} t JOIN centile_store.users u ON u.id = {user} \
                 WHERE u.lane_hash % {} = ANY ('{list}')",
                self.lanes
            );
            let lane = if name == "users" { format!("lane_hash % {}", self.lanes) } else { "lane".to_owned() };
            Table { name: name.to_owned(), columns, query, replaced: format!("{lane} = ANY ('{list}')") }
        });
        let of_lane = LANE_TABLES.map(|(name, query)| {
            let query = query.replace("$lanes", list).replace("$count", &self.lanes.to_string());
            let columns = self.columns[name].join(", ");
            Table { name: name.to_owned(), columns, query, replaced: format!("lane = ANY ('{list}')") }
        });
        of_player.into_iter().chain(of_lane).collect()
    }

    /// Returns the tables of the coordinator.
    pub(super) fn other_tables(&self) -> Vec<Table> {
        let is_other = |name: &&String| {
            let of_lanes = PLAYER_TABLES.iter().chain(&LANE_TABLES).any(|(table, _)| table == name);
            !of_lanes && !SKIPPED.contains(&name.as_str())
        };
        let table = |name: &String| {
            let (columns, values) = self.columns_of(name);
            let query = format!("SELECT {values} FROM centile_store.{name} t");
            Table { name: name.clone(), columns, query, replaced: "true".to_owned() }
        };
        self.columns.keys().filter(is_other).map(table).collect()
    }

    /// Replaces the rows of a table on a server of the cluster.
    pub(super) async fn copy(&mut self, table: &Table, target: &mut PgConnection) -> Result<()> {
        let Table { name, columns, query, replaced } = table;
        let wrong = |error: sqlx::Error| failed(&format!("copy {name}"))(error);
        run(target, &format!("DELETE FROM centile_store.{name} WHERE {replaced}")).await?;
        let mut rows = self.transaction.copy_out_raw(&format!("COPY ({query}) TO STDOUT")).await.map_err(wrong)?;
        let into = format!("COPY centile_store.{name} ({columns}) FROM STDIN");
        let mut sink = target.copy_in_raw(&into).await.map_err(wrong)?;
        while let Some(data) = rows.try_next().await.map_err(wrong)? {
            sink.send(data).await.map_err(wrong)?;
        }
        let count = sink.finish().await.map_err(wrong)?;
        tracing::info!(table = name, rows = count, "copied");
        run(target, &format!("ANALYZE centile_store.{name}")).await
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
}
