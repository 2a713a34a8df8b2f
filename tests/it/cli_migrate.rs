//! `centile migrate`: safe at once, and safe again.

mod locks;
mod serving;

use std::process::{Output, Stdio};

use centile::store::migrate::{Files, migrate, migrate_to};
use sqlx::{query, query_as, query_scalar};

use crate::{
    sql_property::layout,
    support::{TESTING, TestDb, audit, centile, folder, layout as support_layout},
};

/// The command, run to its end.
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
async fn six_at_once_all_succeed_and_one_does_the_work() {
    let db = TestDb::empty().await;
    let runs: Vec<_> = (0..6).map(|_| centile_migrate(db.url())).collect();
    let outputs: Vec<String> = runs.into_iter().map(|run| printed(&run.wait_with_output().unwrap())).collect();
    let workers = outputs.iter().filter(|output| output.contains("V1__")).count();
    let idle = outputs.iter().filter(|output| output.contains("nothing to do")).count();
    assert_eq!((workers, idle), (1, 5), "{outputs:?}");
    assert_eq!(db.dump(), TestDb::new().await.dump());
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_says_so() {
    let db = TestDb::new().await;
    let before = db.dump();
    let output = printed(&centile_migrate(db.url()).wait_with_output().unwrap());
    assert_eq!(output.trim(), "nothing to do: the schema is current");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn an_earlier_edition_of_functions_and_views_is_replaced() {
    let db = TestDb::new().await;
    let before = db.dump();
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
         CREATE VIEW centile.obsolete_lower AS SELECT centile.obsolete() AS one;
         CREATE VIEW centile.obsolete_upper AS SELECT one FROM centile.obsolete_lower",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert!(report.migrations.is_empty() && report.objects > 0, "{report:?}");
    assert_eq!(db.dump(), before);
}

#[tokio::test]
async fn what_a_user_built_on_our_views_stops_the_upgrade_and_is_named() {
    let db = TestDb::new().await;
    db.execute(
        "UPDATE centile_store.applied_sql SET hash = 'earlier';
         CREATE FUNCTION centile.obsolete() RETURNS integer LANGUAGE sql RETURN 1;
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
async fn a_database_that_cannot_be_reached_is_said_to_be() {
    let output = centile_migrate("postgres://centile@127.0.0.1:1/none").wait_with_output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot connect to PostgreSQL"), "{text}");
}

/// The migrations up to a version, without functions and views.
fn up_to(version: u32) -> Files {
    let root = folder("earlier-schema");
    for path in ["migrations", "sql/functions", "sql/views"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    for entry in std::fs::read_dir("migrations").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let number = name.strip_prefix('V').and_then(|rest| rest.split_once("__")).map(|(number, _)| number.parse());
        if number.is_some_and(|number: Result<u32, _>| number.unwrap() <= version) {
            std::fs::copy(format!("migrations/{name}"), root.join("migrations").join(&name)).unwrap();
        }
    }
    std::fs::write(root.join("sql/grants.sql"), "").unwrap();
    let files = Files::read(&root).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    files
}

/// What the first schema, filled with a score by hand, becomes: data stay, and rights are those of now.
#[tokio::test]
async fn the_first_schema_with_data_is_brought_up_to_date() {
    let first = up_to(1);
    let db = TestDb::empty().await;
    migrate_to(db.url(), &first).await.unwrap();
    db.execute(
        "INSERT INTO centile_store.users (external_id, name, lane_hash) VALUES ('ann', 'Ann', 18833);
         INSERT INTO centile_store.boards (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max)
         VALUES ('main', 'Main', 'sum', 'desc', 'shared', '{all_time}', 1, 'UTC', 0, 100);
         INSERT INTO centile_store.board_lanes (board_id, lane, batch, last_at) VALUES (1, 0, 1, '2024-01-15 12:00Z');
         CREATE TABLE centile_store.score_transactions_2024_01 PARTITION OF centile_store.score_transactions
             FOR VALUES FROM ('2024-01-01Z') TO ('2024-02-01Z');
         COMMENT ON TABLE centile_store.score_transactions_2024_01 IS 'The ledger of 2024-01 (UTC).';
         GRANT SELECT ON centile_store.score_transactions_2024_01 TO centile_reader;
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         VALUES (1, 1, 7, '2024-01-15 12:00Z', 0, 1);
         INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state) VALUES
             (1, 'all_time', 'all_time', '-infinity', 'infinity', 'closed');
         INSERT INTO centile_store.rankings (board_id, period_id) VALUES (1, 1);
         UPDATE centile_store.periods SET state = 'open', ranking_id = 1",
    )
    .await;
    let report = migrate(&db.pool().await).await.unwrap();
    assert!(report.migrations.iter().all(|name| !name.starts_with("V1")) && report.objects > 0, "{report:?}");

    let pool = db.pool().await;
    let score: i64 = query_scalar("SELECT score FROM centile.entries_from_ledger(1)").fetch_one(&pool).await.unwrap();
    assert_eq!(score, 7);
    let others: Vec<String> = query_scalar(
        "SELECT DISTINCT a.grantee::regrole::text FROM pg_class c, aclexplode(c.relacl) a
         WHERE c.oid = 'centile_store.score_transactions_2024_01'::regclass AND a.grantee <> c.relowner",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(others.is_empty(), "{others:?} have rights on a month of the ledger");
}

/// A board with two lanes as version 2 left it: stripes that begin among players of equal score, whole counts in one lane, and
/// what the other lane owes as a negative.
const SECOND: &str = "
    INSERT INTO centile_store.users (external_id, name, lane_hash) SELECT 'p' || n, 'P' || n, n FROM generate_series(1, 60) AS n;
    INSERT INTO centile_store.boards (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max)
    VALUES ('main', 'Main', 'sum', 'desc', 'shared', '{all_time}', 2, 'UTC', 0, 100),
           ('idle', 'Idle', 'sum', 'desc', 'shared', '{all_time}', 1, 'UTC', 0, 100);
    INSERT INTO centile_store.board_lanes (board_id, lane, batch, last_at)
    VALUES (1, 0, 41, '2024-01-15 12:00Z'), (1, 1, 7, '2024-01-15 12:00Z'), (2, 0, 0, '2000-01-01 00:00Z');
    CREATE TABLE centile_store.score_transactions_2024_01 PARTITION OF centile_store.score_transactions
        FOR VALUES FROM ('2024-01-01Z') TO ('2024-02-01Z');
    INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
    SELECT 1, n, n / 3, '2024-01-15 12:00Z', n % 2, 1 FROM generate_series(1, 60) AS n;
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state) VALUES
        (1, 'all_time', 'all_time', '-infinity', 'infinity', 'closed');
    INSERT INTO centile_store.rankings (board_id, period_id, layout) VALUES (1, 1, 5);
    UPDATE centile_store.periods SET state = 'open', ranking_id = 1;
    INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, only_zeros)
    SELECT 1, n, n / 3, n / 3, 1493164613685247, '2024-01-15 12:00Z', n < 3 FROM generate_series(1, 60) AS n;
    -- In the middle of those with 6 and of those with 13.
    INSERT INTO centile_store.stripes (ranking_id, bucket, stripe, rank_key, tie_key, user_key)
    VALUES (1, 20, 1, -9223372036854775808, -9223372036854775808, -9223372036854775808), (1, 20, 2, 6, 1493164613685247, -19), (1, 70, 1, 13, 1493164613685247, -40);
    INSERT INTO centile_store.leaderboard_bucket (bucket, ranking_id, rank_key, tie_key, user_key)
    SELECT CASE WHEN (n / 3, -n) >= (13, -40) THEN 70 ELSE 20 END, 1, n / 3, 1493164613685247, -n FROM generate_series(1, 60) AS n;
    INSERT INTO centile_store.stripe_counts (ranking_id, bucket, lane, counts)
    SELECT 1, b.bucket, l.lane, CASE l.lane WHEN 0 THEN b.counts ELSE array_fill(-1, ARRAY[cardinality(b.counts)]) END
    FROM (VALUES (0::smallint), (1::smallint)) AS l (lane)
    CROSS JOIN (
        SELECT x.bucket, array_agg(x.players + 1 ORDER BY x.stripe) AS counts
        FROM (SELECT CASE WHEN (n / 3, -n) >= (13, -40) THEN 70::smallint ELSE 20::smallint END AS bucket,
                     (n / 3, -n) >= (6, -19) AND (n / 3, -n) < (13, -40) AS stripe, count(*)::integer AS players
              FROM generate_series(1, 60) AS n GROUP BY 1, 2) x
        GROUP BY x.bucket) b;
    INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
    SELECT 1, l, ARRAY(SELECT CASE WHEN l = 0 THEN count(b.bucket) + (x IN (20, 70))::integer * 2 ELSE -(x IN (20, 70))::integer * 2 END
                       FROM generate_series(0, 99) AS x
                       LEFT JOIN centile_store.leaderboard_bucket b ON b.bucket = x GROUP BY x ORDER BY x)
    FROM generate_series(0, 1) AS l";

#[tokio::test]
async fn rankings_of_the_second_schema_keep_their_players_counts_and_ranks() {
    let db = TestDb::empty().await;
    migrate_to(db.url(), &up_to(2)).await.unwrap();
    db.execute(SECOND).await;
    let pool = db.pool().await;
    let plain = "SELECT u.external_id, rank() OVER (ORDER BY l.rank_key DESC)
                 FROM centile_store.leaderboard l JOIN centile_store.users u ON u.id = l.user_id ORDER BY u.id";
    let expected: Vec<(String, i64)> = query_as(plain).fetch_all(&pool).await.unwrap();
    let report = migrate(&pool).await.unwrap();
    assert!(report.migrations.iter().any(|name| name.starts_with("V3")), "{report:?}");

    let pool = db.pool().await;
    let lanes: Vec<(i32, i16, i64)> =
        query_as("SELECT board_id, lane, batch FROM centile_store.board_lanes ORDER BY board_id, lane")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(lanes, [(1, 0, 41), (1, 1, 7), (2, 0, 0)]);
    let ranking: (i16, i32) =
        query_as("SELECT lanes, layout FROM centile_store.rankings").fetch_one(&pool).await.unwrap();
    assert_eq!(ranking, (2, 5));
    let mut connection = pool.acquire().await.unwrap();
    layout::check_ranking(&mut connection, 1, "after the upgrade").await;
    assert_eq!(audit::rankings_are_sound(&pool).await, 1);
    let ranks = "SELECT u.external_id, r.rank FROM centile_store.users u
                 CROSS JOIN LATERAL centile.player_rank('main', u.external_id) r ORDER BY u.id";
    let found: Vec<(String, i64)> = query_as(ranks).fetch_all(&pool).await.unwrap();
    assert_eq!(found, expected);

    // What was kept can be written to, and kept in shape.
    support_layout::aim(&mut connection, "main", 4, 0).await;
    assert!(support_layout::keep(&mut connection, 1, async |_, _, _| {}).await > 0);
    db.execute(TESTING).await;
    query("SELECT centile.ensure_ledger_months(), testing.record_scores(1, 0::smallint, '{p60}', '{0}')")
        .execute(&pool)
        .await
        .unwrap();
    layout::check_ranking(&mut connection, 1, "after a score").await;
    let found: Vec<(String, i64)> = query_as(ranks).fetch_all(&pool).await.unwrap();
    assert_eq!(found, expected);
}

/// Two closed weeks of the fifth schema: the top of the second was refreshed, so that its event names others, and the first's archive is gone.
const FIFTH: &str = r#"
    INSERT INTO centile_store.users (external_id, name, lane_hash) SELECT n, upper(n), 1 FROM unnest('{ann,bob,cyd}'::text[]) AS n;
    INSERT INTO centile_store.boards (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max)
    VALUES ('main', 'Main', 'sum', 'desc', 'shared', '{week}', 1, 'UTC', 0, 100);
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state, cut_off_at, archive_revision, archive_players, frozen_top, archive_dropped_at)
    VALUES (1, 'week', '2024-01-01', '2024-01-01Z', '2024-01-08Z', 'closed', '2024-01-08Z', 1, 1, NULL, '2024-02-01Z'),
           (1, 'week', '2024-01-08', '2024-01-08Z', '2024-01-15Z', 'closed', '2024-01-16Z', 2, 1,
            convert_to('{"rows": [{"user_id": "cyd", "user_name": "CYD", "avatar": null, "internal_id": 3}], "players": 1}'::jsonb::text, 'UTF8'), NULL),
           (1, 'week', '2024-01-15', '2024-01-15Z', '2024-01-22Z', 'closed', '2024-01-22Z', 1, 0, convert_to('{"rows": [], "players": 0}'::jsonb::text, 'UTF8'), NULL);
    INSERT INTO centile_store.outbox (board_id, period_id, kind, payload)
    SELECT 1, p, 'period_closed', jsonb_build_object('top', jsonb_build_array(jsonb_build_object('user_id', u, 'user_name', upper(u))))
    FROM (VALUES (1, 'ann'), (2, 'bob')) AS v (p, u)"#;

#[tokio::test]
async fn whom_the_tops_of_the_fifth_schema_name_is_known_after_it() {
    let db = TestDb::empty().await;
    migrate_to(db.url(), &up_to(5)).await.unwrap();
    db.execute(FIFTH).await;
    let pool = db.pool().await;
    migrate(&pool).await.unwrap();
    let listed: Vec<(i64, Vec<i64>)> =
        query_as("SELECT period_id, user_ids FROM centile_store.named_players ORDER BY period_id")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(listed, [(1, vec![1]), (2, vec![2, 3]), (3, vec![])]);
    for (player, tops) in [("ann", 1), ("bob", 1), ("cyd", 1)] {
        let found: i32 = query_scalar("SELECT cardinality(period_ids) FROM centile.erase_user($1)")
            .bind(player)
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(found, tops, "{player}");
    }
    let dump = db.data_dump();
    for name in ["ANN", "BOB", "CYD"] {
        let hex = name.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        assert!(!dump.contains(name) && !dump.contains(&hex), "{name} is in {dump}");
    }
}
