//! `centile migrate`: run concurrently and repeatedly.

mod locks;
mod serving;

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use centile::store::migrate::{Files, LOCK_WAIT, migrate, migrate_to};
use sqlx::{query_as, query_scalar};

use crate::support::{TestDb, centile, folder, run};

/// Starts the command.
fn centile_migrate(url: &str) -> std::process::Child {
    let mut command = centile();
    command.arg("migrate").env("DATABASE_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[tokio::test]
async fn six_concurrent_runs_succeed_and_one_does_the_work() {
    let db = TestDb::empty().await;
    let runs: Vec<_> = (0..6).map(|_| centile_migrate(db.url())).collect();
    let outputs: Vec<String> = runs.into_iter().map(|run| printed(&run.wait_with_output().unwrap())).collect();
    let workers = outputs.iter().filter(|output| output.contains("V1__")).count();
    let idle = outputs.iter().filter(|output| output.contains("nothing to do")).count();
    assert_eq!((workers, idle), (1, 5), "{outputs:?}");
    assert_eq!(db.dump(), TestDb::new().await.dump());
}

#[tokio::test]
async fn a_second_run_reports_that_nothing_changed() {
    let db = TestDb::new().await;
    let before = db.dump();
    let output = printed(&centile_migrate(db.url()).wait_with_output().unwrap());
    assert_eq!(output.trim(), "nothing to do: the schema is current");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn earlier_functions_and_views_are_replaced() {
    let db = TestDb::new().await;
    let before = db.dump();
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         CREATE VIEW centile.obsolete_lower AS SELECT centile.obsolete() AS one;
         CREATE VIEW centile.obsolete_upper AS SELECT one FROM centile.obsolete_lower;
         INSERT INTO centile_store.applied_objects
         VALUES ('ROUTINE centile.obsolete()'), ('VIEW centile.obsolete_lower'), ('VIEW centile.obsolete_upper')",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert!(report.migrations.is_empty() && report.objects > 0, "{report:?}");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn objects_of_others_in_our_schemas_stay() {
    let db = TestDb::new().await;
    let role = db.login("").await.0;
    db.execute(&format!(
        "CREATE FUNCTION centile.mine(integer) RETURNS integer LANGUAGE sql RETURN 1;
         COMMENT ON FUNCTION centile.mine(integer) IS 'Mine.';
         CREATE FUNCTION centile_store.mine() RETURNS integer LANGUAGE sql RETURN 2;
         CREATE VIEW centile.my_best AS SELECT user_id, centile.mine(1) AS one FROM centile.standings;
         GRANT SELECT ON centile.my_best TO centile_reader;
         ALTER FUNCTION centile.mine(integer) OWNER TO {role}"
    ))
    .await;
    let before = db.dump();
    db.execute("UPDATE centile_store.applied_sql SET hash = 'earlier'").await;
    migrate(&db.pool().await).await.unwrap();
    assert_eq!(db.dump(), before);

    // An earlier release recorded nothing. Its objects have an example in their comments.
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         DELETE FROM centile_store.applied_objects;
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         COMMENT ON FUNCTION centile.obsolete() IS 'Obsolete. Example: SELECT centile.obsolete();'",
    )
    .await;
    migrate(&db.pool().await).await.unwrap();
    assert_eq!(db.dump(), before);

    // One of the same name is neither replaced nor left beside ours.
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.page(text) RETURNS integer LANGUAGE sql RETURN 1",
    )
    .await;
    let before = db.dump();
    run(&db, &["migrate"]).refused(1, &["centile.page(text)", "rename or drop"]);
    assert_eq!(db.dump(), before);
    db.execute("DROP FUNCTION centile.page(text)").await;
    run(&db, &["migrate"]).well();
}

/// For a role called `centile`, CREATE EXTENSION installs into schema `centile` by default.
#[tokio::test]
async fn extensions_in_our_schema_stay() {
    let db = TestDb::new().await;
    db.execute("CREATE EXTENSION pg_stat_statements SCHEMA centile").await;
    db.execute("UPDATE centile_store.applied_sql SET hash = 'earlier'").await;
    migrate(&db.pool().await).await.unwrap();
    let pool = db.pool().await;
    let views: i64 =
        query_scalar("SELECT count(*) FROM pg_class WHERE relname = 'pg_stat_statements' AND relkind = 'v'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(views, 1);
}

#[tokio::test]
async fn an_incomplete_index_of_names_is_replaced() {
    let db = TestDb::new().await;
    let before = db.dump();
    // As a killed CREATE INDEX CONCURRENTLY leaves it.
    db.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'centile_store.users_search_idx'::regclass")
        .await;
    migrate(&db.pool().await).await.unwrap();
    let query = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'centile_store.users_search_idx'::regclass";
    assert!(query_scalar::<_, bool>(query).fetch_one(&db.pool().await).await.unwrap());
    db.execute("DROP INDEX centile_store.users_search_idx").await;
    migrate(&db.pool().await).await.unwrap();
    assert_eq!(db.dump(), before);
}

/// Views of a user over a view and over functions, with rights of the user's own.
const USERS_VIEWS: &str = "
    CREATE SCHEMA report;
    CREATE VIEW report.best AS SELECT user_id, rank FROM centile.standings WHERE rank <= 3;
    CREATE VIEW report.page AS SELECT user_id, score FROM centile.page('main', 'all_time', 1, 3);
    CREATE VIEW report.missing AS SELECT windows_missing FROM centile.upkeep;
    GRANT EXECUTE ON FUNCTION centile.epoch() TO pg_monitor";

/// Data visible to the user, and the identities of the underlying objects.
async fn users_state(db: &TestDb) -> (i64, i64, Vec<i64>, bool) {
    query_as(
        "SELECT (SELECT count(*) FROM report.best), (SELECT sum(score)::bigint FROM report.page),
                ARRAY['centile.standings'::regclass::oid::bigint, 'centile.upkeep'::regclass::oid::bigint,
                      'centile.epoch'::regproc::oid::bigint, 'centile.page'::regproc::oid::bigint],
                has_function_privilege('pg_monitor', 'centile.epoch()', 'EXECUTE')",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap()
}

/// Replaces a part of a file of the schema.
fn edit(root: &Path, file: &str, from: &str, to: &str) {
    let path = root.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[tokio::test]
async fn a_users_views_survive_an_upgrade() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"periods\": [\"all_time\", \"week\"]}')").await;
    db.execute("SELECT testing.submit_score('main', 'ann', 5), testing.submit_score('main', 'bob', 7)").await;
    db.execute("CALL centile.apply('main')").await;
    db.execute(USERS_VIEWS).await;
    let before = users_state(&db).await;
    assert_eq!((before.0, before.1, before.3), (4, 12, true));
    let changed = changed_files(|root| {
        edit(root, "sql/functions/epoch.sql", "RETURN v_known;", "RETURN concat(v_known);");
        edit(root, "sql/functions/page.sql", "ORDER BY r.position", "ORDER BY 1");
        edit(root, "sql/views/standings.sql", "u.external_id AS user_id", "concat(u.external_id) AS user_id");
        // Another parameter's name, so that the function is dropped and created. No user depends on
        // it.
        edit(root, "sql/functions/rank_of_score.sql", "p_score", "p_points");
    });
    let report = migrate_to(db.url(), &changed, LOCK_WAIT).await.unwrap();
    assert!(report.migrations.is_empty() && report.objects > 100, "{report:?}");
    assert_eq!(users_state(&db).await, before);
    let (changed, renamed): (bool, bool) = query_as(
        "SELECT pg_get_viewdef('centile.standings'::regclass) LIKE '%concat(u.external_id)%',
                'p_points' = ANY ((SELECT proargnames FROM pg_proc WHERE oid = 'centile.rank_of_score'::regproc)::text[])",
    )
    .fetch_one(&db.pool().await)
    .await
    .unwrap();
    assert!(changed && renamed);
}

#[tokio::test]
async fn a_changed_signature_under_a_users_view_stops_the_upgrade() {
    let db = TestDb::new().await;
    db.execute(USERS_VIEWS).await;
    let before = db.dump();
    // centile.upkeep calls it, and report.missing reads centile.upkeep.
    let changed = changed_files(|root| edit(root, "sql/functions/rolling_window.sql", "p_zone", "p_time_zone"));
    let error = migrate_to(db.url(), &changed, LOCK_WAIT).await.unwrap_err().to_string();
    assert!(error.contains("report.missing") && error.contains("centile.upkeep"), "{error}");
    assert_eq!(db.dump(), before);
    db.execute("DROP VIEW report.missing").await;
    migrate_to(db.url(), &changed, LOCK_WAIT).await.unwrap();
}

/// Returns the files of an edition with a function and a view, and a view before them that uses both.
fn probes(types: &str, default: &str, columns: &str, wanted: &str) -> Files {
    changed_files(|root| {
        let write = |path: &str, text: String| fs::write(root.join(path), text).unwrap();
        write(
            "sql/functions/zz_probe.sql",
            format!(
                "CREATE OR REPLACE FUNCTION centile.zz_probe({types}{default}) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
                 COMMENT ON FUNCTION centile.zz_probe({types}) IS 'Probe.'"
            ),
        );
        let comment = |view: &str| format!("; COMMENT ON VIEW centile.{view} IS 'Probe.'");
        let later = format!("CREATE OR REPLACE VIEW centile.zz_probes AS SELECT {columns}");
        write("sql/views/zz_probes.sql", later + &comment("zz_probes"));
        let first =
            format!("CREATE OR REPLACE VIEW centile.aa_probes AS SELECT {wanted} AS probe FROM centile.zz_probes z");
        write("sql/views/aa_probes.sql", first + &comment("aa_probes"));
    })
}

#[tokio::test]
async fn changed_objects_are_replaced_together_with_those_that_use_them() {
    let db = TestDb::new().await;
    let editions = [
        ("integer", "", "1 AS a", "centile.zz_probe(1)"),
        // A view gets a column that a file before it reads.
        ("integer", "", "1 AS a, 2 AS b", "z.b + centile.zz_probe(1)"),
        // The same call means a function with another list of arguments.
        ("integer, integer", " DEFAULT 0", "1 AS a, 2 AS b", "z.b + centile.zz_probe(1)"),
        ("bigint, integer", " DEFAULT 0", "1 AS a, 2 AS b", "z.b + centile.zz_probe(1, 2)"),
        ("bigint", "", "1 AS a, 2 AS b", "z.b + centile.zz_probe(1)"),
    ];
    for (types, default, columns, wanted) in editions {
        migrate_to(db.url(), &probes(types, default, columns, wanted), LOCK_WAIT).await.unwrap();
        let functions = "SELECT count(*) FROM pg_proc WHERE proname = 'zz_probe'";
        let functions: i64 = query_scalar(functions).fetch_one(&db.pool().await).await.unwrap();
        assert_eq!(functions, 1, "{types}");
    }
}

#[tokio::test]
async fn an_obsolete_object_under_a_users_view_stops_the_upgrade() {
    let db = TestDb::new().await;
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         INSERT INTO centile_store.applied_objects VALUES ('ROUTINE centile.obsolete()');
         CREATE SCHEMA report;
         CREATE VIEW report.mine AS SELECT centile.obsolete() AS one",
    )
    .await;
    let before = db.dump();
    let error = migrate(&db.pool().await).await.unwrap_err().to_string();
    assert!(error.contains("report.mine"), "{error}");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn a_database_without_citus_is_no_cluster() {
    let db = TestDb::empty().await;
    run(&db, &["cluster", "init"]).refused(1, &["no extension citus"]);
    let db = TestDb::new().await;
    run(&db, &["cluster", "init"]).refused(1, &["no extension citus"]);
    run(&db, &["cluster", "status"]).refused(1, &["not a cluster"]);
}

#[tokio::test]
async fn an_unreachable_database_is_reported() {
    let output = centile_migrate("postgres://centile@127.0.0.1:1/none").wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot connect to PostgreSQL"), "{text}");
}

#[tokio::test]
async fn a_schema_older_than_the_baseline_is_refused_in_one_line() {
    let db = TestDb::new().await;
    db.execute(
        "DELETE FROM centile_store.schema_history;
         INSERT INTO centile_store.schema_history (version, name, applied_on, checksum) VALUES
             (1, 'schemas_and_tables', '2026-11-01T12:00:00Z', '1'), (2, 'periods_close', '2026-11-02T12:00:00Z', '2')",
    )
    .await;
    let before = db.dump();
    let cause = "a development version before the baseline (V1__schemas_and_tables)";
    run(&db, &["migrate"]).refused(1, &[cause, "create a new database", "export", "import"]);
    assert_eq!(db.dump(), before);
    // Those migrations include every version of the current ones.
    run(&db, &["board", "list"]).refused(1, &["another edition", "`centile migrate`"]);
}

/// Returns a copy of the files that make the schema, after `change` has changed the copy.
fn changed_files(change: impl FnOnce(&Path)) -> Files {
    let root = folder("changed-files");
    for path in [
        "migrations",
        "sql/functions",
        "sql/views",
        "sql/cluster/coordinator",
        "sql/cluster/every_server",
        "sql/cluster/worker",
    ] {
        fs::create_dir_all(root.join(path)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), root.join(path).join(entry.file_name())).unwrap();
        }
    }
    fs::copy("sql/grants.sql", root.join("sql/grants.sql")).unwrap();
    change(&root);
    let files = Files::read(&root).unwrap();
    fs::remove_dir_all(&root).unwrap();
    files
}

