-- See centile_store.differences. p_user_ids: the players to compare with the ledger; NULL for all.
-- One sort puts players and bounds in order; rows that do not fit into work_mem go to disk.
CREATE OR REPLACE FUNCTION centile_store.ranking_differences(p_ranking_id bigint, p_limit integer, p_user_ids bigint[] DEFAULT NULL)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '64MB'
-- The planner expects few players in a ranking that has not been analyzed.
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ledger AS MATERIALIZED (
        SELECT e.* FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.updated_entries(g.id, g.period_id, NULL, p_user_ids) e WHERE g.id = p_ranking_id
    ), entry AS (
        SELECT CASE WHEN l.user_id IS NULL THEN 'entry missing' WHEN e.user_id IS NULL THEN 'entry unexpected' ELSE 'entry different' END AS kind,
               coalesce(e.user_id, l.user_id) AS user_id,
               CASE WHEN e.user_id IS NOT NULL THEN to_jsonb(e) - 'user_id' END AS expected,
               CASE WHEN l.user_id IS NOT NULL THEN to_jsonb(l) - '{user_id,user_key,ranking_id}'::text[] END AS found
        FROM ledger e
        FULL JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id) l ON l.user_id = e.user_id
        WHERE (e.score, e.rank_key, e.tie_key, e.reached_at, e.only_zeros)
              IS DISTINCT FROM (l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros)
    ), applied AS (
        -- The keys that the bucket rows should contain; none without bucket rows.
        SELECT coalesce(x.user_id, e.user_id) AS user_id, CASE WHEN x.user_id IS NULL THEN e.rank_key ELSE x.was_rank_key END AS rank_key,
               CASE WHEN x.user_id IS NULL THEN e.tie_key ELSE x.was_tie_key END AS tie_key
        FROM ledger e FULL JOIN centile_store.unapplied(p_ranking_id) x ON x.user_id = e.user_id
        WHERE (SELECT g.has_bucket_rows FROM centile_store.rankings g WHERE g.id = p_ranking_id)
    ), place AS MATERIALIZED (
        SELECT u.* FROM centile_store.rankings g
        CROSS JOIN unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY AS u (bucket, rank_key, tie_key, user_key, n)
        WHERE g.id = p_ranking_id AND g.has_bucket_rows
    ), key AS (
        SELECT coalesce(e.rank_key, b.rank_key) AS rank_key, coalesce(e.tie_key, b.tie_key) AS tie_key,
               coalesce(-e.user_id, b.user_key) AS user_key, b.bucket, e.user_id IS NOT NULL AS is_expected, false AS is_bound
        FROM (SELECT * FROM applied a WHERE a.rank_key IS NOT NULL) e
        FULL JOIN (SELECT * FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = p_ranking_id) b
            ON b.user_key = -e.user_id AND b.rank_key = e.rank_key AND b.tie_key = e.tie_key
        UNION ALL
        SELECT s.rank_key, s.tie_key, s.user_key, NULL, false, true FROM place s
    ), placed AS MATERIALIZED (
        SELECT k.*,
               -- The place of the key; 0 below all bounds.
               count(*) FILTER (WHERE k.is_bound) OVER (ORDER BY k.rank_key, k.tie_key, k.user_key, NOT k.is_bound ROWS UNBOUNDED PRECEDING) AS n,
               -- A key in two buckets is one player.
               count(*) FILTER (WHERE NOT k.is_bound) OVER (PARTITION BY k.rank_key, k.tie_key, k.user_key ORDER BY NOT k.is_bound ROWS UNBOUNDED PRECEDING) AS again
        FROM key k
    ), bucket_row AS (
        SELECT CASE WHEN p.bucket IS NULL THEN 'bucket row missing' WHEN NOT p.is_expected THEN 'bucket row unexpected' ELSE 'bucket row misplaced' END AS kind,
               -p.user_key AS user_id,
               CASE WHEN p.is_expected THEN jsonb_build_object('rank_key', p.rank_key, 'tie_key', p.tie_key, 'bucket', s.bucket) END AS expected,
               CASE WHEN p.bucket IS NOT NULL THEN jsonb_build_object('rank_key', p.rank_key, 'tie_key', p.tie_key, 'bucket', p.bucket) END AS found
        FROM placed p
        LEFT JOIN place s ON s.n = p.n
        WHERE NOT p.is_bound AND (p.bucket IS NULL OR NOT p.is_expected OR p.bucket IS DISTINCT FROM s.bucket)
    ), miscounted AS (
        SELECT 'bucket count' AS kind, s.bucket, coalesce(c.players, 0) AS expected, coalesce(t.players, 0) AS found
        FROM place s
        LEFT JOIN (SELECT p.n, count(*) AS players FROM placed p WHERE p.is_expected AND p.again = 1 GROUP BY p.n) c ON c.n = s.n
        LEFT JOIN unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS t (players, n) ON t.n = s.n
        WHERE coalesce(c.players, 0) <> coalesce(t.players, 0)
    ), numbered AS (
        SELECT d.*, count(*) OVER (PARTITION BY d.kind) AS total, row_number() OVER (PARTITION BY d.kind ORDER BY d.user_id) AS n
        FROM (SELECT * FROM entry UNION ALL SELECT * FROM bucket_row) d
    )
    SELECT d.kind, centile_store.player_label(d.user_id), d.expected, d.found, d.total
    FROM numbered d WHERE d.n <= p_limit
    UNION ALL
    SELECT m.kind, format('bucket %s', m.bucket), to_jsonb(m.expected), to_jsonb(m.found), m.total
    FROM (SELECT m.*, count(*) OVER () AS total, row_number() OVER (ORDER BY m.bucket) AS n FROM miscounted m) m
    WHERE m.n <= p_limit;
END
$$;

COMMENT ON FUNCTION centile_store.ranking_differences(bigint, integer, bigint[]) IS
'Differences between the entries, bucket rows and counts of a ranking and the ledger. Example: SELECT * FROM centile_store.ranking_differences(1, 10);';
