-- p_board_id: the board, in periods of a template. In the order of ids, so that concurrent acts cannot deadlock.
CREATE OR REPLACE FUNCTION centile_store.mark_corrected(p_period_ids bigint[], p_board_id integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM FROM centile_store.periods p WHERE p.id = ANY (p_period_ids) ORDER BY p.id FOR UPDATE;
    UPDATE centile_store.periods p SET corrected_at = clock_timestamp() WHERE p.id = ANY (p_period_ids);
    INSERT INTO centile_store.corrected_boards (period_id, board_id)
    SELECT p.id, p_board_id FROM centile_store.periods p WHERE p.id = ANY (p_period_ids) AND p.board_id <> p_board_id;
END
$$;

COMMENT ON FUNCTION centile_store.mark_corrected(bigint[], integer) IS
'Marks closed periods whose archives lack a correction until their next refresh. Example: SELECT centile_store.mark_corrected(''{2}'');';
