-- Where entries, bucket rows and counts of an open period's ranking differ from the ledger: see centile_store.differences. Players are
-- put in order together with the bounds of the stripes, once, so that ten million of them in 25,000 stripes are one sort and no
-- scan per stripe; what does not fit into work_mem goes to disk.
CREATE FUNCTION centile_store.ranking_differences(p_ranking_id bigint, p_limit integer)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '64MB'
-- Of a ranking that has grown since tables were last looked at, the planner expects few players.
SET enable_nestloop = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ledger AS MATERIALIZED (
        SELECT e.* FROM centile_store.rankings g CROSS JOIN LATERAL centile.entries_from_ledger(g.period_id) e WHERE g.id = p_ranking_id
    ), entry AS (
        SELECT CASE WHEN l.user_id IS NULL THEN 'entry missing' WHEN e.user_id IS NULL THEN 'entry unexpected' ELSE 'entry different' END AS kind,
               coalesce(e.user_id, l.user_id) AS user_id,
               CASE WHEN e.user_id IS NOT NULL THEN to_jsonb(e) - 'user_id' END AS expected,
               CASE WHEN l.user_id IS NOT NULL THEN to_jsonb(l) - 'user_id' - 'ranking_id' END AS found
        FROM ledger e
        FULL JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id) l ON l.user_id = e.user_id
        WHERE (e.score, e.rank_key, e.tie_key, e.reached_at, e.only_zeros)
              IS DISTINCT FROM (l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros)
    ), stripe AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY s.rank_key, s.tie_key, s.user_key) AS n, s.*
        FROM centile_store.stripes s WHERE s.ranking_id = p_ranking_id
    ), key AS (
        SELECT coalesce(e.rank_key, b.rank_key) AS rank_key, coalesce(e.tie_key, b.tie_key) AS tie_key,
               coalesce(-e.user_id, b.user_key) AS user_key, b.bucket, e.user_id IS NOT NULL AS is_expected, false AS is_bound
        FROM ledger e
        FULL JOIN (SELECT * FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = p_ranking_id) b
            ON b.user_key = -e.user_id AND b.rank_key = e.rank_key AND b.tie_key = e.tie_key
        UNION ALL
        SELECT s.rank_key, s.tie_key, s.user_key, NULL, false, true FROM stripe s
    ), placed AS MATERIALIZED (
        SELECT k.*,
               -- The stripe that the key belongs to; 0 when it is below all.
               count(*) FILTER (WHERE k.is_bound) OVER (ORDER BY k.rank_key, k.tie_key, k.user_key, NOT k.is_bound ROWS UNBOUNDED PRECEDING) AS n,
               -- A key may stand in two buckets, and is one player all the same.
               count(*) FILTER (WHERE NOT k.is_bound) OVER (PARTITION BY k.rank_key, k.tie_key, k.user_key ORDER BY NOT k.is_bound ROWS UNBOUNDED PRECEDING) AS again
        FROM key k
    ), bucket_row AS (
        SELECT CASE WHEN p.bucket IS NULL THEN 'bucket row missing' WHEN NOT p.is_expected THEN 'bucket row unexpected' ELSE 'bucket row misplaced' END AS kind,
               -p.user_key AS user_id,
               CASE WHEN p.is_expected THEN jsonb_build_object('rank_key', p.rank_key, 'tie_key', p.tie_key, 'bucket', s.bucket, 'stripe', s.stripe) END AS expected,
               CASE WHEN p.bucket IS NOT NULL THEN jsonb_build_object('rank_key', p.rank_key, 'tie_key', p.tie_key, 'bucket', p.bucket) END AS found
        FROM placed p
        LEFT JOIN stripe s ON s.n = p.n
        WHERE NOT p.is_bound AND (p.bucket IS NULL OR NOT p.is_expected OR p.bucket <> s.bucket)
    ), in_stripe AS MATERIALIZED (
        SELECT s.bucket, s.stripe, coalesce(c.players, 0) AS players
        FROM stripe s
        LEFT JOIN (SELECT p.n, count(*) AS players FROM placed p WHERE p.is_expected AND p.again = 1 GROUP BY p.n) c ON c.n = s.n
    ), miscounted AS (
        SELECT 'stripe count' AS kind, format('bucket %s, stripe %s', s.bucket, s.stripe) AS subject, s.bucket, s.stripe,
               s.players AS expected, c.players AS found
        FROM in_stripe s
        JOIN (SELECT n AS bucket, u.place AS stripe, u.players
              FROM generate_series(0, 99) AS n
              CROSS JOIN unnest(centile_store.stripe_totals(p_ranking_id, n::smallint)) WITH ORDINALITY AS u (players, place)) c
            ON c.bucket = s.bucket AND c.stripe = s.stripe
        WHERE s.players IS DISTINCT FROM c.players
        UNION ALL
        SELECT 'bucket count', format('bucket %s', n), n, 0,
               coalesce(s.players, 0), coalesce(c.players, 0)
        FROM generate_series(0, 99) AS n
        LEFT JOIN (SELECT s.bucket, sum(s.players)::bigint AS players FROM in_stripe s GROUP BY s.bucket) s ON s.bucket = n
        LEFT JOIN unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS c (players, place) ON c.place = n + 1
        WHERE coalesce(s.players, 0) <> coalesce(c.players, 0)
    ), numbered AS (
        SELECT d.*, count(*) OVER (PARTITION BY d.kind) AS total, row_number() OVER (PARTITION BY d.kind ORDER BY d.user_id) AS n
        FROM (SELECT * FROM entry UNION ALL SELECT * FROM bucket_row) d
    )
    SELECT d.kind, centile_store.player_label(d.user_id), d.expected, d.found, d.total
    FROM numbered d WHERE d.n <= p_limit
    UNION ALL
    SELECT m.kind, m.subject, to_jsonb(m.expected), to_jsonb(m.found), m.total
    FROM (SELECT m.*, count(*) OVER (PARTITION BY m.kind) AS total, row_number() OVER (PARTITION BY m.kind ORDER BY m.bucket, m.stripe) AS n
          FROM miscounted m) m
    WHERE m.n <= p_limit;
END
$$;

COMMENT ON FUNCTION centile_store.ranking_differences(bigint, integer) IS
'Where entries, bucket rows and counts of a ranking differ from the ledger. Example: SELECT * FROM centile_store.ranking_differences(1, 10);';
