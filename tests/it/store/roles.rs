//! The rights of each role, tested with separate logins. `centile_reader` reads the contract,
//! `centile_service` serves and closes without any DDL, and the owner need not be a superuser.

use centile::store::migrate::migrate_url;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, query_scalar, raw_sql};

use crate::{
    store::contract::{
        readme,
        session::{READER, Session, code_of},
    },
    support::{Serve, TESTING, TestDb, centile},
};

const SERVICE: &str = "centile_service";

/// SQLSTATE of a missing privilege.
const REFUSED: &str = "42501";

async fn connect(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    raw_sql("SET TimeZone = 'UTC'").execute(&mut connection).await.unwrap();
    connection
}

/// Runs statements in a transaction that is rolled back.
async fn attempt(connection: &mut PgConnection, statements: &str) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    let result = raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut *transaction).await;
    transaction.rollback().await?;
    result.map(|_| ())
}

/// Returns the statements that do not fail for missing privileges.
async fn not_refused(connection: &mut PgConnection, statements: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for statement in statements {
        match attempt(connection, statement).await {
            Err(error) if code_of(&error) == REFUSED => {}
            Err(error) => wrong.push(format!("{statement}: {error}")),
            Ok(()) => wrong.push(format!("{statement}: done")),
        }
    }
    wrong
}

async fn strings(connection: &mut PgConnection, query: &'static str) -> Vec<String> {
    query_scalar(query).fetch_all(connection).await.unwrap()
}

/// A call of each function that readers may not call, in both schemas, with NULL for every
/// argument.
const OTHER_CALLS: &str = "
    SELECT format('%s %I.%I(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, n.nspname, p.proname,
        (SELECT string_agg('NULL::' || CASE a.type WHEN 'anyarray'::regtype THEN 'bigint[]' ELSE format_type(a.type, NULL) END, ', ' ORDER BY a.place)
         FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, place)))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    -- With NULL, the planner replaces a call of an immutable and strict function.
    WHERE n.nspname = 'centile_store' AND NOT (p.provolatile = 'i' AND p.proisstrict)
       OR n.nspname = 'centile' AND (p.provolatile = 'v' OR p.proname IN ('entries_from_ledger', 'verify'))";

/// Every relation.
const TABLES: &str = "
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('centile_store', 'centile_archive', 'centile') AND c.relkind IN ('r', 'p', 'v', 'm')";

