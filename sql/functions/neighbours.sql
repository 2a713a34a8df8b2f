-- Players around a key, and the player of the key, each with the distance in steps, negative above
-- the key. On shared boards first_equal is the step of the first player of the same score. If that
-- player is neither near nor in this bucket, "better" counts the players with a better score
-- instead.
CREATE OR REPLACE FUNCTION centile_store.neighbours(
    p_ranking_id bigint, p_bucket smallint, p_shared boolean, p_order text, p_key centile_store.rank_key, p_around integer,
    p_tiebreak_order text DEFAULT NULL)
RETURNS TABLE (step integer, first_equal integer, better bigint, user_id text, user_name text, avatar text, score bigint,
               reached_at timestamptz, tiebreak bigint)
LANGUAGE sql STABLE
AS $$
    WITH near AS MATERIALIZED (
        -- One row more than requested shows whether scores equal to the first player's continue
        -- above.
        SELECT k.is_above, k.rank_key, k.tie_key, k.user_key
        FROM centile_store.bucket_keys_around(p_bucket, p_ranking_id, p_key, p_around + 1, p_around + 1) k
    ), found AS MATERIALIZED (
        SELECT count(*) FILTER (WHERE n.is_above) AS above, count(*) FILTER (WHERE NOT n.is_above) AS below FROM near n
    ), key AS (
        SELECT n.is_above, n.rank_key, n.tie_key, n.user_key FROM near n
        -- If the bucket has too few keys, other buckets supply the rest.
        UNION ALL
        (SELECT true, k.rank_key, k.tie_key, k.user_key
         FROM centile_store.keys(p_ranking_id, p_bucket, p_key, true, p_around + 1) k
         WHERE p_bucket < 100 AND (SELECT f.above <= p_around FROM found f)
         OFFSET (SELECT f.above FROM found f))
        UNION ALL
        (SELECT false, k.rank_key, k.tie_key, k.user_key
         FROM centile_store.keys(p_ranking_id, p_bucket, p_key, false, p_around + 1) k
         WHERE p_bucket < 100 AND (SELECT f.below <= p_around FROM found f)
         OFFSET (SELECT f.below FROM found f))
    ), place AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, k.step,
               CASE WHEN p_shared THEN min(k.step) OVER (PARTITION BY k.rank_key) ELSE k.step END AS first_equal
        FROM (SELECT k.rank_key, k.tie_key, k.user_key,
                     (row_number() OVER (ORDER BY k.rank_key DESC, k.tie_key DESC, k.user_key DESC)
                      - 1 - count(*) FILTER (WHERE k.is_above) OVER ())::integer AS step
              FROM key k) k
    ), first AS MATERIALIZED (
        -- The number of equal scores above the first player; NULL if none of these keys is better.
        SELECT f.rank_key, CASE WHEN bool_or(u.rank_key <> f.rank_key) THEN f.step - count(*) FILTER (WHERE u.rank_key = f.rank_key) END AS step
        FROM place f
        LEFT JOIN LATERAL centile_store.bucket_keys_around(
            p_bucket, p_ranking_id, (f.rank_key, f.tie_key, f.user_key)::centile_store.rank_key, 24, 0) u ON true
        WHERE f.step = -p_around - 1
        GROUP BY f.rank_key, f.step
    )
    SELECT k.step, CASE WHEN k.first_equal >= -p_around THEN k.first_equal ELSE (SELECT f.step FROM first f)::integer END,
           CASE WHEN k.first_equal < -p_around THEN (
               SELECT centile_store.count_above(p_ranking_id, centile_store.highest_key(f.rank_key)) FROM first f WHERE f.step IS NULL) END,
           u.external_id, u.name, u.avatar, centile.rank_key(k.rank_key, p_order), centile_store.shown_time(k.tie_key, p_tiebreak_order),
           centile_store.shown_tiebreak(k.tie_key, p_tiebreak_order)
    FROM place k
    -- LIMIT keeps this a look-up by key, however many rows the planner expects.
    CROSS JOIN LATERAL (SELECT u.external_id, u.name, u.avatar FROM centile_store.users u WHERE u.id = -k.user_key LIMIT 1) u
    WHERE k.step >= -p_around
$$;

COMMENT ON FUNCTION centile_store.neighbours(bigint, smallint, boolean, text, centile_store.rank_key, integer, text) IS
'Players around a key, by their steps from it. Example: SELECT n.* FROM centile_store.leaderboard l CROSS JOIN LATERAL (SELECT (l.rank_key, l.tie_key, -l.user_id)::centile_store.rank_key AS key) k CROSS JOIN LATERAL centile_store.bucket_of(l.ranking_id, l.rank_key, l.tie_key, -l.user_id) s CROSS JOIN LATERAL centile_store.neighbours(l.ranking_id, s.bucket, true, ''desc'', k.key, 2) n LIMIT 5;';
