//! `verify` without `--whole` reads only the ledger rows since the last verification.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, raw_sql};

use super::*;
use crate::{
    maintenance::layout::rows_read_of,
    support::{Files, import},
};

/// Acts on a player, with the player's id, and whether the player then has an entry of all time.
const ACTS: [(&str, i64, bool); 7] = [
    ("SELECT testing.submit_score('arena', 'p010', 5)", 10, true),
    (
        "SELECT centile.void_score('arena', max(id)) FROM centile_store.score_transactions WHERE user_id = 11 AND kind = 'score'",
        11,
        true,
    ),
    ("SELECT centile.reset_player('arena', 'p012')", 12, false),
    ("SELECT centile.ban_user('arena', 'p013', true)", 13, false),
    ("SELECT centile.ban_user('arena', 'p013', false)", 13, true),
    ("SELECT centile.correct_score('arena', 'p014', 5, '2024-01-05 12:00Z', 'late', 'dora')", 14, true),
    (
        "SELECT testing.record_scores(1, (centile.lane_hash('p015') % 2)::smallint, '{p015}', '{5}', p_times => '{2024-01-02 12:00Z}')",
        15,
        true,
    ),
];

/// Changes a player's entry so that only the ledger tells that it is wrong, or undoes this.
async fn change_entry(db: &TestDb, pool: &PgPool, user: i64, exists: bool, undo: bool) {
    let statement = match (exists, undo) {
        (true, _) => {
            format!("UPDATE leaderboard SET only_zeros = NOT only_zeros WHERE ranking_id = $r AND user_id = {user}")
        }
        (false, true) => format!("DELETE FROM leaderboard WHERE ranking_id = $r AND user_id = {user}"),
        (false, false) => format!(
            "INSERT INTO leaderboard SELECT ranking_id, {user}, score, rank_key, tie_key, reached_at, lane, only_zeros
             FROM leaderboard WHERE ranking_id = $r AND user_id = 7"
        ),
    };
    damage(db, pool, &statement).await;
}

#[tokio::test]
async fn players_with_new_rows_are_compared_with_the_ledger() {
    let db = with_past().await;
    let pool = db.pool().await;
    verify(&db, &[]).well();
    // Only a whole verification compares a player without new rows. Once damage is known, all are
    // whole until it is repaired.
    change_entry(&db, &pool, 7, true, false).await;
    verify(&db, &[]).well();
    for more in [&["--whole"][..], &[]] {
        let found = verify(&db, more);
        assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["entry different"])), "{found:?}");
    }
    change_entry(&db, &pool, 7, true, true).await;
    verify(&db, &[]).well();
    for (act, user, exists) in ACTS {
        db.execute(act).await;
        change_entry(&db, &pool, user, exists, false).await;
        let found = verify(&db, &[]);
        let wanted = if exists { "entry different" } else { "entry unexpected" };
        assert!(found.code == Some(1) && kinds(&found).contains(wanted), "{act}: {found:?}");
        change_entry(&db, &pool, user, exists, true).await;
        verify(&db, &[]).well();
    }
    // A lane that was set back.
    db.execute("UPDATE centile_store.board_lanes SET batch = batch - 1 WHERE lane = 0").await;
    assert_eq!(kinds(&verify(&db, &["--period", "all_time"])), BTreeSet::from(["lane rows"]));
    db.execute("UPDATE centile_store.board_lanes SET batch = batch + 1 WHERE lane = 0").await;
    verify(&db, &[]).well();
    // An import, with events of the past.
    let files = Files::new();
    let file = files.write("past.csv", "user_id,points,occurred_at\np016,9,2024-01-03T12:00:00Z\n");
    import(&db, &file, "arena", &[]).well(1, 0);
    change_entry(&db, &pool, 16, true, false).await;
    assert_eq!(kinds(&verify(&db, &[])), BTreeSet::from(["entry different"]));
}

/// Of two verifications at once, one whose snapshot lacks the damage that the other found does not
/// hide it.
#[tokio::test]
async fn damage_stays_known_beside_another_verification() {
    let db = with_past().await;
    let pool = db.pool().await;
    let is_verified = async |before: &str, after: &str| {
        let all = format!(
            "{before}
             CREATE TEMP TABLE point AS
             SELECT p.ranking_id, (SELECT v.damaged_at FROM centile_store.verified_rankings v WHERE v.ranking_id = p.ranking_id) AS damaged_at
             FROM centile_store.periods p WHERE p.kind = 'all_time';
             {after}
             SELECT centile_store.end_verification(p.ranking_id, true, p.damaged_at, b.ledger_end, b.batches, b.times)
             FROM point p, centile_store.begin_verification(1) b;
             DROP TABLE point"
        );
        db.execute(&all).await;
        let point = "SELECT bool_or(ledger_end IS NOT NULL) FROM centile_store.verified_rankings";
        sqlx::query_scalar::<_, bool>(point).fetch_one(&pool).await.unwrap()
    };
    let finds = "SELECT centile_store.end_verification(p.ranking_id, false, NULL, NULL, NULL, NULL) FROM centile_store.periods p WHERE p.kind = 'all_time';";
    assert!(!is_verified("", finds).await);
    assert!(!is_verified("", finds).await, "found again, later");
    assert!(is_verified("", "").await);
    assert!(!is_verified("", finds).await);
    assert!(is_verified(finds, "").await);
    db.execute("DELETE FROM centile_store.board_lanes WHERE lane = 1").await;
    assert!(!is_verified(finds, "").await, "a lane is missing");
}

