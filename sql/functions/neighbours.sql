-- The players up to p_around places above and below a key, whose bucket is given, and the key's own: each with its step from the key, negative
-- above it, and on shared boards with the step of the first player of the same score. Where that one is not near, or in another bucket, all
-- players with a better score are counted.
CREATE OR REPLACE FUNCTION centile_store.neighbours(
    p_ranking_id bigint, p_bucket smallint, p_shared boolean, p_order text,
    p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_around integer)
RETURNS TABLE (step integer, first_equal integer, better bigint, user_id text, user_name text, avatar text, score bigint,
               reached_at timestamptz)
LANGUAGE sql STABLE
AS $$
    WITH near AS MATERIALIZED (
        -- One more above than is asked for shows whether the first player's equals go on there.
        SELECT k.is_above, k.rank_key, k.tie_key, k.user_key
        FROM centile_store.bucket_keys_around(p_bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_around + 1) k
    ), found AS MATERIALIZED (
        SELECT count(*) FILTER (WHERE n.is_above) AS above, count(*) FILTER (WHERE NOT n.is_above) AS below FROM near n
    ), key AS (
        SELECT n.is_above, n.rank_key, n.tie_key, n.user_key FROM near n
        -- The bucket ends before: the rest comes from others.
        UNION ALL
        (SELECT true, k.rank_key, k.tie_key, k.user_key
         FROM centile_store.keys_up(p_ranking_id, p_bucket, p_rank_key, p_tie_key, p_user_key, p_around + 1) k
         WHERE (SELECT f.above <= p_around FROM found f)
         OFFSET (SELECT f.above FROM found f))
        UNION ALL
        (SELECT false, k.rank_key, k.tie_key, k.user_key
         FROM centile_store.keys_down(p_ranking_id, p_bucket, p_rank_key, p_tie_key, p_user_key, p_around + 1) k
         WHERE (SELECT f.below <= p_around FROM found f)
         OFFSET (SELECT f.below FROM found f))
    ), place AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, k.step,
               CASE WHEN p_shared THEN min(k.step) OVER (PARTITION BY k.rank_key) ELSE k.step END AS first_equal
        FROM (SELECT k.rank_key, k.tie_key, k.user_key,
                     (row_number() OVER (ORDER BY k.rank_key DESC, k.tie_key DESC, k.user_key DESC)
                      - 1 - count(*) FILTER (WHERE k.is_above) OVER ())::integer AS step
              FROM key k) k
    ), first AS MATERIALIZED (
        -- Read at need only: how far the equals of the one above the stretch go on. Unknown where nobody better is among so many.
        SELECT f.rank_key, CASE WHEN bool_or(u.rank_key <> f.rank_key) THEN f.step - count(*) FILTER (WHERE u.rank_key = f.rank_key) END AS step
        FROM place f
        LEFT JOIN LATERAL centile_store.bucket_keys_up(p_bucket, p_ranking_id, f.rank_key, f.tie_key, f.user_key, 24) u ON true
        WHERE f.step = -p_around - 1
        GROUP BY f.rank_key, f.step
    )
    SELECT k.step, CASE WHEN k.first_equal >= -p_around THEN k.first_equal ELSE (SELECT f.step FROM first f)::integer END,
           -- Counted once, however many have that score.
           CASE WHEN k.first_equal < -p_around THEN (
               SELECT centile_store.count_above(p_ranking_id, f.rank_key, 9223372036854775807, 9223372036854775807)
               FROM first f WHERE f.step IS NULL) END,
           u.external_id, u.name, u.avatar, centile.rank_key(k.rank_key, p_order), centile.tie_key_time(k.tie_key)
    FROM place k
    -- LIMIT keeps this a look-up by key, however many rows are expected.
    CROSS JOIN LATERAL (SELECT u.external_id, u.name, u.avatar FROM centile_store.users u WHERE u.id = -k.user_key LIMIT 1) u
    WHERE k.step >= -p_around
$$;

COMMENT ON FUNCTION centile_store.neighbours(bigint, smallint, boolean, text, bigint, bigint, bigint, integer) IS
'Players around a key, by their steps from it. Example: SELECT n.* FROM centile_store.leaderboard l CROSS JOIN LATERAL centile_store.bucket_of(l.ranking_id, l.rank_key, l.tie_key, -l.user_id) s CROSS JOIN LATERAL centile_store.neighbours(l.ranking_id, s.bucket, true, ''desc'', l.rank_key, l.tie_key, -l.user_id, 2) n LIMIT 5;';
