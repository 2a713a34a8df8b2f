-- Rows of a ranking from a key downwards, given the position of the key. On shared boards only the
-- equals of the first row can begin above it: their rank is counted, and the other ranks follow
-- from the positions. p_bucket is the bucket of the key, if the caller knows it. In plpgsql, which
-- keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.rows_down(
    p_ranking_id bigint, p_bucket smallint, p_shared boolean, p_order text, p_key centile_store.rank_key, p_position bigint, p_limit integer,
    p_tiebreak_order text DEFAULT NULL)
RETURNS SETOF centile_store.ranking_row
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH key AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, p_position + k.ordinal - 1 AS position
        FROM centile_store.keys(p_ranking_id, p_bucket, p_key, false, p_limit) WITH ORDINALITY AS k (rank_key, tie_key, user_key, ordinal)
    ), first AS MATERIALIZED (
        -- With more than a few equals above, count all better players instead.
        SELECT k.rank_key,
               CASE WHEN a.equals < 20 THEN k.position - a.equals
                    ELSE 1 + centile_store.count_above(p_ranking_id, centile_store.highest_key(k.rank_key)) END AS rank
        FROM key k
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE u.rank_key = k.rank_key) AS equals
            FROM centile_store.keys(p_ranking_id, p_bucket, (k.rank_key, k.tie_key, k.user_key)::centile_store.rank_key, true, 20) u) a
        WHERE p_shared AND k.position = p_position
    )
    SELECT k.position,
           CASE WHEN NOT p_shared THEN k.position
                ELSE coalesce(f.rank, min(k.position) OVER (PARTITION BY k.rank_key)) END,
           u.external_id, u.name, u.avatar,
           centile.rank_key(k.rank_key, p_order), centile_store.shown_time(k.tie_key, p_tiebreak_order),
           u.id, k.rank_key, k.tie_key, centile_store.shown_tiebreak(k.tie_key, p_tiebreak_order)
    FROM key k
    JOIN centile_store.users u ON u.id = -k.user_key
    LEFT JOIN first f ON f.rank_key = k.rank_key
    ORDER BY k.position;
END
$$;

COMMENT ON FUNCTION centile_store.rows_down(bigint, smallint, boolean, text, centile_store.rank_key, bigint, integer, text) IS
'Rows of a ranking from a key and its position downwards. Example: SELECT position, rank, user_id, score FROM centile_store.rows_down(1, NULL, true, ''desc'', (100, 0, 0), 4, 10);';