/// While another session keeps the structure lock of a board, its rankings are verified without a new
/// point. Closed periods need no lock.
#[tokio::test]
async fn a_locked_board_does_not_end_a_verification() {
    let db = with_past().await;
    let pool = db.pool().await;
    run(&db, &["board", "create", "zoo"]).well();
    run(&db, &["score", "submit", "ann", "5", "--board", "zoo"]).well();
    let session = db.hold("SELECT centile_store.lock_structure(1, false)").await;
    let verified = run(&db, &["verify"]).well();
    assert!(verified.contains("arena all_time") && verified.contains("zoo all_time"), "{verified}");
    let boards = "SELECT array_agg(DISTINCT g.board_id) FROM centile_store.verified_rankings v
         JOIN centile_store.rankings g ON g.id = v.ranking_id WHERE v.ledger_end IS NOT NULL";
    assert_eq!(sqlx::query_scalar::<_, Vec<i32>>(boards).fetch_one(&pool).await.unwrap(), [2]);
    change_entry(&db, &pool, 7, true, false).await;
    assert_eq!(kinds(&verify(&db, &["--period", "all_time"])), BTreeSet::from(["entry different"]));
    drop(session);
}

/// Returns the ledger rows that verifying all time reads, with a new score of one player.
async fn rows_of_a_verification(connection: &mut PgConnection) -> i64 {
    raw_sql("SELECT testing.submit_score('arena', 'p010', 5)").execute(&mut *connection).await.unwrap();
    let before = rows_read_of(connection, "^score_transactions").await;
    raw_sql(
        "CREATE TEMP TABLE point AS SELECT * FROM centile_store.begin_verification(1);
         CREATE TEMP TABLE found AS
         SELECT p.ranking_id, (SELECT count(*) FROM centile_store.differences(p.id, 10, false)) AS differences
         FROM centile_store.periods p WHERE p.kind = 'all_time';
         SELECT centile_store.end_verification(f.ranking_id, f.differences = 0, NULL, p.ledger_end, p.batches, p.times) FROM found f, point p;
         DROP TABLE point, found",
    )
    .execute(&mut *connection)
    .await
    .unwrap();
    rows_read_of(connection, "^score_transactions").await - before
}

#[tokio::test]
async fn the_cost_does_not_grow_with_the_ledger() {
    let db = with_past().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let whole = rows_of_a_verification(&mut connection).await;
    let first = rows_of_a_verification(&mut connection).await;
    // A longer history of another player, which the next verification reads.
    let more = "SELECT count(*) FROM testing.record_scores(1, (centile.lane_hash('p020') % 2)::smallint, array_fill('p020'::text, '{3000}'),
                    array_fill(1::bigint, '{3000}'), p_times => ARRAY(SELECT '2024-02-01Z'::timestamptz + n * interval '1 minute' FROM generate_series(1, 3000) n))";
    raw_sql(more).execute(&mut connection).await.unwrap();
    rows_of_a_verification(&mut connection).await;
    let last = rows_of_a_verification(&mut connection).await;
    assert!(whole >= 1_000 && first < 200 && last < first + 50, "{whole}, then {first}, then {last}");
}

/// A plan that searches all resets, voids or bans for each score takes hours.
#[tokio::test]
async fn no_plan_searches_acts_for_each_score() {
    let db = with_past().await;
    db.execute(
        "INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state, segment)
         VALUES (1, 'week', '2024-01-01', '2024-01-01Z', '2024-01-08Z', 'closed', 'country:DE')",
    )
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // Without statistics; with those of the last months, which have no acts; with a small memory.
    for settings in ["SELECT", "ANALYZE", "SET work_mem = '64kB'"] {
        raw_sql(settings).execute(&mut connection).await.unwrap();
        let queries: Vec<String> = sqlx::query_scalar(
            "SELECT centile_store.entries_query(id) FROM centile_store.periods
             UNION ALL SELECT centile_store.archive_query(id) FROM centile_store.periods",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        for query in queries {
            let explain = AssertSqlSafe(format!("EXPLAIN {query}"));
            let plan: Vec<String> = sqlx::query_scalar(explain).fetch_all(&mut connection).await.unwrap();
            let searches = |line: &String| line.contains("SubPlan") || line.contains("Nested Loop");
            assert!(!plan.iter().any(searches), "{settings}: {plan:#?}");
        }
    }
}
