//! `verify` and `rebuild`: every kind of damage is named, and repaired while scores arrive.

mod archive;
mod cache;
mod incremental;
mod load;
mod rebuild;
mod timer;

use std::collections::BTreeSet;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;

use crate::support::{Ran, TestDb, amount, audit, layout, random::seeded, run};

/// A board of 300 players (`p001` has the internal id 1, and so on) with two lanes and five buckets
/// in `all_time`. It has two past weeks, a ban, a void and a reset.
const PAST: &str = "
    SELECT centile.create_board('arena', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 2, \"first_layout\": {\"bounds\": [80,110,130,150]}}');
    SELECT centile.ensure_users(ARRAY(SELECT 'p' || lpad(n::text, 3, '0') FROM generate_series(1, 300) n));
    SELECT centile.ensure_ledger_months('2024-01-01', '2024-02-28');
    SELECT centile_store.open_periods(1, '{2024-01-03 12:00Z,2024-01-10 12:00Z}');
    SELECT count(r)
    FROM (SELECT centile.lane_hash('p' || lpad((n % 300 + 1)::text, 3, '0')) % 2 AS lane,
                 array_agg('p' || lpad((n % 300 + 1)::text, 3, '0') ORDER BY n) AS users,
                 array_agg((n * 7919::bigint) % 80 ORDER BY n) AS points,
                 array_agg('2024-01-01Z'::timestamptz + n * interval '20 minutes' ORDER BY n) AS times
          FROM generate_series(0, 999) n GROUP BY 1) e
    CROSS JOIN LATERAL testing.record_scores(1, e.lane::smallint, e.users, e.points, '{}', '{}', '{}', e.times) r;
    SELECT centile.ban_user('arena', 'p005', true);
    SELECT centile.void_score('arena', 100);
    SELECT centile.reset_player('arena', 'p009')";

/// Creates a database with this past.
async fn with_past() -> TestDb {
    let db = TestDb::new().await;
    db.execute(PAST).await;
    audit::apply(&db.pool().await).await;
    db
}

fn verify(db: &TestDb, more: &[&str]) -> Ran {
    run(db, &[&["verify", "--board", "arena"], more].concat())
}

/// Returns the kinds of difference in the output of `verify`.
fn kinds(ran: &Ran) -> BTreeSet<&str> {
    let differences = ran.out.lines().filter_map(|line| line.strip_prefix("  "));
    differences.filter_map(|line| line.split(':').next()).collect()
}

/// Compares the ranks that psql shows with PostgreSQL's own `rank()` over the ledger's events of
/// that time. Leaves out voided events, events before a reset, and banned players.
async fn ranks_are_right(pool: &PgPool, period: &str) {
    audit::apply(pool).await;
    let wrong: Vec<(Option<String>, Option<i64>, Option<i64>)> = sqlx::query_as(
        "WITH counted AS (
             SELECT t.user_id, t.points
             FROM centile_store.score_transactions t
             JOIN centile.periods p ON p.board = 'arena' AND p.kind || CASE p.kind WHEN 'all_time' THEN '' ELSE ':' || p.label END = $1
             WHERE t.kind = 'score' AND t.occurred_at >= p.starts_at AND t.occurred_at < p.ends_at
               AND NOT EXISTS (SELECT FROM centile_store.score_transactions v WHERE v.voids_id = t.id)
               AND NOT EXISTS (SELECT FROM centile_store.score_transactions r
                               WHERE r.user_id = t.user_id AND r.kind = 'reset' AND r.occurred_at > t.occurred_at
                                 AND r.occurred_at >= p.starts_at AND r.occurred_at < p.ends_at)
               AND NOT EXISTS (SELECT FROM centile_store.users b WHERE b.id = t.user_id AND b.external_id = 'p005')
         ), ranked AS (
             SELECT u.external_id AS user_id, rank() OVER (ORDER BY sum(c.points) DESC) AS rank
             FROM counted c JOIN centile_store.users u ON u.id = c.user_id GROUP BY u.external_id
         )
         SELECT coalesce(r.user_id, l.user_id), r.rank, l.rank
         FROM ranked r FULL JOIN centile.ranking('arena', $1) l USING (user_id)
         WHERE r.rank IS DISTINCT FROM l.rank",
    )
    .bind(period)
    .fetch_all(pool)
    .await
    .unwrap();
    assert!(wrong.is_empty(), "{period}: (player, by the ledger, live) {wrong:?}");
}