#[tokio::test]
async fn keys_that_had_to_sign_are_revoked() {
    let db = TestDb::empty().await;
    let before = changed_files(|root| {
        for migration in fs::read_dir(root.join("migrations")).unwrap() {
            let path = migration.unwrap().path();
            let number =
                path.file_name().and_then(|name| name.to_str()?.strip_prefix('V')?.split_once('_')?.0.parse().ok());
            if number.is_some_and(|number: u32| number >= 33) {
                fs::remove_file(path).unwrap();
            }
        }
        // Functions and views of today need later tables.
        for folder in ["sql/functions", "sql/views"] {
            for file in fs::read_dir(root.join(folder)).unwrap() {
                fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
    });
    migrate_to(db.url(), &before, LOCK_WAIT).await.unwrap();
    db.execute(
        "INSERT INTO centile_store.api_keys (id, name, role, secret_sha256, signing_secret, revoked_at)
         SELECT id, id, 'server', sha256(id::bytea), secret, revoked_at
         FROM (VALUES ('plain', NULL, NULL), ('signing', decode(repeat('5a', 65), 'hex'), NULL),
                      ('revoked', decode(repeat('5a', 65), 'hex'), timestamptz '2026-01-01Z')) AS k (id, secret, revoked_at);
         INSERT INTO centile_store.signed_requests VALUES ('signing', sha256('a request'), now())",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert_eq!(report.migrations[0], "V33__remove_request_signatures");
    let revoked: Vec<(String, bool)> =
        query_as("SELECT key_id, revoked_at > now() - interval '1 hour' FROM centile.api_keys WHERE revoked_at IS NOT NULL ORDER BY 1")
            .fetch_all(&db.pool().await)
            .await
            .unwrap();
    assert_eq!(revoked, [("revoked".to_owned(), false), ("signing".to_owned(), true)]);
    let audited: Vec<(String, String)> =
        query_as("SELECT action, subject FROM centile.audit_log").fetch_all(&db.pool().await).await.unwrap();
    assert_eq!(audited, [("revoke_key".to_owned(), "key signing".to_owned())]);
    assert_eq!(db.dump(), TestDb::new().await.dump());
}

/// The name of a migration in a later release.
const LATER: &str = "V1000__later";

/// Returns the files of that release.
fn later_files(migration: &str) -> Files {
    changed_files(|root| fs::write(root.join(format!("migrations/{LATER}.sql")), migration).unwrap())
}

#[tokio::test]
async fn a_later_migration_is_applied_once_and_keeps_the_data() {
    let db = TestDb::new().await;
    db.execute("INSERT INTO centile_store.users (external_id, name, lane_hash) VALUES ('ann', 'Ann', 18833)").await;
    let later = later_files("ALTER TABLE centile_store.users ADD COLUMN later integer NOT NULL DEFAULT 7;");
    let report = migrate_to(db.url(), &later, LOCK_WAIT).await.unwrap();
    assert_eq!((report.migrations, report.objects), (vec![LATER.to_owned()], 0));
    let user: (String, i32) =
        query_as("SELECT name, later FROM centile_store.users").fetch_one(&db.pool().await).await.unwrap();
    assert_eq!(user, ("Ann".to_owned(), 7));
    let report = migrate_to(db.url(), &later, LOCK_WAIT).await.unwrap();
    assert_eq!((report.migrations, report.objects), (Vec::new(), 0));
}
