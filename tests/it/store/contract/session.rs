//! A database with the README's sample data, in which statements run and are rolled back.

use std::fmt::Write as _;

use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, PgConnection, Row as _, TypeInfo as _, ValueRef as _,
    error::DatabaseError,
    postgres::{PgRow, PgValueRef},
    query_as, query_scalar, raw_sql,
};

use super::readme;
use crate::support::{TestDb, centile};

/// The role for read-only access.
pub const READER: &str = "centile_reader";

/// Reading functions of the contract that readers may not call: each reads all of a board's ledger.
pub const WITHHELD: [&str; 2] = ["centile.entries_from_ledger", "centile.verify"];

/// Columns whose values differ between databases and versions of PostgreSQL.
const MASKED: [&str; 3] = ["epoch", "size", "version"];

/// A function or view.
#[derive(Debug, sqlx::FromRow)]
pub struct Object {
    /// `centile` or `centile_store`.
    pub schema: String,
    /// With its schema.
    pub name: String,
    /// Of a function.
    pub arguments: Option<String>,
    /// Of a view.
    pub columns: Option<String>,
    /// Its comment without the example.
    pub sentence: String,
    /// The statement of its comment's `Example: `.
    pub example: Option<String>,
    /// Whether it is a view, or a function that cannot write.
    pub reads: bool,
}

impl Object {
    pub fn is_view(&self) -> bool {
        self.columns.is_some()
    }

    /// Returns whether `centile_reader` may call or read it.
    pub fn is_for_readers(&self) -> bool {
        self.schema == "centile" && self.reads && !WITHHELD.contains(&self.name.as_str())
    }
}

pub struct Session {
    connection: PgConnection,
    /// Statement that resets the sequences to their values after the sample data, because a
    /// rollback does not.
    rewind: String,
    /// Time zone of statements; `None` for UTC. With a zone, their output leaves out times.
    pub zone: Option<&'static str>,
    db: TestDb,
}

impl Session {
    /// Creates a database with the sample data.
    pub async fn new() -> Self {
        let db = TestDb::new().await;
        assert!(readme::README.contains(r#"`centile key create --name "game server" --role server --board main`"#));
        db.execute(readme::SAMPLE).await;
        let mut command = centile();
        command.args(readme::KEY_COMMAND).env("DATABASE_URL", db.url());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let mut connection = PgConnection::connect(db.url()).await.unwrap();
        raw_sql("SET TimeZone = 'UTC'").execute(&mut connection).await.unwrap();
        let rewind = query_scalar(
            "SELECT coalesce(string_agg(format('SELECT setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename),
                 coalesce(last_value, start_value), last_value IS NOT NULL), ' '), '')
             FROM pg_sequences WHERE schemaname = 'centile_store'",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        Self { connection, rewind, zone: None, db }
    }

    /// Returns its database.
    pub fn db(&self) -> &TestDb {
        &self.db
    }

    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Returns all functions of both schemas and the views of the contract, by name.
    pub async fn objects(&mut self) -> Vec<Object> {
        query_as(
            "SELECT o.*, split_part(o.comment, ' Example: ', 1) AS sentence, substring(o.comment FROM ' Example: (.*;)$') AS example
             FROM (
                 SELECT n.nspname::text AS schema, format('%I.%I', n.nspname, p.proname) AS name,
                        pg_get_function_arguments(p.oid) AS arguments, NULL AS columns,
                        coalesce(obj_description(p.oid, 'pg_proc'), '') AS comment, p.provolatile <> 'v' AS reads
                 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                 WHERE n.nspname IN ('centile', 'centile_store')
                 UNION ALL
                 SELECT 'centile', format('centile.%I', c.relname), NULL,
                        (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                         WHERE a.attrelid = c.oid AND a.attnum > 0),
                        coalesce(obj_description(c.oid, 'pg_class'), ''), true
                 FROM pg_class c
                 WHERE c.relnamespace = 'centile'::regnamespace AND c.relkind = 'v') o
             ORDER BY o.name COLLATE \"C\", o.arguments",
        )
        .fetch_all(&mut self.connection)
        .await
        .unwrap()
    }