/// Damage that a superuser does to the all-time ranking, the differences that `verify` must name,
/// and a part of its line.
const DAMAGE: &[(&str, &[&str], &str)] = &[
    ("UPDATE rankings SET released_at = now() WHERE id = $r", &["ranking"], "released"),
    ("DELETE FROM leaderboard WHERE ranking_id = $r AND user_id = 7", &["entry missing"], "player p007 (7)"),
    (
        "INSERT INTO leaderboard SELECT ranking_id, 5, score, rank_key, tie_key, reached_at, lane, only_zeros
         FROM leaderboard WHERE ranking_id = $r AND user_id = 7",
        &["entry unexpected"],
        "player p005 (5): should be nothing",
    ),
    (
        "UPDATE leaderboard SET score = score + 1000 WHERE ranking_id = $r AND user_id = 7",
        &["entry different"],
        "player p007 (7)",
    ),
    (
        "UPDATE leaderboard SET rank_key = rank_key + 1000, score = score + 1000 WHERE ranking_id = $r AND user_id = 7",
        &["entry different"],
        "player p007 (7)",
    ),
    (
        "UPDATE leaderboard SET tie_key = tie_key - 1 WHERE ranking_id = $r AND user_id = 7",
        &["entry different"],
        "tie_key",
    ),
    (
        "UPDATE leaderboard SET reached_at = reached_at + interval '1 hour' WHERE ranking_id = $r AND user_id = 7",
        &["entry different"],
        "reached_at",
    ),
    (
        "UPDATE leaderboard SET only_zeros = NOT only_zeros WHERE ranking_id = $r AND user_id = 7",
        &["entry different"],
        "only_zeros",
    ),
    (
        "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND user_key = -7",
        &["bucket row missing"],
        "player p007 (7)",
    ),
    (
        "INSERT INTO leaderboard_bucket SELECT bucket, lane, ranking_id, rank_key, tie_key, -5
         FROM leaderboard_bucket WHERE ranking_id = $r AND user_key = -7",
        &["bucket row unexpected"],
        "player p005 (5): should be nothing",
    ),
    (
        "WITH moved AS (DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND user_key = -7 RETURNING *)
         INSERT INTO leaderboard_bucket SELECT 3, lane, ranking_id, rank_key, tie_key, user_key FROM moved",
        &["bucket row misplaced"],
        "\"bucket\":3,",
    ),
    (
        "INSERT INTO leaderboard_bucket SELECT 3, lane, ranking_id, rank_key, tie_key, user_key
         FROM leaderboard_bucket WHERE ranking_id = $r AND user_key = -7",
        &["bucket row misplaced"],
        "player p007 (7)",
    ),
    (
        "UPDATE bucket_counts SET counts[4] = counts[4] + 1 WHERE ranking_id = $r AND lane = 1",
        &["bucket count"],
        "bucket 3: should be 0, is 1",
    ),
    (
        "UPDATE bucket_counts SET counts[51] = counts[51] - 2 WHERE ranking_id = $r AND lane = 1",
        &["bucket count"],
        "bucket 50",
    ),
    (
        "UPDATE bucket_counts SET counts[51] = counts[51] - 1, counts[71] = counts[71] + 1 WHERE ranking_id = $r AND lane = 0",
        &["bucket count"],
        "bucket 70",
    ),
    (
        "DELETE FROM bucket_counts WHERE ranking_id = $r AND lane = 1",
        &["bucket count", "lane rows"],
        "bucket counts of lane 1: should be 1, is 0",
    ),
    (
        "INSERT INTO bucket_counts SELECT ranking_id, lane, revision + 1, counts FROM bucket_counts WHERE ranking_id = $r AND lane = 1",
        &["lane rows"],
        "bucket counts of lane 1: should be 1, is 2",
    ),
    (
        "INSERT INTO bucket_counts SELECT ranking_id, 2, revision, counts FROM bucket_counts WHERE ranking_id = $r AND lane = 1",
        &["lane rows"],
        "bucket counts of lane 2, which the board lacks: should be 0, is 1",
    ),
    (
        "UPDATE bucket_counts SET lane = 2 WHERE ranking_id = $r AND lane = 1",
        &["bucket count", "lane rows"],
        "bucket counts of lane 2, which the board lacks: should be 0, is 1",
    ),
    (
        "UPDATE rankings SET lanes = 1 WHERE id = $r",
        &["bucket count", "lane rows"],
        "lanes of the ranking: should be 2, is 1",
    ),
    (
        "UPDATE leaderboard_bucket SET lane = 1 - lane WHERE ranking_id = $r AND user_key = -7",
        &["lane rows"],
        "entries and bucket rows of another lane than their player's: should be 0, is 1",
    ),
    (
        "UPDATE rankings SET low_rank_keys[1] = -1 WHERE id = $r",
        &["layout"],
        "lowest bound: should be \"the least key\", is [-1,",
    ),
    (
        // No bucket covers the keys of the lowest one.
        "UPDATE rankings SET low_rank_keys[1] = 80 WHERE id = $r",
        &["bucket count", "bucket row misplaced", "layout"],
        "lowest bound",
    ),
    ("UPDATE rankings SET low_tie_keys[1] = 0 WHERE id = $r", &["layout"], "lowest bound"),
    ("UPDATE rankings SET low_user_keys[1] = 0 WHERE id = $r", &["layout"], "lowest bound"),
    (
        "UPDATE rankings SET low_rank_keys[3] = 1000 WHERE id = $r",
        &["bucket count", "bucket row misplaced", "layout"],
        "bound of place 4",
    ),
    ("UPDATE rankings SET low_rank_keys[100] = 0 WHERE id = $r", &["bucket count", "bucket row misplaced", "layout"], "or higher"),
    (
        // The bound moves past one player's key; only that key is affected.
        "UPDATE rankings SET low_rank_keys[5] = b.rank_key, low_tie_keys[5] = b.tie_key, low_user_keys[5] = b.user_key + 1
         FROM (SELECT * FROM leaderboard_bucket WHERE ranking_id = $r AND bucket = 30
               ORDER BY rank_key, tie_key, user_key LIMIT 1) b
         WHERE id = $r",
        &["bucket count", "bucket row misplaced"],
        "\"bucket\":70,",
    ),
    (
        "UPDATE rankings SET buckets[3] = 10 WHERE id = $r",
        &["bucket count", "bucket row misplaced", "layout"],
        "places of bucket 10: should be 1, is 2",
    ),
    (
        "UPDATE rankings SET buckets[3] = 10 WHERE id = $r",
        &["bucket count", "bucket row misplaced", "layout"],
        "places of bucket 50: should be 1, is 0",
    ),
    (
        "UPDATE rankings SET buckets[2] = buckets[3], buckets[3] = buckets[2] WHERE id = $r",
        &["bucket count", "bucket row misplaced"],
        "bucket 90",
    ),
    // Buckets without players.
    ("UPDATE rankings SET buckets[99] = buckets[100] WHERE id = $r", &["layout"], "places of bucket 99: should be 1, is 2"),
];

