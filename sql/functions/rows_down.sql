-- A stretch of a ranking with names: p_limit rows from a key (inclusive) whose position is known. On shared boards only the
-- first group of equals can begin above the stretch; its rank is counted, the others follow from the positions. p_bucket is the bucket
-- of the key, where the caller knows it.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE OR REPLACE FUNCTION centile_store.rows_down(
    p_ranking_id bigint, p_bucket smallint, p_shared boolean, p_order text,
    p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_position bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH key AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, p_position + k.ordinal - 1 AS position
        FROM centile_store.keys_down(p_ranking_id, p_bucket, p_rank_key, p_tie_key, p_user_key, p_limit)
            WITH ORDINALITY AS k (rank_key, tie_key, user_key, ordinal)
    ), first AS MATERIALIZED (
        -- Those with the same score who stand above are counted one by one; only where they are many all who are better are.
        SELECT k.rank_key,
               CASE WHEN a.equals < 20 THEN k.position - a.equals
                    ELSE centile_store.rank_of_key(p_ranking_id, true, k.rank_key, NULL, NULL) END AS rank
        FROM key k
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE u.rank_key = k.rank_key) AS equals
            FROM centile_store.keys_up(p_ranking_id, p_bucket, k.rank_key, k.tie_key, k.user_key, 20) u) a
        WHERE p_shared AND k.position = p_position
    )
    SELECT k.position,
           CASE WHEN NOT p_shared THEN k.position
                ELSE coalesce(f.rank, min(k.position) OVER (PARTITION BY k.rank_key)) END,
           u.external_id, u.name, u.avatar,
           centile.rank_key(k.rank_key, p_order), centile.tie_key_time(k.tie_key),
           u.id, k.rank_key, k.tie_key
    FROM key k
    JOIN centile_store.users u ON u.id = -k.user_key
    LEFT JOIN first f ON f.rank_key = k.rank_key
    ORDER BY k.position;
END
$$;

COMMENT ON FUNCTION centile_store.rows_down(bigint, smallint, boolean, text, bigint, bigint, bigint, bigint, integer) IS
'Rows of a ranking from a key and its position downwards. Example: SELECT position, rank, user_id, score FROM centile_store.rows_down(1, NULL, true, ''desc'', 100, 0, 0, 4, 10);';
