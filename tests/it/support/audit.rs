//! Whether what is derived agrees with itself and with the ledger, for every current ranking of a database.

use sqlx::PgPool;

/// Name, entries, and how many there are of everything that must be as many.
type Counted = (String, i64, i64, i64, i64, i64, i64, i64);

/// Rule 4 (as many players in the counts of buckets and of stripes as rows in the bucket tables and in `leaderboard`), the
/// same keys in both, and the entries that the ledger gives. Returns how many rankings there are.
pub async fn rankings_are_sound(pool: &PgPool) -> usize {
    let found: Vec<Counted> = sqlx::query_as(
        "SELECT p.board || ' ' || p.kind || ' ' || p.label,
                (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p.ranking_id),
                (SELECT count(*) FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = p.ranking_id),
                (SELECT coalesce(sum(u), 0)::bigint FROM centile_store.bucket_counts c, unnest(c.counts) u
                 WHERE c.ranking_id = p.ranking_id),
                (SELECT coalesce(sum(u), 0)::bigint FROM centile_store.stripe_counts c, unnest(c.counts) u
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
                (SELECT count(*) FROM centile.entries_from_ledger(p.period_id))
         FROM centile.periods p WHERE p.ranking_id IS NOT NULL",
    )
    .fetch_all(pool)
    .await
    .expect("an audit");
    for (name, entries, rows, in_buckets, in_stripes, same_keys, same_entries, in_ledger) in &found {
        let counts = [rows, in_buckets, in_stripes, same_keys, same_entries, in_ledger];
        assert!(counts.iter().all(|count| *count == entries), "{name}: {entries} entries, but {counts:?}");
    }
    let miscounted: Vec<(i64, i16, i32, i64, i64)> = sqlx::query_as(
        "WITH stripe AS (
             SELECT s.ranking_id, s.bucket, s.stripe, s.rank_key, s.tie_key, s.user_key,
                    lead(ARRAY[s.rank_key, s.tie_key, s.user_key])
                        OVER (PARTITION BY s.ranking_id ORDER BY s.rank_key, s.tie_key, s.user_key) AS next,
                    (SELECT sum(c.counts[s.stripe]) FROM centile_store.stripe_counts c
                     WHERE c.ranking_id = s.ranking_id AND c.bucket = s.bucket) AS counted
             FROM centile_store.stripes s
             JOIN centile_store.periods p ON p.ranking_id = s.ranking_id
         )
         SELECT s.ranking_id, s.bucket, s.stripe, s.counted, r.held
         FROM stripe s
         CROSS JOIN LATERAL (
             SELECT count(*) AS held FROM centile_store.leaderboard_bucket b
             WHERE b.bucket = s.bucket AND b.ranking_id = s.ranking_id
               AND (b.rank_key, b.tie_key, b.user_key) >= (s.rank_key, s.tie_key, s.user_key)
               AND (s.next IS NULL OR (b.rank_key, b.tie_key, b.user_key) < (s.next[1], s.next[2], s.next[3]))) r
         WHERE s.counted <> r.held",
    )
    .fetch_all(pool)
    .await
    .expect("an audit");
    assert!(miscounted.is_empty(), "stripes (ranking, bucket, stripe, counted, held): {miscounted:?}");
    found.len()
}
