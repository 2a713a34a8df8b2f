-- The page after a key that was once the last of a page; its player may have left since.
CREATE OR REPLACE FUNCTION centile_store.rows_after(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    -- Keys are whole, so the next lower one is the same with one less user key.
    CROSS JOIN LATERAL (SELECT p_user_key - 1 AS user_key) k
    CROSS JOIN LATERAL centile_store.rows_down(g.id, NULL, b.ties = 'shared', b.score_order, p_rank_key, p_tie_key, k.user_key,
        1 + centile_store.count_above(g.id, p_rank_key, p_tie_key, k.user_key), p_limit) r
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.rows_after(bigint, bigint, bigint, bigint, integer) IS
'Rows of a ranking below a key. Example: SELECT position, rank, user_id, score FROM centile_store.rows_after(1, 100, 0, -5, 10);';
