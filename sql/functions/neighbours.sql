-- The players up to p_around places above and below a key, and the key's own: each with its step from the key, negative above it, and
-- on shared boards with the step of the first player of the same score. Where that one stands above the stretch, its place is not
-- known from here: then all players with a better score are counted. p_bucket is the key's, where the caller knows it.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.neighbours(
    p_ranking_id bigint, p_bucket smallint, p_shared boolean, p_order text,
    p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_around integer)
RETURNS TABLE (step integer, first_equal integer, better bigint, user_id text, user_name text, avatar text, score bigint,
               reached_at timestamptz)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH key AS MATERIALIZED (
        -- One more above than is asked for shows whether the first player's equals go on there.
        SELECT k.rank_key, k.tie_key, k.user_key, -k.ordinal::integer AS step
        FROM centile_store.keys_up(p_ranking_id, p_bucket, p_rank_key, p_tie_key, p_user_key, p_around + 1)
            WITH ORDINALITY AS k (rank_key, tie_key, user_key, ordinal)
        UNION ALL
        SELECT k.rank_key, k.tie_key, k.user_key, k.ordinal::integer - 1
        FROM centile_store.keys_down(p_ranking_id, p_bucket, p_rank_key, p_tie_key, p_user_key, p_around + 1)
            WITH ORDINALITY AS k (rank_key, tie_key, user_key, ordinal)
    ), place AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, k.step,
               CASE WHEN p_shared THEN min(k.step) OVER (PARTITION BY k.rank_key) ELSE k.step END AS first_equal
        FROM key k
    )
    SELECT k.step, CASE WHEN k.first_equal >= -p_around THEN k.first_equal END,
           -- The one above the stretch may not be the first either. Counted once, however many have that score.
           CASE WHEN k.first_equal < -p_around THEN (
               SELECT centile_store.count_above(p_ranking_id, f.rank_key, 9223372036854775807, 9223372036854775807)
               FROM place f WHERE f.step = -p_around - 1) END,
           u.external_id, u.name, u.avatar, centile.rank_key(k.rank_key, p_order), centile.tie_key_time(k.tie_key)
    FROM place k
    JOIN centile_store.users u ON u.id = -k.user_key
    WHERE k.step >= -p_around
    ORDER BY k.step;
END
$$;

COMMENT ON FUNCTION centile_store.neighbours(bigint, smallint, boolean, text, bigint, bigint, bigint, integer) IS
'Players around a key, by their steps from it. Example: SELECT n.* FROM centile_store.leaderboard l CROSS JOIN LATERAL centile_store.neighbours(l.ranking_id, NULL, true, ''desc'', l.rank_key, l.tie_key, -l.user_id, 2) n LIMIT 5;';
