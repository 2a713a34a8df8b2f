//! Audits the derived data of every current ranking against each other and against the ledger.

use sqlx::{PgConnection, PgPool};

/// A ranking's name, its number of entries, the counts that must equal it, and whether it has bucket
/// rows.
type Counted = (String, i64, i64, i64, i64, i64, i64, bool, i64);

/// Applies all batches to bucket rows and counts.
pub async fn apply(pool: &PgPool) {
    apply_on(&mut pool.acquire().await.expect("a connection")).await;
}

/// As [`apply`], on a connection.
pub async fn apply_on(connection: &mut PgConnection) {
    let apply = "SELECT coalesce(bool_and(a.is_done), true) FROM centile_store.boards b CROSS JOIN LATERAL centile_store.apply_board(b.id) a";
    while !sqlx::query_scalar::<_, bool>(apply).fetch_one(&mut *connection).await.expect("an apply") {}
}

/// Checks invariant 4 of ARCHITECTURE.md: the bucket counts, the bucket tables and `leaderboard`
/// agree on the players and their keys, and the entries are those that the ledger gives. A ranking
/// without bucket rows has neither. Returns the number of rankings.
pub async fn rankings_are_sound(pool: &PgPool) -> usize {
    apply(pool).await;
    let found: Vec<Counted> = sqlx::query_as(
        "SELECT p.board || ' ' || p.kind || ' ' || p.label,
                (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p.ranking_id),
                (SELECT count(*) FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = p.ranking_id),
                (SELECT coalesce(sum(u), 0)::bigint FROM centile_store.bucket_counts c, unnest(c.counts) u
                 WHERE c.ranking_id = p.ranking_id),
                (SELECT count(*) FROM centile_store.leaderboard l
                 JOIN centile_store.leaderboard_bucket b
                     ON b.ranking_id = l.ranking_id AND b.rank_key = l.rank_key AND b.tie_key = l.tie_key
                        AND b.user_key = -l.user_id
                 WHERE l.ranking_id = p.ranking_id),
                (SELECT count(*) FROM (
                     SELECT l.user_id, l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros
                     FROM centile_store.leaderboard l WHERE l.ranking_id = p.ranking_id
                     INTERSECT
                     SELECT e.* FROM centile.entries_from_ledger(p.period_id) e) x),
                (SELECT count(*) FROM centile.entries_from_ledger(p.period_id)), g.has_bucket_rows, coalesce(p.players, 0)
         FROM centile.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id",
    )
    .fetch_all(pool)
    .await
    .expect("an audit");
    for (name, entries, rows, in_buckets, same_keys, same_entries, in_ledger, has_bucket_rows, shown) in &found {
        let of_buckets = if *has_bucket_rows { entries } else { &0 };
        assert!(
            [rows, in_buckets, same_keys, shown].iter().all(|count| *count == of_buckets),
            "{name}: {rows} bucket rows"
        );
        let counts = [same_entries, in_ledger];
        assert!(counts.iter().all(|count| *count == entries), "{name}: {entries} entries, but {counts:?}");
    }
    let of_templates: Vec<(String, String)> = sqlx::query_as(
        "SELECT p.kind, d.kind || ' ' || d.subject
         FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id AND b.is_template
         CROSS JOIN LATERAL centile_store.boards_differences(p, 5) d WHERE p.ranking_id IS NOT NULL",
    )
    .fetch_all(pool)
    .await
    .expect("an audit");
    assert!(of_templates.is_empty(), "{of_templates:?}");
    // Compares the rows of each lane and bucket with their count, and finds rows outside their
    // bucket's bounds.
    let miscounted: Vec<(i64, i16, i16, i64, i64, i64)> = sqlx::query_as(
        "WITH place AS (
             SELECT g.id, u.bucket, ARRAY[u.rank_key, u.tie_key, u.user_key] AS low,
                    lead(ARRAY[u.rank_key, u.tie_key, u.user_key]) OVER (PARTITION BY g.id ORDER BY u.place) AS next
             FROM centile_store.rankings g
             JOIN centile_store.periods p ON p.ranking_id = g.id
             CROSS JOIN unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
                 AS u (bucket, rank_key, tie_key, user_key, place)
         )
         SELECT l.id, l.bucket, c.lane, c.counts[l.bucket + 1]::bigint, r.held, r.outside
         FROM place l
         JOIN centile_store.bucket_counts c ON c.ranking_id = l.id
         CROSS JOIN LATERAL (
             SELECT count(*) AS held,
                    count(*) FILTER (WHERE ARRAY[b.rank_key, b.tie_key, b.user_key] < l.low
                                        OR ARRAY[b.rank_key, b.tie_key, b.user_key] >= l.next) AS outside
             FROM centile_store.leaderboard_bucket b
             WHERE b.bucket = l.bucket AND b.ranking_id = l.id AND b.lane = c.lane) r
         WHERE c.counts[l.bucket + 1] <> r.held OR r.outside <> 0",
    )
    .fetch_all(pool)
    .await
    .expect("an audit");
    assert!(miscounted.is_empty(), "buckets (ranking, bucket, lane, counted, held, outside): {miscounted:?}");
    let strangers: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (
             SELECT l.ranking_id, l.user_id, l.lane FROM centile_store.leaderboard l
             UNION ALL
             SELECT b.ranking_id, -b.user_key, b.lane FROM centile_store.leaderboard_bucket b) x
         JOIN centile_store.rankings g ON g.id = x.ranking_id
         JOIN centile_store.users u ON u.id = x.user_id
         WHERE x.lane <> u.lane_hash % g.lanes",
    )
    .fetch_one(pool)
    .await
    .expect("an audit");
    assert_eq!(strangers, 0, "rows in another lane than their player's");
    found.len()
}