/// Repairs all entries, and replaces the all-time ranking by one with the layout that [`DAMAGE`]
/// expects: buckets 10, 90, 50, 70 and 30, in ascending order, begin at the board's bounds.
async fn lay_out(db: &TestDb) {
    db.execute(
        "SELECT testing.allow_damage();
         DELETE FROM centile_store.leaderboard l USING centile_store.periods p WHERE p.ranking_id = l.ranking_id AND p.kind = 'all_time';
         INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, lane, only_zeros)
         SELECT p.ranking_id, e.user_id, e.score, e.rank_key, e.tie_key, e.reached_at, u.lane_hash % 2, e.only_zeros
         FROM centile_store.periods p CROSS JOIN LATERAL centile.entries_from_ledger(p.id) e JOIN centile_store.users u ON u.id = e.user_id
         WHERE p.kind = 'all_time';
         UPDATE centile_store.periods SET ranking_id = centile_store.create_ranking(1, id) WHERE kind = 'all_time';
         UPDATE centile_store.rankings r SET released_at = now()
         WHERE NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id);
         UPDATE centile_store.rankings r
         SET buckets = '{10,90,50,70,30}' || ARRAY(SELECT n::smallint FROM generate_series(0, 99) n
                                                   WHERE n <> ALL ('{10,90,50,70,30}') ORDER BY n)
         FROM centile_store.periods p WHERE p.ranking_id = r.id AND p.kind = 'all_time';
         SELECT centile_store.apply_changes(lane::smallint, NULL, array_agg(l.ranking_id), array_agg(l.user_id),
                    array_agg(NULL::bigint), array_agg(NULL::bigint), array_agg(l.rank_key), array_agg(l.tie_key))
         FROM centile_store.periods p JOIN centile_store.leaderboard l USING (ranking_id) WHERE p.kind = 'all_time' GROUP BY lane",
    )
    .await;
}

