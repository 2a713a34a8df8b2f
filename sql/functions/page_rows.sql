-- A page of a ranking from a position.
CREATE OR REPLACE FUNCTION centile_store.page_rows(p_ranking_id bigint, p_from bigint, p_limit integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL centile_store.key_at(g.id, p_from) k
    CROSS JOIN LATERAL centile_store.rows_down(g.id, k.bucket, b.ties = 'shared', b.score_order, k.rank_key, k.tie_key, k.user_key, p_from, p_limit) r
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.page_rows(bigint, bigint, integer) IS
'Rows of a ranking from a position. Example: SELECT position, rank, user_id, score FROM centile_store.page_rows(1, 1, 10);';
