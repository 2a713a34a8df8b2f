-- Finds the buckets of the keys for centile_store.write_entries. The caller holds the locks that it
-- names.
CREATE OR REPLACE FUNCTION centile_store.place_entries(p_lane smallint, p_changes centile_store.entry_change[]) RETURNS void
LANGUAGE plpgsql VOLATILE
-- Every look-up is by key, even if the tables were small when PostgreSQL made the plans.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    PERFORM * FROM (
        WITH entry AS MATERIALIZED (
            SELECT c.*, row_number() OVER () AS n FROM unnest(p_changes) AS c
        ), key AS MATERIALIZED (
            SELECT e.ranking_id, k.rank_key, k.tie_key, -e.user_id AS user_key, k.comes, b.bucket,
                   row_number() OVER (ORDER BY b.bucket, k.comes, e.ranking_id, k.rank_key, k.tie_key)::integer AS n
            FROM entry e
            CROSS JOIN LATERAL (VALUES (e.was_rank_key, e.was_tie_key, false), (e.rank_key, e.tie_key, true)) AS k (rank_key, tie_key, comes)
            CROSS JOIN LATERAL centile_store.bucket_of(e.ranking_id, k.rank_key, k.tie_key, -e.user_id) b
            WHERE k.rank_key IS NOT NULL AND (e.was_rank_key, e.was_tie_key) IS DISTINCT FROM (e.rank_key, e.tie_key)
        ), entries AS (
            SELECT array_agg(e.ranking_id ORDER BY e.n) AS rankings, array_agg(e.user_id ORDER BY e.n) AS users,
                   array_agg(e.was_rank_key IS NULL AND e.rank_key IS NOT NULL ORDER BY e.n) AS are_new,
                   array_agg(e.rank_key ORDER BY e.n) AS keys, array_agg(e.tie_key ORDER BY e.n) AS ties,
                   array_agg(e.only_zeros ORDER BY e.n) AS zeros
            FROM entry e
        ), groups AS (
            SELECT array_agg(g.bucket ORDER BY g.deletes) AS buckets, array_agg(g.deletes ORDER BY g.deletes) AS deletes,
                   array_agg(g.inserts ORDER BY g.deletes) AS inserts
            FROM (SELECT k.bucket, min(k.n) AS deletes, (min(k.n) + count(*) FILTER (WHERE NOT k.comes))::integer AS inserts FROM key k GROUP BY k.bucket) g
        ), rows AS (
            SELECT array_agg(k.ranking_id ORDER BY k.n) AS rankings, array_agg(k.rank_key ORDER BY k.n) AS keys,
                   array_agg(k.tie_key ORDER BY k.n) AS ties, array_agg(k.user_key ORDER BY k.n) AS users
            FROM key k
        ), counts AS (
            SELECT array_agg(c.ranking_id) AS rankings, array_agg(c.bucket) AS buckets, array_agg(c.change) AS changes
            FROM (SELECT k.ranking_id, k.bucket, sum(CASE WHEN k.comes THEN 1 ELSE -1 END)::integer AS change
                  FROM key k GROUP BY k.ranking_id, k.bucket) c
            WHERE c.change <> 0
        )
        SELECT centile_store.write_entries(p_lane,
            (SELECT b.score_order FROM centile_store.rankings r JOIN centile_store.boards b ON b.id = r.board_id WHERE r.id = e.rankings[1]),
            e.rankings, e.users, e.are_new, e.keys, e.ties, e.zeros,
            coalesce(g.buckets, '{}'), coalesce(g.deletes, '{}'), coalesce(g.inserts, '{}'), r.rankings, r.keys, r.ties, r.users,
            coalesce(c.rankings, '{}'), c.buckets, c.changes)
        FROM entries e, groups g, rows r, counts c
        WHERE e.rankings IS NOT NULL) written;
END
$$;

COMMENT ON FUNCTION centile_store.place_entries(smallint, centile_store.entry_change[]) IS
'Writes changed entries of a lane, with their bucket rows and counts. Example: SELECT centile_store.place_entries(0::smallint, ''{}'');';