/// Spreads the players of the all-time ranking over many buckets, in an order unrelated to the
/// buckets' numbers.
async fn scatter(pool: &PgPool) {
    let ranking: i64 = sqlx::query_scalar("SELECT ranking_id FROM centile.periods WHERE kind = 'all_time'")
        .fetch_one(pool)
        .await
        .unwrap();
    let mut connection = pool.acquire().await.unwrap();
    layout::scatter(&mut connection, ranking, &mut StdRng::seed_from_u64(1), layout::MANY).await;
    let (_, players) = layout::occupied(&mut connection, ranking).await;
    assert!(players.iter().filter(|players| **players > 0).count() > 3, "{players:?}");
}

/// Damages the all-time ranking.
async fn damage(db: &TestDb, pool: &PgPool, statement: &str) {
    let ranking: i64 = sqlx::query_scalar("SELECT ranking_id FROM centile.periods WHERE kind = 'all_time'")
        .fetch_one(pool)
        .await
        .unwrap();
    let statement = statement.replace("$r", &ranking.to_string());
    db.execute(&format!("SELECT testing.allow_damage(); SET search_path = centile_store; {statement}")).await;
}

#[tokio::test]
async fn every_kind_of_damage_is_named_and_repaired_by_a_rebuild() {
    let db = with_past().await;
    let pool = db.pool().await;
    let output = verify(&db, &[]).well();
    assert_eq!(output.lines().count(), 3, "{output}");
    assert!(output.lines().all(|line| line.ends_with("ok")), "{output}");
    ranks_are_right(&pool, "all_time").await;
    // `lay_out` replaces the ranking, so the quick run repairs only some damage by a rebuild.
    let repaired = seeded().random_range(0..amount(4, 1));
    for (number, (statement, wanted, words)) in DAMAGE.iter().enumerate() {
        lay_out(&db).await;
        damage(&db, &pool, statement).await;
        let found = verify(&db, &[]);
        assert_eq!(found.code, Some(1), "{statement}: {found:?}");
        assert_eq!(kinds(&found), wanted.iter().copied().collect(), "{statement}: {found:?}");
        assert!(found.out.contains(words), "{statement}: {found:?}");
        assert!(found.err.contains("centile rebuild"), "{found:?}");
        // The other periods are unaffected.
        assert_eq!(found.out.lines().filter(|line| line.ends_with("  ok")).count(), 2, "{statement}: {found:?}");
        if number % amount(4, 1) != repaired {
            continue;
        }
        run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
        // Calls the function behind `verify` without starting a process.
        let left: Vec<(String, i64)> = sqlx::query_as("SELECT kind, total FROM centile.verify('arena', 'all_time')")
            .fetch_all(&pool)
            .await
            .unwrap();
        assert_eq!(left, [], "{statement}");
        ranks_are_right(&pool, "all_time").await;
    }
    lay_out(&db).await;
    scatter(&pool).await;
    verify(&db, &[]).well();
    ranks_are_right(&pool, "all_time").await;
}

