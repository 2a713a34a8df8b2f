-- The player of the key may have left since the page before was read.
CREATE OR REPLACE FUNCTION centile_store.rows_after(p_ranking_id bigint, p_key centile_store.rank_key, p_limit integer)
RETURNS SETOF centile_store.ranking_row
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    -- Keys are whole numbers, so this is the next lower one.
    CROSS JOIN LATERAL (SELECT ((p_key).rank_key, (p_key).tie_key, (p_key).user_key - 1)::centile_store.rank_key AS key) k
    CROSS JOIN LATERAL centile_store.rows_down(g.id, NULL, b.ties = 'shared', b.score_order, k.key,
        1 + centile_store.count_above(g.id, k.key), p_limit, b.tiebreak_order) r
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.rows_after(bigint, centile_store.rank_key, integer) IS
'Rows of a ranking below a key. Example: SELECT position, rank, user_id, score FROM centile_store.rows_after(1, (100, 0, -5), 10);';