    /// Returns the strings of a one-column query.
    pub async fn strings(&mut self, query: &'static str) -> Vec<String> {
        query_scalar(query).fetch_all(&mut self.connection).await.unwrap()
    }

    /// Runs one statement, as `role` if given, in a transaction that is rolled back. Returns the
    /// output of psql.
    pub async fn run(&mut self, role: Option<&str>, statement: &str) -> sqlx::Result<String> {
        if statement.starts_with("CALL ") {
            // A procedure that commits: outside a transaction block, in a database of its own.
            let db = TestDb::new().await;
            db.execute(readme::SAMPLE).await;
            let mut connection = PgConnection::connect(db.url()).await?;
            let role = role.unwrap_or("none");
            raw_sql(AssertSqlSafe(format!("SET ROLE {role}"))).execute(&mut connection).await?;
            return raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.map(|_| "CALL".to_owned());
        }
        let mut transaction = self.connection.begin().await?;
        raw_sql(AssertSqlSafe(self.rewind.as_str())).execute(&mut *transaction).await?;
        if let Some(role) = role {
            raw_sql(AssertSqlSafe(format!("SET LOCAL ROLE {role}"))).execute(&mut *transaction).await?;
        }
        if let Some(zone) = self.zone {
            raw_sql(AssertSqlSafe(format!("SET LOCAL TimeZone = '{zone}'"))).execute(&mut *transaction).await?;
        }
        let rows = raw_sql(AssertSqlSafe(statement)).fetch_all(&mut *transaction).await;
        transaction.rollback().await?;
        rows.map(|rows| printed(&rows, self.zone.is_none()))
    }
}

/// Returns the SQLSTATE of an error; empty if it is no database error.
pub fn code_of(error: &sqlx::Error) -> String {
    error.as_database_error().and_then(DatabaseError::code).unwrap_or_default().into_owned()
}

/// Formats rows as psql does, without trailing spaces.
fn printed(rows: &[PgRow], has_times: bool) -> String {
    let count = if rows.len() == 1 { "(1 row)".to_owned() } else { format!("({} rows)", rows.len()) };
    let Some(first) = rows.first() else { return count };
    let columns = first.columns();
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| cell(row, column, has_times)).collect()).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|place| {
            let longest = cells.iter().map(|row| row[place].chars().count()).max().unwrap_or_default();
            longest.max(columns[place].name().chars().count())
        })
        .collect();

    let headings = columns.iter().zip(&widths).map(|(column, &width)| format!(" {:^width$} ", column.name()));
    let mut text = headings.collect::<Vec<_>>().join("|").trim_end().to_owned();
    let rule = widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+");
    write!(text, "\n{rule}\n").unwrap();
    for row in &cells {
        let padded = row.iter().zip(columns).zip(&widths).map(|((cell, column), &width)| {
            let is_number = ["INT2", "INT4", "INT8", "FLOAT8", "NUMERIC"].contains(&column.type_info().name());
            if is_number { format!(" {cell:>width$} ") } else { format!(" {cell:<width$} ") }
        });
        text.push_str(padded.collect::<Vec<_>>().join("|").trim_end());
        text.push('\n');
    }
    text + &count
}

/// Returns a value as text, which the simple query protocol sends.
fn cell(row: &PgRow, column: &sqlx::postgres::PgColumn, has_times: bool) -> String {
    let value: PgValueRef<'_> = row.try_get_raw(column.ordinal()).unwrap();
    match value {
        value if value.is_null() => String::new(),
        _ if MASKED.contains(&column.name()) => "…".to_owned(),
        _ if !has_times && column.type_info().name() == "TIMESTAMPTZ" => String::new(),
        value => value.as_str().unwrap().to_owned(),
    }
}
