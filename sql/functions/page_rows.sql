CREATE OR REPLACE FUNCTION centile_store.page_rows(p_ranking_id bigint, p_from bigint, p_limit integer) RETURNS SETOF centile_store.ranking_row
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL centile_store.key_at(g.id, p_from) k
    CROSS JOIN LATERAL centile_store.rows_down(g.id, k.bucket, b.ties = 'shared', b.score_order, k.key, p_from, p_limit, b.tiebreak_order) r
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.page_rows(bigint, bigint, integer) IS
'Rows of a ranking from a position. Example: SELECT position, rank, user_id, score FROM centile_store.page_rows(1, 1, 10);';