#[tokio::test]
async fn a_reader_reads_the_contract_and_nothing_else() {
    let mut session = Session::new().await;
    let url = session.db().login(&format!("IN ROLE {READER}")).await.1;
    let mut reader = connect(&url).await;
    let owner = session.connection();
    let (calls, tables) = (strings(owner, OTHER_CALLS).await, strings(owner, TABLES).await);
    assert!(calls.len() > 70 && tables.len() > 120, "{} calls, {} tables", calls.len(), tables.len());

    let mut wrong = Vec::new();
    let objects = session.objects().await;
    for object in objects.iter().filter(|object| object.is_for_readers()) {
        let example = object.example.as_deref().expect(&object.name);
        let all = format!("SELECT * FROM {}", object.name);
        for statement in [example].into_iter().chain(object.is_view().then_some(all.as_str())) {
            if let Err(error) = attempt(&mut reader, statement).await {
                wrong.push(format!("{statement}: {error}"));
            }
        }
    }
    let is_bucket_rows = |name: &str| name.starts_with("centile_store.leaderboard");
    assert_eq!(tables.iter().filter(|name| is_bucket_rows(name)).count(), 102, "100 tables, their parent and the view");
    for table in tables.iter().filter(|name| name.starts_with("centile_archive.") || is_bucket_rows(name)) {
        attempt(&mut reader, &format!("SELECT * FROM {table}")).await.expect(table);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    let mut attempts = calls;
    for table in &tables {
        let tried: &[&str] = match table.split('.').next() {
            Some("centile_store") if table == "centile_store.leaderboard" => &["LOCK TABLE", "DROP VIEW"],
            Some("centile_store")
                if ["centile_store.board_names", "centile_store.cohort_rows", "centile_store.current_rankings"]
                    .contains(&&**table) =>
            {
                &["SELECT FROM", "LOCK TABLE", "DROP VIEW"]
            }
            Some("centile_store") if is_bucket_rows(table) => &["DELETE FROM", "LOCK TABLE", "TRUNCATE", "DROP TABLE"],
            Some("centile_store") => &["SELECT FROM", "DELETE FROM", "LOCK TABLE", "TRUNCATE", "DROP TABLE"],
            Some("centile_archive") => &["REFRESH MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"],
            _ => &["LOCK TABLE", "DROP VIEW"],
        };
        attempts.extend(tried.iter().map(|what| format!("{what} {table}")));
    }
    attempts.extend(
        [
            "CREATE TABLE centile_store.t ()",
            "CREATE TABLE centile_archive.t ()",
            "CREATE FUNCTION centile.f() RETURNS integer LANGUAGE sql RETURN 1",
            "SET ROLE centile_service",
        ]
        .map(ToOwned::to_owned),
    );
    let wrong = not_refused(&mut reader, &attempts).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Procedures, and the steps that they call.
const OPERATOR_CALLS: [&str; 16] = [
    "centile.apply",
    "centile.close",
    "centile.close_due",
    "centile.refresh",
    "centile.refresh_due",
    "centile_store.apply_step",
    "centile_store.close_periods",
    "centile_store.close_step",
    "centile_store.corrected_archives",
    "centile_store.due_periods",
    "centile_store.open_snapshots",
    "centile_store.place_waiting",
    "centile_store.refresh_archives",
    "centile_store.refresh_step",
    "centile_store.release_unused_windows",
    "centile_store.whole_period_named",
];

#[tokio::test]
async fn an_operator_calls_the_procedures_and_reads_no_table() {
    let db = TestDb::new().await;
    let pool = db.pool().await;
    let calls: Vec<String> = query_scalar(
        "SELECT format('%s.%s', p.pronamespace::regnamespace, p.proname) FROM pg_proc p
         WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace) AND has_function_privilege('centile_operator', p.oid, 'EXECUTE')
         ORDER BY format('%s.%s', p.pronamespace::regnamespace, p.proname) COLLATE \"C\"",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(calls, OPERATOR_CALLS);
    let tables: Vec<String> = query_scalar(
        "SELECT c.oid::regclass::text FROM pg_class c
         WHERE c.relnamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace, 'centile_archive'::regnamespace) AND c.relkind IN ('r', 'p', 'v', 'm')
             AND has_table_privilege('centile_operator', c.oid, 'SELECT, INSERT, UPDATE, DELETE')",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(tables.is_empty(), "{tables:?}");
}

#[tokio::test]
async fn public_has_no_rights() {
    let db = TestDb::new().await;
    let open: Vec<String> = query_scalar(
        "SELECT 'everybody may call ' || p.oid::regprocedure
         FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
         WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace) AND a.grantee = 0
         UNION ALL
         SELECT 'everybody has rights on ' || c.oid::regclass
         FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
         WHERE c.relnamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace, 'centile_archive'::regnamespace) AND a.grantee = 0
         UNION ALL
         SELECT 'runs as its owner wherever names lead: ' || p.oid::regprocedure
         FROM pg_proc p
         WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
             AND p.prosecdef AND NOT 'search_path=pg_catalog, pg_temp' = ANY (p.proconfig)",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert!(open.is_empty(), "{open:#?}");
}

/// The service may use every function and view of the owner, but may not create functions or archives,
/// nor comment on these.
#[tokio::test]
async fn the_service_role_calls_and_reads_everything() {
    let mut session = Session::new().await;
    let mut wrong = Vec::new();
    for object in session.objects().await {
        let example = object.example.as_deref().expect(&object.name);
        match session.run(Some(SERVICE), example).await {
            Err(error)
                if ["comment_archive", "create_archive", "create_bucket_function"]
                    .iter()
                    .any(|name| object.name.ends_with(name)) =>
            {
                assert_eq!(code_of(&error), REFUSED, "{error}");
            }
            Err(error) => wrong.push(format!("{}: {error}", object.name)),
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs a command of the binary; returns its output.
async fn run(url: &str, arguments: &[&str]) -> String {
    let mut command = centile();
    command.args(arguments).env("DATABASE_URL", url);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Turns an archive into a table, as the service. It stays the owner's.
async fn convert_archive(service: &mut PgConnection) {
    sqlx::query("SELECT centile.convert_archive('main', 'week:2024-01-15')").execute(&mut *service).await.unwrap();
    let attempts = ["DELETE FROM", "DROP TABLE"].map(|what| format!("{what} centile_archive.main_week_2024_01_15"));
    assert!(not_refused(service, &attempts).await.is_empty());
    let converted = "SELECT rank FROM centile.page('main', 'week:2024-01-15', 1, 1)";
    assert_eq!(query_scalar::<_, i64>(converted).fetch_one(&mut *service).await.unwrap(), 1);
}

/// Computes the combined board of the sample, and drops what that replaces, but no other view.
async fn refresh_combined(service: &mut PgConnection) {
    forged_names_drop_no_view(service).await;
    for statement in [
        "SELECT centile_store.build_combination(4)",
        "SELECT FROM centile_store.finish_combination(4, NULL, 1)",
        "UPDATE centile_store.periods SET closed_at = closed_at - interval '1 minute' WHERE board_id = 4",
        "SELECT centile_store.drop_old_views(4)",
    ] {
        sqlx::query(statement).execute(&mut *service).await.unwrap();
    }
}

/// Runs the statements that sql/README.md recommends against logins that take advisory locks.
async fn protect_locks(db: &TestDb, owner: &str) {
    let (_, locks) = readme::README.split_once("DO $$\n").unwrap();
    let (locks, _) = locks.split_once("$$;").unwrap();
    db.execute(&format!("DO $$\n{}$$", locks.replace("centile_owner", owner))).await;
}

/// A name in a table does not make the owner drop another view.
async fn forged_names_drop_no_view(service: &mut PgConnection) {
    for (column, call) in [
        ("old_views = '{main_week_2024_01_15,newest}'", "drop_old_views"),
        ("old_views = '{foreign_table,newest}'", "drop_old_views"),
        ("next_view = 'main_week_2024_01_15'", "build_combination"),
    ] {
        let forged = format!("UPDATE centile_store.combinations SET {column}; SELECT centile_store.{call}(4)");
        let error = attempt(service, &forged).await.expect_err(call);
        assert_eq!(code_of(&error), "CB409", "{error}");
    }
}

/// Each function that takes an advisory lock, after [`protect_locks`].
async fn readers_take_no_locks(db: &TestDb, service: &mut PgConnection) {
    let locks = strings(
        service,
        "SELECT format('SELECT %s(%s)', p.proname, (SELECT string_agg('1::' || format_type(a, NULL), ', ') FROM unnest(p.proargtypes) AS a))
         FROM pg_proc p WHERE p.proname LIKE '%advisory%' AND p.proname NOT LIKE '%unlock%'",
    )
    .await;
    assert!(locks.len() >= 16, "{locks:?}");
    let mut reader = connect(&db.login(&format!("IN ROLE {READER}")).await.1).await;
    let wrong = not_refused(&mut reader, &locks).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_service_role_serves_and_closes_in_a_database_of_an_ordinary_owner() {
    let db = TestDb::empty().await;
    // The first migration creates a role without checking whether it exists, which needs
    // CREATEROLE.
    let owner_url = db.login("CREATEROLE").await.1;
    let owner_name = owner_url.split(['/', ':']).nth(3).unwrap().to_owned();
    db.execute(&format!(
        "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {owner_name}', current_database()); END $$"
    ))
    .await;
    migrate_url(&owner_url).await.unwrap();
    db.execute(TESTING).await;
    protect_locks(&db, &owner_name).await;
    let url = db.login(&format!("IN ROLE {SERVICE}")).await.1;

    // In SQL: the sample closes a week, into an archive that the owner owns.
    let mut service = connect(&url).await;
    raw_sql(readme::SAMPLE).execute(&mut service).await.unwrap();
    let archive_owner: String =
        query_scalar("SELECT matviewowner::text FROM pg_matviews WHERE matviewname = 'main_week_2024_01_15'")
            .fetch_one(&mut service)
            .await
            .unwrap();
    assert_eq!(archive_owner, owner_name);
    let refreshed: i32 = query_scalar(
        "SELECT centile_store.refresh_archive(p.period_id, 'dora', 'counted twice')
         FROM centile.periods p, LATERAL centile.correct_score('main', 'ann', 1000, '2024-01-16 12:00Z', 'counted twice', 'dora')
         WHERE p.board = 'main' AND p.state = 'closed'",
    )
    .fetch_one(&mut service)
    .await
    .unwrap();
    assert_eq!(refreshed, 2);
    let first: String =
        query_scalar("SELECT user_id FROM centile.ranking('main', 'week:2024-01-15') WHERE position = 1")
            .fetch_one(&mut service)
            .await
            .unwrap();
    assert_eq!(first, "ann");
    let months = "SELECT centile.ensure_ledger_months('2030-01-01', '2030-02-01')";
    assert_eq!(query_scalar::<_, i32>(months).fetch_one(&mut service).await.unwrap(), 2);

    // Over HTTP.
    run(&url, &["board", "create", "extra"]).await;
    let key = run(&url, &["key", "create", "--name", "game", "--role", "server", "--board", "main"]).await;
    let key = key.trim().to_owned();
    let (serve_url, prefix) = (url.clone(), db.redis_prefix());
    let mut serve = tokio::task::spawn_blocking(move || Serve::spawn(&serve_url, None, &prefix, &[])).await.unwrap();
    let event = json!({"user_id": "ann", "points": 7, "id": "one"});
    let request = serve.client.post(serve.at("/v1/boards/main/scores")).bearer_auth(&key).json(&event);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    let request = serve.client.get(serve.at("/v1/boards/main/scores/ann?period=week")).send().await.unwrap();
    let standing: Value = request.json().await.unwrap();
    assert_eq!((&standing["rank"], &standing["score"]), (&json!(1), &json!(7)), "{standing}");
    let version: String =
        query_scalar("SELECT version FROM centile.periods WHERE board = 'main' AND kind = 'week' AND state = 'open'")
            .fetch_one(&mut service)
            .await
            .unwrap();
    assert_eq!(standing["version"], version);
    assert!(serve.stop().await.success(), "{}", serve.output());

    let months: Vec<String> =
        query_scalar("SELECT table_name FROM centile.ledger_months").fetch_all(&mut service).await.unwrap();
    let mut attempts: Vec<String> = months.iter().map(|month| format!("SELECT FROM {month}")).collect();
    attempts.extend(
        [
            "CREATE TABLE centile_store.t ()",
            "CREATE FUNCTION centile.f() RETURNS integer LANGUAGE sql RETURN 1",
            "CREATE MATERIALIZED VIEW centile_archive.m AS SELECT 1",
            "ALTER TABLE centile_store.users ADD COLUMN email text",
            "ALTER FUNCTION centile.epoch() SECURITY DEFINER",
            "DROP VIEW centile.users",
            "DROP TABLE centile_store.users",
            "TRUNCATE centile_store.users",
            "CREATE INDEX ON centile_store.users (name)",
            "REFRESH MATERIALIZED VIEW centile_archive.main_week_2024_01_15",
            "DROP MATERIALIZED VIEW centile_archive.main_week_2024_01_15",
            "DELETE FROM centile_store.score_transactions",
            "UPDATE centile_store.score_transactions SET points = 0",
            "DELETE FROM centile_store.audit_log",
            "UPDATE centile_store.audit_log SET actor = 'nobody'",
            "UPDATE centile_store.applied_sql SET hash = ''",
            "DELETE FROM centile_store.schema_history",
            "INSERT INTO centile_store.applied_objects VALUES ('VIEW report.mine')",
            "GRANT centile_service TO centile_reader",
        ]
        .map(ToOwned::to_owned),
    );
    let wrong = not_refused(&mut service, &attempts).await;
    assert!(wrong.is_empty(), "{wrong:#?}");

    db.execute("CREATE TABLE centile_archive.foreign_table ()").await;
    refresh_combined(&mut service).await;
    convert_archive(&mut service).await;
    for drop in [false, true] {
        sqlx::query("SELECT centile_store.drop_archive(period_id, $1) FROM centile.periods WHERE board = 'main' AND state = 'closed'")
            .bind(drop)
            .execute(&mut service)
            .await
            .unwrap();
    }
    let archives =
        strings(&mut service, "SELECT matviewname::text FROM pg_matviews WHERE schemaname = 'centile_archive'").await;
    assert_eq!(archives.len(), 1, "that of the combined board: {archives:?}");
    readers_take_no_locks(&db, &mut service).await;
}
