//! The contract with DBAs: each object has a comment, each comment's example runs, `sql/README.md`
//! shows its output, and the reader role can only read.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test --test it store::contract` updates the generated parts of
//! `sql/README.md`. These lie between markers: `<!-- objects: a, b -->` (views and functions of
//! `centile`), `<!-- internal -->` (functions of `centile_store`) and `<!-- output -->` (of the SQL
//! block before it), each up to `<!-- end -->`.

pub mod readme;
pub mod session;

use std::{collections::BTreeSet, env, fs};

use centile::Error;
use sqlx::{AssertSqlSafe, query_scalar, raw_sql};

use self::{
    readme::README,
    session::{READER, Session, code_of},
};
use crate::support::TestDb;

/// Longest file of a function, in lines.
const FUNCTION_LINES_MAX: usize = 80;

#[test]
fn no_function_is_long() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let long: Vec<_> =
        files.filter(|file| fs::read_to_string(file).unwrap().lines().count() > FUNCTION_LINES_MAX).collect();
    assert!(long.is_empty(), "these files have more than {FUNCTION_LINES_MAX} lines: {long:?}");
}

#[tokio::test]
async fn every_object_has_a_comment() {
    let db = TestDb::new().await;
    let bare: Vec<String> = query_scalar(
        "WITH ours AS (
            SELECT oid, nspname FROM pg_namespace WHERE nspname IN ('centile', 'centile_store', 'centile_archive')
        )
        SELECT 'schema ' || nspname FROM ours WHERE obj_description(oid, 'pg_namespace') IS NULL
        UNION ALL
        SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'c' THEN 'type ' ELSE 'table ' END || c.oid::regclass
        FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'c')
            AND coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')) IS NULL
        UNION ALL
        SELECT 'type ' || t.oid::regtype
        FROM pg_type t JOIN ours ON ours.oid = t.typnamespace
        WHERE t.typtype IN ('d', 'e', 'r') AND obj_description(t.oid, 'pg_type') IS NULL
        UNION ALL
        SELECT 'function ' || p.oid::regprocedure
        FROM pg_proc p JOIN ours ON ours.oid = p.pronamespace
        WHERE obj_description(p.oid, 'pg_proc') IS NULL
        UNION ALL
        -- centile_store.set_rules takes the field and the message from the comment. It does not set the slug.
        SELECT 'constraint ' || conname FROM pg_constraint
        WHERE conrelid = 'centile_store.boards'::regclass AND contype = 'c' AND conname <> 'boards_slug_form'
            AND obj_description(oid, 'pg_constraint') ~ '^[a-z_]+: .' IS NOT TRUE
        ORDER BY 1",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert!(bare.is_empty(), "COMMENT ON is missing: {bare:#?}");
}

