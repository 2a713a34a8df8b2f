CREATE OR REPLACE FUNCTION centile_store.closed_board(p_board_id integer, p_period centile_store.periods) RETURNS SETOF centile_store.closed_boards
LANGUAGE plpgsql STABLE ROWS 1
AS $$
DECLARE
    v_first bigint := centile_store.first_closed_id(p_period.ends_at);
BEGIN
    RETURN QUERY SELECT * FROM centile_store.closed_boards c
    WHERE c.id >= v_first AND c.id < v_first + (1::bigint << 40) AND c.board_id = p_board_id AND c.period_id = p_period.id;
END
$$;

COMMENT ON FUNCTION centile_store.closed_board(integer, centile_store.periods) IS
'The results of a template''s board in a closed period. Example: SELECT c.players FROM centile_store.periods p CROSS JOIN LATERAL centile_store.closed_board(1, p) c WHERE p.id = 0;';
