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
            SELECT c.*, w.bucket AS was_bucket, b.bucket, row_number() OVER () AS n
            FROM unnest(p_changes) AS c
            LEFT JOIN LATERAL centile_store.bucket_of(c.ranking_id, c.was_rank_key, c.was_tie_key, -c.user_id) w ON c.was_rank_key IS NOT NULL
            LEFT JOIN LATERAL centile_store.bucket_of(c.ranking_id, c.rank_key, c.tie_key, -c.user_id) b ON c.rank_key IS NOT NULL
        ), bucket_row AS MATERIALIZED (
            -- Steps: 1 updates, 2 deletes, 3 inserts.
            SELECT e.ranking_id, -e.user_id AS user_key, k.*, row_number() OVER (ORDER BY k.bucket, k.step, e.ranking_id, e.n)::integer AS n
            FROM entry e
            CROSS JOIN LATERAL (VALUES
                (1, CASE WHEN e.was_bucket = e.bucket THEN e.bucket END, e.was_rank_key, e.was_tie_key, e.rank_key, e.tie_key),
                (2, CASE WHEN e.was_bucket IS DISTINCT FROM e.bucket THEN e.was_bucket END, e.was_rank_key, e.was_tie_key, NULL, NULL),
                (3, CASE WHEN e.was_bucket IS DISTINCT FROM e.bucket THEN e.bucket END, NULL, NULL, e.rank_key, e.tie_key))
                AS k (step, bucket, was_rank_key, was_tie_key, rank_key, tie_key)
            WHERE k.bucket IS NOT NULL AND (e.was_rank_key, e.was_tie_key) IS DISTINCT FROM (e.rank_key, e.tie_key)
        ), entries AS (
            SELECT array_agg(e.ranking_id ORDER BY e.n) AS rankings, array_agg(e.user_id ORDER BY e.n) AS users,
                   array_agg(e.was_rank_key ORDER BY e.n) AS before, array_agg(e.rank_key ORDER BY e.n) AS keys,
                   array_agg(e.tie_key ORDER BY e.n) AS ties, array_agg(e.only_zeros ORDER BY e.n) AS zeros
            FROM entry e
        ), groups AS (
            SELECT array_agg(g.bucket ORDER BY g.n) AS buckets, array_agg(g.n ORDER BY g.n) AS updates,
                   array_agg(g.n + g.updates ORDER BY g.n) AS deletes, array_agg(g.n + g.updates + g.deletes ORDER BY g.n) AS inserts
            FROM (SELECT r.bucket, min(r.n) AS n, (count(*) FILTER (WHERE r.step = 1))::integer AS updates,
                         (count(*) FILTER (WHERE r.step = 2))::integer AS deletes
                  FROM bucket_row r GROUP BY r.bucket) g
        ), rows AS (
            SELECT array_agg(r.ranking_id ORDER BY r.n) AS rankings, array_agg(r.user_key ORDER BY r.n) AS users,
                   array_agg(r.was_rank_key ORDER BY r.n) AS was_keys, array_agg(r.was_tie_key ORDER BY r.n) AS was_ties,
                   array_agg(r.rank_key ORDER BY r.n) AS keys, array_agg(r.tie_key ORDER BY r.n) AS ties
            FROM bucket_row r
        ), counts AS (
            SELECT array_agg(c.ranking_id) AS rankings, array_agg(c.bucket) AS buckets, array_agg(c.change) AS changes
            FROM (SELECT r.ranking_id, r.bucket, (count(*) FILTER (WHERE r.step = 3) - count(*) FILTER (WHERE r.step = 2))::integer AS change
                  FROM bucket_row r GROUP BY r.ranking_id, r.bucket) c
            WHERE c.change <> 0
        )
        SELECT centile_store.write_entries(p_lane,
            (SELECT b.score_order FROM centile_store.rankings r JOIN centile_store.boards b ON b.id = r.board_id WHERE r.id = e.rankings[1]),
            e.rankings, e.users, e.before, NULL, e.keys, e.ties, e.zeros,
            coalesce(g.buckets, '{}'), g.updates, g.deletes, g.inserts, r.rankings, r.users, r.was_keys, r.was_ties, r.keys, r.ties,
            coalesce(c.rankings, '{}'), c.buckets, c.changes)
        FROM entries e, groups g, rows r, counts c
        WHERE e.rankings IS NOT NULL) written;
END
$$;

COMMENT ON FUNCTION centile_store.place_entries(smallint, centile_store.entry_change[]) IS
'Writes changed entries of a lane, with their bucket rows and counts. Example: SELECT centile_store.place_entries(0::smallint, ''{}'');';