#[tokio::test]
async fn every_example_runs() {
    let mut session = Session::new().await;
    let mut failures = Vec::new();
    for object in session.objects().await {
        let Some(example) = &object.example else {
            failures.push(format!("{}: the comment ends in no Example: …;", object.name));
            continue;
        };
        let own = session.run(None, example).await.map_err(|error| error.to_string());
        if let Err(error) = &own {
            failures.push(format!("{}: {error}", object.name));
        } else if object.is_for_readers() {
            let readers = session.run(Some(READER), example).await.map_err(|error| error.to_string());
            if own != readers {
                failures.push(format!("{}: {own:?}, but for {READER} {readers:?}", object.name));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Times within JSON and text must not depend on the session.
#[tokio::test]
async fn examples_give_the_same_in_every_time_zone() {
    let mut session = Session::new().await;
    let mut failures = Vec::new();
    for object in session.objects().await {
        let mut outputs = Vec::new();
        for zone in ["UTC", "America/St_Johns", "Pacific/Apia"] {
            session.zone = Some(zone);
            let run = session.run(None, object.example.as_deref().unwrap_or("SELECT")).await;
            outputs.push(run.map_err(|error| error.to_string()));
        }
        outputs.dedup();
        if outputs.len() > 1 {
            failures.push(format!("{}: {outputs:#?}", object.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn the_readme_shows_the_output_of_the_examples() {
    let mut session = Session::new().await;
    let file = readme::path();
    let current = readme::render(README, &mut session).await;
    if env::var_os("UPDATE_SNAPSHOTS").is_some_and(|flag| flag == "1") {
        fs::write(&file, &current).unwrap();
    }
    let checked_in = fs::read_to_string(&file).unwrap();
    assert!(
        checked_in == current,
        "sql/README.md does not show what its examples give now, first at:\n{}\nLook at the difference after \
         UPDATE_SNAPSHOTS=1 cargo test --test it store::contract",
        readme::first_difference(&checked_in, &current)
    );
}

#[tokio::test]
async fn the_reader_writes_nothing() {
    let mut session = Session::new().await;
    for object in session.objects().await {
        let is_for_readers = object.is_for_readers();
        if let Some(example) = object.example.filter(|_| !is_for_readers) {
            let refused = session.run(Some(READER), &example).await.expect_err(&object.name);
            assert_eq!(code_of(&refused), "42501", "{}: {refused}", object.name);
        }
    }
    let allowed = session
        .strings(
            "WITH ours AS (
                SELECT oid, nspname FROM pg_namespace WHERE nspname IN ('centile', 'centile_store', 'centile_archive')
            )
            SELECT 'create in ' || nspname FROM ours WHERE has_schema_privilege('centile_reader', oid, 'CREATE')
            UNION ALL
            SELECT 'read ' || c.oid::regclass FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
            WHERE nspname = 'centile_store' AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname !~ '^leaderboard(_bucket(_[0-9]{2})?)?$' AND has_any_column_privilege('centile_reader', c.oid, 'SELECT')
            UNION ALL
            SELECT 'call ' || p.oid::regprocedure FROM pg_proc p JOIN ours ON ours.oid = p.pronamespace
            WHERE (nspname = 'centile_store' OR p.provolatile = 'v' OR p.proname IN ('entries_from_ledger', 'verify')) AND has_function_privilege('centile_reader', p.oid, 'EXECUTE')
            UNION ALL
            SELECT 'change ' || c.oid::regclass FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm')
                AND (has_table_privilege('centile_reader', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                     OR has_any_column_privilege('centile_reader', c.oid, 'INSERT, UPDATE, REFERENCES'))
            UNION ALL
            SELECT 'advance ' || c.oid::regclass FROM pg_class c JOIN ours ON ours.oid = c.relnamespace
            -- CASE, because AND may ask about tables first, and fail.
            WHERE CASE c.relkind WHEN 'S' THEN has_sequence_privilege('centile_reader', c.oid, 'USAGE, UPDATE') END",
        )
        .await;
    assert!(allowed.is_empty(), "{READER} may {allowed:#?}");
}

#[tokio::test]
async fn the_reader_reads_all_of_the_contract_but_no_secret() {
    let mut session = Session::new().await;
    let denied = session
        .strings(
            "SELECT c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace = 'centile'::regnamespace AND c.relkind = 'v'
                AND NOT has_table_privilege('centile_reader', c.oid, 'SELECT')
            UNION ALL
            SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'centile'::regnamespace AND p.provolatile <> 'v' AND p.proname NOT IN ('entries_from_ledger', 'verify')
                AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 'centile_reader'::regrole)",
        )
        .await;
    assert!(denied.is_empty(), "GRANT … TO {READER} is missing: {denied:#?}");

    for object in session.objects().await.iter().filter(|object| object.is_view()) {
        let all = format!("SELECT * FROM {}", object.name);
        let rows = session.run(Some(READER), &all).await.expect(&object.name);
        assert!(!rows.contains("secret"), "{}:\n{rows}", object.name);
    }
}

/// Compares the README's table of SQLSTATEs with the status that [`Error`] gives each.
#[tokio::test]
async fn the_readme_maps_sqlstates_to_the_right_status() {
    let mut session = Session::new().await;
    let mut explained = BTreeSet::new();
    for row in readme::sqlstates() {
        for code in &row.codes {
            let raise = format!(
                "DO $$ BEGIN RAISE EXCEPTION 'a trial' USING ERRCODE = '{code}', CONSTRAINT = '{}'; END $$",
                row.constraint
            );
            let raised = raw_sql(AssertSqlSafe(raise)).execute(session.connection()).await.expect_err(code);
            assert_eq!(Error::from(raised).code().status(), row.status, "sql/README.md on {code}");
            explained.insert(code.clone());
        }
    }
    let used = session
        .strings(
            "SELECT DISTINCT m.code[1] FROM pg_proc p CROSS JOIN LATERAL regexp_matches(p.prosrc, 'CB[0-9]{3}', 'g') AS m (code)
            WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)",
        )
        .await;
    assert!(!used.is_empty());
    let unexplained: Vec<&String> = used.iter().filter(|code| !explained.contains(*code)).collect();
    assert!(unexplained.is_empty(), "sql/README.md does not explain {unexplained:?}");
}

/// A call of each function of the contract for each of its integers and each extreme value. Other
/// arguments with defaults are left out.
const EXTREME_CALLS: &str = r#"
    SELECT DISTINCT format('SELECT count(*) FROM centile.%I(%s) x', p.proname, (
        SELECT string_agg(format('%I => %s', a.name, CASE
                   WHEN a.place = i.place THEN quote_literal(v) || '::' || a.type
                   WHEN a.type = 'text'::regtype THEN coalesce(quote_literal(CASE a.name
                       WHEN 'p_board' THEN b.board WHEN 'p_period' THEN b.period WHEN 'p_user' THEN 'ann' WHEN 'p_kind' THEN 'day'
                       WHEN 'p_zone' THEN 'UTC' WHEN 'p_order' THEN 'desc' WHEN 'p_length' THEN '7d' WHEN 'p_slug' THEN 'extreme' END), 'NULL::text')
                   WHEN a.type IN ('integer'::regtype, 'bigint'::regtype, 'smallint'::regtype) THEN '1::' || a.type
                   WHEN a.type = 'timestamptz'::regtype THEN 'now()'
                   WHEN a.name = 'p_sources' THEN quote_literal('[{"board": "main", "period": "all_time"}]')
                   ELSE 'NULL::' || a.type END), ', ' ORDER BY a.place)
        FROM (SELECT t.place, t.type::regtype AS type, p.proargnames[t.place] AS name
              FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS t (type, place)) a
        WHERE a.place <= p.pronargs - p.pronargdefaults OR a.place = i.place OR a.name = 'p_period'))
    FROM pg_proc p
    CROSS JOIN LATERAL unnest(p.proargtypes::oid[]) WITH ORDINALITY AS i (type, place)
    CROSS JOIN LATERAL unnest(CASE i.type::regtype
        WHEN 'integer'::regtype THEN '{-2147483648,-1,0,2147483647}'::text[]
        WHEN 'bigint'::regtype THEN '{-9223372036854775808,-1,0,9223372036854775807}'
        WHEN 'smallint'::regtype THEN '{-32768,-1,0,32767}' END) AS v
    -- An open and a closed period, and a combined board.
    CROSS JOIN (VALUES ('main', 'all_time'), ('main', 'week:2024-01-15'), ('hero', 'all_time')) AS b (board, period)
    WHERE p.pronamespace = 'centile'::regnamespace"#;

#[tokio::test]
async fn extreme_integers_get_results_or_documented_errors() {
    let mut session = Session::new().await;
    let calls = session.strings(EXTREME_CALLS).await;
    assert!(calls.len() > 100, "{calls:?}");
    let mut wrong = Vec::new();
    for call in calls {
        if let Err(error) = session.run(None, &call).await {
            let code = code_of(&error);
            // The constraints of tables name the field. Functions that take internal ids have
            // PostgreSQL's error for a missing row.
            let is_id = code == "P0002" && (call.contains("p_period_id") || call.contains("p_board_id"));
            if !code.starts_with("CB") && code != "23514" && !is_id {
                wrong.push(format!("{call}: {error} ({code})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for period in ["all_time", "week:2024-01-15"] {
        let around = format!("SELECT count(*) FROM centile.players_around('main', 'ann', '{period}', 2147483647)");
        let all = format!("SELECT count(*) FROM centile.ranking('main', '{period}')");
        assert_eq!(session.run(None, &around).await.unwrap(), session.run(None, &all).await.unwrap(), "{period}");
    }
}