#[tokio::test]
async fn many_differences_are_counted_and_some_are_listed() {
    let db = with_past().await;
    let pool = db.pool().await;
    damage(&db, &pool, "UPDATE leaderboard SET score = score + 1 WHERE ranking_id = $r").await;
    let found = verify(&db, &["--period", "all_time", "--limit", "3"]);
    assert_eq!(found.out.lines().filter(|line| line.starts_with("  entry different: player")).count(), 3, "{found:?}");
    assert!(found.out.contains("  entry different: 295 more"), "{found:?}");
    assert!(found.out.contains("all_time  298 players  298 differences"), "{found:?}");
    assert!(found.err.contains("298 differences in 1 of 1 periods"), "{found:?}");
    // The same from psql.
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT kind, total FROM centile.verify('arena', 'all_time', 2)")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(rows, [("entry different".to_owned(), 298), ("entry different".to_owned(), 298)]);
}

#[tokio::test]
async fn lane_rows_are_compared_and_invalid_arguments_are_refused() {
    let db = with_past().await;
    db.execute("INSERT INTO centile_store.board_lanes SELECT board_id, lane, batch + 1, last_at FROM centile_store.board_lanes WHERE lane = 1")
        .await;
    let found = verify(&db, &["--period", "all_time"]);
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["lane rows"])), "{found:?}");
    assert!(found.out.contains("lane 1 of the board: should be 1, is 2"), "{found:?}");
    // `verify` finds a lane that was set back, and a rebuild repairs it. Otherwise a cut-off would
    // miss the lane's last scores.
    db.execute(
        "DELETE FROM centile_store.board_lanes l WHERE lane = 1
             AND batch = (SELECT max(batch) FROM centile_store.board_lanes m WHERE m.lane = 1);
         UPDATE centile_store.board_lanes SET batch = 0, last_at = '2000-01-01 00:00Z' WHERE lane = 1",
    )
    .await;
    let found = verify(&db, &["--period", "all_time"]);
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["lane rows"])), "{found:?}");
    assert!(found.out.contains("last batch and time of lane 1"), "{found:?}");
    run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
    verify(&db, &[]).well();
    // The same holds for a missing lane.
    db.execute("DELETE FROM centile_store.board_lanes WHERE lane = 1").await;
    let found = verify(&db, &["--period", "all_time"]);
    assert_eq!((found.code, kinds(&found)), (Some(1), BTreeSet::from(["lane rows"])), "{found:?}");
    run(&db, &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"]).well();
    verify(&db, &[]).well();
    assert!(verify(&db, &["--period", "week:2023-01-02"]).well().contains("nothing to compare"));
    run(&db, &["verify", "--period", "week"]).refused(2, &["--board"]);
    run(&db, &["verify", "--board", "other"]).refused(1, &["no board \"other\""]);
    let empty = TestDb::new().await;
    assert_eq!(run(&empty, &["verify"]).well(), "nothing to compare yet\n");
}
